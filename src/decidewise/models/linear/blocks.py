"""Rows in blocks: a fit reads one block at a time, so that it never copies the whole table."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray, check_finite
from decidewise.kit.library_threads import one_library_thread
from decidewise.measure import cost_sizes, targets_of, weighted_targets, weights_of
from decidewise.models.linear.units import back_from
from decidewise.rows.passes import Passes
from decidewise.rows.tree import Sums, add

# A block of fifty features and a hundred costs fits into the second-level cache, so that memory is read once.
BLOCK_ROWS = 2048
# The blocks that a thread adds up at a time.
BLOCKS_PER_TASK = 32
# With features per item, a block has about this many pairs of a row and an item: they have few features each.
_BLOCK_PAIRS = 2**17

Result = TypeVar("Result")


class Block(NamedTuple):
    """Some rows of a table: features `(b, p)`, targets `(b, d)` and weights `(b,)`, None for ones.

    Features of shape `(b, d, q)` are those of each of the d items, which share one model.
    """

    X: FloatArray
    targets: FloatArray
    weights: FloatArray | None

    @property
    def n_items(self) -> int | None:
        """The number of items that share a model, or None if every target has its own coefficients."""
        return self.X.shape[1] if self.X.ndim == 3 else None

    def long(self) -> Block:
        """Return the block with one row for each item of each row, `(b * d, q)`, and one target."""
        if self.X.ndim == 2:
            return self
        n_items, n_features = self.X.shape[1:]
        weights = None if self.weights is None else np.repeat(self.weights, n_items)
        return Block(self.X.reshape(-1, n_features), self.targets.reshape(-1, 1), weights)


class Blocks(Protocol):
    """Blocks that can be read in any order, by several threads, and more than once."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Block: ...


class RowBlocks:
    """A table in memory as blocks; the change of measure is applied to each block as it is read.

    Parameters
    ----------
    X : ndarray of shape (n, p) or (n, d, q)
    targets : ndarray of shape (n, d)
    sample_weight : ndarray of shape (n,), optional
    exponent : float, optional
        If given, `targets` are costs, and the change of measure is applied with the sizes `a = ‖y‖^exponent`.
    scale : float or ndarray of shape (n,), optional
        The scale `s` of the change of measure, for costs divided by the unit. By default it is 1 in the caller's units.
    power : float
        The power of the deviance that is minimised, which enters the weights; see `decidewise.measure.transform`.
    unit : float
        A power of two by which costs are divided before their sizes are computed, against overflow. It does not change
        the fit.
    smallest_size : float, optional
        If given, targets are lifted: with one more cost that is always 1, of costs that stay divided by the unit. Sizes
        below this one are raised to it, since a row of zero costs counts in the mean of the last cost.
    first_row : int
        The number of the first row, for messages about a row of a longer table.
    """

    def __init__(
        self,
        X: Any,
        targets: Any,
        sample_weight: FloatArray | None = None,
        *,
        exponent: float | None = None,
        scale: FloatArray | float | None = None,
        power: float = 0.0,
        unit: float = 1.0,
        smallest_size: float | None = None,
        first_row: int = 0,
    ) -> None:
        self.X, self.targets, self.sample_weight, self.exponent = X, targets, sample_weight, exponent
        self.scale, self.power, self.unit, self.smallest_size = scale, power, unit, smallest_size
        self.first_row = first_row
        if exponent is None or smallest_size is not None:
            self.back = 1.0
        else:
            self.back = back_from(unit, exponent) if scale is None else unit
        self.n_rows = BLOCK_ROWS if X.ndim == 2 else max(1, _BLOCK_PAIRS // X.shape[1])
        self.blocks_per_task = BLOCKS_PER_TASK if X.ndim == 2 else 2

    def __len__(self) -> int:
        return math.ceil(len(self.X) / self.n_rows)

    def __getitem__(self, index: int) -> Block:
        X, values, weights, sizes = self._read(index)
        if sizes is not None:
            values = self._back(targets_of(values, sizes, self._scale(index)))
        return Block(X, values, weights)

    def weighted(self, index: int) -> Block:
        """Return a block with targets multiplied by their weights, which is faster than first dividing by the sizes."""
        X, values, weights, sizes = self._read(index)
        factor = weights if sizes is None else self._given_weights(index)
        if sizes is not None:
            values = weighted_targets(values, self._scale(index), self.power)
        return Block(X, self._back(values if factor is None else values * factor[:, None]), weights)

    def _back(self, targets: FloatArray) -> FloatArray:
        return targets if self.back == 1 else targets * self.back

    def _read(self, index: int) -> tuple[FloatArray, FloatArray, FloatArray | None, FloatArray | None]:
        """Return features, values, weights, and the sizes of the values under the change of measure."""
        first = index * self.n_rows
        rows = slice(first, first + self.n_rows)
        X = np.asarray(self.X[rows], dtype=np.float64)
        values = np.asarray(self.targets[rows], dtype=np.float64)
        if X.ndim == 2:  # features per item are checked by the sums over them, since a fit takes little longer
            check_finite(X, name="X", first_row=self.first_row + first)
        weights = self._given_weights(index)
        if self.exponent is None:
            check_finite(values, name="y", first_row=self.first_row + first)
            return X, values, weights, None
        if self.unit != 1:
            values = values / self.unit
        sizes = cost_sizes(values, self.exponent)
        if not np.isfinite(sizes.sum()):  # either an entry is not finite, or the power overflows
            check_finite(values, name="costs", first_row=self.first_row + first)
        if self.smallest_size is not None:
            sizes = np.maximum(sizes, self.smallest_size)
            values = np.column_stack([values, np.ones(len(values))])
        changed = weights_of(sizes, self._scale(index), self.power)
        return X, values, changed if weights is None else changed * weights, sizes

    def _scale(self, index: int) -> FloatArray | float | None:
        """Return the scale of the rows of a block; None for 1, which needs no division."""
        if isinstance(self.scale, np.ndarray):
            first = index * self.n_rows
            return self.scale[first : first + self.n_rows]
        return None if self.scale == 1 else self.scale

    def _given_weights(self, index: int) -> FloatArray | None:
        first = index * self.n_rows
        return None if self.sample_weight is None else self.sample_weight[first : first + self.n_rows]


def weighted_block(blocks: Blocks, index: int) -> Block:
    """Return a block with its targets multiplied by their weights; `RowBlocks` have a faster way to read it."""
    if isinstance(blocks, RowBlocks):
        return blocks.weighted(index)
    X, targets, weights = blocks[index]
    return Block(X, targets if weights is None else targets * weights[:, None], weights)


def blocks_per_task(blocks: Blocks | SummedBlocks) -> int:
    """Return how many blocks a thread should add up at a time: few if they are large."""
    return getattr(blocks, "blocks_per_task", BLOCKS_PER_TASK)


class SummedBlocks(ABC):
    """Blocks that are not in memory together: they are read in order, and a pass over them gives a sum."""

    @abstractmethod
    def first(self) -> Block:
        """Return some of the first rows."""

    @abstractmethod
    def sum(self, work: Callable[[Blocks, range], Sums]) -> Passes[Sums]:
        """Return the sum of `work(blocks, range(len(blocks)))` over all blocks, from one pass over them.

        `work` is called with some of the blocks at a time, in several threads or processes; the order in which the
        results are added is always the same.
        """

    @abstractmethod
    def checked(self, deviance: Any) -> SummedBlocks:
        """Return the same blocks; they raise at a target that the deviance does not admit with a log link."""


def first_of(blocks: Blocks | SummedBlocks) -> Block:
    """Return the first block."""
    return blocks.first() if isinstance(blocks, SummedBlocks) else blocks[0]


def summed(
    blocks: Blocks | SummedBlocks,
    work: Callable[[Blocks, range], Sums],
    blocks_per_task: int,
    start: Sums | None = None,
) -> Passes[Sums]:
    """Return the sum of `work` on ranges of all blocks, and of `start`; it is always added up in the same order."""
    parts: Iterable[Sums]
    if isinstance(blocks, SummedBlocks):
        parts = [(yield from blocks.sum(work))]
    else:
        parts = map_tasks(partial(work, blocks), len(blocks), blocks_per_task)
    total = start
    for part in parts:
        check_time()
        total = part if total is None else add(total, part)
    assert total is not None  # there is at least one block
    return total


def map_tasks(
    work: Callable[[range], Result], n_blocks: int, blocks_per_task: int = BLOCKS_PER_TASK
) -> Iterator[Result]:
    """Yield the results of `work` on consecutive ranges of blocks, computed in parallel if there are several ranges.

    The ranges and the order of the results are always the same, so sums do not depend on the number of threads.
    """
    tasks = [range(first, min(first + blocks_per_task, n_blocks)) for first in range(0, n_blocks, blocks_per_task)]
    if len(tasks) == 1:
        yield work(tasks[0])
        return
    with one_library_thread() as n_threads, ThreadPoolExecutor(n_threads) as workers:
        yield from workers.map(work, tasks)
