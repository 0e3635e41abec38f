"""Candidates that spend solver calls on training: SPO+ from the best linear models."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from decidewise.models.decision_regressor import DecisionRegressor
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.selection.folds import Splits
from decidewise.models.wise_regressor import WiseRegressor
from decidewise.problems.base import Problem

_MAX_EPOCHS = 30
# Each row is also solved for its label, at the start of training and three times at its end.
_PASSES_BESIDE_EPOCHS = 5
# The starts beside the best candidate; with features per item also those of the second line.
_PLAIN = {"wise": WiseRegressor(GeneralizedLinear())}
_PER_ITEM = {
    "wise, own intercept": WiseRegressor(GeneralizedLinear(per_item="intercept")),
    "wise iterated": WiseRegressor(GeneralizedLinear(), scale="iterated"),
}


def n_starts(*, per_item: bool) -> int:
    """Return from how many starts SPO+ is trained at the most."""
    return 1 + len(_PLAIN) + per_item * len(_PER_ITEM)


def polished(
    problem: Problem,
    ranked: dict[str, Any],
    splits: Splits,
    n_rows: int,
    train_solves: int,
    *,
    per_item: bool,
) -> tuple[dict[str, Any], str]:
    """Return candidates trained with SPO+ within a budget of solver calls, and a note on them.

    SPO+ starts from the best candidate that is linear behind its feature steps, and from plain WISE; with features per
    item also from WISE with an intercept of each item's own, and with the iterated scale. What takes too many solver
    calls is left out, the last first. The first two starts may have fewer epochs instead, but not for the other two.

    Parameters
    ----------
    ranked : dict of str to estimator
        The candidates scored, the lowest regret first.
    n_rows : int
        The number of rows of the last fit, on all rows.
    train_solves : int
        The largest number of solver calls for training, in all folds and on all rows together.
    per_item : bool
        Whether there are features per item. Candidates with feature steps, which do not take them, are then no starts.
    """
    if not train_solves:
        return {}, "left out: train_solves=0 allows no solver calls for training"
    linear = {name: parts for name, model in ranked.items() if (parts := linear_parts(model)) is not None}
    starts = dict([(name, parts) for name, parts in linear.items() if not (per_item and parts[0])][:1])
    for name, model in {**_PLAIN, **(_PER_ITEM if per_item else {})}.items():
        if not any(_decides_like(parts, model) for parts in starts.values()):
            starts.setdefault(name, ([], model))
    n_trained = sum(len(train) for train, _ in splits) + n_rows  # from one start
    least, most = ((epochs + _PASSES_BESIDE_EPOCHS) * n_trained for epochs in (1, _MAX_EPOCHS))
    n_affordable = max(min(n_starts(per_item=False), train_solves // least), train_solves // most)
    starts = dict(list(starts.items())[:n_affordable])
    if not starts:
        return (
            {},
            f"left out: one epoch takes {least:,} solver calls for training, more than train_solves={train_solves:,}",
        )
    epochs = min(_MAX_EPOCHS, train_solves // (len(starts) * n_trained) - _PASSES_BESIDE_EPOCHS)
    models = {f"spo+ from {name}": _trained(problem, *parts, epochs) for name, parts in starts.items()}
    return models, f"{epochs} epochs of SPO+ from {'; '.join(starts)}"


def linear_parts(candidate: Any) -> tuple[list[Any], WiseRegressor] | None:
    """Return the feature steps of a candidate that is linear behind them, and the candidate without them."""
    if not isinstance(candidate, WiseRegressor):
        return None
    learner = GeneralizedLinear() if candidate.estimator is None else candidate.estimator
    steps, last = (learner.steps[:-1], learner.steps[-1][1]) if isinstance(learner, Pipeline) else ([], learner)
    return (steps, clone(candidate).set_params(estimator=last)) if isinstance(last, GeneralizedLinear) else None


def _decides_like(parts: tuple[list[Any], WiseRegressor], model: WiseRegressor) -> bool:
    """Whether a start, given by its feature steps and what is behind them, decides like a given model."""
    steps, start = parts
    same = clone(start).set_params(lifted=False, scale="mean" if start.scale == "unit" else start.scale)
    return not steps and repr(same) == repr(model)


def _trained(problem: Problem, steps: list[Any], start: WiseRegressor, epochs: int) -> Any:
    model = DecisionRegressor(
        problem,
        "spo+",
        init=start,
        link=start.estimator.effective_link,
        per_item=start.estimator.per_item,
        epochs=epochs,
        random_state=0,
    )
    return Pipeline([*steps, ("spo+", model)]) if steps else model
