"""Lines of a long table, one per sample and item, as samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray, listed
from decidewise.rows.columns import ColumnRoles
from decidewise.rows.keys import own_order


def items_of_first(keys: list[Any], columns: ColumnRoles, origin: str) -> tuple[str, ...]:
    """Return the items of the first sample: in their own order, or names as its lines list them."""
    rows, items = (column.to_numpy(zero_copy_only=False) for column in keys)
    other = np.flatnonzero(rows != rows[0])
    items = items[: other[0] if len(other) else None]
    names = tuple(_text(items))
    if len(set(names)) < len(names):
        again = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"{origin}: {columns.rows} {rows[0]} has {columns.items} {again} more than once.")
    order = own_order(items)
    return names if order is None else tuple(names[place] for place in order)


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
