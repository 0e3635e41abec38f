"""Numbers of a problem that may be given by row: one for each sample, in an axis of their own in front."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from decidewise.kit.batches import in_parts
from decidewise.kit.checks import FloatArray, as_array, as_matrix, as_number, as_vector, check_same_rows
from decidewise.problems.contract import Problem

_COMPARE = {"at_least": np.greater_equal, "above": np.greater, "at_most": np.less_equal, "below": np.less}


def as_numbers(values: Any, *, name: str, **bounds: Any) -> Any:
    """Return a number, or one per row (n_rows,), each finite and within bounds as of `as_number`, also by row.

    >>> as_numbers([1.0, 2.0, -1.0], name="energy", above=0)
    Traceback (most recent call last):
    ValueError: energy[2] must be a number above 0; got energy[2]=-1.0.
    """
    by_row = {bound: limit for bound, limit in bounds.items() if np.ndim(limit) > 0}
    if np.ndim(values) == 0:
        values = as_number(
            values, name=name, **{bound: limit for bound, limit in bounds.items() if bound not in by_row}
        )
    else:
        values = as_vector(values, name=name)
        if not values.size:
            raise ValueError(f"{name} is empty: pass one number, or one per row.")
        check_same_rows(**{name: values}, **{f"{name} {bound}": limit for bound, limit in by_row.items()})
    inside: Any = np.True_
    for bound, limit in bounds.items():
        inside = inside & _COMPARE[bound](values, limit)
    if not np.all(inside):
        row = int(np.flatnonzero(~inside)[0])
        limits = {bound: limit[row] if bound in by_row else limit for bound, limit in bounds.items()}
        as_number(np.broadcast_to(values, np.shape(inside))[row], name=f"{name}[{row}]", **limits)
    return values


def as_levels(values: Any, *, name: str, at_most: Any) -> Any:
    """Return levels from zero to a limit as `as_numbers` does; what rounding took beyond an end is at that end.

    >>> as_levels(-4.4e-16, name="initial", at_most=2.0)
    0.0
    """
    levels, room = np.asarray(values), 1e-12 * np.asarray(at_most)
    if levels.dtype.kind == "f" and len({levels.shape, np.shape(at_most)} - {()}) < 2:
        is_near = (levels >= -room) & (levels <= at_most + room)
        nearest = np.where(is_near, np.clip(levels, 0.0, at_most), levels)
        values = nearest if nearest.ndim else float(nearest)
    return as_numbers(values, name=name, at_least=0, at_most=at_most)


def as_amounts(values: Any, *, name: str) -> FloatArray:
    """Return one amount per entry, (n,), or one such row per sample, (n_rows, n), all finite."""
    values = as_array(values, name=name)
    return as_matrix(values, name=name) if values.ndim == 2 else as_vector(values, name=name)


def check_not_negative(amounts: FloatArray, *, name: str, owner: str) -> None:
    """Raise if one of the amounts, each of them that of an `owner`, is negative.

    >>> check_not_negative(np.array([[1.0, -2.0]]), name="capacity", owner="edge")
    Traceback (most recent call last):
    ValueError: capacity must not be negative; row 0, edge 1 has -2.
    """
    if amounts.min(initial=0.0) < 0.0:
        *row, place = np.unravel_index(amounts.argmin(), amounts.shape)
        where = f"row {row[0]}, {owner} {place}" if row else f"{owner} {place}"
        raise ValueError(f"{name} must not be negative; {where} has {amounts.min():g}.")


def spread(**values: tuple[Any, int]) -> tuple[int | None, list[Any]]:
    """Return the number of rows, None if nothing differs by row, and all values: if any has rows, with as many rows.

    Each value comes with the number of axes that it has if it is the same for all rows.

    >>> spread(power=(2.0, 0), energy=(np.array([4.0, 5.0]), 0))
    (2, [array([2., 2.]), array([4., 5.])])
    """
    by_row = {name: value for name, (value, ndim) in values.items() if np.ndim(value) > ndim}
    check_same_rows(**by_row)
    if not by_row:
        return None, [value for value, _ in values.values()]
    n_rows = len(next(iter(by_row.values())))
    return n_rows, [
        np.broadcast_to(value, (n_rows, *np.shape(value)[np.ndim(value) - ndim :])) for value, ndim in values.values()
    ]


def kernel_in_parts(kernel: Callable[..., object], problem: Problem, costs: FloatArray, *numbers: Any) -> FloatArray:
    """Return the decisions of a kernel, which is given one entry of the numbers for all rows, or one for each."""
    if problem.n_rows is not None:
        return in_parts(kernel, costs, *numbers)
    own = [np.asarray(number)[np.newaxis] for number in numbers]
    return in_parts(lambda rows, decisions: kernel(rows, decisions, *own), costs)
