"""Measure whether a decision-focused model would pay: the regret it would save, the part that is noise, and advice."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline

from decidewise.checks import FloatArray, as_features, as_integer, as_matrix, check_same_rows
from decidewise.evaluate import Interval, compare_regrets
from decidewise.models import DecisionRegressor, FlooredRegressor, GeneralizedLinear, default_candidates
from decidewise.models.candidates import given_forecasts
from decidewise.models.linear.units import cost_unit
from decidewise.models.selection.folds import affordable, folds
from decidewise.models.selection.out_of_fold import OutOfFold
from decidewise.models.selection.race import n_models_to_score, race
from decidewise.models.selection.scores import reasons
from decidewise.models.selection.time_folds import Rows
from decidewise.problems.base import Problem, as_problem, check_rows
from decidewise.runtime.doubts import said_once

_N_RESAMPLES = 10
_EPOCHS = 10
# The solver calls per row of training SPO+, at most: for the labels, the start, the epochs, the end and two points
# between the start and the end.
_N_PASSES = 1 + 1 + _EPOCHS + 1 + 2
_N_PARTS = 10
# One model that can be read, and whose regret is less flattered by having been chosen than the lowest.
_RULE = "one standard error"
# Two decisions count as the same if their entries differ by at most this fraction of the largest entry.
_SAME_DECISION = 0.01
#: The candidate with features of each item in which no item learns from another.
_OWN = "least squares, own coefficients"


@dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`; regrets are out of fold, in percent of the optimal value, with 95 % intervals.

    Attributes
    ----------
    least_squares, training_mean : Interval or None
        The regret of plain least squares, and of deciding every row by the mean costs. None, here and below, if it
        could not be measured.
    forecast : Interval or None
        The regret of the best of the given forecasts; None also if there are none.
    best_name : str
        The simplest candidate within one standard error of the lowest regret.
    best : Interval
        The regret of choosing among the candidates; see `diagnose`.
    gain, gain_on_mean, gain_on_forecast : Interval or None
        The regret of least squares, of the training mean and of the forecast minus `best`, from paired differences.
    spo_plus_gain : Interval or None
        `best` minus the regret of a linear or log-linear model trained with SPO+, from paired differences. None also if
        `max_solves` is too small to train one.
    gain_of_sharing : Interval or None
        With features of each item: the regret of least squares with coefficients of each item's own minus that of one
        model shared by all items. None without features of each item.
    floor : Interval or None
        An estimate of the regret of the best candidate with unlimited rows; see `diagnose`.
    flips : float or None
        The share of decisions, from 0 to 1, that change when the best candidate is fitted on a bootstrap sample.
    value : float
        The mean absolute value of an optimal decision, in units of the costs: what 100 % is, per row.
    n_rows, n_solves : int
        The number of rows scored, and of solver calls, including those of steps that failed.
    advice : str
        One or two sentences that say what to do.
    call : str
        The call, in terms of `problem`, `X` and `costs`, whose model was measured and is advised.
    failures : tuple of str
        One sentence for each quantity that could not be measured, with the reason; and one if intervals may not hold.
    """

    least_squares: Interval | None
    training_mean: Interval | None
    forecast: Interval | None
    best_name: str
    best: Interval
    gain: Interval | None
    gain_on_mean: Interval | None
    gain_on_forecast: Interval | None
    spo_plus_gain: Interval | None
    gain_of_sharing: Interval | None
    floor: Interval | None
    flips: float | None
    value: float
    n_rows: int
    n_solves: int
    advice: str
    call: str
    failures: tuple[str, ...] = ()

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self._lines())
        lines = [f"{label.ljust(width)}  {value}" for label, value in self._lines()]
        return "\n".join([*lines, *self.failures, self._footnote(), self.advice, self.call])

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><th>{escape(label)}</th><td>{escape(value)}</td></tr>" for label, value in self._lines())
        remarks = "".join(f"<p>{escape(remark)}</p>" for remark in (*self.failures, self._footnote()))
        advice = f"<p><b>{escape(self.advice)}</b></p><pre>{escape(self.call)}</pre>"
        return f"<table>{cells}</table>{remarks}{advice}"

    def _lines(self) -> list[tuple[str, str]]:
        changed = "not measured" if self.flips is None else f"{100 * self.flips:.0f} %"
        lines = [
            ("regret of the training mean", self._shown(self.training_mean)),
            ("regret of least squares", self._shown(self.least_squares)),
            (f"regret of the best candidate, {self.best_name}", self._shown(self.best)),
            ("saved by the best candidate", self._shown(self.gain)),
            ("saved further by training with the solver (SPO+)", self._shown(self.spo_plus_gain)),
            ("regret left with this model and unlimited rows", self._shown(self.floor)),
            ("decisions that change with other rows of the same kind", changed),
        ]
        if self.forecast is not None:
            lines.insert(1, ("regret of the forecast you have", self._shown(self.forecast)))
        if self.gain_of_sharing is not None:
            lines.insert(-2, ("saved by sharing one model among the items", self._shown(self.gain_of_sharing)))
        return lines

    def _shown(self, interval: Interval | None) -> str:
        if interval is None:
            return "not measured"
        return f"{interval} %, {interval.estimate * self.value / 100:z,.3g} per row"

    def _footnote(self) -> str:
        return (
            f"In percent of the best decisions in hindsight, with 95 % bootstrap intervals over {self.n_rows:,} rows "
            f"out of fold, and in units of the costs; {self.n_solves:,} solver calls."
        )


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
    max_solves: int | None = None,
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
    max_solves : int, optional
        The largest number of solver calls. If it is too small to score all rows, a random part of them is scored.
        SPO+ is left out if training it would take more than half of the calls.
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
    rows choose, the simplest within one standard error of the lowest regret. On the rows by which it was chosen, a
    candidate looks better than it is.

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> data = make_shortest_path(200, degree=1, seed=0)
    >>> diagnose(data.problem, data.X, data.costs).advice
    'Keep least squares: that another model decides better is not proven with these rows.'
    """
    as_problem(problem)
    if max_solves is not None:
        as_integer(max_solves, name="max_solves", minimum=0)
    rng = np.random.default_rng(as_integer(random_state, name="random_state", minimum=0))
    costs = as_matrix(costs, n_columns=problem.n_costs, owner=type(problem).__name__)
    X = as_features(X, n_items=problem.n_costs)
    check_same_rows(X=X, costs=costs)
    check_rows(problem, len(costs))
    splits = folds(cv, X, costs, groups, rng, times=times)
    forecasts = given_forecasts(forecast)
    for given in forecasts.values():
        given.fit(X, costs)
    candidates = default_candidates(X, costs, lifted=problem.has_known, forecast=forecast)
    n_training = _N_PASSES * sum(len(train) for train, _ in splits)
    trains = max_solves is None or n_training <= max_solves / 2
    budget = None if max_solves is None else max_solves - trains * n_training
    # Models scored: the candidates, the best with each half of the rows, on all rows and on the resamples, and SPO+.
    n_others = 2 + (1 + _N_RESAMPLES) + trains
    rows = affordable(splits, n_models_to_score(candidates, len(splits)) + n_others, budget, rng)
    held_out = OutOfFold.of(problem, X, costs, splits, rows)
    others = n_others * held_out.n_solves
    scores = race(held_out, candidates, n_jobs=n_jobs, max_solves=None if budget is None else budget - others)
    measured = dict(zip(scores.names, scores.regrets, strict=True))
    best_index = scores.choose(_RULE)
    best_name = scores.names[best_index]
    best = candidates[best_name]
    log_link = _has_log_link(best)
    halved = held_out.halved(rng)
    steps = _Steps([f"Not fitted: {reason}" for reason in reasons(scores.names, scores.errors)])
    regrets = _compared(scores.regret_of_choosing(_N_PARTS, rng, rule=_RULE), measured, forecasts)
    with steps.trying("The regret with unlimited rows could not be measured"):
        regrets["floor"] = 2 * scores.regrets[best_index] - halved.regret(best)
    n_solves = scores.n_solves + halved.n_solves + (1 + _N_RESAMPLES) * len(held_out.rows)
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
    verdict = _Verdict(
        best_name=best_name,
        gain=found.get("gain on least squares"),
        gain_on_mean=found.get("gain on training mean"),
        gain_on_forecast=found.get("gain on forecast"),
        spo_plus_gain=found.get("spo+ gain"),
        gain_of_sharing=found.get("gain of sharing"),
        log_link=log_link,
        exponent=getattr(best, "exponent", 0.0),
        n_training=_N_PASSES * len(X),
    )
    advice, chosen = verdict.advice()
    return Diagnosis(
        least_squares=found.get("least squares"),
        training_mean=found.get("training mean"),
        forecast=found.get("forecast"),
        best_name=best_name,
        best=found["best"],
        gain=verdict.gain,
        gain_on_mean=verdict.gain_on_mean,
        gain_on_forecast=verdict.gain_on_forecast,
        spo_plus_gain=verdict.spo_plus_gain,
        gain_of_sharing=verdict.gain_of_sharing,
        floor=found.get("floor"),
        flips=flips,
        value=float(np.abs(held_out.truth.best).mean() * cost_unit(costs[rows], power=2.0)),
        n_rows=len(held_out.rows),
        n_solves=n_solves,
        advice=advice,
        call=_call(chosen, spo_plus, lifted=problem.has_known, forecast=bool(forecasts)),
        failures=(*steps.failures, *filter(None, [compared.caution])),
    )


def _compared(
    best: FloatArray, measured: Mapping[str, FloatArray], forecasts: Collection[str]
) -> dict[str, FloatArray]:
    """Return the regrets (n,) to compare, by name: of the best candidate, of the others, and what it gains on them."""
    regrets = {"best": best}
    for name in ("least squares", "training mean"):
        if np.isfinite(measured[name]).all():
            regrets[name] = measured[name]
    if forecasts:
        regrets["forecast"] = min((measured[name] for name in forecasts), key=np.sum)
    regrets |= {f"gain on {name}": regret - best for name, regret in regrets.items() if name != "best"}
    if _OWN in measured and np.isfinite([measured[_OWN], measured["least squares"]]).all():
        regrets["gain of sharing"] = measured[_OWN] - measured["least squares"]
    return regrets


@dataclass(frozen=True)
class _Verdict:
    """What the advice depends on: the gains, and what the best candidate is; see `Diagnosis`."""

    best_name: str
    gain: Interval | None
    gain_on_mean: Interval | None
    gain_on_forecast: Interval | None
    spo_plus_gain: Interval | None
    gain_of_sharing: Interval | None
    log_link: bool
    exponent: float
    n_training: int

    def advice(self) -> tuple[str, str]:
        """Return the advice, and the name of the model that it advises."""
        advice, chosen = self._first()
        if self.gain_of_sharing is not None and self.gain_of_sharing.low > 0 and "own" not in chosen:
            advice += " The shared model is what helps: with coefficients of its own, each item would decide worse."
        return advice, chosen

    def _first(self) -> tuple[str, str]:
        """Return the advice of the first rule that applies, and the name of the model that it advises."""
        if self.spo_plus_gain is not None and self.spo_plus_gain.low > 0:
            return f"Train with the solver: SPO+ pays, and takes up to {self.n_training:,} solver calls.", "spo+"
        if _unproven(self.gain_on_forecast):
            return (
                "The forecast you have is good enough: that a model decides better is not proven with these rows.",
                "forecast",
            )
        if _unproven(self.gain_on_mean):
            return (
                "Your features do not pay: that any model decides better than the mean of past costs is not proven "
                "with these rows.",
                "training mean",
            )
        if _unproven(self.gain):
            return (
                "Keep least squares: that another model decides better is not proven with these rows.",
                "least squares",
            )
        if self.log_link:
            how = "a log link, which suits effects that multiply"
        elif self.exponent > 0:
            how = "the change of measure, which suits sizes that vary"
        else:
            how = "another learner"
        return f"Use {how}: {self.best_name!r} decides better.", self.best_name


def _unproven(gain: Interval | None) -> bool:
    return gain is not None and gain.low <= 0


def _call(chosen: str, spo_plus: DecisionRegressor, *, lifted: bool, forecast: bool) -> str:
    """Return the call that fits the model that was measured."""
    if chosen == "forecast":
        return "decide(GivenForecast(forecast).fit(X, costs), problem, X)"
    if chosen == "spo+":
        parameters = {name: value for name, value in spo_plus.get_params(deep=False).items() if name != "problem"}
        given = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
        return f"DecisionRegressor(problem, {given}).fit(X, costs)"
    options = (", lifted=True" if lifted else "") + (", forecast=forecast" if forecast else "")
    return f"default_candidates(X, costs{options})[{chosen!r}].fit(X, costs)"


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
