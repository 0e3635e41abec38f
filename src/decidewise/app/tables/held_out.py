"""The rows that a comparison holds out, which no model and no choice may see, and how each model decides on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from decidewise.app.tables.choice import Choice, complete
from decidewise.app.tables.samples import TableSamples
from decidewise.evaluate import Hindsight
from decidewise.kit.checks import BoolArray, FloatArray, as_matrix
from decidewise.kit.errors import InputError
from decidewise.kit.interrupts import attempt, reason_of
from decidewise.kit.progress import Line
from decidewise.models import default_candidates
from decidewise.models.selection.folds import Splits
from decidewise.models.selection.time_folds import Rows
from decidewise.problems.views import lift

#: Rows in the order of time are held out in so many stretches; models are fitted anew before each (a rolling origin).
N_STRETCHES = 4
_FEWEST = 8


def hold_out(
    n: int, share: float, rng: np.random.Generator, *, times: Any = None, groups: Any = None, gap: Any = None
) -> Splits:
    """Return pairs of training rows and held-out rows; the rows of the first pair are those to choose a model on.

    Parameters
    ----------
    n : int
        The number of rows.
    share : float
        The share of the rows to hold out, between 0 and 1.
    times : ndarray of shape (n,), optional
        In increasing order: the last rows are held out, in stretches, each with all rows before it to train on.
    groups : ndarray of shape (n,), optional
        Whole groups are held out. Without times and groups, random rows are.
    gap : number or timedelta, optional
        How long before a stretch its training rows end.

    Examples
    --------
    >>> [(len(train), test) for train, test in hold_out(9, 0.5, np.random.default_rng(0), times=np.arange(9))]
    [(4, array([4, 5])), (6, array([6])), (7, array([7])), (8, array([8]))]
    """
    if not 0 < share < 1:
        raise InputError(f"--test must be a share of the rows between 0 and 1; got {share:g}.")
    if n < _FEWEST:
        raise InputError(
            f"the table has {n} row{'s' * (n != 1)} with costs; a comparison needs at least {_FEWEST}. To fit a model "
            "without one, name it: fit --model 'least squares'."
        )
    if times is not None:
        return _later(times, share, gap)
    rows = np.arange(n)
    held: BoolArray
    if groups is not None:
        names = rng.permutation(np.unique(groups))
        if len(names) < 3:
            raise InputError(f"--groups: there are {len(names)} groups; holding whole groups out needs at least 3.")
        held = np.isin(groups, names[: max(1, min(len(names) - 2, round(share * len(names))))])
    else:
        held = np.zeros(n, dtype=bool)
        held[rng.permutation(n)[: min(max(2, round(share * n)), n - 2)]] = True
    return [(rows[~held], rows[held])]


def _later(times: npt.NDArray[Any], share: float, gap: Any) -> Splits:
    moments = np.unique(times)
    first = max(1, round((1 - share) * len(moments)))
    n_stretches = min(N_STRETCHES, len(moments) - first)
    if n_stretches < 1:
        raise InputError(f"--time has {len(moments)} different value{'s' * (len(moments) != 1)}; nothing comes later.")
    begins = [stretch[0] for stretch in np.array_split(moments[first:], n_stretches)]
    rows, splits = np.arange(len(times)), []
    for begin, end in zip(begins, [*begins[1:], None], strict=True):
        known = times < (begin if gap is None else begin - gap)
        if known.sum() < 2:
            raise InputError(f"--gap leaves {known.sum()} rows to train on before {begin}. Use a shorter gap.")
        held = (times >= begin) if end is None else (times >= begin) & (times < end)
        splits.append((rows[known], rows[held]))
    return splits


def as_gap(text: str | None, times: Any) -> Any:
    """Return a gap in the units of the times: a number, or for dates a number of days, hours (`"36h"`) or minutes.

    >>> as_gap("36h", np.array(["2026-01-01"], dtype="datetime64[us]"))
    np.timedelta64(36,'h')
    """
    if text is None:
        return None
    if times is None:
        raise InputError("--gap goes with --time: without times nothing comes before.")
    dates = times.dtype.kind == "M"
    unit = text[-1] if dates and text[-1:] in ("d", "h", "m") else ""
    try:
        number = float(text.removesuffix(unit))
        if not 0 <= number < float("inf"):
            raise ValueError
    except ValueError:
        how = "a number of days, or like 36h or 90m" if dates else "a number, in the units of the times"
        raise InputError(f"--gap must be {how}; got {text!r}.") from None
    if not dates:
        return number
    if number != int(number):
        raise InputError(f"--gap must be a whole number of days, hours (36h) or minutes (90m); got {text!r}.")
    return int(number) * {"h": np.timedelta64(1, "h"), "m": np.timedelta64(1, "m")}.get(unit, np.timedelta64(1, "D"))


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
        predictions, seconds = np.empty((len(self.rows), costs.shape[1])), 0.0
        for (train, test), menu in zip(self.splits, self._menus, strict=True):
            held = np.isin(self.rows, test)
            if not held.any():
                continue
            begin = perf_counter()
            model = self.choice.model(name, menu=menu, problem=problem.take(train), jobs=jobs)
            model.fit(self._features[train], costs[train])
            seconds = perf_counter() - begin
            predictions[held] = np.reshape(model.predict(self._features[self.rows[held]]), (held.sum(), -1))
        lifted = self.truth.problem.lifted
        lifted_costs = lift(lifted, as_matrix(predictions, name="the prediction"))
        self.n_solves += len(self.rows)
        decisions = lifted.solve(lifted_costs)
        return MeasuredModel(predictions, decisions, self.truth.regret_of(decisions), seconds)

    @cached_property
    def _features(self) -> FloatArray:
        return self.samples.features(self.choice.prepared)

    @cached_property
    def _menus(self) -> list[Mapping[str, Any]]:
        """The candidates as the training rows of each split need them: a first negative cost may come late."""
        forecast, lifted = self.samples.forecast_columns(self.choice.prepared), self.truth.problem.has_known
        costs, _ = complete(self.samples)
        return [
            default_candidates(self._features[train], costs[train], lifted=lifted, forecast=forecast, every=True)
            for train, _ in self.splits
        ]
