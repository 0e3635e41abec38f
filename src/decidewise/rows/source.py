"""A block of rows with where it came from, what every source of such blocks can do, and arrays as a source.

The sum of many blocks is made in a fixed binary tree: the same digits for any number of workers. Rounding errors grow
with its depth. The tree pairs neighbours on every level; the last of an odd number goes up unpaired. A stream builds it
with one partial sum per level in memory, a cluster level by level.

>>> parts = [(np.array([float(i)]),) for i in range(11)]
>>> combine_all([combine_all(parts[:8]), combine_all(parts[8:])]) == combine_all(parts)
True
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from decidewise.kit.checks import FloatArray, as_integer, check_same_rows
from decidewise.rows.columns import ColumnRoles

if TYPE_CHECKING:
    from decidewise.rows.checkpoint import Checkpoint

Sums: TypeAlias = tuple[FloatArray, ...]
Combine: TypeAlias = Callable[[Sums, Sums], Sums]


def add(left: Sums, right: Sums) -> Sums:
    """Return the sums of two sets of arrays."""
    return tuple(a + b for a, b in zip(left, right, strict=True))


class PairwiseTree:
    """The tree for parts that come one after another; it keeps one partial result per level.

    Attributes
    ----------
    levels : list of int
        The level of each partial result, from the highest down: it stands for `2**level` parts.
    partial : list of tuples of ndarrays
    """

    def __init__(self, combine: Combine = add) -> None:
        self.combine = combine
        self.levels: list[int] = []
        self.partial: list[Sums] = []

    def add(self, part: Sums) -> None:
        """Add the next part."""
        self.levels.append(0)
        self.partial.append(tuple(np.asarray(array) for array in part))
        while len(self.levels) > 1 and self.levels[-1] == self.levels[-2]:
            right, left = self.partial.pop(), self.partial.pop()
            self.partial.append(self.combine(left, right))
            self.levels.pop()
            self.levels[-1] += 1

    def total(self) -> Sums:
        """Return all parts combined; raise if there are none."""
        if not self.partial:
            raise ValueError("there are no rows at all. Pass at least one file or partition with rows.")
        total = self.partial[-1]
        for part in reversed(self.partial[:-1]):
            total = self.combine(part, total)
        return total


def combine_all(parts: Iterable[Sums], combine: Combine = add) -> Sums:
    """Return all parts combined in the tree."""
    tree = PairwiseTree(combine)
    for part in parts:
        tree.add(part)
    return tree.total()


#: How far a pass is: the number of a file, that of a line in it, and the rows so far.
Place: TypeAlias = tuple[int, int, int]
#: Rows of the first block that decide on the shift and the units of the sums.
FIRST_ROWS = 2048


class ColumnMatrix:
    """Columns of equal length, which stay where they were read.

    Some rows of it are an array; so are all of them, which are then kept for the next who asks.

    Examples
    --------
    >>> matrix = ColumnMatrix([np.array([1.0, 2.0, 3.0]), np.array([4, 5, 6])])
    >>> matrix.shape, matrix[1:]
    ((3, 2), array([[2., 5.],
           [3., 6.]]))
    """

    ndim = 2

    def __init__(self, columns: Sequence[Any]) -> None:
        self.columns: list[FloatArray] = [np.require(column, np.float64, ["C", "A"]) for column in columns]
        self.shape = (len(self.columns[0]), len(self.columns))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> FloatArray:
        return self._copied([column[rows] for column in self.columns])

    @cached_property
    def array(self) -> FloatArray:
        """All rows (b, k), by columns; the columns are then those of this array, and what was read can be freed."""
        array = self._copied(self.columns)
        self.columns = list(array.T)
        return array

    @staticmethod
    def _copied(columns: Sequence[FloatArray]) -> FloatArray:
        return np.array(columns).T

    def in_one_memory(self) -> tuple[FloatArray, Any]:
        """Return one long view from the first column in memory to the last, and where in it each column begins.

        Compiled code can so read any number of columns. Only the columns themselves may be read.
        """
        addresses = np.array([column.ctypes.data for column in self.columns], dtype=np.int64)
        first = int(addresses.argmin())
        places = (addresses - addresses[first]) // 8
        size = int(places.max()) + len(self)
        memory = np.lib.stride_tricks.as_strided(self.columns[first], (size,), (8,), writeable=False)
        return memory, places


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

    def head(self) -> Rows:
        """Return a copy of the first of the rows, which keeps no more of them in memory."""
        some = slice(0, FIRST_ROWS)
        costs, weights = (None if one is None else one[some].copy() for one in (self.stored_costs, self.weights))
        return Rows(self.stored_features[some].copy(), costs, weights, self.origin, self.first, self.columns)

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


class RowSource:
    """Rows that can be passed over several times, in one order, and reduced block by block.

    The result of `reduce` depends on the blocks and their order alone: blocks are combined in a fixed binary tree,
    whatever the number of threads or workers.
    """

    #: The names of the columns, if there are any.
    columns: ColumnRoles | None = None
    #: What is kept for a pass that is interrupted, if anything.
    checkpoint: Checkpoint | None = None
    #: The number of rows, once a pass has counted them.
    n_counted: int | None = None
    #: The number of the current pass, counted from 1.
    pass_number: int = 0

    def first(self) -> Rows:
        """Return some of the first rows; raise if there are none. They are read once."""
        return self._first

    @cached_property
    def _first(self) -> Rows:
        raise NotImplementedError

    def map(
        self, function: Callable[[Rows], Any], begin: Place = (0, 0, 0)
    ) -> Generator[tuple[Any, Any, Place], None, None]:
        """Yield the blocks from a place on with the results of a function, and the place after each.

        A result is None if a block has no rows. Close the generator, also after an error.
        """
        raise NotImplementedError

    def reduce(self, function: Callable[[Rows], Sums], combine: Combine = add) -> Sums:
        """Return the results of `function` on all blocks, combined in a fixed tree."""
        self.pass_number += 1
        tree, place, checkpoint = PairwiseTree(combine), (0, 0, 0), self.checkpoint
        if checkpoint is not None:
            finished = checkpoint.next_pass()
            if finished is not None:
                self.n_counted = checkpoint.n_rows
                return finished
            place = checkpoint.resume(tree)
        with closing(self.map(function, place)) as results:
            for _, part, place in results:
                if part is not None:
                    tree.add(part)
                if checkpoint is not None:
                    checkpoint.note(tree, place)
        total, self.n_counted = tree.total(), place[2]
        if checkpoint is not None:
            checkpoint.finish(total, self.n_counted)
        return total

    def close(self) -> None:
        """Delete the checkpoint, since the work is done."""
        if self.checkpoint is not None:
            self.checkpoint.remove()


class ArrayRows(RowSource):
    """Arrays in memory as blocks of `block_rows` rows.

    Examples
    --------
    >>> source = ArrayRows(np.ones((5, 2)), np.ones((5, 3)), block_rows=2)
    >>> source.reduce(lambda rows: (rows.costs.sum(axis=0),))
    (array([5., 5., 5.]),)
    """

    def __init__(
        self, X: FloatArray, costs: FloatArray, weights: FloatArray | None = None, *, block_rows: int = 2**16
    ) -> None:
        check_same_rows(X=X, costs=costs)
        self.X, self.costs, self.weights = X, costs, weights
        self.block_rows = as_integer(block_rows, name="block_rows")

    def blocks(self) -> Iterator[Rows]:
        """Yield the blocks in order."""
        for first in range(0, len(self.X), self.block_rows):
            rows = slice(first, first + self.block_rows)
            weights = None if self.weights is None else self.weights[rows]
            yield Rows(self.X[rows], self.costs[rows], weights, first=first, number=first)

    @cached_property
    def _first(self) -> Rows:
        for rows in self.blocks():
            return rows
        raise ValueError("there are no rows at all. Pass at least one row.")

    def map(
        self, function: Callable[[Rows], Any], begin: Place = (0, 0, 0)
    ) -> Generator[tuple[Rows, Any, Place], None, None]:
        """Yield the blocks with the results of a function, and the place after each."""
        for rows in self.blocks():
            with located(rows):
                found = function(rows)
            yield rows, found, (0, rows.first + len(rows), rows.first + len(rows))
