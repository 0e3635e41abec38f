"""Score the candidates on held-out rows in memory, and SPO+ after them if the solver may train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import time
from typing import Any, NamedTuple

import numpy as np

from decidewise.kit.checks import FloatArray, is_per_item
from decidewise.models.selection.folds import Splits, affordable
from decidewise.models.selection.lags import lagged
from decidewise.models.selection.null_models import NullModels
from decidewise.models.selection.out_of_fold import OutOfFold
from decidewise.models.selection.polish import gain_of, polished, solves_within
from decidewise.models.selection.race import n_models_to_score, race
from decidewise.models.selection.scores import CandidateScores
from decidewise.models.selection.weights import FittedWeights
from decidewise.problems.contract import Problem


class CandidateSearch(NamedTuple):
    """What became of the candidates: their scores, those trained with the solver, and fitted weights.

    `note` says what SPO+ took and gained, or why it was left out.
    """

    scores: CandidateScores
    trained: dict[str, Any]
    weights: dict[str, float]
    n_solves: int
    note: str


def search(
    problem: Problem,
    X: Any,
    costs: FloatArray,
    candidates: Mapping[str, Any],
    splits: Splits,
    rng: np.random.Generator,
    *,
    null: NullModels,
    averages: bool,
    lags: Sequence[int] = (),
    train_solves: Any = 0,
    max_solves: int | None = None,
    max_seconds: float = np.inf,
    n_jobs: int | None = None,
) -> CandidateSearch:
    """Score candidates; the parameters are those of `WiseRegressorCV`.

    Parameters
    ----------
    splits : list of (training rows, held-out rows)
    rng : Generator
        Draws the rows to score, where `max_solves` does not allow all.
    null : NullModels
    averages : bool
        Whether candidates will be averaged, and so need weights.
    """
    begin = time()
    baselines = lagged(costs, lags, splits)
    n_models = n_models_to_score(candidates, len(splits)) + len(baselines)
    # After the race SPO+ from two starts is scored, and the averages with equal and with fitted weights.
    n_trained, n_averages = 2 * bool(train_solves), 2 * averages
    rows = affordable(splits, n_models + n_trained + n_averages, max_solves, rng)
    held_out = OutOfFold.of(problem, X, costs, splits, rows)
    # A fit on all rows takes about as long as that of one fold.
    end = begin + max_seconds * len(splits) / (len(splits) + 1)
    settings: dict[str, Any] = {"n_jobs": n_jobs, "deadline": end}
    if max_solves is not None:
        max_solves -= n_trained * held_out.n_solves + n_averages * len(held_out.sample)
    scores = race(held_out, candidates, max_solves=max_solves, baselines=baselines, **settings).beside(null.beaten)
    if train_solves == "auto":  # as long as the search has taken, if so much time is left
        train_solves = solves_within(problem, costs, min(time() - begin, end - time()))
    ranked = {name: candidates[name] for name in scores.ranked}
    trained, note = polished(problem, ranked, splits, len(costs), train_solves, with_steps=not is_per_item(X))
    if trained:
        scores = scores.plus(race(held_out, trained, at_least_one=False, **settings))
        note = f"{note}: {gain_of(scores.results, trained)}"
    fitted = held_out.fitted_weights(scores, null.constant) if averages else FittedWeights({}, 0)
    return CandidateSearch(scores, trained, fitted.weights, scores.n_solves + fitted.n_solves, note)
