"""Which model decides best on a table, and by how much: chosen on some rows, measured on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.stats import rankdata

from decidewise.app.tables.choice import (
    CHOICE,
    FORECAST,
    ITERATED,
    LEAST_SQUARES,
    MEAN,
    WISE,
    Choice,
    candidates_of,
    choose,
    complete,
)
from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.samples import TableSamples, hold_out
from decidewise.evaluate import Comparison, Hindsight, Interval, compare_regrets
from decidewise.evaluate.intervals import Bootstrap
from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import InputError, said_once
from decidewise.kit.interrupts import attempt, reason_of
from decidewise.kit.progress import Line
from decidewise.kit.scaling import unit_largest
from decidewise.models.selection.families import NEAREST, POINT, SCENARIOS
from decidewise.models.selection.folds import Splits
from decidewise.models.selection.null_models import DO_NOTHING
from decidewise.models.selection.scores import none_scored, reasons
from decidewise.models.selection.time_folds import Rows
from decidewise.problems.levels.problem import of_demand
from decidewise.problems.views import lift

#: Correlations from which on a feature is a cost: of values, and of ranks, which a few extreme values do not make.
_SAME, _SAME_RANKS = 0.9999, 0.99
#: The most models whose decisions are measured on the held-out rows: the six usual ones and the choice.
_N_MEASURED = 7


@dataclass(frozen=True)
class TableVerdict:
    """What a comparison recommends: the headline, the table, the page, the JSON and the command of `fit` all say this.

    A forecast is replaced only by what is proven to decide better. Where there is none, the challenger is taken unless
    least squares are proven to decide better. What then decides worse than the null model on the held-out rows is not
    recommended: that is the forecast, or without one the training mean, or doing nothing where it decides better.

    The `outcome` says how the challenger decides against the baseline, "same" if it is the baseline; it is "no gain" if
    the null model is to be used instead of both.
    """

    name: str
    outcome: Literal["better", "unproven", "worse", "same", "no gain"]

    @classmethod
    def of(cls, challenger: str, baseline: str, saving: Interval, regrets: Mapping[str, float]) -> TableVerdict:
        """Judge by the interval of what the challenger saves, and by the mean regret of each model."""
        outcome: Literal["better", "unproven", "worse", "same"] = "unproven"
        if challenger == baseline:
            outcome = "same"
        elif saving.low > 0:
            outcome = "better"
        elif saving.high < 0:
            outcome = "worse"
        takes = outcome == "better" or (outcome == "unproven" and baseline != FORECAST)
        usable = [challenger, baseline] if takes else [baseline]
        nulls = [FORECAST if FORECAST in regrets else MEAN, DO_NOTHING]
        null = min((name for name in nulls if name in regrets), key=lambda name: regrets[name], default=baseline)
        for name in usable:
            if regrets[name] <= regrets[null]:
                return cls(name, outcome)
        return cls(null, "no gain")


@dataclass(frozen=True)
class TableComparison:
    """The result of `compare_samples`; regrets are of held-out rows, by the name of the model.

    The `choice` was made on the rows before the held-out ones. The `challenger` is "choice", or if it could not be
    measured the best candidate that could; the `baseline` is the forecast, or least squares if there is none. Both are
    the same if the choice is the baseline. The `share` is the part of the baseline's regret that the challenger saves,
    in percent, None if the baseline has no regret; `saving` is what it saves per row, in units of the costs. `n_solves`
    counts the solver calls of choosing and of measuring.
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
        return _leaks(self.samples.take(self.splits[0][0]), self.choice.prepared)

    def by_item(self, values: FloatArray) -> FloatArray:
        """Return values (n, d) of each cost as those of each item: of demand, their sums over the levels."""
        problem = self.samples.problem
        return problem.by_item(values) if of_demand(problem) else values

    def amounts(self, decisions: FloatArray) -> FloatArray:
        """Return decisions (n, d) as the table has items: of demand, the level of each."""
        problem = self.samples.problem
        return problem.levels_of(decisions) if of_demand(problem) else decisions

    @property
    def verdict(self) -> TableVerdict:
        """Which model to use, and why."""
        regrets = {name: float(own.mean()) for name, own in self.regrets.items()}
        return TableVerdict.of(self.challenger, self.baseline, self.saving, regrets)

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


class MeasuredModel(NamedTuple):
    """How a model decides held-out rows: arrays with one entry per row, and the time of its last fit."""

    predictions: FloatArray
    decisions: FloatArray
    regrets: FloatArray
    seconds: float


@dataclass
class Measured:
    """Models by what they decide for held-out rows, fitted on the training rows of each; and why others failed."""

    samples: TableSamples
    choice: Choice
    splits: Splits
    rows: Rows
    truth: Hindsight
    most: int | None
    found: dict[str, MeasuredModel] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    n_solves: int = 0

    def add(self, name: str, line: Line) -> bool:
        """Measure a model unless that is done, or `most` are; return whether it is measured."""
        tried = len(self.found) + len(self.failures)
        if name not in self.found and name not in self.failures and (self.most is None or tried < self.most):
            model = attempt(lambda: self._measure(name))
            if isinstance(model, Exception):
                self.failures[name] = reason_of(model)
            else:
                self.found[name] = model
            line.advance()
        return name in self.found

    def _measure(self, name: str) -> MeasuredModel:
        costs, problem = complete(self.samples)
        jobs = None if self.choice.search is None else self.choice.search.n_jobs
        X = self._features
        own = problem.with_demand(self.samples.demand) if of_demand(problem) else problem
        predictions, seconds = np.empty((len(self.rows), costs.shape[1])), 0.0
        for (train, test), menu in zip(self.splits, self._menus, strict=True):
            held = np.isin(self.rows, test)
            if not held.any():
                continue
            begin = perf_counter()
            model = self.choice.model(name, menu=menu, problem=own.take(train), jobs=jobs)
            model.fit(X[train], costs[train])
            seconds = perf_counter() - begin
            predictions[held] = np.reshape(model.predict(X[self.rows[held]]), (held.sum(), -1))
        lifted = self.truth.problem.lifted
        lifted_costs = lift(lifted, self.truth.problem.as_costs(predictions, name="the prediction"))
        self.n_solves += len(self.rows)
        decisions = lifted.solve(lifted_costs)
        return MeasuredModel(predictions, decisions, self.truth.regret_of(decisions), seconds)

    @cached_property
    def _features(self) -> FloatArray:
        return self.samples.features(self.choice.prepared, of_levels=True)

    @cached_property
    def _menus(self) -> list[Mapping[str, Any]]:
        """The candidates as the training rows of each split need them: a first negative cost may come late."""
        forecast = self.samples.forecast_columns(self.choice.prepared)
        return [
            candidates_of(self.samples.take(train), self._features[train], forecast=forecast, every=True)
            for train, _ in self.splits
        ]


@said_once()
def compare_samples(
    samples: TableSamples,
    *,
    test: float = 0.25,
    gap: Any = None,
    max_solves: int | None = None,
    max_seconds: float | None = None,
    seed: int = 0,
    **settings: Any,
) -> TableComparison:
    """Choose a model on most rows of a table, and measure on the others what it saves.

    Rows in the order of time are held out from the end, and models are fitted anew before each of four stretches of
    them, on all rows before (a rolling origin). The choice sees only the rows before the first stretch. If the chosen
    model cannot be fitted or decided there, the next best takes its place.

    At most half of `max_solves` measure; if they are too few to score all held-out rows, a random part of these is
    scored. Half of `max_seconds`, about, is for the choice, after which at most seven models are fitted again.
    `settings` are those of `choose`.
    """
    begin = perf_counter()
    costs, problem = complete(samples)
    rng = np.random.default_rng(seed)
    splits = hold_out(len(samples), test, rng, times=samples.times, groups=samples.groups, gap=gap)
    rows = np.sort(np.concatenate([test for _, test in splits]))
    demand_models = () if samples.demand is None else (POINT, SCENARIOS, NEAREST)
    most = _N_MEASURED + len(demand_models)
    if max_solves is not None:
        n_rows = min(len(rows), max_solves // 2 // (1 + most))
        if n_rows < 2:
            raise InputError(f"--max-solves must be at least {4 * (1 + most)}, to score two rows.")
        rows = np.sort(rng.permutation(rows)[:n_rows])
        max_solves -= (1 + most) * n_rows
    seconds = None if max_seconds is None else max_seconds / 2
    known = samples.take(splits[0][0])
    choice = choose(known, gap=gap, max_solves=max_solves, max_seconds=seconds, seed=seed, **settings)
    truth = Hindsight.of(problem.take(rows), costs[rows])
    usual = [MEAN, FORECAST, DO_NOTHING, *demand_models, LEAST_SQUARES, WISE]
    usual = [name for name in usual if name in choice.candidates]
    if FORECAST in usual and ITERATED in choice.candidates:  # it suits features in the units of the costs
        usual.append(ITERATED)
    measured = Measured(samples, choice, splits, rows, truth, None if max_solves is None else most)
    with Line("Fitting models", len(usual) + 1) as line:
        challenger = next((name for name in choice.order if measured.add(name, line)), None)
        for name in usual:
            measured.add(name, line)
    if challenger is None:
        raise none_scored(measured.failures)
    baseline = next(name for name in (FORECAST, SCENARIOS, LEAST_SQUARES, MEAN, challenger) if name in measured.found)
    if challenger == CHOICE and list(choice.weights) == [baseline]:
        challenger = baseline
    names = [name for name in dict.fromkeys([*usual, challenger]) if name in measured.found]
    regrets = {name: measured.found[name].regrets for name in names}
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


def _leaks(samples: TableSamples, prepared: TableFeatures) -> list[str]:
    """Return the prepared features that are almost identical to a cost of the same row.

    They are most likely not known when deciding.
    """
    X, costs = samples.features(prepared), samples.observed
    assert costs is not None
    targets = costs.reshape(-1, 1) if samples.per_item else costs
    left, right = unit_largest(X.reshape(len(targets), -1).T), unit_largest(targets.T)
    names = prepared.feature_names_
    found = [
        names[i]
        for i, j in np.argwhere(_correlations(left, right) > _SAME)
        if _correlations(rankdata(left[i])[np.newaxis], rankdata(right[j])[np.newaxis])[0, 0] > _SAME_RANKS
    ]
    return list(dict.fromkeys(found))


def _correlations(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the sizes of the correlations (p, d) of rows of (p, n) and (d, n); zero for constant ones."""
    left, right = (side - side.mean(axis=1, keepdims=True) for side in (left, right))
    sizes = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    found: FloatArray = np.abs(left @ right.T) / np.where(sizes > 0, sizes, np.inf)
    return found
