"""The values of a column as a file has them: numbers, dates or text, with gaps, and what a column of them holds."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.kit.checks import BoolArray, FloatArray
from decidewise.kit.errors import InputError
from decidewise.rows.keys import as_moment

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


def as_numbers(values: Raw, name: str) -> FloatArray:
    """Return a column of numbers as float64, with NaN for gaps; raise with the row and the value if one is none.

    Rows are counted from 1.
    """
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
    elif values.dtype.kind in "OUS":
        numbers = np.array([_number(value, name, row) for row, value in enumerate(values.tolist(), start=1)])
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
    dates: list[Any] = [None if is_gap(value) else value for value in values.tolist()]
    for row, date in enumerate(dates, start=1):
        if date is not None and not isinstance(date, str | datetime.date | np.datetime64):
            raise InRowError(f"column {name!r} must be dates like 2026-01-31; row {_ROW} has {str(date)[:60]!r}.", row)
    try:
        return np.array([_without_zone(date) for date in dates], dtype="datetime64[us]")
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
    known = [value for value in values.tolist() if not is_gap(value)]
    return bool(known) and all(isinstance(value, str) and as_moment(value) is not None for value in known)


def is_gap(value: Any) -> bool:
    """Whether a value of a column of objects is missing: None, NaN, NaT, pandas.NA."""
    return value is None or str(value) in ("nan", "NaN", "<NA>", "NaT")


def _number(value: Any, name: str, row: int) -> float:
    if is_gap(value):
        return float("nan")
    if isinstance(value, Real | Decimal | np.bool_):
        return float(value)
    if value == "":
        return float("nan")
    if isinstance(value, str) and _is_number(value):  # in a column of numbers, as a spreadsheet writes some of them
        return float(value)
    how = f" {_HOW}" if isinstance(value, str) and _WRITTEN.fullmatch(value.strip()) else ""
    raise InRowError(f"column {name!r} must be numbers; row {_ROW} has {str(value)[:60]!r}.{how}", row)


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
        gaps = np.array([is_gap(value) or value == "" for value in values.tolist()], dtype=bool)
        texts = np.array([_plain(value) for value in values.tolist()], dtype=str)
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
    found: dict[str, int] = {}
    n_known = 0
    texts = 0
    for row, value in enumerate(values.tolist(), start=1):
        if is_gap(value):
            continue
        n_known += 1
        if isinstance(value, str):
            kind = "names" if not _is_number(value) else "digits"
            texts += 1
        elif isinstance(value, Real | Decimal | np.bool_):
            kind = "numbers"
        elif isinstance(value, datetime.date | np.datetime64):
            kind = "dates"
        else:
            what = _TYPES.get(type(value), type(value).__name__)
            raise InRowError(f"column {name!r} has {what} in row {_ROW}; a feature is a number, a date or text.", row)
        found.setdefault(kind, row)
    if texts == n_known and set(found) <= {"names", "digits"}:
        return _text_or_digits(name, values, found)
    if len(found) > 1:
        (one, row), (other, other_row) = list(found.items())[:2]
        kinds = f"{one} (row {_ROW}) and {other} (row {_ROW})"
        raise InRowError(f"column {name!r} has values of different kinds, {kinds}. Make them one kind.", row, other_row)
    return next(iter(found), "numbers")


def _text_or_digits(name: str, values: Raw, found: Mapping[str, int]) -> str:
    """Return what a column of text holds; text among numbers is most likely an error of the table."""
    if are_dates(values):
        return "dates"
    known = [(row, value) for row, value in enumerate(values.tolist(), start=1) if not is_gap(value)]
    words = [(row, value) for row, value in known if not _is_number(value)]
    if "digits" in found and not words:
        return "numbers"
    written = [(row, value) for row, value in words if _WRITTEN.fullmatch(value.strip())]
    if written and len(words) - len(written) < _MOSTLY * len(known):
        row, value = written[0]
        raise InRowError(
            f"column {name!r} has numbers as text, such as {value[:60]!r} in row {_ROW} ({len(written):,} such rows). "
            f"{_HOW} If they are names, pass --categories {name!r}.",
            row,
        )
    if len(words) < _MOSTLY * len(known):
        row, value = words[0]
        raise InRowError(
            f"column {name!r} is numbers, but row {_ROW} has {value[:60]!r} ({len(words)} such rows). Correct them, or "
            f"pass --categories {name!r} if they are names.",
            row,
        )
    return "names"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
