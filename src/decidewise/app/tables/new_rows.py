"""New rows of a table, for a model: read whole or block by block, and what is done to each block of them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from decidewise.app.tables.blocks import BlockReader, TableBlocks
from decidewise.app.tables.date_parts import in_words
from decidewise.app.tables.options import TableOptions
from decidewise.app.tables.samples import TableSamples
from decidewise.app.tables.streamed import DecideBlock, PredictBlock, RegretsOf, Spread, Written, evaluated, written
from decidewise.app.tables.table_model import TableModel
from decidewise.evaluate import Comparison, Hindsight, compare_regrets
from decidewise.kit.checks import FloatArray
from decidewise.kit.progress import RowBar
from decidewise.kit.spread import map_in_order
from decidewise.problems import ProblemFile

#: Rows of a block of a table that is in memory.
_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class NewRows:
    """A table of new rows for a model.

    Attributes
    ----------
    model : TableModel
    source : path
    text : dict
        Options of text files.
    file : ProblemFile, optional
    costs : bool, optional
        Whether costs are read; None if they are there.
    """

    model: TableModel
    source: str
    text: dict[str, Any]
    file: ProblemFile | None = None
    costs: bool | None = None

    @cached_property
    def blocks(self) -> TableBlocks:
        """The table block by block."""
        return TableBlocks.of(self.source, TableOptions.of(self.model.options), self.text)

    @property
    def reader(self) -> BlockReader:
        """What reads the samples of a block."""
        options = TableOptions.of(self.model.options)
        return BlockReader(options, self.file, list(self.model.cost_names), self.model.features.needed, self.costs)

    def read(self, **options: Any) -> TableSamples:
        """Read the whole table; `options` are those of `TableModel.read`."""
        return self.model.read(self.source, self.file, **({"costs": self.costs} | options), **self.text)

    def results(
        self, work: PredictBlock | DecideBlock, description: str, *, in_blocks: bool, spread: Spread = map_in_order
    ) -> Generator[Written, None, None]:
        """Yield what becomes of the rows, in order; read them block by block, or whole. Close it, also after an error.

        Work on rows that were read whole is divided into blocks too, so that it can be spread.
        """
        if in_blocks:
            yield from written(work, self.reader, self.blocks, description, spread)
            return
        samples = self.read()
        with RowBar(description, len(samples)) as bar, closing(spread(work, _parts(samples))) as results:
            for part, done in results:
                bar.advance(len(part))
                yield done

    def evaluate(self, *, in_blocks: bool, spread: Spread = map_in_order) -> tuple[Comparison, str]:
        """Return the regret of the model and, if the table has one, of a forecast; and what a sample is called."""
        if in_blocks:
            options = TableOptions.of(self.model.options)
            title = in_words(options.rows or "row")
            return evaluated(self.model, self.reader, self.blocks, spread), title
        samples = self.read(costs=True, in_order=True)
        best: list[FloatArray] = []
        regrets: dict[str, list[FloatArray]] = {}
        work = RegretsOf(self.model)
        with (
            RowBar(f"Evaluating {self.source}", len(samples)) as bar,
            closing(spread(work, _parts(samples))) as results,
        ):
            for part, (own_best, own) in results:
                bar.advance(len(part))
                best.append(own_best)
                for name, values in own.items():
                    regrets.setdefault(name, []).append(values)
        truth = Hindsight(samples.problem, samples.costs, np.concatenate(best))  # type: ignore[arg-type]
        complete = {name: np.concatenate(parts) for name, parts in regrets.items() if len(parts) == len(best)}
        blocks: Literal["auto"] | None = None if samples.times is None else "auto"
        return compare_regrets(truth, complete, blocks=blocks), samples.noun


def _parts(samples: TableSamples) -> Generator[TableSamples, None, None]:
    if len(samples) <= _BLOCK_ROWS:
        yield samples
        return
    for first in range(0, len(samples), _BLOCK_ROWS):
        yield samples.take(slice(first, first + _BLOCK_ROWS))
