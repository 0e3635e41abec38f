"""Measure whether a decision-focused model would pay: the regret it would save, the part that is noise, and advice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from decidewise.checks import FloatArray, as_features, as_integer, as_matrix, check_same_rows
from decidewise.evaluate import Interval, compare_regrets
from decidewise.models import DecisionRegressor, GeneralizedLinear, WiseRegressor, default_candidates
from decidewise.models.selection.out_of_fold import OutOfFold, Rows, affordable, folds
from decidewise.models.selection.scores import CandidateScores, reasons
from decidewise.problems.base import Problem, as_problem, check_rows

_N_RESAMPLES = 10
_EPOCHS = 10
# The solver calls per row of training SPO+: for the labels, the start, the epochs and the end.
_N_PASSES = 1 + 1 + _EPOCHS + 1
_N_PARTS = 10
# Two decisions count as the same if their entries differ by at most this fraction of the largest entry.
_SAME_DECISION = 0.01


@dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`; regrets are out of fold, in percent of the optimal value, with 95 % intervals.

    Attributes
    ----------
    least_squares : Interval or None
        The regret of plain least squares. None, here and below, if it could not be measured.
    best_name : str
        The solver-free candidate that `WiseRegressorCV` would choose.
    best : Interval
        The regret of choosing among the candidates; see `diagnose`.
    gain : Interval or None
        The regret of least squares minus `best`, from paired differences.
    spo_plus_gain : Interval or None
        `best` minus the regret of a linear or log-linear model trained with SPO+, from paired differences. None also if
        `max_solves` is too small to train one.
    floor : Interval or None
        An estimate of the regret of the best candidate with unlimited rows; see `diagnose`.
    flips : float or None
        The share of decisions, from 0 to 1, that change when the best candidate is fitted on a bootstrap sample.
    n_rows, n_solves : int
        The number of rows scored, and of solver calls, including those of steps that failed.
    advice : str
        One sentence that says what to do.
    failures : tuple of str
        One sentence for each quantity that could not be measured, with the reason.
    """

    least_squares: Interval | None
    best_name: str
    best: Interval
    gain: Interval | None
    spo_plus_gain: Interval | None
    floor: Interval | None
    flips: float | None
    n_rows: int
    n_solves: int
    advice: str
    failures: tuple[str, ...] = ()

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self._lines())
        lines = [f"{label.ljust(width)}  {value}" for label, value in self._lines()]
        return "\n".join([*lines, *self.failures, self._footnote(), self.advice])

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><th>{escape(label)}</th><td>{escape(value)}</td></tr>" for label, value in self._lines())
        remarks = "".join(f"<p>{escape(remark)}</p>" for remark in (*self.failures, self._footnote()))
        return f"<table>{cells}</table>{remarks}<p><b>{escape(self.advice)}</b></p>"

    def _lines(self) -> list[tuple[str, str]]:
        missing = "not measured"
        return [
            ("regret of least squares, %", str(self.least_squares or missing)),
            (f"regret of the best candidate, {self.best_name}", str(self.best)),
            ("regret saved by the best candidate", str(self.gain or missing)),
            ("further regret saved by SPO+", str(self.spo_plus_gain or missing)),
            ("noise: regret of the best with unlimited rows", str(self.floor or missing)),
            ("decisions changed by a resample, %", missing if self.flips is None else f"{100 * self.flips:.0f}"),
        ]

    def _footnote(self) -> str:
        return f"95 % bootstrap intervals over {self.n_rows:,} rows out of fold; {self.n_solves:,} solver calls."


def diagnose(
    problem: Problem, X: Any, costs: Any, *, cv: Any = 5, max_solves: int | None = None, random_state: int = 0
) -> Diagnosis:
    """Measure whether a decision-focused model would pay, and advise what to do.

    Parameters
    ----------
    problem : Problem
        If it differs by row, row `i` belongs to row `i` of `X` and `costs`.
    X : array-like or frame of shape (n, p), or array-like of shape (n, d, q) with features of each item
        Numeric features.
    costs : array-like or frame of shape (n, d)
    cv : int, splitter or iterable of splits
        As for `WiseRegressorCV`.
    max_solves : int, optional
        The largest number of solver calls. If it is too small to score all rows, a random part of them is scored.
        SPO+ is left out if training it would take more than half of the calls.
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

    `best` is the regret of choosing a candidate: each tenth of the rows is decided by the candidate with the lowest
    regret on the other rows. On the rows by which it was chosen, a candidate looks better than it is.

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> data = make_shortest_path(200, degree=1, seed=0)
    >>> diagnose(data.problem, data.X, data.costs).advice
    'Decisions are within noise of least squares: keep it.'
    """
    as_problem(problem)
    if max_solves is not None:
        as_integer(max_solves, name="max_solves", minimum=0)
    rng = np.random.default_rng(as_integer(random_state, name="random_state", minimum=0))
    costs = as_matrix(costs, n_columns=problem.n_costs, owner=type(problem).__name__)
    X = as_features(X, n_items=problem.n_costs)
    check_same_rows(X=X, costs=costs)
    check_rows(problem, len(costs))
    splits = folds(cv, X, costs, None, rng)
    candidates = default_candidates(X, costs, lifted=problem.has_known)
    n_training = _N_PASSES * sum(len(train) for train, _ in splits)
    trains = max_solves is None or n_training <= max_solves / 2
    budget = None if max_solves is None else max_solves - trains * n_training
    # Models scored: all candidates, the best with each half of the rows, on all rows and on the resamples, and SPO+.
    n_models = len(candidates) + 2 + (1 + _N_RESAMPLES) + trains
    held_out = OutOfFold.of(problem, X, costs, splits, affordable(splits, n_models, budget, rng))

    scores = CandidateScores.run(held_out, candidates)
    best_name = scores.names[scores.choice]
    best = candidates[best_name]
    log_link = _has_log_link(best)
    halved = held_out.halved(rng)
    steps = _Steps([f"Not fitted: {reason}" for reason in reasons(scores.names, scores.errors)])
    regrets = {"best": scores.regret_of_choosing(_N_PARTS, rng)}
    if not scores.errors[scores.names.index("least squares")]:
        regrets["least squares"] = scores.regrets[scores.names.index("least squares")]
        regrets["gain"] = regrets["least squares"] - regrets["best"]
    with steps.trying("The noise could not be measured"):
        regrets["floor"] = 2 * scores.regrets[scores.choice] - halved.regret(best)
    n_solves = scores.n_solves + halved.n_solves + (1 + _N_RESAMPLES) * len(held_out.rows)
    if trains:
        n_solves += n_training + held_out.n_solves
        with steps.trying("SPO+ could not be trained"):
            regrets["spo+ gain"] = regrets["best"] - held_out.regret(_spo_plus(problem, log_link=log_link))
    found = {row.name: row.regret for row in compare_regrets(held_out.truth, regrets, rng=rng)}
    flips = None
    with steps.trying("Resamples could not be fitted"):
        flips = _flips(problem, best, X, costs, held_out.rows, rng)
    return Diagnosis(
        least_squares=found.get("least squares"),
        best_name=best_name,
        best=found["best"],
        gain=found.get("gain"),
        spo_plus_gain=found.get("spo+ gain"),
        floor=found.get("floor"),
        flips=flips,
        n_rows=len(held_out.rows),
        n_solves=n_solves,
        advice=advise(
            best_name,
            gain=found.get("gain"),
            spo_plus_gain=found.get("spo+ gain"),
            log_link=log_link,
            exponent=best.exponent,
            n_training=_N_PASSES * len(X),
        ),
        failures=tuple(steps.failures),
    )


def advise(
    best_name: str,
    *,
    gain: Interval | None,
    spo_plus_gain: Interval | None,
    log_link: bool,
    exponent: float,
    n_training: int,
) -> str:
    """Return the advice of the first rule that applies.

    Parameters
    ----------
    best_name, gain, spo_plus_gain
        As in `Diagnosis`.
    log_link, exponent
        Whether the best candidate has a log link, and its exponent.
    n_training : int
        The solver calls that training SPO+ on all rows takes.
    """
    if spo_plus_gain is not None and spo_plus_gain.low > 0:
        link = ', link="log"' if log_link else ""
        return f'Spend {n_training:,} solver calls on SPO+: DecisionRegressor(problem, "spo+", epochs={_EPOCHS}{link}).'
    if gain is not None and gain.low <= 0:
        return "Decisions are within noise of least squares: keep it."
    if log_link:
        return f"Use the log link: {best_name!r} among the candidates of WiseRegressorCV."
    if exponent > 0:
        return f"Use the change of measure: {best_name!r} among the candidates of WiseRegressorCV."
    return f"Use another learner: {best_name!r} among the candidates of WiseRegressorCV."


def _has_log_link(candidate: WiseRegressor) -> bool:
    learner = candidate.estimator[-1] if isinstance(candidate.estimator, Pipeline) else candidate.estimator
    return isinstance(learner, GeneralizedLinear) and learner.effective_link == "log"


def _spo_plus(problem: Problem, *, log_link: bool) -> DecisionRegressor:
    return DecisionRegressor(problem, "spo+", link="log" if log_link else "identity", epochs=_EPOCHS, random_state=0)


@dataclass
class _Steps:
    """Steps that may fail without stopping the others, and the messages of those that failed."""

    failures: list[str]

    @contextmanager
    def trying(self, failure: str) -> Iterator[None]:
        try:
            yield
        except Exception as reason:  # a user's problem may raise anything
            self.failures.append(f"{failure}: {type(reason).__name__}: {reason}")


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
