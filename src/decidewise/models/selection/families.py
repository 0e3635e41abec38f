"""What an average says: which families of models share it, what they are called, and what each stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from decidewise.models.selection.null_models import DO_NOTHING

#: The family of the candidates that are trained with the solver.
SPO_PLUS = "SPO+"
#: Ways to decide by the demand itself: its forecast, the same with its past errors, and what followed similar rows.
POINT, SCENARIOS, NEAREST = "demand forecast", "demand scenarios", "similar rows"


class FamilyWords(NamedTuple):
    """What one model of a family is called, what several are, and what a share of the family says about the data."""

    one: str
    several: str
    meaning: str = ""


_WORDS = {
    "training mean": FamilyWords(
        "the mean of past costs", "the mean of past costs", "past costs are as good as the features here"
    ),
    DO_NOTHING: FamilyWords("doing nothing", "doing nothing", "no decision may be better than any"),
    "forecasts": FamilyWords("your forecast", "your forecast", "the forecast as it is"),
    POINT: FamilyWords("a forecast of the demand", "forecasts of the demand", "the expected demand says enough"),
    SCENARIOS: FamilyWords(
        "a forecast of the demand with its past errors",
        "forecasts of the demand with their past errors",
        "errors of the forecast are alike in all rows",
    ),
    NEAREST: FamilyWords("the demand in similar rows", "the demand in similar rows", "few features, many rows"),
    "least squares": FamilyWords("least squares", "least squares", "costs are linear in the features"),
    "log links": FamilyWords("a log-linear model", "log-linear models", "effects on the costs multiply"),
    "change of measure": FamilyWords(
        "a linear model with decision weights",
        "linear models with decision weights",
        "rows count by the size of their costs",
    ),
    "iterated scale": FamilyWords(
        "a linear model by iterated WISE", "iterated WISE", "linear, and rows count by their predicted size"
    ),
    "own items": FamilyWords(
        "a linear model of each item", "linear models of each item", "items differ in how they depend on the features"
    ),
    "outliers": FamilyWords("a model for outliers", "models for outliers", "a few rows must not decide"),
    "ridge": FamilyWords(
        "a model with a ridge", "models with a ridge", "coefficients are shrunk, since rows are few or features many"
    ),
    "quadratic features": FamilyWords("a quadratic model", "quadratic models", "features act together, or bend"),
    "smooth features": FamilyWords("a smooth model", "smooth models", "costs go up and down with the features"),
    "trees": FamilyWords("trees", "trees", "thresholds and rules"),
    "corrections": FamilyWords(
        "least squares corrected by trees", "least squares corrected by trees", "a line, and what trees find beside it"
    ),
    SPO_PLUS: FamilyWords(
        "a linear model trained with the solver",
        "linear models trained with the solver",
        "fitted to the decisions themselves",
    ),
}


def words_of(family: str) -> FamilyWords:
    """Return what a family is called; a candidate of your own is one by itself.

    >>> words_of("trees").meaning, words_of("mine").one
    ('thresholds and rules', "the model 'mine'")
    """
    return _WORDS.get(family, FamilyWords(f"the model {family!r}", repr(family)))


def family_shares(model: Any) -> dict[str, float]:
    """Return the share of each family of candidates in what a fitted `WiseRegressorCV` has chosen, the largest first.

    Families are those of `notes_`; a candidate of your own is a family by itself. Shares sum to one.

    >>> from types import SimpleNamespace
    >>> weights, families = {"gamma": 0.2, "poisson": 0.3, "mine": 0.5}, {"gamma": "log links", "poisson": "log links"}
    >>> family_shares(SimpleNamespace(weights_=weights, families_=families))
    {'log links': 0.5, 'mine': 0.5}
    """
    return shares_of(model.weights_, model.families_)


def shares_of(weights: Mapping[str, float], families: Mapping[str, str]) -> dict[str, float]:
    """Return the share of each family in an average, the largest first, from weights and families by candidate."""
    shares: dict[str, float] = {}
    for name, weight in weights.items():
        family = families.get(name, name)
        shares[family] = shares.get(family, 0.0) + weight
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def explained(shares: Mapping[str, float]) -> list[tuple[float, str]]:
    """Return each share with its family, and what that stands for.

    >>> explained({"trees": 0.75, "mine": 0.25})
    [(0.75, 'trees: thresholds and rules'), (0.25, 'mine')]
    """
    return [(share, ": ".join(filter(None, [name, words_of(name).meaning]))) for name, share in shares.items()]
