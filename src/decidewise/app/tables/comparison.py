"""Which model decides best on a table, and by how much: chosen on some rows, measured on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any, Literal

import numpy as np

from decidewise.app.tables.choice import (
    CHOICE,
    FORECAST,
    LEAST_SQUARES,
    MEAN,
    WISE,
    Choice,
    choose,
    complete,
)
from decidewise.app.tables.held_out import Measured, hold_out
from decidewise.app.tables.oddities import leaks
from decidewise.app.tables.samples import TableSamples
from decidewise.evaluate import Comparison, Hindsight, Interval, compare_regrets
from decidewise.evaluate.intervals import Bootstrap
from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import InputError, said_once
from decidewise.kit.progress import Line
from decidewise.models.selection.folds import Splits
from decidewise.models.selection.null_models import DO_NOTHING
from decidewise.models.selection.scores import none_scored, reasons
from decidewise.models.selection.time_folds import Rows

#: The most models whose decisions are measured on the held-out rows: the five usual ones and the choice.
_N_MEASURED = 6


@dataclass(frozen=True)
class TableVerdict:
    """What a comparison recommends: the headline, the table, the page, the JSON and the command of `fit` all say this.

    A forecast is replaced only by what is proven to decide better. Where there is none, the challenger is taken unless
    least squares are proven to decide better. What then decides worse than the null model on the held-out rows is not
    recommended: that is the forecast, or without one the training mean, or doing nothing where it decides better.

    Attributes
    ----------
    name : str
        The model to use, as `decidewise fit --model` takes it.
    outcome : {"better", "unproven", "worse", "same", "no gain"}
        How the challenger decides against the baseline; "same" if it is the baseline. "no gain" if the null model is to
        be used instead of both.
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
    """The result of `compare_samples`; regrets are of held-out rows.

    Attributes
    ----------
    samples : TableSamples
    choice : Choice
        Made on the rows before the held-out ones.
    challenger : str
        "choice", or if it could not be measured the best candidate that could; the baseline if that was chosen.
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

    Parameters
    ----------
    samples : TableSamples
        With costs and a problem.
    test : float
        The share of the rows to hold out.
    max_solves : int, optional
        The largest number of solver calls in all, but for training; at most half of them measure. If it is too small to
        score all held-out rows, a random part of them is scored.
    max_seconds : float, optional
        The largest time, about: half of it is for the choice, after which at most six models are fitted again.
    gap, seed, settings
        As for `choose`.
    """
    begin = perf_counter()
    costs, problem = complete(samples)
    rng = np.random.default_rng(seed)
    splits = hold_out(len(samples), test, rng, times=samples.times, groups=samples.groups, gap=gap)
    rows = np.sort(np.concatenate([test for _, test in splits]))
    if max_solves is not None:
        n_rows = min(len(rows), max_solves // 2 // (1 + _N_MEASURED))
        if n_rows < 2:
            raise InputError(f"--max-solves must be at least {4 * (1 + _N_MEASURED)}, to score two rows.")
        rows = np.sort(rng.permutation(rows)[:n_rows])
        max_solves -= (1 + _N_MEASURED) * n_rows
    seconds = None if max_seconds is None else max_seconds / 2
    known = samples.take(splits[0][0])
    choice = choose(known, gap=gap, max_solves=max_solves, max_seconds=seconds, seed=seed, **settings)
    truth = Hindsight.of(problem.take(rows), costs[rows])
    usual = [name for name in (MEAN, FORECAST, DO_NOTHING, LEAST_SQUARES, WISE) if name in choice.candidates]
    measured = Measured(samples, choice, splits, rows, truth, None if max_solves is None else _N_MEASURED)
    with Line("Fitting models", len(usual) + 1) as line:
        challenger = next((name for name in choice.order if measured.add(name, line)), None)
        for name in usual:
            measured.add(name, line)
    if challenger is None:
        raise none_scored(measured.failures)
    baseline = next(name for name in (FORECAST, LEAST_SQUARES, MEAN, challenger) if name in measured.found)
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
