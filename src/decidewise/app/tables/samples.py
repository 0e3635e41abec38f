"""A table as samples: raw features, costs, times, groups and the problem of each; and decisions for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from decidewise.app.tables.columns import Names, TableOptions, in_words
from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.raw_values import Raw, are_dates, as_dates
from decidewise.kit.checks import FloatArray
from decidewise.problems import Problem

#: What rows are called by the usual time between two of them, in hours.
_STEPS = (("hour", 1, 1), ("day", 24, 24), ("week", 168, 168), ("month", 28 * 24, 31 * 24))


@dataclass(frozen=True, eq=False)
class TableSamples:
    """The samples of a table, one entry per sample in each array but `lines`.

    Attributes
    ----------
    lines : dict of str to ndarray
        The columns of the features, not prepared yet: of shape (n,), or with features of each item (n * d,).
    per_item : bool
        Whether the features are those of items.
    cost_names : tuple of d str
    keys : ndarray of shape (n,)
        What samples are called in messages and in results.
    title : str
        What a sample is: the name of the column of its key, or "row".
    costs : ndarray of shape (n, d), optional
    times, groups : ndarray of shape (n,), optional
    problem : Problem, optional
        If it differs by row, it has n rows.
    forecast : tuple of str
        The entries of `lines` that are a forecast: one per cost, or with features of each item a single one.
    unit : str
        The unit of the costs.
    notes : tuple of str
        What was done to the table, in sentences.
    doubts : tuple of str
        Those of the notes that deserve a look.
    share : float
        The share of the rows of the table that these are.
    """

    lines: dict[str, Raw]
    per_item: bool
    cost_names: Names
    keys: Raw
    title: str
    costs: FloatArray | None = None
    times: Raw | None = None
    groups: Raw | None = None
    problem: Problem | None = None
    forecast: Names = ()
    unit: str = ""
    notes: tuple[str, ...] = field(default_factory=tuple)
    doubts: tuple[str, ...] = ()
    share: float = 1.0

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def noun(self) -> str:
        """What a sample is called in sentences: a day, hour, week or month if that is what its keys are."""
        if self.title == "row" or not are_dates(self.keys):
            return self.title
        steps = np.diff(np.sort(as_dates(self.keys, self.title))) / np.timedelta64(1, "h")
        if not len(steps) or not steps.all():
            return "row"
        step = float(np.median(steps))
        return next((noun for noun, least, most in _STEPS if least <= step <= most), "row")

    @property
    def rows_per_year(self) -> float | None:
        """How many rows the table has per year, if they have dates that span at least four weeks."""
        if self.times is None or self.times.dtype.kind != "M":
            return None
        years = float((self.times.max() - self.times.min()) / np.timedelta64(1, "D")) / 365.25
        return (len(self) - 1) / self.share / years if years >= 28 / 365.25 else None

    def timed(self, options: TableOptions) -> TableOptions:
        """Return the options that these samples were read with, with the time that was taken by default."""
        by_default = self.times is not None and options.time is None
        return replace(options, time=options.rows) if by_default else options

    def take(self, rows: Any) -> TableSamples:
        """Return some of the samples, by their numbers."""
        rows = np.arange(len(self))[rows]
        lines = rows
        if self.per_item:
            d = len(self.cost_names)
            lines = (rows[:, np.newaxis] * d + np.arange(d)).ravel()
        by_row = {name: getattr(self, name) for name in ("keys", "costs", "times", "groups")}
        return replace(
            self,
            lines={name: column[lines] for name, column in self.lines.items()},
            problem=None if self.problem is None else self.problem.take(rows),
            **{name: column[rows] for name, column in by_row.items() if column is not None},
        )

    def features(self, prepared: TableFeatures) -> FloatArray:
        """Return the features (n, p), or (n, d, q) with those of each item."""
        made = np.asarray(prepared.transform(self.lines))  # whatever scikit-learn is set to return
        return made.reshape(len(self), len(self.cost_names), -1) if self.per_item else made

    def forecast_columns(self, prepared: TableFeatures) -> Any:
        """Return the place of the forecast among the prepared features, as `WiseRegressorCV` takes it; None without."""
        if not self.forecast:
            return None
        places = [prepared.feature_names_.index(name) for name in self.forecast]
        return places[0] if self.per_item else places


@dataclass(frozen=True, eq=False)
class TableDecisions:
    """The decision for each row of a table.

    Attributes
    ----------
    samples : TableSamples
    items : str or None
        The column of the items, if the table is long.
    predictions, decisions : ndarray of shape (n, d)
    objective : ndarray of shape (n,)
        The predicted value of each decision.
    realised, best, regret : ndarray of shape (n,), or None
        If the table has costs: what the decision cost or gained, the best decision in hindsight, and the difference;
        NaN in rows without costs.
    """

    samples: TableSamples
    items: str | None
    predictions: FloatArray
    decisions: FloatArray
    objective: FloatArray
    realised: FloatArray | None
    best: FloatArray | None
    regret: FloatArray | None

    def columns(self) -> dict[str, Any]:
        """Return a table of the shape of the input: wide with a column per item, or long with a line per item."""
        by_row = {"predicted_objective": self.objective}
        if self.regret is not None and self.realised is not None and self.best is not None:
            by_row |= {"objective": self.realised, "best_objective": self.best, "regret": self.regret}
        if self.items is None:
            return columns_like(self.samples, None, {"decision": self.decisions}, by_row)
        by_item = {"prediction": self.predictions, "decision": self.decisions}
        return columns_like(self.samples, self.items, by_item, by_row)


def columns_like(
    samples: TableSamples, items: str | None, by_item: Mapping[str, FloatArray], by_row: Mapping[str, FloatArray] = {}
) -> dict[str, Any]:
    """Return numbers (n, d) and (n,) by name as a table of the shape of the input, long if it has a column of items."""
    names = samples.cost_names
    if items is None:
        wide = {f"{what}_{name}": values[:, j] for what, values in by_item.items() for j, name in enumerate(names)}
        return {samples.title: samples.keys, **wide, **by_row}
    return {
        samples.title: np.repeat(samples.keys, len(names)),
        in_words(items): np.tile(_item_keys(names), len(samples)),
        **{what: values.ravel() for what, values in by_item.items()},
        **{what: np.repeat(values, len(names)) for what, values in by_row.items()},
    }


def _item_keys(names: Sequence[str]) -> Any:
    """Return names of items as they were in the table: whole numbers if all are."""
    whole = all(name.lstrip("-").isdigit() and name == str(int(name)) for name in names)
    return np.array(names, dtype=np.int64) if whole else names


def shown_key(key: Any) -> str:
    """Return the key of a row as text; a date without a time of day is shown without one.

    >>> shown_key(np.datetime64("2026-01-31T00:00:00")), shown_key(17)
    ('2026-01-31', '17')
    """
    if isinstance(key, np.datetime64):
        day = key.astype("datetime64[D]")
        return str(day) if key == day else str(key.astype("datetime64[s]")).replace("T", " ")
    return str(key)
