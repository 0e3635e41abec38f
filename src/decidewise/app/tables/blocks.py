"""A table in files that need not fit into memory: blocks of whole samples, a random part, and a source for fits."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from decidewise.app.tables.columns import Reading, TableOptions
from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.layouts import with_date_parts
from decidewise.app.tables.raw_values import InRowError
from decidewise.app.tables.samples import NO_COSTS, TableSamples, read_samples
from decidewise.kit.checks import BoolArray, FloatArray, IndexArray, IntArray
from decidewise.kit.errors import InputError
from decidewise.kit.machine import map_in_order
from decidewise.kit.progress import ByteBar
from decidewise.problems import ProblemFile
from decidewise.rows.checkpoint import Checkpoint
from decidewise.rows.columns import NamedColumns
from decidewise.rows.file_blocks import FileBlock, FileBlocks
from decidewise.rows.long_tables import items_of_first
from decidewise.rows.source import FIRST_ROWS, Place, Rows, RowSource, Sums, located

#: Called as `spread(work, items)`, it yields the items with the results of the work on each, in order.
Spread = Callable[[Callable[[Any], Any], Generator[Any, None, None]], Generator[tuple[Any, Any], None, None]]


@dataclass(frozen=True)
class TableBlocks:
    """The lines of a table in files, in blocks that cut no sample of a long table in two."""

    files: FileBlocks
    options: TableOptions

    @classmethod
    def of(cls, source: Any, options: TableOptions, text: Mapping[str, Any]) -> TableBlocks:
        """Return the blocks of a path; `text` are options of text files."""
        return cls(FileBlocks(source, **text, exact=options.keys), options)

    def map(
        self, work: Callable[[FileBlock], Any], description: str, spread: Spread = map_in_order, n_lines: int = 0
    ) -> Generator[tuple[FileBlock, Any], None, None]:
        """Yield the blocks with the results of some work on each, in order; close it, also after an error."""
        with (
            ByteBar(description, self.files.n_bytes) as bar,
            closing(spread(work, self.after(n_lines))) as results,
        ):
            for block, result in results:
                bar.advance(block.n_bytes, block.table.num_rows)
                yield block, result

    def after(self, n_lines: int = 0) -> Generator[FileBlock, None, None]:
        """Yield the blocks, without the first lines of the table."""
        if self.options.items is None:
            yield from self.files.after(n_lines)
            return
        held: FileBlock | None = None
        for block in self.files.after(n_lines):
            if held is not None and held.origin == block.origin:
                block = _joined(held, block)  # noqa: PLW2901
            elif held is not None:
                yield held
            begin = int(self.samples(block.table)[-1])
            if begin:
                yield replace(block, table=block.table.slice(0, begin))
            n_bytes = 0 if begin else block.n_bytes
            held = replace(
                block,
                table=block.table.slice(begin),
                first=block.first + begin,
                line=block.line + begin,
                n_bytes=n_bytes,
            )
        if held is not None:
            yield held

    def items(self) -> tuple[str, ...] | None:
        """Return the items of a long table as its first sample lists them; None of a wide one."""
        rows, items = self.options.rows, self.options.items
        if rows is None or items is None:
            return None
        with closing(self.after()) as blocks:
            for block in blocks:
                return items_of_first(with_date_parts(NamedColumns.of(block.table), [rows, items]), rows, items)
        return None

    def samples(self, table: Any) -> IndexArray:
        """Return where the samples of some lines begin; lines of one sample are next to each other."""
        if self.options.items is None:
            return np.arange(table.num_rows)
        columns = with_date_parts(NamedColumns.of(table), [self.options.rows])
        keys = columns.keys(columns.one(self.options.rows, argument="--rows"))
        return np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))


def read_block(reading: Reading, block: FileBlock) -> TableSamples:
    """Return the samples of a block; errors name the file, and the row in it."""
    try:
        return read_samples(replace(NamedColumns.of(block.table), first_row=block.first), replace(reading, whole=False))
    except InRowError as error:
        raise InputError(f"{block.origin}: {error.at(block.line + 1 + np.arange(block.table.num_rows))}") from error
    except (ValueError, TypeError) as error:
        first, last, hint = block.line + 1, block.line + block.table.num_rows, ""
        if reading.options.items is not None:
            hint = (
                f" A long table that is read in blocks must have the lines of each {reading.options.rows!r} next to "
                "each other, in one file."
            )
        raise InputError(f"{block.origin}, rows {first:,} to {last:,}: {error}{hint}") from error


@dataclass(frozen=True)
class RandomPart:
    """A random part of the samples of a table: `n_samples` of `n_all`, as an Arrow table.

    The `numbers` of its lines, counted from 1, are those in the whole table.
    """

    table: Any
    numbers: IntArray
    n_samples: int
    n_all: int

    def read(self, options: TableOptions, file: ProblemFile | None, **reading: Any) -> TableSamples:
        """Return the samples; see `Reading`. Errors name the row of the whole table."""
        try:
            return read_samples(NamedColumns.of(self.table), Reading(options, file, **reading))
        except InRowError as error:
            raise error.at(self.numbers) from error


def random_part(blocks: TableBlocks, n_samples: int, rng: np.random.Generator) -> RandomPart:
    """Return at most `n_samples` random samples of a table; more than half as many, unless the table has fewer.

    Every sample draws a number, and those with the smallest are kept: the bound is halved whenever there are too many.
    """
    import pyarrow as pa  # noqa: PLC0415

    kept: list[_Drawn] = []
    bound, n_all = 1.0, 0
    with ByteBar(f"Reading {_shown(blocks)}", blocks.files.n_bytes) as bar:
        for block in blocks.after():
            bar.advance(block.n_bytes, block.table.num_rows)
            begins = blocks.samples(block.table)
            is_first = np.zeros(block.table.num_rows, dtype=bool)
            is_first[begins] = True
            draws = rng.random(len(begins))[np.cumsum(is_first) - 1]
            numbers = block.first + 1 + np.arange(block.table.num_rows)
            kept.append(_Drawn(block.table, draws, is_first, numbers).below(bound))
            n_all += len(begins)
            while (n_kept := sum(int(part.is_first.sum()) for part in kept)) > n_samples:
                bound /= 2
                kept = [part.below(bound) for part in kept]
    if not n_all:
        raise InputError(f"the table is empty: it has 0 rows and {len(blocks.files.names)} columns.")
    try:
        table = pa.concat_tables([part.table for part in kept], promote_options="permissive")
    except (pa.ArrowException, TypeError) as reason:
        raise InputError(f"the files cannot be joined: {reason}") from reason
    return RandomPart(table, np.concatenate([part.numbers for part in kept]), n_kept, n_all)


class _Drawn(NamedTuple):
    """Lines of a block: the number that the sample of each has drawn, where samples begin, and the number of each."""

    table: Any
    draws: FloatArray
    is_first: BoolArray
    numbers: IntArray

    def below(self, bound: float) -> _Drawn:
        """Return the lines of the samples whose numbers are below a bound."""
        chosen = self.draws < bound
        if chosen.all():
            return self
        return _Drawn(self.table.filter(chosen), self.draws[chosen], self.is_first[chosen], self.numbers[chosen])


def _joined(first: FileBlock, second: FileBlock) -> FileBlock:
    import pyarrow as pa  # noqa: PLC0415

    table = pa.concat_tables([first.table, second.table], promote_options="permissive").combine_chunks()
    return FileBlock(table, first.first, first.origin, first.n_bytes + second.n_bytes, first.line)


def _shown(blocks: TableBlocks) -> str:
    files = blocks.files.files
    return files[0].path.name if len(files) == 1 else f"{len(files)} files"


class PreparedRows(RowSource):
    """The samples of a table that have costs, with their features prepared, as a source for fits."""

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
