"""Wide and long tables: where samples, features and costs are in their columns."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from decidewise.app.tables.columns import Names, Reading
from decidewise.app.tables.raw_values import Raw, are_dates, as_dates, as_numbers, as_texts, check_column
from decidewise.kit.checks import FloatArray, listed, nearest_names, without
from decidewise.kit.errors import InputError
from decidewise.problems import Problem
from decidewise.problems.time_order import check_columns_in_time, check_items_in_time
from decidewise.rows.columns import NamedColumns, check_distinct, pattern_parts
from decidewise.rows.long_tables import LongLayout, own_order

ONE_LINE_PER_ITEM = "If the table has one line per item, name the keys of both: --rows and --items."
#: The feature that says which items a sample has, if some may be absent.
PRESENT = "present"
#: What may follow the name of a column of dates, and what such a part is called in words.
_PARTS = {".date": "day", ".hour": "hour", ".month": "month", ".year": "year"}


class TableColumns:
    """The columns of a table; a wide and a long one find samples in them.

    The `given` ones are those without parts of dates. The notes say what was done to the table, in sentences; doubts
    deserve a look.
    """

    def __init__(self, table: NamedColumns, reading: Reading) -> None:
        self.reading, self.options, self.like = reading, reading.options, reading.like
        self.given = table.names
        self.table = with_date_parts(table, self.options.keys)
        self.notes: list[str] = []
        self.doubts: list[str] = []

    def raw(self, name: str) -> Raw:
        """Return a column as it is."""
        return np.asarray(self.table.read(name))

    def feature(self, name: str, feature: str | None = None) -> Raw:
        """Return a column of a feature as it is; raise if it is a mixture, while rows still have their numbers."""
        values, needed = self.raw(name), self.reading.needed
        if needed is None and (feature or name) not in self.options.categories:
            check_column(name, values)
        elif needed is not None and needed.get(feature or name) == "numbers":
            as_numbers(values, name)
        return values

    def select(self, wanted: Any, argument: str) -> list[str]:
        """Return the columns that names and patterns select; raise with the nearest names if there are none."""
        return self.table.matching(wanted, argument=f"--{argument}")

    def one(self, name: str, argument: str) -> str:
        """Return the single column that a name or a pattern selects."""
        return self.table.one(name, argument=f"--{argument}")

    def of_problem(self) -> list[str]:
        """Return the columns that the problem takes."""
        patterns = () if self.reading.file is None else self.reading.file.columns
        return [name for pattern in patterns for name in self.select(pattern, "problem")]

    def of_features(self, used: Sequence[str]) -> list[str]:
        """Return the features: those that a model needs, those that are named, or all columns that are not `used`."""
        if self.reading.needed is not None:
            if missing := without(self.reading.needed, self.table.names):
                hint = nearest_names(missing[0], self.table.names)
                raise InputError(f"the table has no column {missing[0]!r}, which the model needs{hint}")
            return list(self.reading.needed)
        if self.options.features:
            return self.select(self.options.features, "features")
        named = {argument: getattr(self.options, argument) for argument in ("rows", "items", "groups", "time")}
        found = {argument: self.one(name, argument) for argument, name in named.items() if name}
        taken = {*used, *found.values(), *self.select(self.options.known, "known"), *self.of_problem()}
        keys = {found[argument] for argument in ("rows", "time") if argument in found}
        dates = [name for name in keys if name in self.given and are_dates(self.raw(name))]
        unnamed = [name for name in self.table.names if not name.strip()]
        if unnamed:
            self.notes.append("A column without a name is left out of the features.")
        return [name for name in self.given if name in dates or (name not in taken and name not in unnamed)]


def with_date_parts(table: NamedColumns, wanted: Iterable[str | None]) -> NamedColumns:
    """Return the table with the parts of dates that are wanted, such as `time.date`, as further columns.

    >>> times = np.array(["2026-01-31T23:00", "2026-02-01T00:00"], dtype="datetime64[m]")
    >>> table = with_date_parts(NamedColumns.of({"time": times}), ["time.date", "time.hour"])
    >>> table.read("time.date"), table.read("time.hour")
    (array(['2026-01-31', '2026-02-01'], dtype='datetime64[D]'), array([23,  0]))
    """
    made = {}
    for name in wanted:
        base, dot, part = (name or "").rpartition(".")
        if name and name not in table.names and dot + part in _PARTS and base in table.names:
            values = np.asarray(table.read(base))
            if are_dates(values):
                made[name] = _part(as_dates(values, name), part)
    if not made:
        return table
    return replace(
        table, names=(*table.names, *made), read=lambda name: made[name] if name in made else table.read(name)
    )


def in_words(name: str) -> str:
    """Return what a column is called in words: the part of a date, or its name.

    >>> in_words("time.date"), in_words("day")
    ('day', 'day')
    """
    return next((word for part, word in _PARTS.items() if name.endswith(part)), name)


def _part(values: Any, part: str) -> Any:
    days = values.astype("datetime64[D]")
    if part == "date":
        return days
    if part == "hour":
        return ((values - days) // np.timedelta64(1, "h")).astype(np.int64)
    if part == "month":
        return values.astype("datetime64[M]").astype(np.int64) % 12 + 1
    return values.astype("datetime64[Y]").astype(np.int64) + 1970


class WideTable(TableColumns):
    """One line per sample, and one column per cost."""

    present: None = None

    def __init__(self, table: NamedColumns, reading: Reading) -> None:
        super().__init__(table, reading)
        word = reading.word
        default = word if word == "demand" and word in self.table.names else f"{word}_*"
        self.pattern = self.options.costs or (default,)
        if self.like is None and not self.options.costs and not fnmatch.filter(self.table.names, default):
            raise InputError(self._no_costs())
        self.columns = self.select(self.pattern, "costs") if self.like is None else self._trained(self.like)
        self.mapped = [entry.partition("=") for entry in self.options.features if "=" in entry]
        if self.mapped and len(self.mapped) < len(self.options.features):
            raise InputError("--features: either all are name=pattern, for features of each item, or none is.")
        self.cost_names = _parts(self.columns, self.pattern) if self.like is None else tuple(self.like)

    def _no_costs(self) -> str:
        """Return what to do if no column has the name of a cost: take one of the families of numbers, or --items."""
        families: dict[str, int] = {}
        for name in self.table.names:
            found = re.fullmatch(r"(.*\D)\d+|(.+[_. -]).+", name)
            if found and (found[1] or self.raw(name).dtype.kind in "iuf"):
                pattern = f"{found[1] or found[2]}*"
                families[pattern] = families.get(pattern, 0) + 1
        likely = [f"--costs {pattern!r}" for pattern, n in families.items() if n > 1]
        how = (
            f"Name the {self.reading.word} columns: {' or '.join(likely[:3])}?"
            if likely
            else f"Name the {self.reading.word} columns by --costs. {ONE_LINE_PER_ITEM}"
        )
        return f"the table has no column '{self.reading.word}_*'. {how}"

    def _trained(self, like: Sequence[str]) -> list[str]:
        """Return the columns of the costs that a model was trained with, as far as the new table has them."""
        if len(self.pattern) == 1 and self.pattern[0].count("*") == 1 and self.pattern[0] not in self.table.names:
            return [self.pattern[0].replace("*", name) for name in like]
        return list(like)

    def features(self) -> tuple[dict[str, Raw], bool, Names]:
        """Return the columns of the features, whether they are those of items, and which of them are a forecast."""
        forecast = self.options.forecast
        if self.mapped:
            return self._of_items(forecast)
        names = [] if self.reading.needed is None else self.of_features(())
        columns = self._ordered(forecast, "forecast") if forecast else []
        names = names or self.of_features(self.columns)
        self._check_leaks(names)
        names += [name for name in columns if name not in names]
        return {name: self.feature(name) for name in names}, False, tuple(columns)

    def _of_items(self, forecast: Names) -> tuple[dict[str, Raw], bool, Names]:
        found = {name: pattern for name, _, pattern in self.mapped}
        names: Names = ()
        if forecast:
            same = [name for name, pattern in found.items() if forecast in ((pattern,), (name,))]
            names = (same[0] if same else "forecast",)
            if not same:
                found["forecast"] = forecast[0]
        lines: dict[str, Raw] = {}
        for name, pattern in found.items():
            if self.reading.needed is not None and name not in self.reading.needed:
                continue
            if pattern in self.table.names:
                lines[name] = np.repeat(self.feature(pattern, name), len(self.cost_names))
                continue
            columns = self._ordered((pattern,), "features")
            self._check_leaks(columns)
            lines[name] = np.stack([self.feature(column, name) for column in columns], axis=1).ravel()
        return lines, True, names

    def _check_leaks(self, names: Sequence[str]) -> None:
        leaked = [name for name in names if name in self.columns]
        if leaked:
            raise InputError(f"--features: {listed(leaked)} are costs, which are not known in advance. Leave them out.")

    def _ordered(self, patterns: Names, argument: str) -> list[str]:
        """Return one column for each cost, in their order: by what stands for the `*`, else as they are listed."""
        columns = self.select(patterns, argument)
        parts = _parts(columns, patterns)
        if set(parts) >= set(self.cost_names):
            return [columns[parts.index(name)] for name in self.cost_names]
        if len(columns) != len(self.cost_names):
            missing = [name for name in self.cost_names if name not in parts]
            raise InputError(
                f"--{argument}: {' '.join(patterns)!r} selects {len(columns)} columns, and there are "
                f"{len(self.cost_names)} costs; there is none for {listed(missing)}."
            )
        return columns

    def read_costs(self) -> FloatArray:
        """Return the costs (n, d), with NaN for gaps."""
        if missing := without(self.columns, self.table.names):
            self.one(missing[0], "costs")  # which says that it is not there
        return np.column_stack([as_numbers(self.raw(name), name) for name in self.columns])

    def has_costs(self) -> bool:
        """Whether the table has the columns of the costs."""
        return not without(self.columns, self.table.names)

    def keys(self) -> tuple[Raw, str]:
        """Return the keys of the samples, and what a sample is called."""
        title = self.options.rows or self.options.time
        if title is None or (self.like is not None and title not in self.table.names):
            return self.table.first_row + np.arange(1, self.table.n_rows + 1), "row"
        name = self.one(title, "rows" if self.options.rows else "time")
        keys = self.table.keys(name)
        if self.options.rows:
            check_distinct(keys, name)
        return keys, name

    def key_order(self, keys: Raw) -> Raw:
        """Return the order of the samples before they are sorted by time: that of the table."""
        return np.arange(len(keys))

    def check_order(self, problem: Problem | None) -> None:
        """Raise if a pattern selects costs in another order than time's."""
        if problem is not None and self.like is None:
            check_columns_in_time(problem, self.columns, self.pattern[0] if len(self.pattern) == 1 else self.pattern)

    def by_row(self, name: str) -> Raw:
        """Return a column with one entry per sample."""
        return self.raw(name)

    def matrix(self, names: Names, argument: str) -> FloatArray:
        """Return numbers (n, d) of each sample and item."""
        return np.column_stack([as_numbers(self.raw(name), name) for name in self._ordered(names, argument)])


def _parts(columns: Sequence[str], patterns: Names) -> Names:
    """Return what stands for the `*` of a single pattern in each column; otherwise the columns themselves."""
    return pattern_parts(columns, patterns[0] if len(patterns) == 1 else patterns)


class LongTable(TableColumns):
    """One line per sample and item."""

    def __init__(self, table: NamedColumns, reading: Reading) -> None:
        super().__init__(table, reading)
        options = self.options
        if options.rows is None:
            raise InputError("--items makes the table long, which needs the column of the sample keys as well: --rows.")
        rows, items = self.one(options.rows, "rows"), self.one(str(options.items), "items")
        order = list(options.item_order if self.like is None else self.like) or None
        trained = self.like is not None
        if options.absent_items and not (reading.whole or order):
            raise InputError(
                "--absent-items of a table that is read in blocks needs the names of all items: --item-order."
            )
        self.layout = LongLayout.of(
            self.table, rows, items, order, reading.as_listed, trained=trained, absent_items=options.absent_items
        )
        self.present = self.layout.present if options.absent_items else None
        self.order = self.layout.lines
        if self.present is not None:
            self._add_present()
        self.cost_names = self.layout.items
        self.wanted = options.costs[0] if options.costs else reading.word
        self.cost = None if trained else self.one(self.wanted, "costs")

    def _add_present(self) -> None:
        """Add a feature that says which items a sample has."""
        if PRESENT in self.table.names:
            raise InputError(
                f"--absent-items makes a feature {PRESENT!r}, and the table has a column of this name. Rename it."
            )
        table, ones = self.table, np.ones(self.table.n_rows)
        self.table = replace(
            table, names=(*table.names, PRESENT), read=lambda name: ones if name == PRESENT else table.read(name)
        )

    def features(self) -> tuple[dict[str, Raw], bool, Names]:
        """Return the columns of the features, whether they are those of items, and which of them are a forecast."""
        forecast = tuple(self.select(self.options.forecast, "forecast"))
        if len(forecast) > 1:
            raise InputError(f"--forecast must be one column of a long table; got {listed(forecast)}.")
        if self.reading.needed is None and any("=" in entry for entry in self.options.features):
            raise InputError("--features of a long table are columns; name=pattern is for wide tables.")
        names = self.of_features([self.cost] if self.cost else [])
        if self.cost in names:
            raise InputError(f"--features: {self.cost!r} is the cost, which is not known in advance. Leave it out.")
        names += [name for name in forecast if name not in names]
        if self.present is not None and self.reading.needed is None:
            names.append(PRESENT)
        lines = {name: self.feature(name)[self.order] for name in names}
        if PRESENT in lines and self.present is not None:
            lines[PRESENT] = self.present.ravel().astype(np.float64)
        return lines, True, forecast

    def read_costs(self) -> FloatArray:
        """Return the costs (n, d), with NaN for gaps, and zero for absent items of samples that have some."""
        costs = self.matrix((self.cost or self.wanted,), "costs")
        if self.present is not None:
            has_none = (np.isnan(costs) | ~self.present).all(axis=1, keepdims=True)
            costs = np.where(self.present, costs, np.where(has_none, np.nan, 0.0))
        return costs

    def has_costs(self) -> bool:
        """Whether the table has the columns of the costs."""
        return self.wanted in self.table.names

    def keys(self) -> tuple[Raw, str]:
        """Return the keys of the samples, and what a sample is called."""
        return self.layout.rows, self.layout.titles[0]

    def key_order(self, keys: Raw) -> Raw:
        """Return the order of the samples by their keys, so that it is not that of the lines."""
        order = own_order(keys)
        return np.argsort(keys.astype(str), kind="stable") if order is None else order

    def check_order(self, problem: Problem | None) -> None:
        """Note that the order of the costs is not known; raise if the problem needs it."""
        if self.layout.is_ordered:
            return
        title = self.layout.titles[1]
        if problem is not None:
            how = "Name them in the order of time: --item-order first,second,..."
            check_items_in_time(problem, title, self.cost_names, how)
        self.notes.append(
            f"The costs are in the order in which the table lists {title!r} first: {listed(self.cost_names)}. "
            "--item-order names another."
        )

    def by_row(self, name: str) -> Raw:
        """Return a column with one entry per sample."""
        values = self.raw(name)[self.order]
        texts = as_texts(values)[0] if values.dtype.kind == "O" else values
        same = np.unique(texts, return_inverse=True)[1].reshape(-1, len(self.cost_names))  # gaps are equal here
        differing = np.flatnonzero((same != same[:, :1]).any(axis=1))
        if len(differing):
            raise InputError(
                f"column {name!r} must have one value per {self.layout.titles[0]}; {self.layout.titles[0]} "
                f"{self.layout.rows[differing[0]]} has several."
            )
        return values[:: len(self.cost_names)]

    def matrix(self, names: Names, argument: str) -> FloatArray:
        """Return numbers (n, d) of each sample and item."""
        if len(names) > 1:
            raise InputError(f"--{argument} must be one column of a long table; got {listed(names)}.")
        name = self.one(names[0], argument)
        return as_numbers(self.raw(name), name)[self.order].reshape(-1, len(self.cost_names))
