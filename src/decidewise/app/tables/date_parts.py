"""Columns that are parts of a date: `time.date`, `time.hour` and so on, for tables with a single column of times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from decidewise.app.tables.raw_values import are_dates, as_dates
from decidewise.rows.columns import NamedColumns

#: What may follow the name of a column of dates, and what such a part is called in words.
PARTS = {".date": "day", ".hour": "hour", ".month": "month", ".year": "year"}


def with_date_parts(table: NamedColumns, wanted: Iterable[str | None]) -> NamedColumns:
    """Return the table with the parts of dates that are wanted, such as `time.date`, as further columns.

    >>> times = np.array(["2026-01-31T23:00", "2026-02-01T00:00"], dtype="datetime64[m]")
    >>> table = with_date_parts(NamedColumns.of({"time": times}), ["time.date", "time.hour"])
    >>> table.read("time.date"), table.read("time.hour")
    (array(['2026-01-31', '2026-02-01'], dtype='datetime64[D]'), array([23,  0]))
    """
    new = {name: part for name in wanted if name and name not in table.names for part in PARTS if name.endswith(part)}
    dates = {
        name: np.asarray(table.read(base)) for name, part in new.items() if (base := name[: -len(part)]) in table.names
    }
    made = {name: _part(as_dates(values, name), new[name]) for name, values in dates.items() if are_dates(values)}
    return replace(
        table, names=(*table.names, *made), read=lambda name: made[name] if name in made else table.read(name)
    )


def in_words(name: str) -> str:
    """Return what a column is called in words: the part of a date, or its name.

    >>> in_words("time.date"), in_words("day")
    ('day', 'day')
    """
    return next((word for part, word in PARTS.items() if name.endswith(part)), name)


def _part(values: Any, part: str) -> Any:
    days = values.astype("datetime64[D]")
    if part == ".date":
        return days
    if part == ".hour":
        return ((values - days) // np.timedelta64(1, "h")).astype(np.int64)
    if part == ".month":
        return values.astype("datetime64[M]").astype(np.int64) % 12 + 1
    return values.astype("datetime64[Y]").astype(np.int64) + 1970
