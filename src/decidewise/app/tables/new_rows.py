"""New rows of a table, for a model: read whole or block by block, and what is done to each block of them.

What is done to a block can be sent to a worker: `spread` decides whether threads of this process or the workers of a
cluster do it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from decidewise.app.tables.blocks import Spread, TableBlocks, read_block
from decidewise.app.tables.columns import Reading, in_words
from decidewise.app.tables.oddities import Unfamiliar
from decidewise.app.tables.ordered_regrets import OrderedRegrets
from decidewise.app.tables.raw_values import Raw
from decidewise.app.tables.read import NO_COSTS, columns_of, read_samples
from decidewise.app.tables.samples import TableSamples, columns_like
from decidewise.app.tables.table_model import TableModel, forecast_of
from decidewise.evaluate import Comparison, ComparisonRow, Hindsight, check_in_units
from decidewise.evaluate.intervals import Blocks
from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import InputError
from decidewise.kit.machine import map_in_order
from decidewise.kit.progress import RowBar
from decidewise.operate.decide import StreamedRegret, regret_sums
from decidewise.problems import ProblemFile
from decidewise.rows.file_blocks import FileBlock
from decidewise.rows.tree import PairwiseTree

#: Rows of a block of a table that is in memory.
_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Written:
    """What became of a block: columns to write, the number of rows, and what training had not."""

    columns: dict[str, Any]
    n_rows: int
    unfamiliar: Unfamiliar


def predicted(model: TableModel, samples: TableSamples) -> Written:
    """Return the predictions for the samples of a block as columns."""
    columns = columns_like(samples, model.options.get("items"), {"prediction": model.predict_samples(samples)})
    return Written(columns, len(samples), Unfamiliar.of(model.features, samples.lines))


def decided(model: TableModel, samples: TableSamples) -> Written:
    """Return the decisions for the samples of a block as columns."""
    columns = model.decide_samples(samples).columns()
    return Written(columns, len(samples), Unfamiliar.of(model.features, samples.lines))


@dataclass(frozen=True)
class BlockRegrets:
    """The samples of a block: times if they have some, optimal values (b,), and regrets (b,) by name."""

    times: Raw | None
    best: FloatArray
    regrets: dict[str, FloatArray]

    @classmethod
    def of(cls, model: TableModel, samples: TableSamples) -> BlockRegrets:
        """Measure the regrets of the forecast if the table has one, and of the model."""
        if samples.problem is None or samples.costs is None:
            raise ValueError("samples must have costs and a problem.")
        if not len(samples):
            return cls(None, np.empty(0), {})
        check_in_units(model.estimator, samples.problem)
        truth = Hindsight.of(samples.problem, samples.costs)
        forecast = forecast_of(samples)
        regrets = {} if forecast is None else {"forecast": truth.regret(forecast)}
        return cls(samples.times, truth.best, {**regrets, "model": truth.regret(model.predict_samples(samples))})


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
        return TableBlocks.of(self.source, self.reading.options, self.text)

    @property
    def reading(self) -> Reading:
        """What is read from the table."""
        return self.model.reading(self.file, costs=self.costs)

    def results(
        self,
        work: Callable[[TableModel, TableSamples], Written],
        description: str,
        *,
        in_blocks: bool,
        spread: Spread = map_in_order,
    ) -> Generator[Written, None, None]:
        """Yield what becomes of the rows, in order; read them block by block, or whole. Close it, also after an error.

        `work` is `predicted` or `decided`.
        """
        n_rows = 0
        source = self.reading if in_blocks else self._whole(self.reading)
        with closing(self._map(work, source, description, spread)) as results:
            for done in results:
                n_rows += done.n_rows
                yield done
        if not n_rows:
            raise InputError(f"the table is empty: it has 0 rows and {len(self.blocks.files.names)} columns.")

    def evaluate(self, *, in_blocks: bool, spread: Spread = map_in_order) -> tuple[Comparison, str]:
        """Return the regret of the model and, if the table has one, of a forecast; and what a sample is called.

        Intervals are those of a bootstrap; of rows that are read block by block and have no times, or too many to sort
        that do not come in the order of time, those of independent rows, from sums over them.
        """
        reading = replace(self.reading, costs=True, in_order=True)
        if in_blocks:
            source: Reading | TableSamples = reading
            title, kept = in_words(reading.options.rows or "row"), OrderedRegrets()
        else:
            source = samples = self._whole(reading)
            blocks: Blocks = None if samples.times is None else "auto"
            title, kept = samples.noun, OrderedRegrets(most=len(samples), blocks=blocks)
        totals: dict[str, PairwiseTree] | None = None
        n_rows = 0
        with closing(self._map(BlockRegrets.of, source, f"Evaluating {self.source}", spread)) as results:
            for found in results:
                if not len(found.best):
                    continue
                times = np.zeros(len(found.best)) if found.times is None and not in_blocks else found.times
                if times is not None:
                    kept.add(times, found.best, found.regrets)
                n_rows += len(found.best)
                totals = _added(totals, found)
        if totals is None:
            raise InputError(NO_COSTS)
        late = reading.options.time is not None
        return kept.compared() or _from_sums(totals, n_rows, late=late), title

    def _whole(self, reading: Reading) -> TableSamples:
        return read_samples(columns_of(self.source, self.text), reading)

    def _map(
        self, work: Callable[..., Any], source: Reading | TableSamples, description: str, spread: Spread
    ) -> Generator[Any, None, None]:
        """Yield the results of work on the samples; those in memory are divided too, so that it can be spread."""
        if isinstance(source, Reading):
            on_block = partial(_on_block, source, partial(work, self.model))
            with closing(self.blocks.map(on_block, description, spread)) as results:
                yield from (result for _, result in results)
            return
        with (
            RowBar(description, len(source)) as bar,
            closing(spread(partial(work, self.model), _parts(source))) as results,
        ):
            for part, result in results:
                bar.advance(len(part))
                yield result


def _on_block(reading: Reading, work: Callable[[TableSamples], Any], block: FileBlock) -> Any:
    """Read a block where the work on it is done."""
    return work(read_block(reading, block))


def _parts(samples: TableSamples) -> Generator[TableSamples, None, None]:
    if len(samples) <= _BLOCK_ROWS:
        yield samples
        return
    for first in range(0, len(samples), _BLOCK_ROWS):
        yield samples.take(slice(first, first + _BLOCK_ROWS))


def _added(totals: dict[str, PairwiseTree] | None, found: BlockRegrets) -> dict[str, PairwiseTree]:
    """Add the sums of a block by name, "difference" that of model minus forecast; a forecast with a gap is left out."""
    regrets = dict(found.regrets)
    if "forecast" in regrets:
        regrets["difference"] = regrets["model"] - regrets["forecast"]
    if totals is None:
        totals = {name: PairwiseTree() for name in regrets}
    totals = {name: tree for name, tree in totals.items() if name in regrets}
    for name, tree in totals.items():
        tree.add((regret_sums(regrets[name], found.best, None),))
    return totals


def _from_sums(totals: dict[str, PairwiseTree], n_rows: int, *, late: bool) -> Comparison:
    regrets = {name: StreamedRegret.of(tree.total()) for name, tree in totals.items()}
    difference = regrets.pop("difference", None)
    rows = tuple(
        ComparisonRow(
            name,
            regret.percent,
            difference.percent if name == "model" and difference else None,
            regret.mean,
            difference.mean if name == "model" and difference else None,
        )
        for name, regret in regrets.items()
    )
    method = "normal (as if rows were independent, for they are not in the order of time)" if late else "normal"
    return Comparison(rows, rows[0].name, 0.95, n_rows, method=method)
