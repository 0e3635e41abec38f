"""Measure what a diagnosis says: regrets out of fold, what SPO+ and more rows would save, and how decisions change."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, time
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline

from decidewise.evaluate import compare_regrets
from decidewise.kit.batches import time_limit
from decidewise.kit.checks import FloatArray, as_features, as_integer, as_matrix, as_positive, check_same_rows
from decidewise.kit.errors import TimeLimitReached, said_once
from decidewise.kit.interrupts import is_interrupt, raise_noted, reason_of
from decidewise.models import DecisionRegressor, FlooredRegressor, GeneralizedLinear, default_candidates
from decidewise.models.candidates import given_forecasts
from decidewise.models.estimator.base import as_generator
from decidewise.models.linear.units import cost_unit
from decidewise.models.selection.folds import affordable, folds
from decidewise.models.selection.null_models import DO_NOTHING, NullModels, with_nothing
from decidewise.models.selection.out_of_fold import OutOfFold
from decidewise.models.selection.race import n_models_to_score, race
from decidewise.models.selection.scores import lowest, reasons
from decidewise.models.selection.time_folds import Rows
from decidewise.operate.diagnose.diagnosis import Diagnosis, advice_of, call_of
from decidewise.problems.contract import Problem, as_problem, check_rows

_N_RESAMPLES = 10
_EPOCHS = 10
# The solver calls per row of training SPO+, at most: for the labels, the start, the epochs, the end and two points
# between the start and the end.
_N_PASSES = 1 + 1 + _EPOCHS + 1 + 2
_N_PARTS = 10
# Two decisions count as the same if their entries differ by at most this fraction of the largest entry.
_SAME_DECISION = 0.01
#: The candidate with features of each item in which no item learns from another.
_OWN = "least squares, own coefficients"
#: The gains in a diagnosis, and the names of these differences of regrets among what is compared.
_GAINS = {
    "gain": "gain on least squares",
    "gain_on_mean": "gain on training mean",
    "gain_on_forecast": "gain on forecast",
    "gain_on_nothing": f"gain on {DO_NOTHING}",
    "spo_plus_gain": "spo+ gain",
    "gain_of_sharing": "gain of sharing",
}


@said_once()
def diagnose(
    problem: Problem,
    X: Any,
    costs: Any,
    *,
    forecast: Any = None,
    cv: Any = 5,
    groups: Any = None,
    times: Any = None,
    train_solves: int | Literal["auto"] = "auto",
    max_solves: int | None = None,
    max_seconds: float | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Diagnosis:
    """Measure whether a decision-focused model would pay, and advise what to do.

    Parameters
    ----------
    problem : Problem
        If it differs by row, row `i` belongs to row `i` of `X` and `costs`.
    X : array-like or frame of shape (n, p), or array-like of shape (n, d, q) with features of each item
        Numeric features.
    costs : array-like or frame of shape (n, d)
    forecast : list of columns of X, callable, or mapping of str to these, optional
        Forecasts that you already have; as for `WiseRegressorCV`.
    cv, groups, times
        As for `WiseRegressorCV` and its `fit`.
    train_solves : int or "auto"
        The largest number of solver calls for training SPO+, which is left out if it takes more. "auto" trains it.
    max_solves : int, optional
        The largest number of solver calls. If it is too small to score all rows, a random part of them is scored.
        SPO+ is left out if training it would take more than half of the calls.
    max_seconds : float, optional
        Approximate time limit; half of it is for the candidates. What there is no time for is not measured.
    n_jobs : int, optional
        How many candidates are scored at a time.
    random_state : int

    Returns
    -------
    Diagnosis
        Print it, or show it in a notebook.

    Notes
    -----
    The floor is the regret of the conditional mean: because of noise, no model has less. The regret of a model that can
    express the mean is the floor plus an excess inversely proportional to the number of training rows. With half the
    rows the excess doubles, so the floor is estimated as `2 · regret - regret with half the rows`. If the model can
    express the mean, this is about right, but noisy. If not, it is too high by what a better model would save.

    `best` is the regret of choosing a candidate: each tenth of the rows is decided by the candidate that the other
    rows choose, that with the lowest regret. On the rows by which it was chosen, a candidate looks better than it is.

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> data = make_shortest_path(200, degree=1, seed=0)
    >>> diagnose(data.problem, data.X, data.costs).advice
    'Use least squares: that another model decides better is not proven with these rows.'
    """
    rng = as_generator(as_integer(random_state, name="random_state", minimum=0))  # the folds of WiseRegressorCV
    seconds = np.inf if max_seconds is None else as_positive(max_seconds, name="max_seconds")
    begin = time()
    X, costs = _checked(problem, X, costs, max_solves)
    splits = folds(cv, X, costs, groups, rng, times=times)
    forecasts = given_forecasts(forecast)
    for given in forecasts.values():
        given.fit(X, costs)
    menu = default_candidates(X, costs, lifted=problem.has_known, forecast=forecast)
    candidates, n_asked = with_nothing(menu, problem, costs)
    n_training = _N_PASSES * sum(len(train) for train, _ in splits)
    trains = n_training <= _allowed(train_solves, max_solves)
    budget = None if max_solves is None else max_solves - n_asked - trains * n_training
    # Models scored: the candidates, the best with each half of the rows, on all rows and on the resamples, and SPO+.
    n_others = 2 + (1 + _N_RESAMPLES) + trains
    rows = affordable(splits, n_models_to_score(candidates, len(splits)) + n_others, budget, rng)
    held_out = OutOfFold.of(problem, X, costs, splits, rows)
    left = None if budget is None else budget - n_others * held_out.n_solves
    raced = race(held_out, candidates, n_jobs=n_jobs, max_solves=left, deadline=begin + seconds / 2)
    scores = raced.beside(NullModels.of(candidates).beaten)
    measured = dict(zip(scores.names, scores.regrets, strict=True))
    best_name = scores.names[best_index := lowest(scores.results)]
    best = candidates[best_name]
    log_link = _has_log_link(best)
    halved = held_out.halved(rng)
    missing = [
        note if status == "not tried" else "" for status, note in zip(scores.statuses, scores.notes, strict=True)
    ]
    failures = [
        *(f"Not fitted: {reason}" for reason in reasons(scores.names, scores.errors)),
        *(f"Not tried: {reason}" for reason in reasons(scores.names, missing)),
    ]
    if not trains and n_training <= _allowed(train_solves, None):
        failures += [f"SPO+ was not trained: {n_training:,} solver calls are more than half of max_solves."]
    steps = _Steps(failures, perf_counter() + begin + seconds - time())
    regrets = _compared(scores.regret_of_choosing(_N_PARTS, rng), measured, forecasts)
    with steps.trying("The regret with unlimited rows could not be measured"):
        regrets["floor"] = 2 * scores.regrets[best_index] - halved.regret(best)
    n_solves = n_asked + scores.n_solves + halved.n_solves + (1 + _N_RESAMPLES) * len(held_out.rows)
    spo_plus = _spo_plus(problem, log_link=log_link and costs.min() > 0)
    if trains:
        taken: list[int] = []
        with steps.trying("SPO+ could not be trained"):
            trained = held_out.regret(spo_plus, on_fit=lambda model: taken.append(model.n_solves_))
            regrets["spo+ gain"] = regrets["best"] - trained
        n_solves += sum(taken) + held_out.n_solves
    blocks: Literal["auto"] | None = "auto" if times is not None else None  # rows that are near in time are alike
    compared = compare_regrets(held_out.truth, regrets, rng=rng, blocks=blocks)
    found = {row.name: row.regret for row in compared}
    flips = None
    with steps.trying("Resamples could not be fitted"):
        flips = _flips(problem, best, X, costs, held_out.rows, rng)
    gains = {field: found.get(name) for field, name in _GAINS.items()}
    advice, chosen = advice_of(
        best_name,
        gains,
        log_link=log_link,
        exponent=getattr(best, "exponent", 0.0),
        iterated=getattr(best, "scale", None) == "iterated",
        n_training=_N_PASSES * len(X),
    )
    return Diagnosis(
        least_squares=found.get("least squares"),
        training_mean=found.get("training mean"),
        forecast=found.get("forecast"),
        best_name=best_name,
        best=found["best"],
        floor=found.get("floor"),
        flips=flips,
        value=float(np.abs(held_out.truth.best).mean() * cost_unit(costs[rows], power=2.0)),
        n_rows=len(held_out.rows),
        n_solves=n_solves,
        advice=advice,
        chosen=chosen,
        call=call_of(chosen, spo_plus, lifted=problem.has_known, forecast=bool(forecasts)),
        failures=(*steps.failures, *filter(None, [compared.caution, compared.unproven])),
        **gains,
    )


def _allowed(train_solves: int | Literal["auto"], max_solves: int | None) -> float:
    """Return the largest number of solver calls for training."""
    half = np.inf if max_solves is None else max_solves / 2
    return half if train_solves == "auto" else min(half, as_integer(train_solves, name="train_solves", minimum=0))


def _checked(problem: Problem, X: Any, costs: Any, max_solves: int | None) -> tuple[FloatArray, FloatArray]:
    """Return features and costs as arrays; raise if anything does not fit together."""
    as_problem(problem)
    if max_solves is not None:
        as_integer(max_solves, name="max_solves", minimum=0)
    costs = as_matrix(costs, n_columns=problem.n_costs, owner=type(problem).__name__)
    X = as_features(X, n_items=problem.n_costs)
    check_same_rows(X=X, costs=costs)
    check_rows(problem, len(costs))
    return X, costs


def _compared(
    best: FloatArray, measured: Mapping[str, FloatArray], forecasts: Collection[str]
) -> dict[str, FloatArray]:
    """Return the regrets (n,) to compare, by name: of the best candidate, of the others, and what it gains on them."""
    regrets = {"best": best}
    for name in ("least squares", "training mean", DO_NOTHING):
        if name in measured and np.isfinite(measured[name]).all():
            regrets[name] = measured[name]
    if given := [measured[name] for name in forecasts if np.isfinite(measured[name]).all()]:
        regrets["forecast"] = min(given, key=np.sum)
    regrets |= {f"gain on {name}": regret - best for name, regret in regrets.items() if name != "best"}
    if _OWN in measured and np.isfinite([measured[_OWN], measured["least squares"]]).all():
        regrets["gain of sharing"] = measured[_OWN] - measured["least squares"]
    return regrets


def _has_log_link(candidate: Any) -> bool:
    learner = getattr(candidate, "estimator", None)
    while not isinstance(learner, GeneralizedLinear):
        if isinstance(learner, Pipeline):
            learner = learner[-1]
        elif isinstance(learner, FlooredRegressor):
            learner = learner.estimator
        else:
            return isinstance(learner, TransformedTargetRegressor)  # the logarithms
    return learner.effective_link == "log"


def _spo_plus(problem: Problem, *, log_link: bool) -> DecisionRegressor:
    return DecisionRegressor(problem, "spo+", link="log" if log_link else "identity", epochs=_EPOCHS, random_state=0)


@dataclass
class _Steps:
    """Steps that may fail or be late without stopping the others, and the messages of those that were."""

    failures: list[str]
    deadline: float

    @contextmanager
    def trying(self, failure: str) -> Iterator[None]:
        try:
            with time_limit(self.deadline):
                yield
        except TimeLimitReached:
            self.failures.append(f"{failure}: max_seconds was reached.")
        except Exception as reason:  # a user's problem may raise anything
            if is_interrupt(reason):
                raise KeyboardInterrupt from reason
            self.failures.append(f"{failure}: {reason_of(reason)}")
        raise_noted()


def _flips(
    problem: Problem, model: Any, X: FloatArray, costs: FloatArray, rows: Rows, rng: np.random.Generator
) -> float:
    """Return the share of decisions that change when the model is fitted on rows drawn with replacement."""
    scored = problem.take(rows)

    def decide(sample: Any) -> FloatArray:
        return scored.solve(clone(model).fit(X[sample], costs[sample]).predict(X[rows]))

    decisions = decide(slice(None))
    tolerance = _SAME_DECISION * np.abs(decisions).max(axis=1)
    resamples = rng.integers(len(X), size=(_N_RESAMPLES, len(X)))
    return float(np.mean([np.abs(decide(sample) - decisions).max(axis=1) > tolerance for sample in resamples]))
