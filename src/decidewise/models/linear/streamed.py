"""Rows of any source as blocks for the sums of a fit, under the change of measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.kit.library_threads import one_library_thread
from decidewise.measure import cost_sizes
from decidewise.models.linear.blocks import Block, Blocks, RowBlocks, SummedBlocks
from decidewise.models.linear.deviances import CheckedBlocks, Deviance
from decidewise.rows.passes import Pass, Passes
from decidewise.rows.source import Rows, RowSource
from decidewise.rows.tree import Sums


@dataclass
class StreamedBlocks(SummedBlocks):
    """The rows of a source, which a fit passes over as often as it needs.

    Attributes
    ----------
    source : RowSource
        Asked for its first rows alone: the sums over all of them are passes.
    exponent, power, unit, smallest_size
        As for `RowBlocks`.
    scale : float, ndarray, callable or None
        The scale of the change of measure, or a function of the features of a block that returns it.
    without_zeros : bool
        Whether rows of zero costs have weight zero.
    deviance : Deviance, optional
        If given, targets that it does not admit with a log link raise an error.
    n_rows, total_weight : float
        The number of rows and the sum of their sample weights, after the first pass.
    """

    source: RowSource | None
    exponent: float | None = None
    scale: float | FloatArray | Callable[[FloatArray], FloatArray] | None = None
    power: float = 0.0
    unit: float = 1.0
    smallest_size: float | None = None
    without_zeros: bool = False
    deviance: Deviance | None = None
    n_rows: float = 0.0
    total_weight: float = 0.0

    def first(self) -> Block:
        """Return the first block of the first rows."""
        assert self.source is not None
        return self.of(self.source.first())[0]

    def of(self, rows: Rows) -> Blocks:
        """Return some rows as blocks in memory."""
        if rows.stored_costs is None:
            raise ValueError(f"{rows.origin} has no costs, and a fit needs them. Pass them, or leave it out.")
        weights = rows.weights
        if weights is not None and (weights < 0).any():
            rows.check()
        if self.without_zeros:
            sizes = cost_sizes(np.asarray(rows.costs, dtype=np.float64) / self.unit, 1.0)
            if not sizes.all():
                weights = np.where(sizes > 0, 1.0 if weights is None else weights, 0.0)
        blocks: Any = RowBlocks(
            rows.stored_features,
            rows.stored_costs,
            weights,
            exponent=self.exponent,
            scale=self.scale(rows.X) if callable(self.scale) else self.scale,
            power=self.power,
            unit=self.unit,
            smallest_size=self.smallest_size,
            first_row=rows.first,
        )
        return blocks if self.deviance is None else CheckedBlocks(blocks, self.deviance)

    def sum(self, work: Callable[[Blocks, range], Sums]) -> Passes[Sums]:
        """Return the sum of `work` over all blocks, from one pass over them."""
        *sums, counts = yield Pass(_Part(self, work))
        self.n_rows, self.total_weight = (float(count) for count in counts)
        return tuple(sums)

    def checked(self, deviance: Deviance) -> StreamedBlocks:
        """Return the same blocks; they raise at a target that the deviance does not admit with a log link."""
        return replace(self, deviance=deviance)

    def __getstate__(self) -> dict[str, Any]:
        # What travels to a worker together with the work on its rows; the source stays where the sum is asked for.
        return vars(self) | {"source": None}


class _Part:
    """The work on the blocks of some rows, and the number and weight of the rows."""

    def __init__(self, blocks: StreamedBlocks, work: Callable[[Blocks, range], Sums]) -> None:
        self.blocks, self.work = blocks, work

    def __call__(self, rows: Rows) -> Sums:
        blocks = self.blocks.of(rows)
        with one_library_thread():
            sums = self.work(blocks, range(len(blocks)))
        if not all(np.isfinite(array).all() for array in sums):
            rows.check()  # a step of Newton that is too long may overflow, and is then rejected
        weight = float(len(rows)) if rows.weights is None else float(rows.weights.sum())
        return (*sums, np.array([float(len(rows)), weight]))
