"""Candidates that spend solver calls on training: SPO+ from the best linear models."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from decidewise.kit.checks import FloatArray
from decidewise.models.decision_regressor import DecisionRegressor
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.selection.folds import Splits
from decidewise.models.wise_regressor import WiseRegressor
from decidewise.problems.contract import Problem

_MAX_EPOCHS = 30
# Each row is also solved for its label, at the start of training and three times at its end.
_PASSES_BESIDE_EPOCHS = 5
# As many as a batch of training has.
_ROWS_TO_TIME = 32


def polished(
    problem: Problem,
    ranked: dict[str, Any],
    splits: Splits,
    n_rows: int,
    train_solves: int,
    *,
    with_steps: bool = True,
) -> tuple[dict[str, Any], str]:
    """Return candidates trained with SPO+ within a budget of solver calls, and a note on them.

    Parameters
    ----------
    ranked : dict of str to estimator
        The candidates scored, the lowest regret first. SPO+ starts from the first of them that is linear behind its
        feature steps, and from plain WISE.
    n_rows : int
        The number of rows of the last fit, on all rows.
    train_solves : int
        The largest number of solver calls for training, in all folds and on all rows together; see `solves_within`.
    with_steps : bool
        Whether candidates with feature steps may be starts; such steps do not take features per item.
    """
    if not train_solves:
        return {}, "left out: no solver calls are allowed for training (train_solves=)"
    starts = {name: parts for name, model in ranked.items() if (parts := linear_parts(model)) is not None}
    starts = {name: parts for name, parts in starts.items() if with_steps or not parts[0]}
    first = dict(list(starts.items())[:1])
    if not any(_is_plain_wise(*parts) for parts in first.values()):
        first.setdefault("wise", ([], WiseRegressor(GeneralizedLinear())))
    n_trained = sum(len(train) for train, _ in splits) + n_rows  # from one start
    least = (1 + _PASSES_BESIDE_EPOCHS) * n_trained
    first = dict(list(first.items())[: train_solves // least])  # the best one alone, where both would take too many
    epochs = min(_MAX_EPOCHS, train_solves // (max(1, len(first)) * n_trained) - _PASSES_BESIDE_EPOCHS)
    if not first:
        takes = f"left out: one epoch takes {least:,} solver calls for training"
        return {}, f"{takes}, more than the {train_solves:,} that are allowed"
    models = {f"spo+ from {name}": _trained(problem, *parts, epochs) for name, parts in first.items()}
    n_solves = (epochs + _PASSES_BESIDE_EPOCHS) * n_trained * len(first)
    return models, f"{epochs} epochs from {' and '.join(first)}, with up to {n_solves:,} solver calls for training"


def solves_within(problem: Problem, costs: FloatArray, seconds: float) -> int:
    """Return the number of solver calls that take about so many seconds, from the time of a batch as in training.

    >>> from decidewise.problems import TopK
    >>> solves_within(TopK(5, 2), np.ones((40, 5)), seconds=0.0)
    0
    """
    if seconds <= 0:
        return 0
    rows = np.arange(min(len(costs), _ROWS_TO_TIME))
    batch = problem.take(rows)
    batch.solve(costs[rows])  # the first call may compile
    begin = perf_counter()
    batch.solve(costs[rows])
    return int(seconds * len(rows) / max(perf_counter() - begin, 1e-9))


def gain_of(results: Mapping[str, Any], trained: Collection[str]) -> str:
    """Return what candidates trained with SPO+ took and gained, in words.

    >>> names = {"candidate": ["wise", "spo+ from wise"], "status": ["scored", "scored"]}
    >>> gain_of({**names, "regret": [3.0, 2.5], "seconds": [0.1, 0.4]}, ["spo+ from wise"])
    '0.4 seconds; the lowest regret is 3.00 % without them and 2.50 % with them'
    """
    rows = zip(results["candidate"], results["status"], results["regret"], results["seconds"], strict=True)
    scored = [(name in trained, regret, seconds) for name, status, regret, seconds in rows if status == "scored"]
    took = f"{sum(seconds for own, _, seconds in scored if own):.1f} seconds"
    without = [regret for own, regret, _ in scored if not own]
    if len(without) in (0, len(scored)):
        return took
    lowest = min(regret for _, regret, _ in scored)
    return f"{took}; the lowest regret is {min(without):.2f} % without them and {lowest:.2f} % with them"


def linear_parts(candidate: Any) -> tuple[list[Any], WiseRegressor] | None:
    """Return the feature steps of a candidate that is linear behind them, and the candidate without them."""
    if not isinstance(candidate, WiseRegressor):
        return None
    learner = GeneralizedLinear() if candidate.estimator is None else candidate.estimator
    steps, last = (learner.steps[:-1], learner.steps[-1][1]) if isinstance(learner, Pipeline) else ([], learner)
    return (steps, clone(candidate).set_params(estimator=last)) if isinstance(last, GeneralizedLinear) else None


def _is_plain_wise(steps: list[Any], start: WiseRegressor) -> bool:
    learner = start.estimator
    plain = learner.effective_link == "identity" and learner.alpha == 0 and learner.per_item == "none"
    wise = type(start) is WiseRegressor and start.exponent == 1 and start.scale in ("unit", "mean")
    return not steps and plain and wise


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
