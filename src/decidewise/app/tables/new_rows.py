"""New rows of a table, for a model: read whole or block by block, and what is done to each block of them.

What is done to a block can be sent to a worker: `spread` decides whether threads of this process or the workers of a
cluster do it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from decidewise.app.tables.blocks import Spread, TableBlocks, read_block
from decidewise.app.tables.columns import Reading
from decidewise.app.tables.layouts import in_words
from decidewise.app.tables.raw_values import Raw
from decidewise.app.tables.samples import NO_COSTS, TableSamples, columns_of, read_samples
from decidewise.app.tables.table_model import TableModel, Unfamiliar, columns_like, forecast_of
from decidewise.evaluate import Comparison, ComparisonRow, Hindsight, check_in_units, compare_sums
from decidewise.evaluate.intervals import Blocks
from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import InputError
from decidewise.kit.machine import map_in_order
from decidewise.kit.progress import RowBar
from decidewise.operate.decide import StreamedRegret, regret_sums
from decidewise.problems import ProblemFile
from decidewise.rows.file_blocks import FileBlock
from decidewise.rows.source import PairwiseTree

#: The most rows that are kept one by one: with two models, 20 MB.
_MOST = 2**19


@dataclass
class OrderedRegrets:
    """Regrets by the time of their rows; from `most` rows on, neighbours are added up, so that memory stays bounded.

    The bootstrap draws blocks of consecutive rows and needs no more than the sums over `each` of them. Rows that do not
    come in the order of time are sorted at the end, which takes all of them: there may be no more than `most`.

    >>> regrets = OrderedRegrets(most=4)
    >>> for first in (0, 3, 6):
    ...     times = np.arange(first, first + 3)
    ...     regrets.add(times, np.full(3, 2.0), {"model": np.ones(3)})
    >>> regrets.each, regrets.compared().n_samples
    (4, 9)
    >>> regrets.add(np.array([0]), np.ones(1), {"model": np.ones(1)})  # an early row comes late
    >>> regrets.compared() is None
    True
    """

    most: int = _MOST
    blocks: Blocks = "auto"
    each: int = 1
    in_order: bool = True
    n_rows: int = 0
    _names: tuple[str, ...] | None = None
    _last: float = -np.inf
    #: One line per unit: its first time, its rows, the sum of absolute optimal values, and the sums of regrets.
    _sums: list[FloatArray] = field(default_factory=list)
    _n_units: int = 0

    def add(self, times: Raw, best: FloatArray, regrets: dict[str, FloatArray]) -> None:
        """Add rows: times in order, optimal values, regrets (b,) by name; a model that some rows lack is left out."""
        if not len(times):
            return
        self._keep_names(regrets)
        assert self._names is not None
        when = times.astype("datetime64[us]").astype(np.float64) if times.dtype.kind == "M" else times.astype(float)
        self.in_order = self.in_order and bool(when[0] >= self._last)
        self._last = max(self._last, float(when[-1]))
        rows = np.column_stack([when, np.ones(len(when)), np.abs(best), *(regrets[name] for name in self._names)])
        units = self._units(rows, self.n_rows)
        if len(units):
            self._sums.append(units)
        self._n_units += len(units)
        self.n_rows += len(rows)
        while self._n_units > self.most and self.in_order:
            self.each *= 2
            self._join(2)
        if not self.in_order and self.n_rows > self.most:
            self._sums, self._n_units = [], 0

    def compared(self) -> Comparison | None:
        """Return the comparison; None if more rows than can be sorted did not come in the order of time."""
        if not self._sums or self._names is None:
            return None
        self._join(1)
        [sums] = self._sums
        if not self.in_order:
            sums = sums[np.argsort(sums[:, 0], kind="stable")]
        regrets = dict(zip(self._names, sums[:, 3:].T, strict=True))
        return compare_sums(regrets, sums[:, 2], sums[:, 1], rows_each=self.each, blocks=self.blocks)

    def _keep_names(self, regrets: dict[str, FloatArray]) -> None:
        """Leave out the models that these rows do not have, such as a forecast with a gap."""
        before = tuple(regrets) if self._names is None else self._names
        self._names = tuple(name for name in before if name in regrets)
        if len(self._names) < len(before):
            kept = [0, 1, 2, *(3 + place for place, name in enumerate(before) if name in regrets)]
            self._sums = [sums[:, kept] for sums in self._sums]

    def _units(self, rows: FloatArray, first: int) -> FloatArray:
        """Return the sums over the rows of each unit; the last unit so far goes on if it is not complete."""
        if self.each == 1:
            return rows
        unit = (first + np.arange(len(rows))) // self.each
        begins = np.flatnonzero(np.append(True, unit[1:] != unit[:-1]))
        units = np.add.reduceat(rows, begins, axis=0)
        units[:, 0] = rows[begins, 0]
        if first % self.each == 0:
            return units
        if self._sums:
            self._sums[-1][-1, 1:] += units[0, 1:]
        return units[1:]

    def _join(self, n: int) -> None:
        """Make one array of all units, with n of them added up to one."""
        sums = np.concatenate(self._sums)
        if n > 1:
            begins = np.arange(0, len(sums), n)
            times, sums = sums[begins, 0], np.add.reduceat(sums, begins, axis=0)
            sums[:, 0] = times
        self._sums, self._n_units = [sums], len(sums)


#: Rows of a block of a table that is in memory.
_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Written:
    """What became of a block: columns to write, the number of rows, and what training had not."""

    columns: dict[str, Any]
    n_rows: int
    unfamiliar: Unfamiliar

    @classmethod
    def of(cls, model: TableModel, samples: TableSamples, *, explain: bool = False) -> Written:
        """Decide the samples of a block, explained if wanted, or predict their costs if they have no problem."""
        if samples.problem is None:
            predicted = {"prediction": model.predict_samples(samples)}
            columns = columns_like(samples, model.options.get("items"), predicted, names=model.predicted_names)
        else:
            columns = model.decide_samples(samples, explain=explain).columns()
        return cls(columns, len(samples), Unfamiliar.of(model.features, samples.lines))


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
    """A table of new rows for a model; costs are read if `costs` says so, or if it is None and they are there."""

    model: TableModel
    source: str
    text: dict[str, Any]
    file: ProblemFile | None = None
    costs: bool | None = None
    explain: bool = False

    @cached_property
    def blocks(self) -> TableBlocks:
        """The table block by block."""
        return TableBlocks.of(self.source, self.reading.options, self.text)

    @property
    def reading(self) -> Reading:
        """What is read from the table."""
        return self.model.reading(self.file, costs=self.costs)

    def results(
        self, description: str, *, in_blocks: bool, spread: Spread = map_in_order
    ) -> Generator[Written, None, None]:
        """Yield what becomes of the rows, in order, read block by block or whole. Close it, also after an error."""
        n_rows = 0
        source = self.reading if in_blocks else self._whole(self.reading)
        with closing(self._map(partial(Written.of, explain=self.explain), source, description, spread)) as results:
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
