"""Fits, predictions, decisions and regrets of a table that is read block by block, in constant memory.

What is done to a block is an object that can be sent to a worker: `spread` decides whether threads of this process or
the workers of a cluster do it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from decidewise.app.tables.blocks import BlockReader, TableBlocks
from decidewise.app.tables.decisions import prediction_columns
from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.ordered_regrets import OrderedRegrets
from decidewise.app.tables.reader import NO_COSTS
from decidewise.app.tables.samples import TableSamples
from decidewise.app.tables.table_model import TableModel, forecast_of
from decidewise.app.tables.unfamiliar import Unfamiliar
from decidewise.evaluate import Comparison, ComparisonRow, Hindsight, check_in_units
from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import InputError
from decidewise.kit.progress import ByteBar
from decidewise.kit.spread import map_in_order
from decidewise.models.selection.sums import fit_on_rows
from decidewise.operate.decide import StreamedRegret, regret_sums
from decidewise.rows.checkpoint import Checkpoint
from decidewise.rows.file_blocks import FileBlock
from decidewise.rows.source import FIRST_ROWS, Place, Rows, RowSource, located
from decidewise.rows.tree import PairwiseTree, Sums

#: Called as `spread(work, items)`, it yields the items with the results of the work on each, in order.
Spread = Callable[[Callable[[Any], Any], Generator[Any, None, None]], Generator[tuple[Any, Any], None, None]]


class PreparedRows(RowSource):
    """The samples of a table that have costs, with their features prepared, as a source for fits.

    Parameters
    ----------
    blocks : TableBlocks
    reader : BlockReader
        That reads costs.
    features : TableFeatures
        Fitted, on these rows or on some of them.
    spread : callable
        See `Spread`.
    """

    def __init__(
        self,
        blocks: TableBlocks,
        reader: BlockReader,
        features: TableFeatures,
        spread: Spread = map_in_order,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.table, self.reader, self.features, self.spread = blocks, reader, features, spread
        self.checkpoint = checkpoint

    def close(self) -> None:
        """Write the checkpoint: whoever writes the model deletes it afterwards."""
        if self.checkpoint is not None:
            with suppress(OSError):  # an earlier one is still whole
                self.checkpoint.write()

    def first(self) -> Rows:
        """Return some of the first rows."""
        return self._first

    def map(
        self, function: Callable[[Rows], Any], begin: Place = (0, 0, 0)
    ) -> Generator[tuple[FileBlock, Any, Place], None, None]:
        """Yield the blocks with the results of a function, in order, and the place after each."""
        _, line, n_rows = begin
        work = _OnRows(self.reader, self.features, function)
        with self._kept_if_stopped(), ByteBar(f"Fitting, pass {self.pass_number}", self.table.files.n_bytes) as bar:
            for block, (result, n_with) in _mapped(self.spread, work, self.table.after(line), bar):
                n_rows += n_with
                yield block, result, (0, block.first + block.table.num_rows, n_rows)

    @contextmanager
    def _kept_if_stopped(self) -> Iterator[None]:
        """Return a context that writes the checkpoint if it ends in an error: Ctrl-C, or a cluster that goes away."""
        try:
            yield
        except BaseException:
            if self.checkpoint is not None:
                with suppress(OSError):  # the error that ended it says more than a full disk
                    self.checkpoint.write()
            raise

    @cached_property
    def _first(self) -> Rows:
        with closing(self.table.after()) as blocks:
            for block in blocks:
                samples = self.reader(block)
                if len(samples):
                    return _as_rows(samples.take(slice(0, FIRST_ROWS)), self.features, block)
        raise InputError(NO_COSTS)


@dataclass(frozen=True)
class _OnRows:
    """The sums over the rows of a block, None if it has none, and the number of its rows."""

    reader: BlockReader
    features: TableFeatures
    function: Callable[[Rows], Sums]

    def __call__(self, block: FileBlock) -> tuple[Sums | None, int]:
        samples = self.reader(block)
        if not len(samples):
            return None, 0
        rows = _as_rows(samples, self.features, block)
        with located(rows):
            return self.function(rows), len(rows)


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
    reader = BlockReader(blocks.options, like=cost_names, needed=features.needed, costs=True, in_order=True)
    rows = PreparedRows(blocks, reader, features, spread, checkpoint)
    fitted = fit_on_rows(estimator, rows)
    return TableModel(fitted, features, blocks.options.as_dict(), list(cost_names)), rows


@dataclass(frozen=True)
class Written:
    """What became of a block: columns to write, the number of rows, and what training had not."""

    columns: dict[str, Any]
    n_rows: int
    unfamiliar: Unfamiliar


@dataclass(frozen=True)
class PredictBlock:
    """Predicts the samples of a block."""

    model: TableModel

    def __call__(self, samples: TableSamples) -> Written:
        """Return the predictions as columns."""
        predictions = self.model.predict_samples(samples)
        columns = prediction_columns(samples, predictions, self.model.options.get("items"))
        return Written(columns, len(samples), Unfamiliar.of(self.model.features, samples.lines))


@dataclass(frozen=True)
class DecideBlock:
    """Decides the samples of a block."""

    model: TableModel

    def __call__(self, samples: TableSamples) -> Written:
        """Return the decisions as columns."""
        columns = self.model.decide_samples(samples).columns()
        return Written(columns, len(samples), Unfamiliar.of(self.model.features, samples.lines))


@dataclass(frozen=True)
class RegretsOf:
    """Measures the regrets of the samples of a block: of the forecast if the table has one, and of the model."""

    model: TableModel

    def __call__(self, samples: TableSamples) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return the optimal values (b,), and the regrets (b,) by name."""
        if samples.problem is None or samples.costs is None:
            raise ValueError("samples must have costs and a problem.")
        check_in_units(self.model.estimator, samples.problem)
        truth = Hindsight.of(samples.problem, samples.costs)
        forecast = forecast_of(samples)
        regrets = {} if forecast is None else {"forecast": truth.regret(forecast)}
        return truth.best, {**regrets, "model": truth.regret(self.model.predict_samples(samples))}


@dataclass(frozen=True)
class _RegretSums:
    """The sums of regrets over the samples of a block by name, "difference" that of model minus forecast."""

    model: TableModel

    def __call__(self, samples: TableSamples) -> _BlockRegrets:
        if not len(samples):
            return _BlockRegrets({}, 0)
        best, regrets = RegretsOf(self.model)(samples)
        ordered = None if samples.times is None else (samples.times, best, regrets)
        if "forecast" in regrets:
            regrets = {**regrets, "difference": regrets["model"] - regrets["forecast"]}
        sums = {name: regret_sums(regret, best, None) for name, regret in regrets.items()}
        return _BlockRegrets(sums, len(samples), ordered)


@dataclass(frozen=True)
class _BlockRegrets:
    """The sums of a block, the number of its samples, and if they have times, what `OrderedRegrets.add` takes."""

    sums: dict[str, FloatArray]
    n_rows: int
    ordered: tuple[Any, FloatArray, dict[str, FloatArray]] | None = None


@dataclass(frozen=True)
class _Read:
    """The work on the samples of a block that is read where the work is done."""

    reader: BlockReader
    work: Callable[[TableSamples], Any]

    def __call__(self, block: FileBlock) -> Any:
        return self.work(self.reader(block))


def written(
    work: Callable[[TableSamples], Written],
    reader: BlockReader,
    blocks: TableBlocks,
    description: str,
    spread: Spread = map_in_order,
) -> Generator[Written, None, None]:
    """Yield what becomes of each block of a table, in order; close it, also after an error."""
    n_rows = 0
    with ByteBar(description, blocks.files.n_bytes) as bar:
        for _, done in _mapped(spread, _Read(reader, work), blocks.after(), bar):
            n_rows += done.n_rows
            yield done
    if not n_rows:
        raise InputError(f"the table is empty: it has 0 rows and {len(blocks.files.names)} columns.")


def evaluated(model: TableModel, reader: BlockReader, blocks: TableBlocks, spread: Spread = map_in_order) -> Comparison:
    """Return the regret of a model on a table that is read block by block, beside that of the forecast if it has one.

    Intervals are those of independent rows, from sums over them; with times, those of a bootstrap of blocks of rows.
    """
    totals: dict[str, PairwiseTree] = {}
    in_order = OrderedRegrets()
    n_rows = 0
    reader = replace(reader, costs=True, in_order=True)
    with ByteBar("Evaluating", blocks.files.n_bytes) as bar:
        for _, found in _mapped(spread, _Read(reader, _RegretSums(model)), blocks.after(), bar):
            for name in [name for name in totals if name not in found.sums] if found.n_rows else []:
                del totals[name]  # a forecast with a gap in some row is not compared
            for name, own in found.sums.items():
                if name == "model" or name in totals or not n_rows:
                    totals.setdefault(name, PairwiseTree()).add((own,))
            if found.ordered is not None:
                in_order.add(*found.ordered)
            n_rows += found.n_rows
    if not n_rows:
        raise InputError(NO_COSTS)
    ordered = in_order.compared()
    if ordered is not None:
        return ordered
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
    late = blocks.options.time is not None
    method = "normal (as if rows were independent, for they are not in the order of time)" if late else "normal"
    return Comparison(rows, rows[0].name, 0.95, n_rows, method=method)


def _mapped(
    spread: Spread, work: Callable[[FileBlock], Any], blocks: Generator[FileBlock], bar: ByteBar
) -> Iterator[tuple[FileBlock, Any]]:
    with closing(spread(work, blocks)) as results:
        for block, result in results:
            bar.advance(block.n_bytes, block.table.num_rows)
            yield block, result
