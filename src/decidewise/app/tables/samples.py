"""A table as samples, read from a wide or a long one: raw features, costs, times, groups and the problem of each.

Also which of them a comparison holds out: no model and no choice may see these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.app.tables.columns import Names, Reading, TableOptions
from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.layouts import ONE_LINE_PER_ITEM, LongTable, WideTable, in_words
from decidewise.app.tables.raw_values import InRowError, Raw, are_dates, as_dates, as_numbers, oddities
from decidewise.kit.checks import BoolArray, FloatArray, listed, nearest_names
from decidewise.kit.errors import InputError, as_input_errors
from decidewise.models.selection.folds import Splits
from decidewise.problems import KnownCosts, PresentItems, Problem, level_costs, level_features
from decidewise.problems.levels.problem import of_demand
from decidewise.rows.columns import NamedColumns

#: What rows are called by the usual time between two of them, in hours.
_STEPS = (("hour", 1, 1), ("day", 24, 24), ("week", 168, 168), ("month", 28 * 24, 31 * 24))


@dataclass(frozen=True, eq=False)
class TableSamples:
    """The samples of a table, one entry per sample in each array but `lines`.

    Attributes
    ----------
    lines : dict of str to ndarray
        The columns of the features, not prepared yet: of shape (n,), or `per_item` (n * d,).
    keys, title : ndarray of shape (n,), str
        What samples are called in messages and in results, and the name of the column of these keys, or "row".
    forecast : tuple of str
        The entries of `lines` that are a forecast: one per cost, or with features of each item a single one.
    present : ndarray of bool, of shape (n, d), optional
        Which items a sample has, if some may be absent.
    notes, doubts : tuple of str
        What was done to the table, in sentences, and those of them that deserve a look.
    share : float
        The share of the rows of the table that these are.
    demand : ndarray of shape (n, items), optional
        What the table has in place of costs, if the problem knows what each level costs for a demand: then `costs`
        are those of the `levels` of each item, and `cost_names` and the features still those of items.
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
    present: BoolArray | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)
    doubts: tuple[str, ...] = ()
    share: float = 1.0
    demand: FloatArray | None = None
    levels: Any = None

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
        by_row = {name: getattr(self, name) for name in ("keys", "costs", "times", "groups", "present", "demand")}
        return replace(
            self,
            lines={name: column[lines] for name, column in self.lines.items()},
            problem=None if self.problem is None else self.problem.take(rows),
            **{name: column[rows] for name, column in by_row.items() if column is not None},
        )

    @property
    def observed(self) -> FloatArray | None:
        """What the table has for each item: costs, or demand."""
        return self.costs if self.demand is None else self.demand

    def features(self, prepared: TableFeatures, *, of_levels: bool = False) -> FloatArray:
        """Return the features (n, p), or (n, items, q) with those of each item; `of_levels`, (n, d, q) for demand."""
        made = np.asarray(prepared.transform(self.lines))  # whatever scikit-learn is set to return
        if self.present is not None:
            made = made * self.present.reshape(-1, 1)
        if not self.per_item:
            return made
        made = made.reshape(len(self), len(self.cost_names), -1)
        return level_features(made, self.levels) if of_levels and self.levels is not None else made

    def forecast_columns(self, prepared: TableFeatures) -> Any:
        """Return the place of the forecast among the prepared features, as `WiseRegressorCV` takes it; None without."""
        if not self.forecast:
            return None
        places = [prepared.feature_names_.index(name) for name in self.forecast]
        return places[0] if self.per_item else places


def shown_key(key: Any) -> str:
    """Return the key of a row as text; a date without a time of day is shown without one.

    >>> shown_key(np.datetime64("2026-01-31T00:00:00")), shown_key(17)
    ('2026-01-31', '17')
    """
    if isinstance(key, np.datetime64):
        day = key.astype("datetime64[D]")
        return str(day) if key == day else str(key.astype("datetime64[s]")).replace("T", " ")
    return str(key)


NO_COSTS = "no row of the table has costs; models learn from realised costs."


def read_samples(table: NamedColumns, reading: Reading) -> TableSamples:
    """Read samples from a table."""
    options = reading.options
    found = LongTable(table, reading) if options.items else WideTable(table, reading)
    lines, per_item, forecast = found.features()
    unknown = [name for name in options.categories if name not in lines] if reading.needed is None else []
    if unknown:
        raise InputError(f"--categories: there is no feature {unknown[0]!r}{nearest_names(unknown[0], list(lines))}")
    costs = found.read_costs() if reading.costs or (reading.costs is None and found.has_costs()) else None
    keys, title = found.keys()
    samples = TableSamples(
        lines, per_item, found.cost_names, keys, in_words(title), costs, forecast=forecast, unit=options.unit,
        present=found.present,
    )  # fmt: skip
    samples = replace(samples, problem=_problem(found))
    found.check_order(samples.problem)
    if reading.in_order:
        samples = replace(samples, times=_times(found), groups=_groups(found))
        if costs is not None:
            samples = _with_costs(found, samples)
    samples = _with_levels(found, samples)
    if reading.in_order:
        order = found.key_order(samples.keys)
        if samples.times is not None:
            order = order[np.argsort(samples.times[order], kind="stable")]
        samples = samples.take(order)
        if reading.needed is None:
            found.doubts += _oddities(samples)
    return replace(samples, notes=(*found.notes, *found.doubts), doubts=tuple(found.doubts))


def _oddities(samples: TableSamples) -> Iterator[str]:
    """Return sentences on the columns of numbers that look wrong, the costs last."""
    columns = {repr(name): column for name, column in samples.lines.items() if column.dtype.kind in "iuf"}
    if samples.observed is not None:
        columns["the costs" if samples.demand is None else "the demand"] = samples.observed
    return oddities(columns if len(samples) else {}, samples.title, samples.keys)  # a part may have no row with costs


def columns_of(source: Any, text: Mapping[str, Any]) -> NamedColumns:
    """Return the columns of a source, a path, frame or mapping; `text` says how text files are written."""
    from decidewise.rows.file_blocks import read_files  # noqa: PLC0415

    with as_input_errors():
        return NamedColumns.of(read_files(source, **text) if isinstance(source, str | Path) else source)


def _times(found: WideTable | LongTable) -> Raw | None:
    """Return the times of the samples, as numbers or dates, or None."""
    title = found.options.time or _keys_in_time(found)
    if title is None:
        return None
    name = found.one(title, "time")
    values = found.by_row(name)
    texts = [value for value in values.tolist() if isinstance(value, str)] if values.dtype.kind in "OU" else []
    times: Raw
    if are_dates(values) or (values.dtype.kind == "O" and not texts):
        times = as_dates(values, name)
    elif texts:
        text = next((text for text in texts if not are_dates(np.array([text]))), texts[0])
        raise InputError(
            f"--time: column {name!r} has text, such as {text[:40]!r}; it must be numbers, or dates like "
            "2026-01-31 or 2026-01-31 13:00:00."
        )
    else:
        times = as_numbers(values, name)
    gaps = np.isnat(times) if times.dtype.kind == "M" else np.isnan(times)
    if gaps.any():
        raise InRowError(f"--time: column {name!r} has no value in row \0. Drop the row.", int(gaps.argmax()) + 1)
    return times


def _keys_in_time(found: WideTable | LongTable) -> str | None:
    """Return the column of the keys of training rows if they are dates, unless they are shuffled, or in groups."""
    options = found.options
    if options.shuffle or options.groups or found.reading.needed is not None:
        return None
    if options.rows in found.table.names and are_dates(found.raw(options.rows)):
        found.notes.append(
            f"Rows are in the order of {options.rows!r}, which has dates: models are tested on what came later. "
            "--shuffle tests on random rows."
        )
        return options.rows
    dated = [name for name in found.given if are_dates(found.raw(name))]
    if dated:
        found.doubts.append(
            f"Rows are shuffled, although {dated[0]!r} has dates: --time {dated[0]!r} tests on what came later."
        )
    return None


def _groups(found: WideTable | LongTable) -> Raw | None:
    """Return the groups of the samples, or None."""
    if found.options.groups is None:
        return None
    values = found.by_row(found.one(found.options.groups, "groups"))
    return np.array([str(value) for value in values.tolist()])


def _problem(found: WideTable | LongTable) -> Problem | None:
    """Return the problem of the samples, with known costs if there are columns of them, or None."""
    file, known = found.reading.file, found.options.known
    if file is None:
        return None
    names = found.of_problem()
    problem = file.build({name: found.by_row(name) for name in names} if names else None)
    n, what = (problem.n_items, "column of demand") if of_demand(problem) else (problem.n_costs, "cost")
    if n != len(found.cost_names):
        there = len(found.cost_names)
        what = what.replace("column", "columns") if there != 1 and "column" in what else what + "s" * (there != 1)
        raise InputError(
            f"the table has {there} {what}, {listed(found.cost_names)}, and the problem of "
            f"{file.path} has {n}. --costs must select one column for each. "
            f"{'' if found.options.items else ONE_LINE_PER_ITEM}".rstrip()
        )
    if found.present is not None and of_demand(problem):
        raise InputError("--absent-items is for costs; of demand, write a line with the demand 0 for an absent item.")
    if found.present is not None:
        with as_input_errors():
            problem = PresentItems(problem, found.present)
    if known and of_demand(problem):
        raise InputError("--known: what a level costs for a demand has no known part; add it to the costs of levels.")
    if known and problem.has_known:
        raise InputError(f"--known: the problem of {file.path} has known costs already; name them once.")
    if known:
        problem = KnownCosts(problem, _finite(found.matrix(known, "known"), "known", found.cost_names))
    return problem


def _with_levels(found: WideTable | LongTable, samples: TableSamples) -> TableSamples:
    """Turn demand into what each level of each item would have cost, if the problem is one of demand."""
    problem = samples.problem
    if not of_demand(problem):
        return samples if found.reading.levels is None else replace(samples, levels=found.reading.levels)
    own = [np.asarray(of_item, dtype=np.float64).tolist() for of_item in problem.levels]
    if found.reading.levels not in (None, own):
        raise InputError("the model was fitted for other levels than the problem has. Fit it anew.")
    samples = replace(samples, levels=own)
    demand = samples.costs
    if demand is None:
        return samples
    below = np.argwhere(demand < 0)
    if len(below):
        row, item = below[0]
        raise InputError(
            f"--costs: {samples.title} {samples.keys[row]} has {demand[row, item]:g} for {samples.cost_names[item]!r}; "
            "demand must not be negative. If returns are booked as negative sales, set these to zero."
        )
    costs, there = np.full((len(demand), problem.n_costs), np.nan), np.isfinite(demand).all(axis=1)
    if there.any():
        costs[there] = level_costs(demand[there], problem.levels, problem.cost)
    return replace(samples, costs=costs, demand=demand)


def _with_costs(found: WideTable | LongTable, samples: TableSamples) -> TableSamples:
    """Leave out samples that have no costs at all; raise if some of a sample's costs are missing."""
    assert samples.costs is not None  # only samples with costs come here
    none = np.asarray(np.isnan(samples.costs).all(axis=1))
    if none.all() and found.reading.whole:
        raise InputError(NO_COSTS)
    if none.any() and found.reading.whole:
        found.notes.append(f"{int(none.sum()):,} of {len(none):,} rows have no costs yet, and are left out.")
    costs = samples.costs[~none]
    if none.any():
        samples = samples.take(~none)
    _finite(costs, "costs", samples.cost_names, samples)
    return samples


def _finite(
    values: FloatArray, argument: str, cost_names: tuple[str, ...], samples: TableSamples | None = None
) -> FloatArray:
    """Return the values (n, d); raise if one is missing."""
    bad = np.argwhere(np.isnan(values))
    if len(bad):
        row, item = bad[0]
        where = "row \0" if samples is None else f"{samples.title} {samples.keys[row]}"
        raise InRowError(
            f"--{argument}: {where} has no value for {cost_names[item]!r} ({len(bad):,} such gaps). Fill "
            "them, or clear all costs of these rows, which leaves them out.",
            *([int(row) + 1] if samples is None else []),
        )
    return values


#: Rows in the order of time are held out in so many stretches; models are fitted anew before each (a rolling origin).
N_STRETCHES = 4
_FEWEST = 8


def hold_out(
    n: int, share: float, rng: np.random.Generator, *, times: Any = None, groups: Any = None, gap: Any = None
) -> Splits:
    """Return pairs of training rows and held-out rows; the rows of the first pair are those to choose a model on.

    With `times`, in increasing order, the last `share` of the rows is held out, in stretches, each with all rows to
    train on that end a `gap` before it. Otherwise whole `groups` are held out, or without them random rows.

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
