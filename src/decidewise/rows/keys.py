"""The order of keys: numbers and dates have one of their own, also as text; names have none."""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np
import numpy.typing as npt

#: A date as text: a day, perhaps with a time of day, perhaps with a zone; or as Americans write it, with AM or PM.
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?")
_AMERICAN = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}),? (\d{1,2}):(\d\d)(?::(\d\d))? ?([AaPp])[Mm]")
_TIME = re.compile(r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NUMBERED = re.compile(r"(\D*)(\d+)(\D*)")


def as_moment(text: str) -> datetime.datetime | None:
    """Return a date that is written as text, in UTC if it has a zone; None if it is none.

    >>> as_moment("1/31/2026 1:00 PM"), as_moment("soon")
    (datetime.datetime(2026, 1, 31, 13, 0), None)
    """
    try:
        if _ISO.fullmatch(text):
            found = datetime.datetime.fromisoformat(text)
            return found if found.tzinfo is None else found.astimezone(datetime.UTC).replace(tzinfo=None)
        if american := _AMERICAN.fullmatch(text):
            month, day, year, hour, minute, second = (int(part or 0) for part in american.groups()[:6])
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + 12 * (american[7] in "Pp")
            return datetime.datetime(year, month, day, hour, minute, second)
    except (ValueError, OverflowError):  # such as 2026-13-01
        pass
    return None


def own_order(keys: npt.NDArray[Any]) -> npt.NDArray[np.intp] | None:
    """Return the places of keys in their own order; None if they are names, which have none.

    Numbers, dates and times of day have one, also as text, and so have names that differ by a whole number alone.

    >>> own_order(np.array(["h1", "h10", "h2"])), own_order(np.array(["10", "-2.5"])), own_order(np.array(["b", "a"]))
    (array([0, 2, 1]), array([1, 0]), None)
    """
    if keys.dtype.kind in "biufMm":
        return np.argsort(keys, kind="stable")
    texts = [str(key) for key in keys.tolist()]
    values: list[Any] = [float(text) if _NUMBER.fullmatch(text) else None for text in texts]
    if None in values:
        values = [as_moment(text) for text in texts]
    if None in values:
        values = [text if _TIME.fullmatch(text) else None for text in texts]
    if None in values:
        found = [_NUMBERED.fullmatch(text) for text in texts]
        around = {None if part is None else (part[1], part[3]) for part in found}
        values = [int(part[2]) for part in found if part] if len(around) == 1 and None not in around else [None]
    return None if None in values else np.array(sorted(range(len(texts)), key=values.__getitem__), dtype=np.intp)
