"""Long tables, with one line per sample and item: a whole one, and the lines of a block of a file.

Of items, numbers and dates have an order of their own, also as text; names have none.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.kit.checks import BoolArray, FloatArray, IndexArray, listed
from decidewise.rows.columns import ColumnRoles, NamedColumns

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


Names = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LongLayout:
    """Where each line of a long table goes: its sample and its item, by key."""

    rows: npt.NDArray[Any]
    items: Names
    place: npt.NDArray[np.int64]
    titles: Names
    #: Whether the order of the items was given, or is their own; otherwise it is that of the first sample.
    is_ordered: bool

    @classmethod
    def of(
        cls,
        table: NamedColumns,
        rows: str | None,
        items: str,
        order: list[str] | None,
        as_listed: Sequence[str] | None = None,
        *,
        trained: bool = False,
        absent_items: bool = False,
    ) -> LongLayout:
        """Find samples and items; raise if a pair is missing or doubled, or an item is not in the given order.

        Without an order, items that have none of their own are `as_listed`, by default by the first sample. If it is
        `trained`, the order is that of the items of a model. With `absent_items` pairs may be missing.
        """
        if rows is None:
            raise ValueError("a long table needs the column of the sample keys as well: pass rows=...")
        titles = (table.one(rows, argument="rows"), table.one(items, argument="items"))
        row_keys, row_of = _factorize(table.keys(titles[0]))
        item_keys, item_of = _factorize(table.keys(titles[1]))
        names = [str(key) for key in item_keys]
        own = own_order(item_keys) if order is None else None
        if own is not None:
            order = [names[item] for item in own]
        wanted = order or as_listed
        if not wanted:
            # The order of the first sample; items that it lacks come last, and the error about them names this sample.
            in_first, _ = _factorize(item_of[row_of == 0])
            wanted = [names[item] for item in (*in_first, *np.setdiff1d(np.arange(len(names)), in_first))]
        unknown = [name for name in names if name not in set(wanted)]
        if unknown and order is not None and not trained:
            raise ValueError(f"item_order (--item-order) must name all items; it lacks {listed(unknown)}.")
        if unknown:
            raise ValueError(
                f"{titles[1]} {listed(unknown)} is not among the {len(wanted)} known items, {listed(wanted)}. Drop it, "
                "or train with it."
            )
        position = {name: place for place, name in enumerate(wanted)}
        place = row_of * len(wanted) + np.array([position[name] for name in names])[item_of]
        counts = np.bincount(place, minlength=len(row_keys) * len(wanted))
        layout = cls(row_keys, tuple(wanted), place, titles, order is not None)
        for wrong, what in ((counts > 1, "more than once"), (counts == 0, "missing")):
            if wrong.any() and not (absent_items and what == "missing"):
                pair = layout.named(int(wrong.argmax()))
                how = "" if what != "missing" else " If rows may lack items, say so: absent_items (--absent-items)."
                raise ValueError(
                    f"{pair} is {what} in the table ({int(wrong.sum())} such pairs in all). Each of the "
                    f"{len(row_keys)} samples needs one line for each of the {len(wanted)} items.{how}"
                )
        return layout

    def arrange(self, lines: FloatArray) -> FloatArray:
        """Return lines (m, k) as an array (n, d, k), with zeros for pairs that are missing."""
        if len(lines) == len(self.rows) * len(self.items):
            return _placed(lines, self.place).reshape(len(self.rows), len(self.items), -1)
        result = np.zeros((len(self.rows) * len(self.items), lines.shape[1]))
        result[self.place] = lines
        return result.reshape(len(self.rows), len(self.items), -1)

    @property
    def lines(self) -> IndexArray:
        """The line of each pair of a sample and an item (n * d,); of a pair that is missing, a line of its sample."""
        lines = np.full(len(self.rows) * len(self.items), -1)
        lines[self.place] = np.arange(len(self.place))
        if len(lines) > len(self.place):
            of_sample = lines.reshape(len(self.rows), -1)
            lines = np.where(of_sample < 0, of_sample.max(axis=1, keepdims=True), of_sample).ravel()
        return lines

    @property
    def present(self) -> BoolArray:
        """Whether each sample has a line for each item: (n, d)."""
        marks = np.bincount(self.place, minlength=len(self.rows) * len(self.items)) > 0
        return np.asarray(marks.reshape(len(self.rows), len(self.items)))

    def named(self, place: int) -> str:
        """Return the keys of the sample and the item of a place in all samples."""
        row, item = divmod(place, len(self.items))
        return f"{self.titles[0]} {self.rows[row]}, {self.titles[1]} {self.items[item]}"


def items_of_first(table: NamedColumns, rows: str, items: str) -> Names:
    """Return the items of the first sample: in their own order, or names as its lines list them."""
    keys = table.keys(table.one(rows, argument="rows"))
    other = np.flatnonzero(keys != keys[0])
    n_lines = int(other[0]) if len(other) else len(keys)
    first = replace(table, n_rows=n_lines, read=lambda name: table.read(name)[:n_lines])
    return LongLayout.of(first, rows, items, None).items


def arrange(numbers: FloatArray, keys: list[Any], columns: ColumnRoles, origin: str, first: int) -> FloatArray:
    """Return lines (k, b * d) as samples (b, d, k), with the items of each in their order.

    The lines of a sample must be next to each other, one for each item, in any order.
    """
    n_items, n_lines = len(columns.item_names), numbers.shape[1]
    codes = keys[0].dictionary_encode().indices.to_numpy(zero_copy_only=False)
    whole = n_lines - n_lines % n_items
    samples = codes[:whole].reshape(-1, n_items)
    broken = (samples != samples[:, :1]).any(axis=1)
    broken[1:] |= samples[1:, 0] == samples[:-1, 0]
    if broken.any() or whole < n_lines:
        sample = int(broken.argmax()) if broken.any() else len(samples)
        line = sample * n_items
        raise ValueError(
            f"{origin}: {columns.rows} {keys[0][line]} from row {first + line} on does not have {n_items} lines next "
            f"to each other, one for each of {listed(columns.item_names)}. Sort the table by {columns.rows!r}, and "
            "keep each sample in one file."
        )
    place = np.arange(n_lines) // n_items * n_items + _places(keys[1], columns, origin, first)
    is_there = (np.bincount(place, minlength=n_lines) > 0).reshape(-1, n_items)
    if not is_there.all():
        sample = int(is_there.all(axis=1).argmin())
        missing = [name for name, found in zip(columns.item_names, is_there[sample], strict=True) if not found]
        raise ValueError(
            f"{origin}: {columns.rows} {keys[0][sample * n_items]} from row {first + sample * n_items} on lacks "
            f"{columns.items} {listed(missing)}, and has another one twice."
        )
    return _placed(numbers.T, place).reshape(len(samples), n_items, -1)


def _placed(lines: FloatArray, place: npt.NDArray[np.int64]) -> FloatArray:
    """Return lines (n, k) in the order of their places."""
    if (place == np.arange(len(place))).all():
        return np.ascontiguousarray(lines)
    result = np.empty(lines.shape)
    result[place] = lines
    return result


def _places(column: Any, columns: ColumnRoles, origin: str, first: int) -> Any:
    """Return the place of each line's item among the items."""
    encoded = column.dictionary_encode()
    names = _text(encoded.dictionary.to_numpy(zero_copy_only=False))
    known = {name: place for place, name in enumerate(columns.item_names)}
    unknown = [name for name in names if name not in known]
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    if unknown or column.null_count:
        bad = np.isin(codes, [number for number, name in enumerate(names) if name not in known]) | ~np.isfinite(codes)
        what = repr(unknown[0]) if unknown else "no value"
        raise ValueError(
            f"{origin}, row {first + int(bad.argmax())}: {columns.items} is {what}, which is not among the "
            f"{len(known)} items of the first sample, {listed(columns.item_names)}. Drop it, or put it into every "
            "sample."
        )
    return np.array([known[name] for name in names])[codes]


def _text(keys: Any) -> list[str]:
    """Return keys as text; whole numbers that a reader widened are written without a point."""
    if keys.dtype.kind == "f":
        return [str(int(key)) if key == np.round(key) else str(key) for key in keys]
    return [str(key) for key in keys]


def _factorize(keys: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the distinct keys in the order in which they first occur, and the position of each key among them."""
    distinct, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return distinct[order], rank[inverse.ravel()]
