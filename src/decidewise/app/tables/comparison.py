"""Which model decides best on a table, and by how much: chosen on some rows, measured on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.held_out import hold_out
from decidewise.app.tables.measured import Measured
from decidewise.app.tables.oddities import leaks
from decidewise.app.tables.samples import TableSamples
from decidewise.evaluate import Comparison, Hindsight, Interval, compare_regrets
from decidewise.evaluate.intervals import Bootstrap
from decidewise.kit.checks import FloatArray, listed, nearest_names
from decidewise.kit.doubts import said_once
from decidewise.kit.errors import InputError
from decidewise.kit.progress import Line
from decidewise.models import BlockFolds, WiseRegressorCV, default_candidates
from decidewise.models.learners.averaged import AveragedRegressor
from decidewise.models.selection import scores
from decidewise.models.selection.folds import Splits
from decidewise.models.selection.scores import none_scored, reasons
from decidewise.models.selection.sums import is_sum_over_rows
from decidewise.models.selection.time_folds import Rows
from decidewise.problems import Problem

MEAN, LEAST_SQUARES, WISE, FORECAST, AVERAGE = "training mean", "least squares", "wise", "forecast", "average"
#: The most models whose decisions are measured on the held-out rows: those above and the chosen one.
_N_MEASURED = 6


@dataclass(frozen=True)
class Choice:
    """A model chosen on training rows.

    Attributes
    ----------
    order : tuple of str
        The candidate that is chosen, or "average", and those to take if it fails, the best first.
    search : WiseRegressorCV or None
        What was tried; None if the model was named.
    estimators : dict of str to estimator
        All candidates, not fitted, and the average of the best if there are several.
    prepared : TableFeatures
    seconds : float
    """

    order: tuple[str, ...]
    search: WiseRegressorCV | None
    estimators: dict[str, Any]
    prepared: TableFeatures
    seconds: float

    @property
    def name(self) -> str:
        """The chosen candidate, or "average"."""
        return self.order[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the features, and how many candidates there was no time for."""
        statuses = [] if self.search is None else self.search.cv_results_["status"].tolist()
        if not (n_untried := statuses.count("not tried")):
            return tuple(self.prepared.notes_)
        return (
            *self.prepared.notes_,
            f"Not tried, for lack of time or calls: {n_untried} of {len(statuses)} models.",
        )

    @property
    def estimator(self) -> Any:
        """The chosen model, not fitted."""
        return clone(self.estimators[self.name])

    def model(self, name: str, menu: Mapping[str, Any]) -> Any:
        """Return a model as the rows of another menu need it, such as with a floor where costs are negative."""
        if name != AVERAGE:
            return clone(menu[name])
        members = [(member, menu[member]) for member, _ in self.estimators[AVERAGE].estimators]
        return clone(self.estimators[AVERAGE]).set_params(estimators=members)


@dataclass(frozen=True)
class TableVerdict:
    """What a comparison recommends: the headline, the table, the page, the JSON and the command of `fit` all say this.

    Attributes
    ----------
    name : str
        The model to use, as `decidewise fit --model` takes it: the challenger if it is proven to decide better than the
        baseline, otherwise the baseline.
    outcome : {"better", "unproven", "worse", "same"}
        How the challenger decides against the baseline; "same" if it is the baseline.
    """

    name: str
    outcome: Literal["better", "unproven", "worse", "same"]

    @classmethod
    def of(cls, challenger: str, baseline: str, saving: Interval) -> TableVerdict:
        """Judge by the interval of what the challenger saves."""
        if challenger == baseline:
            return cls(baseline, "same")
        if saving.low > 0:
            return cls(challenger, "better")
        return cls(baseline, "worse" if saving.high < 0 else "unproven")


@dataclass(frozen=True)
class TableComparison:
    """The result of `compare_samples`; regrets are of held-out rows.

    Attributes
    ----------
    samples : TableSamples
    choice : Choice
    challenger : str
        The best on the training rows of the models that could be measured.
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
    failures : dict of str to str
        The models that could not be measured, with the reasons.
    share : Interval or None
        The part of the baseline's regret that the challenger saves, in percent; None if the baseline has no regret.
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
    challenger: str
    baseline: str
    splits: Splits
    rows: Rows
    truth: Hindsight
    predictions: dict[str, FloatArray]
    decisions: dict[str, FloatArray]
    regrets: dict[str, FloatArray]
    table: Comparison
    failures: dict[str, str]
    share: Interval | None
    saving: Interval
    fit_seconds: dict[str, float]
    n_solves: int
    seconds: float

    @cached_property
    def leaks(self) -> list[str]:
        """The features that are almost identical to a cost on the rows that the model was chosen on."""
        return leaks(self.samples.take(self.splits[0][0]), self.choice.prepared)

    @property
    def verdict(self) -> TableVerdict:
        """Which model to use, and why."""
        return TableVerdict.of(self.challenger, self.baseline, self.saving)

    @property
    def chosen(self) -> str:
        """The name of the model to use."""
        return self.verdict.name

    @property
    def order(self) -> tuple[str, ...]:
        """The model to use, and those to take if it fails, the best first."""
        return tuple(dict.fromkeys([self.chosen, self.challenger, self.baseline, *self.choice.order]))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the table, and which models failed, in sentences."""
        search = self.choice.search
        failed = [] if search is None else reasons(search.cv_results_["candidate"], search.cv_results_["error"])
        return (
            *self.samples.notes,
            *self.choice.notes,
            *(f"Not fitted: {line.rstrip('.')}." for line in failed),
            *(f"Not measured: {name!r}: {reason.rstrip('.')}." for name, reason in self.failures.items()),
        )


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
        Numeric columns to treat as categories.
    gap : number or timedelta, optional
        Between training rows and held-out ones; see `BlockFolds`.
    average : bool
        Average models as `WiseRegressorCV` does; by default take the simplest within one standard error of the best.
    max_solves, max_seconds, jobs, seed
        As for `WiseRegressorCV`.
    name : str, optional
        A candidate to take, without any search, or "average".
    in_blocks : bool
        Whether the choice is to be fitted on a table that is read block by block: only sums over rows are tried.
    """
    begin = perf_counter()
    costs, problem = _complete(samples)
    prepared = TableFeatures(list(samples.lines), categories=categories, kept=samples.forecast).fit(samples.lines)
    X = samples.features(prepared)
    forecast = samples.forecast_columns(prepared)
    named = name not in (None, AVERAGE)
    candidates = default_candidates(X, costs, lifted=problem.has_known, forecast=forecast, every=named)
    if named and name not in candidates:
        raise InputError(f"--model: there is no candidate {name!r}{nearest_names(str(name), [*candidates, AVERAGE])}")
    if in_blocks:
        candidates = candidates.renewed(_sums(candidates, per_item=samples.per_item))
        if named and name not in candidates:
            raise InputError(
                f"--model: {name!r} needs all rows in memory, and the table is read block by block. Take one of "
                f"{listed(list(candidates), most=20)}; or, if it fits into memory, pass --no-stream."
            )
    if name is not None and named:
        return Choice((name,), None, dict(candidates), prepared, perf_counter() - begin)
    n_folds = min(5, len(samples) - 1)
    folds: Any = n_folds
    if samples.times is not None:
        n_times = len(np.unique(samples.times))
        folds = BlockFolds(max(2, min(5, n_times)), gap=0 if gap is None else gap)
    elif samples.groups is not None:
        folds = min(5, len(np.unique(samples.groups)))
    menu = {"candidates": candidates} if in_blocks else {"forecast": forecast}
    limits: dict[str, Any] = {"max_solves": max_solves, "max_seconds": max_seconds}
    search = WiseRegressorCV(problem, **menu, cv=folds, **limits, n_jobs=jobs, random_state=seed).fit(
        X, costs, groups=samples.groups if samples.times is None else None, times=samples.times
    )
    found = search.cv_results_
    estimators, averaged = dict(candidates), average or name == AVERAGE
    if averaged or len(search.members_) > 1:
        members = [(member, candidates[member]) for member in search.members_]
        weights = list(search.weights_.values())
        in_units = problem.has_known
        estimators[AVERAGE] = AveragedRegressor(members, directions=not in_units, weights=weights, n_jobs=jobs)
    simplest = found["candidate"][scores.choose(found, "one standard error")]
    ranked = [found["candidate"][place] for place in np.argsort(found["rank"]) if found["status"][place] == "scored"]
    order = dict.fromkeys([*[AVERAGE] * averaged, simplest, *ranked])
    return Choice(tuple(map(str, order)), search, estimators, prepared, perf_counter() - begin)


@said_once()
def compare_samples(
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
    in_blocks: bool = False,
) -> TableComparison:
    """Choose a model on most rows of a table, and measure on the others what it saves.

    Rows in the order of time are held out from the end, and models are fitted anew before each of four stretches of
    them, on all rows before (a rolling origin). The choice sees only the rows before the first stretch. If the chosen
    model cannot be fitted or decided there, the next best takes its place.

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
    gap, categories, average, jobs, seed, in_blocks
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
        in_blocks=in_blocks,
    )
    truth = Hindsight.of(problem.take(rows), costs[rows])
    usual = [name for name in (MEAN, FORECAST, LEAST_SQUARES, WISE) if name in choice.estimators]
    averages = [AVERAGE] * (AVERAGE in choice.estimators)
    most = None if max_solves is None else _N_MEASURED
    measured = Measured(samples, costs, choice, splits, rows, truth, most)
    with Line("Fitting models", len({*usual, choice.name, *averages})) as line:
        challenger = next((name for name in choice.order if measured.add(name, line)), None)
        for name in (*usual, *averages):
            measured.add(name, line)
    if challenger is None:
        raise none_scored(measured.failures)
    names = [name for name in dict.fromkeys([*usual, challenger, *averages]) if name in measured.found]
    regrets = {name: measured.found[name].regrets for name in names}
    baseline = next(name for name in (FORECAST, LEAST_SQUARES, MEAN, challenger) if name in regrets)
    blocks: Literal["auto"] | None = None if samples.times is None else "auto"
    table = compare_regrets(truth, regrets, baseline=baseline, rng=np.random.default_rng(seed), blocks=blocks)
    saving = next(row.mean_difference for row in table if row.name == challenger)
    saving = Interval(0.0, 0.0, 0.0) if saving is None else Interval(-saving.estimate, -saving.high, -saving.low)
    return TableComparison(
        samples=samples,
        choice=choice,
        challenger=challenger,
        baseline=baseline,
        splits=splits,
        rows=rows,
        truth=truth,
        predictions={name: measured.found[name].predictions for name in names},
        decisions={name: measured.found[name].decisions[:, : costs.shape[1]] for name in names},
        regrets=regrets,
        table=table,
        failures=measured.failures,
        share=share_saved(regrets[baseline], regrets[challenger], blocks=table.block_length, seed=seed),
        saving=saving,
        fit_seconds={name: measured.found[name].seconds for name in names},
        n_solves=(0 if choice.search is None else choice.search.n_solves_) + len(rows) + measured.n_solves,
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


def _complete(samples: TableSamples) -> tuple[FloatArray, Problem]:
    if samples.costs is None or samples.problem is None:
        raise ValueError("samples must have costs and a problem.")
    return samples.costs, samples.problem
