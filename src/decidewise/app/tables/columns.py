"""The columns of a table by name: parts of dates among them, and those that nothing else needs as features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from decidewise.app.tables.options import Reading
from decidewise.app.tables.raw_values import Raw, are_dates, as_dates, as_numbers, check_column
from decidewise.kit.checks import listed, nearest_names
from decidewise.kit.errors import InputError
from decidewise.rows.columns import NamedColumns

#: What may follow the name of a column of dates, and what such a part is called in words.
_PARTS = {".date": "day", ".hour": "hour", ".month": "month", ".year": "year"}


class TableColumns:
    """The columns of a table; a wide and a long one find samples in them.

    Attributes
    ----------
    table : NamedColumns
    reading : Reading
    given : tuple of str
        The columns without parts of dates.
    notes, doubts : list of str
        What was done to the table, in sentences; doubts deserve a look.
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
        selected: list[str] = []
        for pattern in [wanted] if isinstance(wanted, str) else wanted:
            try:
                found = self.table.matching(pattern, argument=argument)
            except ValueError:
                raise InputError(
                    f"--{argument}: the table has no column {pattern!r}{nearest_names(pattern, self.table.names)}"
                ) from None
            selected += [name for name in found if name not in selected]
        return selected

    def one(self, name: str, argument: str) -> str:
        """Return the single column that a name or a pattern selects."""
        found = self.select(name, argument)
        if len(found) > 1:
            raise InputError(f"--{argument} must be one column; {name!r} selects {listed(found)}.")
        return found[0]

    def of_problem(self) -> list[str]:
        """Return the columns that the problem takes."""
        patterns = () if self.reading.file is None else self.reading.file.columns
        return [name for pattern in patterns for name in self.select(pattern, "problem")]

    def of_features(self, used: Sequence[str]) -> list[str]:
        """Return the features: those that a model needs, those that are named, or all columns that are not `used`."""
        if self.reading.needed is not None:
            if missing := [name for name in self.reading.needed if name not in self.table.names]:
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
