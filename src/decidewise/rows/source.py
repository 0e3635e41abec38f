"""A block of rows with where it came from, and what every source of such blocks can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.rows.column_matrix import ColumnMatrix
from decidewise.rows.columns import ColumnRoles
from decidewise.rows.tree import Combine, Sums, add

if TYPE_CHECKING:
    from decidewise.rows.checkpoint import Checkpoint


@dataclass(frozen=True, eq=False)
class Rows:
    """Some consecutive rows of a source.

    Attributes
    ----------
    X : ndarray of shape (b, p) or (b, d, q), or a data frame
    costs : ndarray of shape (b, d), or None for rows to decide on
    stored_features, stored_costs
        The same as they are stored: those of a file may be a `ColumnMatrix`, which is an array once one is asked for.
    weights : ndarray of shape (b,), or None for ones
    origin : str
        The file or the partition.
    first : int
        The number of the first row, or line of a long table, within its origin.
    columns : ColumnRoles, optional
        The names of the columns, for messages.
    number : int
        The number of the first row over all origins.
    keys : Arrow array of length b, optional
        The keys of the rows, if the source has a column of them.
    """

    stored_features: FloatArray | ColumnMatrix
    stored_costs: FloatArray | ColumnMatrix | None = None
    weights: FloatArray | None = None
    origin: str = "the arrays"
    first: int = 0
    columns: ColumnRoles | None = None
    number: int = 0
    keys: Any = None

    def __len__(self) -> int:
        return len(self.stored_features)

    @property
    def X(self) -> FloatArray:  # noqa: N802
        """The features of the rows."""
        return as_stored_array(self.stored_features)

    @property
    def costs(self) -> FloatArray | None:
        """The costs of the rows."""
        return None if self.stored_costs is None else as_stored_array(self.stored_costs)

    def check(self) -> None:
        """Raise if an entry is not finite, or a weight negative; name the origin, the row and the column."""
        for values, what in ((self.X, "X"), (self.costs, "costs"), (self.weights, "sample_weight")):
            if values is None:
                continue
            values = np.asarray(values)  # noqa: PLW2901 - features may be a frame
            bad = ~np.isfinite(values)
            if what == "sample_weight":
                bad |= values < 0
            if bad.any():
                place = tuple(int(index) for index in np.argwhere(bad)[0])
                found = values[place]
                text = "no value, or NaN" if np.isnan(found) else f"{found:+g}"
                raise ValueError(
                    f"{self.origin}, {self._named(place[0], place[1:], what)} has {text} ({int(bad.sum())} such "
                    "entries in this block). Fill them, or drop their rows."
                )

    def _named(self, row: int, others: tuple[int, ...], what: str) -> str:
        columns = self.columns
        if columns is None:
            return f"row {self.first + row}, " + ", ".join([what, *(f"column {place}" for place in others)])
        if columns.items is None:
            return f"row {self.first + row}, column {columns.name_of(what, others)!r}"
        n_items = self.X.shape[1]
        lines = f"rows {self.first + row * n_items} to {self.first + (row + 1) * n_items - 1}"
        item = f", item {columns.item_names[others[0]]}" if others else ""
        return f"{lines}{item}, column {columns.name_of(what, others)!r}"


def as_stored_array(stored: FloatArray | ColumnMatrix) -> FloatArray:
    """Return what is stored as an array, or as the data frame that it is."""
    return stored.array if isinstance(stored, ColumnMatrix) else stored


@contextmanager
def located(rows: Rows) -> Iterator[None]:
    """Return a context whose errors about values say where the rows came from."""
    try:
        yield
    except ValueError as error:
        rows.check()
        if str(error).startswith(rows.origin):
            raise
        raise ValueError(f"{rows.origin}, in the block from row {rows.first} on: {error}") from error


class RowSource(ABC):
    """Rows that can be passed over several times, in one order, and reduced block by block.

    The result of `reduce` depends on the blocks and their order alone: blocks are combined in a fixed binary tree,
    whatever the number of threads or workers.
    """

    #: The names of the columns, if there are any.
    columns: ColumnRoles | None = None
    #: What is kept for a pass that is interrupted, if anything.
    checkpoint: Checkpoint | None = None

    @abstractmethod
    def first(self) -> Rows:
        """Return some of the first rows; raise if there are none."""

    @abstractmethod
    def reduce(self, function: Callable[[Rows], Sums], combine: Combine = add) -> Sums:
        """Return the results of `function` on all blocks, combined in a fixed tree."""

    def close(self) -> None:
        """Delete the checkpoint, since the work is done."""
        if self.checkpoint is not None:
            self.checkpoint.remove()
