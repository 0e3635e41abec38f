"""Which model decides best on a table, and by how much: chosen on some rows, measured on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from decidewise.checks import FloatArray, listed, nearest_names
from decidewise.errors import InputError
from decidewise.evaluate import Comparison, Hindsight, Interval, compare_regrets
from decidewise.evaluate.intervals import Bootstrap
from decidewise.models import TimeFolds, WiseRegressorCV, default_candidates
from decidewise.models.selection import scores
from decidewise.models.selection.folds import Splits
from decidewise.models.selection.sums import is_sum_over_rows
from decidewise.models.selection.time_folds import Rows
from decidewise.problems import Problem
from decidewise.progress import tracked
from decidewise.runtime.doubts import said_once
from decidewise.tables.features import TableFeatures
from decidewise.tables.held_out import hold_out
from decidewise.tables.samples import TableSamples

MEAN, LEAST_SQUARES, WISE, FORECAST, AVERAGE = "training mean", "least squares", "wise", "forecast", "average"
#: The most models whose decisions are measured on the held-out rows: those above and the chosen one.
_N_MEASURED = 6


@dataclass(frozen=True)
class Choice:
    """A model chosen on training rows.

    Attributes
    ----------
    name : str
        The candidate, or "average".
    search : WiseRegressorCV or None
        What was tried; None if the model was named.
    estimators : dict of str to estimator
        All candidates, not fitted, and the average of the best if there are several.
    prepared : TableFeatures
    seconds : float
    regret : (float, float) or None
        The regret of the chosen candidate out of fold in percent, with its standard error, if it was scored.
    """

    name: str
    search: WiseRegressorCV | None
    estimators: dict[str, Any]
    prepared: TableFeatures
    seconds: float
    regret: tuple[float, float] | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the features, and how many candidates there was no time for."""
        statuses = [] if self.search is None else self.search.cv_results_["status"].tolist()
        if not (n_untried := statuses.count("not tried")):
            return tuple(self.prepared.notes_)
        return (
            *self.prepared.notes_,
            f"{n_untried} of {len(statuses)} models were not tried, for lack of time or calls.",
        )

    @property
    def estimator(self) -> Any:
        """The chosen model, not fitted."""
        return clone(self.estimators[self.name])


@dataclass(frozen=True)
class TableComparison:
    """The result of `compare_table`; regrets are of held-out rows.

    Attributes
    ----------
    samples : TableSamples
    choice : Choice
    baseline : str
        The model that the others are compared with: the forecast, or least squares if there is none.
    splits : list of (training rows, held-out rows)
    rows : ndarray of int
        The rows that were scored.
    truth : Hindsight
        Of these rows.
    predictions, decisions : dict of str to ndarray of shape (n, d)
    regrets : dict of str to ndarray of shape (n,)
    table : Comparison
        Regrets with intervals, and their differences from the baseline.
    share : Interval or None
        The part of the baseline's regret that the chosen model saves, in percent; None if the baseline has no regret.
    saving : Interval
        What it saves per row, in units of the costs.
    fit_seconds : dict of str to float
        The time of the last fit of each model.
    n_solves : int
        The solver calls of choosing and of measuring.
    seconds : float
    """

    samples: TableSamples
    choice: Choice
    baseline: str
    splits: Splits
    rows: Rows
    truth: Hindsight
    predictions: dict[str, FloatArray]
    decisions: dict[str, FloatArray]
    regrets: dict[str, FloatArray]
    table: Comparison
    share: Interval | None
    saving: Interval
    fit_seconds: dict[str, float]
    n_solves: int
    seconds: float

    @property
    def chosen(self) -> str:
        """The name of the chosen model."""
        return self.choice.name

    @property
    def verdict(self) -> Literal["better", "unproven", "worse", "same"]:
        """Whether the chosen model decides better than the baseline: by the interval of its saving."""
        if self.chosen == self.baseline:
            return "same"
        if self.saving.low > 0:
            return "better"
        return "worse" if self.saving.high < 0 else "unproven"


def choose(
    samples: TableSamples,
    *,
    categories: tuple[str, ...] = (),
    gap: Any = None,
    average: bool = False,
    max_solves: int | None = None,
    max_seconds: float | None = None,
    jobs: int | None = None,
    seed: int = 0,
    name: str | None = None,
    in_blocks: bool = False,
) -> Choice:
    """Choose a model by its regret on held-out folds of the samples.

    Parameters
    ----------
    samples : TableSamples
        With costs and a problem.
    categories : tuple of str
        Columns of numbers that are names.
    gap : number or timedelta, optional
        Between training rows and later ones; see `TimeFolds`.
    average : bool
        Average models as `WiseRegressorCV` does; by default take the simplest within one standard error of the best.
    max_solves, max_seconds, jobs, seed
        As for `WiseRegressorCV`.
    name : str, optional
        A candidate to take, without any search.
    in_blocks : bool
        Whether the choice is to be fitted on a table that is read block by block: only sums over rows are tried.
    """
    begin = perf_counter()
    costs, problem = _complete(samples)
    prepared = TableFeatures(list(samples.lines), categories=categories, kept=samples.forecast).fit(samples.lines)
    X = samples.features(prepared)
    forecast = samples.forecast_columns(prepared)
    candidates = default_candidates(X, costs, lifted=problem.has_known, forecast=forecast)
    if name is not None and name not in candidates:
        raise InputError(f"--model: there is no candidate {name!r}{nearest_names(name, list(candidates))}")
    if in_blocks:
        candidates = candidates.renewed(_sums(candidates, per_item=samples.per_item))
        if name is not None and name not in candidates:
            raise InputError(
                f"--model: {name!r} needs all rows in memory, and the table is read block by block. Take one of "
                f"{listed(list(candidates), most=20)}; or, if it fits into memory, pass --no-stream."
            )
    if name is not None:
        return Choice(name, None, dict(candidates), prepared, perf_counter() - begin)
    n_folds = min(5, len(samples) - 1)
    folds: Any = n_folds
    if samples.times is not None:
        n_times = len(np.unique(samples.times))
        folds = TimeFolds(max(1, min(5, n_times - 1)), gap=0 if gap is None else gap)
    elif samples.groups is not None:
        folds = min(5, len(np.unique(samples.groups)))
    menu = {"candidates": candidates} if in_blocks else {"forecast": forecast}
    limits: dict[str, Any] = {"max_solves": max_solves, "max_seconds": max_seconds}
    search = WiseRegressorCV(problem, **menu, cv=folds, **limits, n_jobs=jobs, random_state=seed).fit(
        X, costs, groups=samples.groups if samples.times is None else None, times=samples.times
    )
    estimators = dict(candidates)
    if len(search.members_) > 1:
        estimators[AVERAGE] = clone(search.best_estimator_)
    simplest = search.cv_results_["candidate"][scores.choose(search.cv_results_, "one standard error")]
    chosen = AVERAGE if average and AVERAGE in estimators else str(simplest)
    return Choice(chosen, search, estimators, prepared, perf_counter() - begin, _out_of_fold(search, chosen))


@said_once()
def compare_table(
    samples: TableSamples,
    *,
    test: float = 0.25,
    gap: Any = None,
    categories: tuple[str, ...] = (),
    average: bool = False,
    max_solves: int | None = None,
    max_seconds: float | None = None,
    jobs: int | None = None,
    seed: int = 0,
) -> TableComparison:
    """Choose a model on most rows of a table, and measure on the others what it saves.

    Rows in the order of time are held out from the end, and models are fitted anew before each of four stretches of
    them, on all rows before (a rolling origin). The choice sees only the rows before the first stretch.

    Parameters
    ----------
    samples : TableSamples
        With costs and a problem.
    test : float
        The share of the rows to hold out.
    max_solves : int, optional
        The largest number of solver calls in all; at most half of them measure. If it is too small to score all
        held-out rows, a random part of them is scored.
    max_seconds : float, optional
        The largest time, about: half of it is for the choice, after which at most six models are fitted again.
    gap, categories, average, jobs, seed
        As for `choose`.
    """
    begin = perf_counter()
    costs, problem = _complete(samples)
    rng = np.random.default_rng(seed)
    splits = hold_out(len(samples), test, rng, times=samples.times, groups=samples.groups, gap=gap)
    rows = np.sort(np.concatenate([test for _, test in splits]))
    if max_solves is not None:
        n_rows = min(len(rows), max_solves // 2 // (1 + _N_MEASURED))
        if n_rows < 2:
            raise InputError(f"--max-solves must be at least {4 * (1 + _N_MEASURED)}, to score two rows.")
        rows = np.sort(rng.permutation(rows)[:n_rows])
        max_solves -= (1 + _N_MEASURED) * n_rows
    known = splits[0][0]
    choice = choose(
        samples.take(known),
        categories=categories,
        gap=gap,
        average=average,
        max_solves=max_solves,
        max_seconds=None if max_seconds is None else max_seconds / 2,
        jobs=jobs,
        seed=seed,
    )
    n_chosen = 0 if choice.search is None else choice.search.n_solves_
    X = samples.features(choice.prepared)
    names = dict.fromkeys([MEAN, FORECAST, LEAST_SQUARES, WISE, choice.name, AVERAGE])
    models = {name: choice.estimators[name] for name in names if name in choice.estimators}
    predictions, fit_seconds = _predict(models, X, costs, splits, rows)
    truth = Hindsight.of(problem.take(rows), costs[rows])
    lifted = truth.problem.lifted
    decisions = {name: lifted.solve(lifted.lift(prediction)) for name, prediction in predictions.items()}
    regrets = {name: truth.regret_of(decided) for name, decided in decisions.items()}
    baseline = FORECAST if samples.forecast else LEAST_SQUARES
    blocks: Literal["auto"] | None = None if samples.times is None else "auto"
    table = compare_regrets(truth, regrets, baseline=baseline, rng=np.random.default_rng(seed), blocks=blocks)
    saving = next(row.mean_difference for row in table if row.name == choice.name)
    saving = Interval(0.0, 0.0, 0.0) if saving is None else Interval(-saving.estimate, -saving.high, -saving.low)
    return TableComparison(
        samples=samples,
        choice=choice,
        baseline=baseline,
        splits=splits,
        rows=rows,
        truth=truth,
        predictions=predictions,
        decisions={name: decided[:, : costs.shape[1]] for name, decided in decisions.items()},
        regrets=regrets,
        table=table,
        share=share_saved(regrets[baseline], regrets[choice.name], blocks=table.block_length, seed=seed),
        saving=saving,
        fit_seconds=fit_seconds,
        n_solves=n_chosen + (1 + len(models)) * len(rows),
        seconds=perf_counter() - begin,
    )


def share_saved(before: FloatArray, after: FloatArray, *, blocks: int = 1, seed: int = 0) -> Interval | None:
    """Return what regrets (n,) save on others, in percent of these; None if hardly any of these is above zero.

    `blocks` is the number of consecutive rows that the bootstrap draws together.

    >>> share_saved(np.array([2.0, 4.0, 2.0]), np.array([1.0, 2.0, 1.0]))
    Interval(estimate=50.0, low=50.0, high=50.0)
    """
    options = Bootstrap.of(0.95, 2000, np.random.default_rng(seed), None)
    avoidable = np.maximum(before, 0.0)  # negative by rounding only
    if not avoidable.any():
        return None
    try:
        [[share]] = options.ratios((before - after)[:, np.newaxis], avoidable[:, np.newaxis], blocks)
    except ValueError:  # too few rows have any regret for every resample to have some
        return None
    return share.scaled(100)


def _sums(candidates: Mapping[str, Any], *, per_item: bool) -> dict[str, Any]:
    return {name: model for name, model in candidates.items() if is_sum_over_rows(model, per_item=per_item)}


def _out_of_fold(search: WiseRegressorCV, name: str) -> tuple[float, float] | None:
    """Return the regret of a candidate in percent with its standard error; None for the average, which has none."""
    if name == AVERAGE:
        return None
    found = search.cv_results_
    place = list(found["candidate"]).index(name)
    return float(found["regret"][place]), float(found["standard_error"][place])


def _complete(samples: TableSamples) -> tuple[FloatArray, Problem]:
    if samples.costs is None or samples.problem is None:
        raise ValueError("samples must have costs and a problem.")
    return samples.costs, samples.problem


def _predict(
    models: Mapping[str, Any], X: FloatArray, costs: FloatArray, splits: Splits, rows: Rows
) -> tuple[dict[str, FloatArray], dict[str, float]]:
    """Return predictions of some held-out rows by models fitted on the training rows of each, and the times of fits."""
    predictions = {name: np.empty((len(rows), costs.shape[1])) for name in models}
    seconds: dict[str, float] = {}
    for (train, test), name in tracked([(split, name) for split in splits for name in models], "Fitting models"):
        held = np.isin(rows, test)
        if not held.any():
            continue
        begin = perf_counter()
        model = clone(models[name]).fit(X[train], costs[train])
        seconds[name] = perf_counter() - begin
        predictions[name][held] = np.reshape(model.predict(X[rows[held]]), (held.sum(), -1))
    return predictions, seconds
