"""Rows in blocks: what a fit reads, one piece at a time, so that it never copies the whole table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from decidewise.checks import FloatArray, check_finite
from decidewise.measure import change

# A block of fifty features and a hundred costs stays in the second-level cache: memory is read once.
BLOCK_ROWS = 2048
# Blocks that one thread reads before their sums are added up, always in the same order: the answer does not depend on
# the number of threads.
_BLOCKS_A_TASK = 32

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
    """A table in memory as blocks, with the change of measure applied to each as it is read.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    targets : ndarray of shape (n, d)
    sample_weight : ndarray of shape (n,), optional
    exponent : float, optional
        With an exponent, `targets` are costs: a block has weights `‖y‖^exponent` and targets `y/‖y‖^exponent`.
    """

    def __init__(
        self, X: Any, targets: Any, sample_weight: FloatArray | None = None, *, exponent: float | None = None
    ) -> None:
        self.X, self.targets, self.sample_weight, self.exponent = X, targets, sample_weight, exponent

    def __len__(self) -> int:
        return math.ceil(len(self.X) / BLOCK_ROWS)

    def __getitem__(self, index: int) -> Block:
        first = index * BLOCK_ROWS
        rows = slice(first, first + BLOCK_ROWS)
        X = np.asarray(self.X[rows], dtype=np.float64)
        targets = np.asarray(self.targets[rows], dtype=np.float64)
        check_finite(X, name="X", first_row=first)
        check_finite(targets, name="y" if self.exponent is None else "costs", first_row=first)
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        if self.exponent is not None:
            measure, targets = change(targets, self.exponent)
            weights = measure if weights is None else measure * weights
        return Block(X, targets, weights)


def map_tasks(work: Callable[[range], Result], n_blocks: int) -> Iterator[Result]:
    """Yield the results of `work` on consecutive ranges of blocks, in order; in parallel when there are many."""
    tasks = [range(first, min(first + _BLOCKS_A_TASK, n_blocks)) for first in range(0, n_blocks, _BLOCKS_A_TASK)]
    if len(tasks) == 1:
        yield work(tasks[0])
        return
    # One BLAS thread a worker: NumPy's elementwise work, half of the time, then runs in parallel too.
    n_threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    with threadpool_limits(1), ThreadPoolExecutor(n_threads) as workers:
        yield from workers.map(work, tasks)
