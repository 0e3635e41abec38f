"""The options that the commands on tables share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from decidewise.app.cli.output import DEBUG
from decidewise.kit.errors import InputError, as_input_errors

if TYPE_CHECKING:
    from decidewise.app.tables.blocks import Spread, TableBlocks
    from decidewise.app.tables.columns import TableOptions
    from decidewise.app.tables.samples import TableSamples
    from decidewise.problems import ProblemFile

_table = partial(
    typer.Option,
    metavar="COLUMN",
    rich_help_panel="What the columns are (also in the section table of the problem file)",
)
_text = partial(typer.Option, rich_help_panel="Text files")
work = partial(typer.Option, rich_help_panel="How much work")
#: Rows of the random part of a table that does not fit into memory.
N_SAMPLED = 20_000
_STDIN = "standard-input.csv"
#: How often the numbers of a table are in memory at once: as read, as features, and in the fits.
_COPIES = 4


def _debug(context: typer.Context, value: bool) -> bool:
    context.meta[DEBUG] = value
    return value


def _from_stdin(context: typer.Context, data: str) -> str:
    """Return the path of a table; what comes by standard input (-) is copied into a file, as it is read repeatedly."""
    if data != "-" or context.resilient_parsing:
        return data
    folder = TemporaryDirectory()
    context.call_on_close(folder.cleanup)
    path = Path(folder.name, _STDIN)
    with path.open("wb") as file:
        copyfileobj(sys.stdin.buffer, file)
    return str(path)


def as_typed(data: str) -> str:
    """Return the path of a table as it was typed: - for standard input."""
    return "-" if Path(data).name == _STDIN else data


table_argument = partial(typer.Argument, metavar="TABLE", callback=_from_stdin, show_default=False)
Data = Annotated[
    str,
    table_argument(
        help="A table: .csv, .tsv, .parquet or .arrow; a folder of them; a pattern in quotes; or - for CSV on stdin."
    ),
]
Problem = Annotated[Path, typer.Option("--problem", "-p", help="The problem, a problem.toml (`decidewise problems`).")]
OneModel = Annotated[
    bool,
    work(
        "--one-model",
        help="Choose the one model with the lowest held-out regret, to read it; by default average the best.",
    ),
]
Sample = Annotated[
    int | None,
    work(
        min=100, help="Number of random rows to use; by default all, or 20,000 if the table does not fit into memory."
    ),
]
Stream = Annotated[
    bool | None,
    work(
        "--stream/--no-stream",
        help="Read the table block by block, in constant memory; by default if it would not fit.",
    ),
]
Cluster = Annotated[
    str | None, work(help="Address of a Dask scheduler whose workers to use, such as tcp://10.0.0.5:8786.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Debug = Annotated[bool, typer.Option("--debug", callback=_debug, help="Show the traceback of an error.")]


@dataclass(frozen=True)
class TextOptions:
    """How text files are read, and what is printed."""

    separator: Annotated[str | None, _text(help="Column separator; by default read from the first line.")] = None
    decimal: Annotated[str, _text(help="Decimal point.")] = "."
    encoding: Annotated[str, _text(help="File encoding, such as latin-1.")] = "utf-8"
    json: Json = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result, and show no progress.")] = False
    debug: Debug = False

    @property
    def text(self) -> dict[str, Any]:
        """How to read text files."""
        return {"separator": self.separator, "decimal": self.decimal, "encoding": self.encoding}

    @property
    def is_silent(self) -> bool:
        """Whether only the result is printed."""
        return self.quiet or self.json


@dataclass(frozen=True)
class _OfModel:
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `decidewise fit` wrote.")]
    trust: Annotated[
        list[str] | None,
        typer.Option(help="A type the file may load; `inspect` lists those it needs. Only for files you trust."),
    ] = None
    stream: Stream = None
    cluster: Cluster = None


@dataclass(frozen=True)
class ModelOptions(TextOptions, _OfModel):
    """The options of a command that applies a model to a table."""


@dataclass(frozen=True)
class RowsOptions(ModelOptions):
    """Those of a command that writes rows."""

    json: Annotated[
        bool, typer.Option("--json", help="Print JSON, for programs: the rows, or with --out what was written.")
    ] = False


@dataclass(frozen=True)
class _OfTable:
    data: Data
    problem: Problem
    costs: Annotated[list[str] | None, _table(help="Cost columns; by default cost_*.")] = None
    features: Annotated[
        list[str] | None,
        _table(help="Feature columns, such as 'x_*'; by default all others. NAME=PATTERN is a feature of each item."),
    ] = None
    rows: Annotated[str | None, _table(help="Key column that identifies each sample.")] = None
    items: Annotated[str | None, _table(help="Key column that identifies each item, for a long table.")] = None
    item_order: Annotated[
        str | None,
        _table(
            metavar="NAMES",
            help="The items in the order of the problem, as FIRST,SECOND,...; by default numbers and dates in their "
            "own.",
        ),
    ] = None
    absent_items: Annotated[
        bool, _table("--absent-items", metavar="", help="Samples of a long table may lack items.")
    ] = False
    forecast: Annotated[list[str] | None, _table(help="Columns with your own forecast of the costs.")] = None
    known: Annotated[list[str] | None, _table(help="Columns with known costs, added to the predicted ones.")] = None
    time: Annotated[
        str | None,
        _table(help="Time column: train on the past, test on what follows; by default --rows if it has dates."),
    ] = None
    shuffle: Annotated[bool, _table("--shuffle", metavar="", help="Ignore the order of the rows, even if dated.")] = (
        False
    )
    groups: Annotated[str | None, _table(help="Group column; each group is held out as a whole.")] = None
    categories: Annotated[list[str] | None, _table(help="Numeric columns to treat as categories.")] = None
    unit: Annotated[str | None, _table(metavar="TEXT", help="The unit of the costs, such as EUR.")] = None
    gap: Annotated[
        str | None, work(help="Delay between the last known costs and the decision: 2 (days, or units of --time), 36h.")
    ] = None
    train_solves: Annotated[
        str | None,
        work(
            metavar="N|auto",
            help="Also train models with the solver (SPO+): at most N solver calls, or auto, for as long as the rest.",
        ),
    ] = None
    max_solves: Annotated[int | None, work(min=1, help="Limit on the number of solver calls.")] = None
    max_seconds: Annotated[
        float | None, work(min=0.001, help="Approximate time limit in seconds: models that take longer are left out.")
    ] = None
    jobs: Annotated[int | None, work(help="Models to fit in parallel; -1 means one per core.")] = None
    cluster: Cluster = None
    seed: Annotated[int, work(min=0, help="Random seed.")] = 0


@dataclass(frozen=True)
class SharedOptions(TextOptions, _OfTable):
    """The options of a command that reads a table with a problem: `compare`, `diagnose` and `fit`."""

    @property
    def roles(self) -> dict[str, Any]:
        """What the columns are, by the names of `TableOptions`."""
        from decidewise.app.tables.columns import TableOptions  # noqa: PLC0415

        return {field.name: getattr(self, field.name) for field in fields(TableOptions)}

    @property
    def training(self) -> dict[str, Any]:
        """What `--train-solves` says, or nothing."""
        if self.train_solves is None or self.train_solves == "auto":
            return {} if self.train_solves is None else {"train_solves": "auto"}
        if not self.train_solves.isascii() or not self.train_solves.isdigit():
            raise InputError(f"--train-solves must be a number of solver calls, or auto; got {self.train_solves!r}.")
        return {"train_solves": int(self.train_solves)}


def sharing(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that are the fields of its first parameter, each with its type, help and default.

    Arguments come first in the help, then the options of the command, then the others.
    """
    (first, *_), own = signature(command).parameters, dict(list(signature(command).parameters.items())[1:])
    hints = get_type_hints(command, include_extras=True)
    options = hints[first]
    hints |= get_type_hints(options, include_extras=True)
    shared = {field.name: Parameter.empty if field.default is MISSING else field.default for field in fields(options)}
    defaults = {name: default for name, default in shared.items() if default is Parameter.empty}
    defaults |= {name: parameter.default for name, parameter in own.items()} | shared

    @wraps(command)
    def run(**given: Any) -> None:
        command(options(**{name: given.pop(name) for name in shared if name in given}), **given)

    run.__annotations__ = {name: hints[name] for name in defaults}
    run.__signature__ = Signature(  # type: ignore[attr-defined]  # what Typer reads
        [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
            for name, default in defaults.items()
        ]
    )
    return run


def options_of(table: SharedOptions) -> tuple[TableOptions, ProblemFile]:
    """Read the problem file; return what the columns of the table are, and the problem."""
    from decidewise.app.tables.columns import TableOptions  # noqa: PLC0415
    from decidewise.problems import ProblemFile  # noqa: PLC0415

    file = ProblemFile.read(table.problem)
    roles = table.roles
    if table.item_order is not None:
        roles["item_order"] = [name.strip() for name in table.item_order.split(",")]
    try:
        TableOptions.of(file.table)
    except InputError as error:
        raise InputError(f"{table.problem}: {error}") from error
    return TableOptions.of(file.table, **roles), file


def read(table: SharedOptions, sample: int | None) -> tuple[TableSamples, TableOptions, bool]:
    """Read the problem and the table, or a random part of it if `sample` says so or if it does not fit into memory.

    The last entry is whether the table would not fit, so that a model would be fitted block by block.
    """
    import numpy as np  # noqa: PLC0415

    from decidewise.app.tables.blocks import TableBlocks, random_part  # noqa: PLC0415
    from decidewise.app.tables.columns import Reading  # noqa: PLC0415
    from decidewise.app.tables.samples import columns_of, read_samples  # noqa: PLC0415

    options, file = options_of(table)
    with as_input_errors():
        blocks = TableBlocks.of(table.data, options, table.text)
        why = too_large(blocks)
        if not sample and not why:
            return read_samples(columns_of(table.data, table.text), Reading(options, file)), options, False
        part = random_part(blocks, sample or N_SAMPLED, np.random.default_rng(table.seed))
        samples = part.read(options, file, as_listed=blocks.items())
        note = f"A random part of {part.n_samples:,} of {part.n_all:,} rows is used (--sample)."
        note = f"{why} {note}" if why and not sample else note
        samples = replace(samples, notes=(note, *samples.notes), share=part.n_samples / part.n_all)
        return samples, options, why is not None


def too_large(blocks: TableBlocks) -> str | None:
    """Return a sentence if the table would not fit into memory together with what is computed from it."""
    from decidewise.kit.machine import available_memory  # noqa: PLC0415

    needed, free = _COPIES * blocks.files.memory(), available_memory()
    if needed <= free:
        return None
    return f"The table would take about {_size(needed)} of memory, and {_size(free)} are free."


def in_blocks(blocks: TableBlocks, wanted: bool | None, *, quiet: bool) -> bool:
    """Whether a table is read block by block: if it is wanted, or, with a word, if it would not fit into memory."""
    if wanted is not None:
        return wanted
    why = too_large(blocks)
    if why and not quiet:
        _say(f"{why} It is read block by block (--stream).")
    return why is not None


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.1f} GB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.0f} MB"


@contextmanager
def working(what: str, *, quiet: bool) -> Iterator[None]:
    """Show what is being done and for how long, if it takes longer than a second; no other lines either if `quiet`.

    Slow imports belong into this context too, so that they are not silent.
    """
    from decidewise.kit.progress import Line, silenced  # noqa: PLC0415

    with silenced(quiet), Line(what):
        yield


@contextmanager
def parallel(jobs: int | None, cluster: str | None) -> Iterator[tuple[int | None, Spread]]:
    """Yield the number of jobs, and what spreads the work on blocks: over the threads of this process.

    With a cluster, over its workers; parallel loops over jobs as well.
    """
    if cluster is None:
        from decidewise.kit.machine import map_in_order  # noqa: PLC0415

        yield jobs, map_in_order
        return
    from decidewise.operate.distributed.workers import workers_at  # noqa: PLC0415

    with workers_at(cluster, _say) as workers, workers.parallel_loops():
        yield -1 if jobs is None else jobs, workers.map_in_order


def _say(sentence: str) -> None:
    typer.echo(sentence, err=True)


def check_output(out: Path, data: str, problem: Path | None = None, *others: Path) -> None:
    """Raise before the work starts if a file cannot be written, or if the command reads it."""
    from decidewise.kit.files import check_output  # noqa: PLC0415
    from decidewise.problems.readers.problem_file import files_of  # noqa: PLC0415
    from decidewise.rows.file_blocks import find_files  # noqa: PLC0415

    read = [file.path for file in find_files(data)]
    check_output(out, *others, *read, *([] if problem is None else files_of(problem)))
