"""Fits on a table that is read block by block, in constant memory.

What is done to a block is an object that can be sent to a worker: `spread` decides whether threads of this process or
the workers of a cluster do it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing, suppress
from functools import cached_property, partial
from typing import Any

from decidewise.app.tables.blocks import Spread, TableBlocks, read_block
from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.options import Reading
from decidewise.app.tables.read import NO_COSTS
from decidewise.app.tables.samples import TableSamples
from decidewise.app.tables.table_model import TableModel
from decidewise.kit.errors import InputError
from decidewise.kit.machine import map_in_order
from decidewise.models.selection.sums import fit_on_rows
from decidewise.rows.checkpoint import Checkpoint
from decidewise.rows.file_blocks import FileBlock
from decidewise.rows.source import FIRST_ROWS, Place, Rows, RowSource, located
from decidewise.rows.tree import Sums


class PreparedRows(RowSource):
    """The samples of a table that have costs, with their features prepared, as a source for fits.

    Parameters
    ----------
    blocks : TableBlocks
    reading : Reading
        With costs.
    features : TableFeatures
        Fitted, on these rows or on some of them.
    spread : callable
        See `Spread`.
    """

    def __init__(
        self,
        blocks: TableBlocks,
        reading: Reading,
        features: TableFeatures,
        spread: Spread = map_in_order,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.table, self.reading, self.features, self.spread = blocks, reading, features, spread
        self.checkpoint = checkpoint

    def close(self) -> None:
        """Write the checkpoint: whoever writes the model deletes it afterwards."""
        if self.checkpoint is not None:
            with suppress(OSError):  # an earlier one is still whole, and the error that ended a pass says more
                self.checkpoint.write()

    def first(self) -> Rows:
        """Return some of the first rows."""
        return self._first

    def map(
        self, function: Callable[[Rows], Any], begin: Place = (0, 0, 0)
    ) -> Generator[tuple[FileBlock, Any, Place], None, None]:
        """Yield the blocks with the results of a function, in order, and the place after each."""
        _, line, n_rows = begin
        work = partial(_on_rows, self.reading, self.features, function)
        try:
            with closing(self.table.map(work, f"Fitting, pass {self.pass_number}", self.spread, line)) as results:
                for block, (result, n_with) in results:
                    n_rows += n_with
                    yield block, result, (0, block.first + block.table.num_rows, n_rows)
        except BaseException:  # Ctrl-C, or a cluster that goes away
            self.close()
            raise

    @cached_property
    def _first(self) -> Rows:
        with closing(self.table.after()) as blocks:
            for block in blocks:
                samples = read_block(self.reading, block)
                if len(samples):
                    return _as_rows(samples.take(slice(0, FIRST_ROWS)), self.features, block)
        raise InputError(NO_COSTS)


def _on_rows(
    reading: Reading, features: TableFeatures, function: Callable[[Rows], Sums], block: FileBlock
) -> tuple[Sums | None, int]:
    """Return the sums over the rows of a block, None if it has none, and the number of its rows."""
    samples = read_block(reading, block)
    if not len(samples):
        return None, 0
    rows = _as_rows(samples, features, block)
    with located(rows):
        return function(rows), len(rows)


def _as_rows(samples: TableSamples, features: TableFeatures, block: FileBlock) -> Rows:
    return Rows(samples.features(features), samples.costs, None, block.origin, block.line)


def fit_table(
    estimator: Any,
    features: TableFeatures,
    blocks: TableBlocks,
    cost_names: tuple[str, ...],
    *,
    checkpoint: Checkpoint | None = None,
    spread: Spread = map_in_order,
) -> tuple[TableModel, PreparedRows]:
    """Fit a model on all rows of a table, block by block; return it, and the rows that it was fitted on.

    Parameters
    ----------
    estimator : estimator
        A sum over rows; see `decidewise.models.selection.sums.is_sum_over_rows`.
    features : TableFeatures
        Fitted on a part of the rows.
    blocks : TableBlocks
    cost_names : tuple of str
        In the order of the problem.
    checkpoint : Checkpoint, optional
        What an earlier, killed call has finished, and where this one keeps what it finishes. It is not deleted.
    """
    reading = Reading(blocks.options, like=cost_names, needed=features.needed)
    rows = PreparedRows(blocks, reading, features, spread, checkpoint)
    fitted = fit_on_rows(estimator, rows)
    return TableModel(fitted, features, blocks.options.as_dict(), list(cost_names)), rows
