"""Long tables, with one line per sample and item: a whole one, and the lines of a block of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.kit.checks import FloatArray, listed
from decidewise.rows.columns import ColumnRoles, NamedColumns
from decidewise.rows.keys import own_order

Names = tuple[str, ...]


class LongLayout:
    """Where each line of a long table goes: its sample and its item, by key."""

    def __init__(
        self, rows: npt.NDArray[Any], items: Names, place: npt.NDArray[np.int64], titles: Names, is_ordered: bool
    ) -> None:
        self.rows, self.items, self.place, self.titles = rows, items, place, titles
        #: Whether the order of the items was given, or is their own; otherwise it is that of the first sample.
        self.is_ordered = is_ordered

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
    ) -> LongLayout:
        """Find samples and items; raise if a pair is missing or doubled, or an item is not in the given order.

        Without an order, items that have none of their own are `as_listed`, by default by the first sample. If it is
        `trained`, the order is that of the items of a model.
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
            if wrong.any():
                pair = layout.named(int(wrong.argmax()))
                raise ValueError(
                    f"{pair} is {what} in the table ({int(wrong.sum())} such pairs in all). Each of the "
                    f"{len(row_keys)} samples needs one line for each of the {len(wanted)} items."
                )
        return layout

    def arrange(self, lines: FloatArray) -> FloatArray:
        """Return lines (n * d, k) as an array (n, d, k)."""
        result = np.empty_like(lines)
        result[self.place] = lines
        return result.reshape(len(self.rows), len(self.items), -1)

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
    place = _places(keys[1], columns, origin, first).reshape(-1, n_items)
    order = np.argsort(place, axis=1)
    sorted_places = np.take_along_axis(place, order, axis=1)
    if (sorted_places != np.arange(n_items)).any():
        sample = int((sorted_places != np.arange(n_items)).any(axis=1).argmax())
        have = set(place[sample].tolist())
        missing = [name for number, name in enumerate(columns.item_names) if number not in have]
        raise ValueError(
            f"{origin}: {columns.rows} {keys[0][sample * n_items]} from row {first + sample * n_items} on lacks "
            f"{columns.items} {listed(missing)}, and has another one twice."
        )
    lines = numbers.T.reshape(len(samples), n_items, -1)
    if (place == np.arange(n_items)).all():
        return np.ascontiguousarray(lines)
    return np.take_along_axis(lines, order[:, :, None], axis=1)


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
