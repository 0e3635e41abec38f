"""Rows in blocks: a fit reads one block at a time, so that it never copies the whole table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from threading import Lock
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from decidewise.checks import FloatArray, check_finite
from decidewise.measure import cost_sizes, targets_of, weighted_targets, weights_of
from decidewise.models.linear.units import back_from

# A block of fifty features and a hundred costs fits into the second-level cache, so that memory is read once.
BLOCK_ROWS = 2048

Result = TypeVar("Result")


class Block(NamedTuple):
    """Some rows of a table: features `(b, p)`, targets `(b, d)` and weights `(b,)`, None for ones."""

    X: FloatArray
    targets: FloatArray
    weights: FloatArray | None


class Blocks(Protocol):
    """Blocks that can be read in any order, by several threads, and more than once."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Block: ...


class RowBlocks:
    """A table in memory as blocks; the change of measure is applied to each block as it is read.

    Parameters
    ----------
    X : ndarray of shape (n, p)
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
    ) -> None:
        self.X, self.targets, self.sample_weight, self.exponent = X, targets, sample_weight, exponent
        self.scale, self.power, self.unit, self.smallest_size = scale, power, unit, smallest_size
        if exponent is None or smallest_size is not None:
            self.back = 1.0
        else:
            self.back = back_from(unit, exponent) if scale is None else unit

    def __len__(self) -> int:
        return math.ceil(len(self.X) / BLOCK_ROWS)

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
        first = index * BLOCK_ROWS
        rows = slice(first, first + BLOCK_ROWS)
        X = np.asarray(self.X[rows], dtype=np.float64)
        values = np.asarray(self.targets[rows], dtype=np.float64)
        check_finite(X, name="X", first_row=first)
        weights = self._given_weights(index)
        if self.exponent is None:
            check_finite(values, name="y", first_row=first)
            return X, values, weights, None
        if self.unit != 1:
            values = values / self.unit
        sizes = cost_sizes(values, self.exponent)
        if not np.isfinite(sizes.sum()):  # either an entry is not finite, or the power overflows
            check_finite(values, name="costs", first_row=first)
        if self.smallest_size is not None:
            sizes = np.maximum(sizes, self.smallest_size)
            values = np.column_stack([values, np.ones(len(values))])
        changed = weights_of(sizes, self._scale(index), self.power)
        return X, values, changed if weights is None else changed * weights, sizes

    def _scale(self, index: int) -> FloatArray | float | None:
        """Return the scale of the rows of a block; None for 1, which needs no division."""
        if isinstance(self.scale, np.ndarray):
            first = index * BLOCK_ROWS
            return self.scale[first : first + BLOCK_ROWS]
        return None if self.scale == 1 else self.scale

    def _given_weights(self, index: int) -> FloatArray | None:
        first = index * BLOCK_ROWS
        return None if self.sample_weight is None else self.sample_weight[first : first + BLOCK_ROWS]


def weighted_block(blocks: Blocks, index: int) -> Block:
    """Return a block with its targets multiplied by their weights; `RowBlocks` have a faster way to read it."""
    if isinstance(blocks, RowBlocks):
        return blocks.weighted(index)
    X, targets, weights = blocks[index]
    return Block(X, targets if weights is None else targets * weights[:, None], weights)


def map_tasks(work: Callable[[range], Result], n_blocks: int, blocks_per_task: int = 32) -> Iterator[Result]:
    """Yield the results of `work` on consecutive ranges of blocks, computed in parallel if there are several ranges.

    The ranges and the order of the results are always the same, so sums do not depend on the number of threads.
    """
    tasks = [range(first, min(first + blocks_per_task, n_blocks)) for first in range(0, n_blocks, blocks_per_task)]
    if len(tasks) == 1:
        yield work(tasks[0])
        return
    with one_library_thread() as n_threads, ThreadPoolExecutor(n_threads) as workers:
        yield from workers.map(work, tasks)


class _OneLibraryThread:
    """A context in which BLAS runs on one thread; its value is the number of threads that BLAS had before.

    With one BLAS thread in each thread of ours, NumPy's elementwise operations, half of the time, run in parallel too.
    Any number of threads may enter the context at once. The limit holds for the whole process: the first thread to
    enter sets it and the last to leave lifts it, so that no thread takes the limit for the original number.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0

    def __enter__(self) -> int:
        with self._lock:
            if self._n_inside == 0:
                self._n_threads = max((library["num_threads"] for library in _libraries().info()), default=1)
                self._limit = _blas().limit(limits=1)
                self._release()
            self._n_inside += 1
            return self._n_threads

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._limit.restore_original_limits()
                self._release()

    @staticmethod
    def _release() -> None:
        """Let any thread set the next limit: since threadpoolctl 3.8, only the thread that set the last one may."""
        for library in _blas().lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread()


_one_library_thread = _OneLibraryThread()


def one_library_thread() -> AbstractContextManager[int]:
    """Return the context in which BLAS runs on one thread; its value is the number of threads that BLAS had before."""
    return _one_library_thread


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # cached: finding the libraries takes milliseconds, limiting them microseconds


@cache
def _blas() -> ThreadpoolController:
    # Without OpenMP: its number of threads belongs to the thread that sets it, so the last thread to leave could not
    # restore that of the first.
    return _libraries().select(user_api="blas")
