"""What an average says: which families of models share it, and what each of them stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decidewise.models.selection.null_models import DO_NOTHING

#: The family of the candidates that are trained with the solver.
SPO_PLUS = "SPO+"
#: What a share of a family says about the data.
_MEANINGS = {
    "training mean": "past costs are as good as the features here",
    DO_NOTHING: "no decision may be better than any",
    "forecasts": "the forecast as it is",
    "least squares": "costs are linear in the features",
    "log links": "effects on the costs multiply",
    "change of measure": "rows count by the size of their costs",
    "iterated scale": "linear, and rows count by their predicted size",
    "own items": "items differ in how they depend on the features",
    "outliers": "a few rows must not decide",
    "ridge": "coefficients are shrunk, since rows are few or features many",
    "quadratic features": "features act together, or bend",
    "smooth features": "costs go up and down with the features",
    "trees": "thresholds and rules",
    "corrections": "a line, and what trees find beside it",
    SPO_PLUS: "fitted to the decisions themselves",
}


def family_shares(model: Any) -> dict[str, float]:
    """Return the share of each family of candidates in what a fitted `WiseRegressorCV` has chosen, the largest first.

    Families are those of `notes_`; a candidate of your own is a family by itself. Shares sum to one.

    >>> from types import SimpleNamespace
    >>> weights, families = {"gamma": 0.2, "poisson": 0.3, "mine": 0.5}, {"gamma": "log links", "poisson": "log links"}
    >>> family_shares(SimpleNamespace(weights_=weights, families_=families))
    {'log links': 0.5, 'mine': 0.5}
    """
    shares: dict[str, float] = {}
    for name, weight in model.weights_.items():
        family = model.families_.get(name, name)
        shares[family] = shares.get(family, 0.0) + weight
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def explained(shares: Mapping[str, float]) -> list[tuple[float, str]]:
    """Return each share with its family, and what that stands for.

    >>> explained({"trees": 0.75, "mine": 0.25})
    [(0.75, 'trees: thresholds and rules'), (0.25, 'mine')]
    """
    return [(share, f"{name}: {_MEANINGS[name]}" if name in _MEANINGS else name) for name, share in shares.items()]
