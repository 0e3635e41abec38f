"""Rows in blocks, under the change of measure: a fit reads one block at a time, so that it never copies the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray, check_finite
from decidewise.kit.machine import one_library_thread
from decidewise.measure import cost_sizes, targets_of, weighted_targets, weights_of
from decidewise.models.linear.deviances import Deviance
from decidewise.models.linear.units import back_from
from decidewise.rows.passes import Pass, Passes
from decidewise.rows.source import Combine, Rows, RowSource, Sums, add

# A block of fifty features and a hundred costs fits into the second-level cache, so that memory is read once.
BLOCK_ROWS = 2048
# The blocks that a thread adds up at a time.
_BLOCKS_PER_TASK = 32
# With features per item, a block has about this many pairs of a row and an item: they have few features each.
_BLOCK_PAIRS = 2**17


@dataclass(frozen=True)
class InMemory(RowSource):
    """Rows in memory as a source of one part; their features may be of any form that a learner takes."""

    rows: Rows

    def first(self) -> Rows:
        """Return all rows."""
        return self.rows

    def reduce(self, function: Callable[[Rows], Sums], combine: Combine = add) -> Sums:
        """Return the result of `function` on all rows."""
        return function(self.rows)


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


@dataclass
class Blocks:
    """The rows of a source, which a fit passes over as often as it needs, under the change of measure.

    Attributes
    ----------
    source : RowSource
        Asked for its first rows alone, unless it is `InMemory`: the sums over all of them are passes.
    exponent : float, optional
        If given, the change of measure is applied with the sizes `a = ‖y‖^exponent`; if not, costs are the targets.
    scale : float, ndarray of shape (n,), callable or None
        The scale `s` of the change of measure, for costs divided by the unit, or a function of the features of a block
        that returns it. By default it is 1 in the caller's units.
    power : float
        The power of the deviance that is minimised, which enters the weights; see `decidewise.measure.transform`.
    unit : float
        A power of two by which costs are divided before their sizes are computed, against overflow. It does not change
        the fit.
    smallest_size : float, optional
        If given, targets are lifted: with one more cost that is always 1, of costs that stay divided by the unit. Sizes
        below this one are raised to it, since a row of zero costs counts in the mean of the last cost.
    without_zeros : bool
        Whether rows of zero costs have weight zero.
    deviance : Deviance, optional
        If given, targets that it does not admit with a log link raise an error.
    total_weight : float
        The sum of the sample weights, after the first pass over rows that are not in memory.
    """

    source: RowSource | None
    exponent: float | None = None
    scale: float | FloatArray | Callable[[FloatArray], FloatArray] | None = None
    power: float = 0.0
    unit: float = 1.0
    smallest_size: float | None = None
    without_zeros: bool = False
    deviance: Deviance | None = None
    total_weight: float = 0.0

    @property
    def back(self) -> float:
        """The factor from the targets of costs in the unit to those that are fitted."""
        if self.exponent is None or self.smallest_size is not None:
            return 1.0
        return back_from(self.unit, self.exponent) if self.scale is None else self.unit

    @cached_property
    def in_memory(self) -> RowBlocks | None:
        """The blocks themselves, if the rows are in memory."""
        return self.of(self.source.rows) if isinstance(self.source, InMemory) else None

    def first(self) -> Block:
        """Return the first block of the first rows."""
        assert self.source is not None
        return (self.in_memory or self.of(self.source.first()))[0]

    def of(self, rows: Rows) -> RowBlocks:
        """Return some rows as blocks in memory."""
        if rows.stored_costs is None:
            raise ValueError(f"{rows.origin} has no costs, and a fit needs them. Pass them, or leave it out.")
        if rows.weights is not None and (rows.weights < 0).any():
            rows.check()
        if self.without_zeros:
            sizes = cost_sizes(np.asarray(rows.costs, dtype=np.float64) / self.unit, 1.0)
            if not sizes.all():
                rows = replace(rows, weights=np.where(sizes > 0, 1.0 if rows.weights is None else rows.weights, 0.0))
        return RowBlocks(rows, self, self.scale(rows.X) if callable(self.scale) else self.scale)

    def checked(self, deviance: Deviance) -> Blocks:
        """Return the same blocks; they raise at a target that the deviance does not admit with a log link."""
        return replace(self, deviance=deviance)

    def sum(self, work: Work, *, per_task: int | None = None, start: Sums | None = None) -> Passes[Sums]:
        """Return the sum of `work` over all blocks, and of `start`, from one pass; the order of adding never changes.

        `work(blocks, numbers)` is called with some of the blocks at a time, in several threads or processes. Of rows in
        memory, these are `per_task` blocks.
        """
        parts: Iterable[Sums]
        if self.in_memory is None:
            *sums, weight = yield Pass(partial(_work_on_rows, self, work))
            self.total_weight, parts = float(weight), [tuple(sums)]
        else:
            parts = self.in_memory.map(work, per_task)
        total = start
        for part in parts:
            check_time()
            total = part if total is None else add(total, part)
        assert total is not None  # there is at least one block
        return total

    def __getstate__(self) -> dict[str, Any]:
        # What travels to a worker together with the work on its rows; the source stays where the sum is asked for.
        return vars(self) | {"source": None}


def _work_on_rows(blocks: Blocks, work: Work, rows: Rows) -> Sums:
    """Return what `work` adds up over all blocks of some rows, and the weight of the rows."""
    own = blocks.of(rows)
    with one_library_thread():
        sums = work(own, range(len(own)))
    if not all(np.isfinite(array).all() for array in sums):
        rows.check()  # a step of Newton that is too long may overflow, and is then rejected
    return (*sums, np.array(float(len(rows)) if rows.weights is None else float(rows.weights.sum())))


class RowBlocks:
    """Rows in memory as blocks; the change of measure is applied to each block as it is read.

    Parameters
    ----------
    rows : Rows
        With costs.
    how : Blocks
        What is done to them.
    scale : float or ndarray of shape (n,), optional
        The scale of these rows.
    """

    def __init__(self, rows: Rows, how: Blocks, scale: FloatArray | float | None) -> None:
        self.X, self.targets, self.sample_weight = rows.stored_features, rows.stored_costs, rows.weights
        self.first_row, self.how, self.scale, self.back = rows.first, how, scale, how.back
        self.n_rows = BLOCK_ROWS if self.X.ndim == 2 else max(1, _BLOCK_PAIRS // self.X.shape[1])
        self._only: Block | None = None

    def __len__(self) -> int:
        return math.ceil(len(self.X) / self.n_rows)

    def __getitem__(self, index: int) -> Block:
        if self._only is not None:
            return self._only
        X, values, weights, sizes = self._read(index)
        if sizes is not None:
            values = self._back(targets_of(values, sizes, self._scale(index)))
        if self.how.deviance is not None:
            self.how.deviance.check(values, weights, first_row=self.first_row + index * self.n_rows)
        block = Block(X, values, weights)
        if len(self) == 1:  # which saves reading it again in every pass
            self._only = block
        return block

    def weighted(self, index: int) -> Block:
        """Return a block with targets multiplied by their weights, which is faster than first dividing by the sizes."""
        if self.how.deviance is not None:
            X, targets, weights = self[index]
            return Block(X, targets if weights is None else targets * weights[:, None], weights)
        X, values, weights, sizes = self._read(index)
        factor = weights if sizes is None else self._given_weights(index)
        if sizes is not None:
            values = weighted_targets(values, self._scale(index), self.how.power)
        return Block(X, self._back(values if factor is None else values * factor[:, None]), weights)

    def map(self, work: Work, per_task: int | None) -> Iterator[Sums]:
        """Yield the results of `work` on consecutive ranges of blocks, in parallel if there are several ranges.

        The ranges and the order of the results are always the same, so sums do not depend on the number of threads.
        """
        is_large = self.X.ndim == 3 and self.how.deviance is None
        size = per_task or (2 if is_large else _BLOCKS_PER_TASK)
        tasks = [range(first, min(first + size, len(self))) for first in range(0, len(self), size)]
        if len(tasks) == 1:
            yield work(self, tasks[0])
            return
        with one_library_thread() as n_threads, ThreadPoolExecutor(n_threads) as workers:
            yield from workers.map(partial(work, self), tasks)

    def _back(self, targets: FloatArray) -> FloatArray:
        return targets if self.back == 1 else targets * self.back

    def _read(self, index: int) -> tuple[FloatArray, FloatArray, FloatArray | None, FloatArray | None]:
        """Return features, values, weights, and the sizes of the values under the change of measure."""
        how, first = self.how, index * self.n_rows
        rows = slice(first, first + self.n_rows)
        X = np.asarray(self.X[rows], dtype=np.float64)
        values = np.asarray(self.targets[rows], dtype=np.float64)  # type: ignore[index]
        if X.ndim == 2:  # features per item are checked by the sums over them, since a fit takes little longer
            check_finite(X, name="X", first_row=self.first_row + first)
        weights = self._given_weights(index)
        if how.exponent is None:
            check_finite(values, name="y", first_row=self.first_row + first)
            return X, values, weights, None
        if how.unit != 1:
            values = values / how.unit
        sizes = cost_sizes(values, how.exponent)
        if not np.isfinite(sizes.sum()):  # either an entry is not finite, or the power overflows
            check_finite(values, name="costs", first_row=self.first_row + first)
        if how.smallest_size is not None:
            sizes = np.maximum(sizes, how.smallest_size)
            values = np.column_stack([values, np.ones(len(values))])
        changed = weights_of(sizes, self._scale(index), how.power)
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


#: What is added up over some of the blocks: blocks and the range of their numbers to sums.
Work: TypeAlias = Callable[[RowBlocks, range], Sums]
