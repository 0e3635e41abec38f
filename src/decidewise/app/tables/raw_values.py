"""The values of a column as a file has them: numbers, dates or text, with gaps; what it holds, and what looks wrong."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from decidewise.kit.checks import BoolArray, FloatArray, IndexArray, is_number
from decidewise.kit.errors import InputError
from decidewise.rows.long_tables import as_moment

Raw = npt.NDArray[Any]
#: The share of a text column that must be numbers for the rest of it to be an error, not names.
_MOSTLY = 0.5
#: Stands for the number of a row in the message of an `InRowError`.
_ROW = "\0"
#: A number with thousands separators, a decimal comma, a currency or a percent sign.
_SIGN = "(?:[€$£¥%]|EUR|USD|GBP|CHF|JPY)"
_WRITTEN = re.compile(rf"[+-]?{_SIGN}?\s*[+-]?([1-9][0-9]{{0,2}}([\s,.'’][0-9]{{3}})+|[0-9]+)([.,][0-9]+)?\s*{_SIGN}?")
_HOW = "Write numbers like 1234.5, without thousands separators and signs; a decimal comma is --decimal ','."
_TYPES = {np.ndarray: "a list", list: "a list", dict: "a struct", bytes: "bytes"}


class InRowError(InputError):
    """Something is wrong with values in some rows, counted from 1; a zero byte stands for each in the message."""

    def __init__(self, message: str, *rows: int) -> None:
        self.message, self.rows = message, rows
        for row in rows:
            message = message.replace(_ROW, f"{row:,}" if row >= 10_000 else str(row), 1)
        super().__init__(message)

    def at(self, numbers: Any) -> InRowError:
        """Return the same error with the numbers that rows have in the whole table, if only a part was read."""
        return InRowError(self.message, *(int(numbers[row - 1]) for row in self.rows))


class Cells(NamedTuple):
    """The distinct values of a column, in the order in which they first occur, and which of them each row has.

    A column of text repeats few values, and only these are looked at one by one.
    """

    values: list[Any]
    of_row: IndexArray

    @classmethod
    def of(cls, values: Raw) -> Cells:
        """Find the distinct values; 1, 1.0 and True are different ones."""
        cells = values.tolist()
        typed = list(zip(map(type, cells), cells, strict=True))
        try:
            places = {cell: place for place, cell in enumerate(dict.fromkeys(typed))}
        except TypeError:  # such as lists, which have no hash
            return cls(cells, np.arange(len(cells)))
        return cls([value for _, value in places], np.fromiter(map(places.__getitem__, typed), np.intp, len(cells)))

    @property
    def known(self) -> dict[int, Any]:
        """The values that are no gaps, by their places."""
        return {place: value for place, value in enumerate(self.values) if not is_gap(value)}

    def row(self, place: int) -> int:
        """Return the first row that has a value, counted from 1."""
        return int((self.of_row == place).argmax()) + 1

    def n_rows(self, places: Any) -> int:
        """Return how many rows have one of some values."""
        return int(np.isin(self.of_row, list(places)).sum())


def as_numbers(values: Raw, name: str) -> FloatArray:
    """Return a column of numbers as float64, with NaN for gaps; raise with the row and the value if one is none.

    Rows are counted from 1.
    """
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
    elif values.dtype.kind in "OUS":
        cells = Cells.of(values)
        numbers = np.array([_number(cells, place, name) for place in range(len(cells.values))])[cells.of_row]
    else:
        raise InputError(f"column {name!r} must be numbers; it has {_described(values)}.")
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        row = int(infinite[0]) + 1
        raise InRowError(
            f"column {name!r} has an infinite value in row {_ROW}. Correct it, or leave the cell empty.", row
        )
    return numbers


def check_column(name: str, values: Raw) -> None:
    """Raise if a column cannot be a feature: a mixture of kinds, something that is neither number nor text nor date."""
    if kind_of(name, values) == "numbers":
        as_numbers(values, name)


def as_dates(values: Raw, name: str) -> npt.NDArray[np.datetime64]:
    """Return a column of dates in microseconds, with NaT for gaps; times with a zone are in UTC.

    Text like 2026-01-31 or 1/31/2026 1:00 PM counts as a date here.
    """
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]")
    cells = Cells.of(values)
    known = cells.known
    for place, date in known.items():
        if not isinstance(date, str | datetime.date | np.datetime64):
            raise InRowError(
                f"column {name!r} must be dates like 2026-01-31; row {_ROW} has {str(date)[:60]!r}.", cells.row(place)
            )
    try:
        dates = [_without_zone(known.get(place)) for place in range(len(cells.values))]
        return np.array(dates, dtype="datetime64[us]")[cells.of_row]
    except ValueError as reason:
        raise InputError(f"column {name!r} must be dates like 2026-01-31 ({reason}).") from reason


def _without_zone(date: Any) -> Any:
    """Return a date as it is, in UTC if it has a zone."""
    if isinstance(date, str):
        return as_moment(date) or date
    return date.astimezone(datetime.UTC).replace(tzinfo=None) if getattr(date, "tzinfo", None) else date


def are_dates(values: Raw) -> bool:
    """Whether a column holds dates, or text that is a date in every row but gaps: Parquet files often have such.

    >>> are_dates(np.array(["2026-01-31", None, "2026-02-01 13:00"])), are_dates(np.array(["2026-01-31", "soon"]))
    (True, False)
    """
    if values.dtype.kind not in "OU":
        return values.dtype.kind == "M"
    known = Cells.of(values).known.values()
    return bool(known) and all(isinstance(value, str) and as_moment(value) is not None for value in known)


def is_gap(value: Any) -> bool:
    """Whether a value of a column of objects is missing: None, NaN, NaT, pandas.NA."""
    return value is None or str(value) in ("nan", "NaN", "<NA>", "NaT")


def _number(cells: Cells, place: int, name: str) -> float:
    value = cells.values[place]
    if is_gap(value) or value == "":
        return float("nan")
    if isinstance(value, Real | Decimal | np.bool_):
        return float(value)
    if isinstance(value, str) and is_number(value):  # in a column of numbers, as a spreadsheet writes some of them
        return float(value)
    how = f" {_HOW}" if isinstance(value, str) and _WRITTEN.fullmatch(value.strip()) else ""
    raise InRowError(f"column {name!r} must be numbers; row {_ROW} has {str(value)[:60]!r}.{how}", cells.row(place))


def _described(values: Raw) -> str:
    return {"M": "dates", "m": "durations", "c": "complex numbers"}.get(values.dtype.kind, f"values of {values.dtype}")


def as_texts(values: Raw) -> tuple[Raw, BoolArray]:
    """Return a column as text, with "" for gaps, and where the gaps are; whole numbers look alike in every type."""
    if values.dtype.kind == "f":
        gaps = np.isnan(values)
        whole = gaps | (values == np.round(values))
        shown = np.where(gaps, 0, values)
        texts = shown.astype(np.int64).astype(str) if whole.all() else shown.astype(str)
    elif values.dtype.kind == "O":
        cells = Cells.of(values)
        gaps = np.array([is_gap(value) or value == "" for value in cells.values], dtype=bool)[cells.of_row]
        texts = np.array([_plain(value) for value in cells.values], dtype=str)[cells.of_row]
    else:
        gaps, texts = np.zeros(len(values), dtype=bool), values.astype(str)
    return np.where(gaps, "", texts), gaps


def _plain(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def kind_of(name: str, values: Raw) -> str:
    """Return what a column holds: "numbers", "names" or "dates"; raise if it is a mixture, or nothing of these."""
    if values.dtype.kind in "biuf":
        return "numbers"
    if values.dtype.kind == "M":
        return "dates"
    if values.dtype.kind not in "OU":
        raise InputError(f"column {name!r} has {_described(values)}, which are no features. Leave it out.")
    cells, found = Cells.of(values), dict[str, int]()
    for place, value in cells.known.items():
        if isinstance(value, str):
            kind = "digits" if is_number(value) else "names"
        elif isinstance(value, Real | Decimal | np.bool_):
            kind = "numbers"
        elif isinstance(value, datetime.date | np.datetime64):
            kind = "dates"
        else:
            what, row = _TYPES.get(type(value), type(value).__name__), cells.row(place)
            raise InRowError(f"column {name!r} has {what} in row {_ROW}; a feature is a number, a date or text.", row)
        found.setdefault(kind, place)
    if set(found) <= {"names", "digits"}:
        return "dates" if are_dates(values) else _text_or_digits(name, cells)
    if len(found) > 1:
        (one, place), (other, other_place) = list(found.items())[:2]
        rows = cells.row(place), cells.row(other_place)
        kinds = f"{one} (row {_ROW}) and {other} (row {_ROW})"
        raise InRowError(f"column {name!r} has values of different kinds, {kinds}. Make them one kind.", *rows)
    return next(iter(found))


def _text_or_digits(name: str, cells: Cells) -> str:
    """Return what a column of text holds; text among numbers is most likely an error of the table."""
    known = cells.known
    words = {place: value for place, value in known.items() if not is_number(value)}
    if known and not words:
        return "numbers"
    n_known, n_words = cells.n_rows(known), cells.n_rows(words)
    written = {place: value for place, value in words.items() if _WRITTEN.fullmatch(value.strip())}
    n_written = cells.n_rows(written)
    if written and n_words - n_written < _MOSTLY * n_known:
        place, value = next(iter(written.items()))
        raise InRowError(
            f"column {name!r} has numbers as text, such as {value[:60]!r} in row {_ROW} ({n_written:,} such rows). "
            f"{_HOW} If they are names, pass --categories {name!r}.",
            cells.row(place),
        )
    if n_words < _MOSTLY * n_known:
        place, value = next(iter(words.items()))
        raise InRowError(
            f"column {name!r} is numbers, but row {_ROW} has {value[:60]!r} ({n_words} such rows). Correct them, or "
            f"pass --categories {name!r} if they are names.",
            cells.row(place),
        )
    return "names"


#: A column with fewer different values is a count, or a code, of which nothing is said.
_FEWEST_VALUES = 10
#: The fewest rows on either side of a change of unit, and the smallest factor, as a power of ten.
_FEWEST_ROWS, _SMALLEST = 5, 2.0
#: The share of the rows of one unit that may look as if they had the other.
_OVERLAP = 0.05


def oddities(columns: Mapping[str, Raw], title: str, keys: Raw) -> Iterator[str]:
    """Yield a sentence for each column of numbers that has marks of gaps, or changes its unit.

    A column has one entry for each of the keys, or as many for each as there are items.
    """
    for name, column in columns.items():
        by_row = np.asarray(column, dtype=np.float64).reshape(len(keys), -1)
        for value, n in marks(by_row.ravel()):
            yield (
                f"{name}: {value:.6g} occurs {n:,} times, far from all other values. If it marks a gap, leave these "
                "cells empty."
            )
        if change := change_of_unit(by_row):
            row, before, after = change
            yield (
                f"{name}: about {before:.3g} before {title} {keys[row]} and {after:.3g} from there on. "
                "If the unit changed, convert all rows to one unit."
            )


def marks(values: FloatArray) -> Iterator[tuple[float, int]]:
    """Yield values that are repeated, at an end of the range, and further from it than all others are apart.

    Zero is none: it is what columns such as discounts have on most days.

    >>> list(marks(np.array([*np.arange(50.0), -9999.0, -9999.0, 80.0])))
    [(-9999.0, 2)]
    """
    known = values[np.isfinite(values)]
    for end in (known, -known):  # a mark is the lowest of these
        mark = end.min(initial=np.inf)
        rest = end[end > mark]
        n = len(end) - len(rest)
        if mark and n > 1 and len(rest) > 1:
            width = rest[rest < rest.max()].max(initial=rest.min()) - rest.min()  # without a mark at the other end
            if rest.min() - mark > width and len(np.unique(rest)) >= _FEWEST_VALUES:
                yield float(mark if end is known else -mark), n


def change_of_unit(by_row: FloatArray) -> tuple[int, float, float] | None:
    """Return the row from which on numbers (n, k) have another size for good, and their sizes before and after.

    >>> change_of_unit(np.concatenate([np.arange(1.0, 9.0), 1000 * np.arange(1.0, 9.0)])[:, np.newaxis])
    (8, 4.5, 4500.0)
    """
    sizes = np.nansum(np.abs(by_row) / by_row.shape[1], axis=1)
    rows = np.flatnonzero((sizes > 0) & np.isfinite(sizes))
    n = len(rows)
    if n < 2 * _FEWEST_ROWS:
        return None
    logs = np.log10(sizes[rows])
    counts = np.arange(_FEWEST_ROWS, n - _FEWEST_ROWS + 1)
    sums = np.cumsum(logs)[counts - 1]
    apart = np.abs(sums / counts - (logs.sum() - sums) / (n - counts)) * np.sqrt(counts * (n - counts))
    place = int(counts[apart.argmax()])
    before, after = logs[:place], logs[place:]
    low, high = sorted((before, after), key=np.median)
    if np.median(high) - np.median(low) < _SMALLEST or np.quantile(low, 1 - _OVERLAP) > np.quantile(high, _OVERLAP):
        return None
    return int(rows[place]), float(np.median(sizes[rows[:place]])), float(np.median(sizes[rows[place:]]))
