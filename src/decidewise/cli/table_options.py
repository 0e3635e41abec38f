"""The options that the commands on tables share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decidewise.cli.errors import DEBUG, as_input_errors
from decidewise.errors import InputError

if TYPE_CHECKING:
    from decidewise.problems import ProblemFile
    from decidewise.tables.options import TableOptions
    from decidewise.tables.samples import TableSamples

_TABLE = "What the columns are (also in the section table of the problem file)"
_TEXT = "Text files"
WORK = "How much work"


def _debug(context: typer.Context, value: bool) -> bool:
    context.meta[DEBUG] = value
    return value


Data = Annotated[
    str, typer.Argument(help="A table: .csv, .tsv, .parquet or .arrow; a folder of such files; or a pattern in quotes.")
]
Problem = Annotated[Path, typer.Option("--problem", "-p", help="The problem, a problem.toml (`decidewise problems`).")]
Costs = Annotated[
    list[str] | None, typer.Option(help="Columns of the costs; by default cost_*.", rich_help_panel=_TABLE)
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns of the features, such as 'x_*'; by default all others. NAME=PATTERN is a feature of each item.",
        rich_help_panel=_TABLE,
    ),
]
Rows = Annotated[str | None, typer.Option(help="Column of the key of each sample.", rich_help_panel=_TABLE)]
Items = Annotated[
    str | None, typer.Option(help="Column of the key of each item: the table is long.", rich_help_panel=_TABLE)
]
Forecast = Annotated[
    list[str] | None, typer.Option(help="Columns of a forecast of the costs that you have.", rich_help_panel=_TABLE)
]
Known = Annotated[
    list[str] | None, typer.Option(help="Columns of known costs beside the predicted ones.", rich_help_panel=_TABLE)
]
Time = Annotated[
    str | None,
    typer.Option(help="Column of the time: train on the past, test on what follows.", rich_help_panel=_TABLE),
]
Groups = Annotated[str | None, typer.Option(help="Column of groups to hold out whole.", rich_help_panel=_TABLE)]
Categories = Annotated[
    list[str] | None, typer.Option(help="Columns of numbers that are names.", rich_help_panel=_TABLE)
]
Unit = Annotated[str | None, typer.Option(help="The unit of the costs, such as EUR.", rich_help_panel=_TABLE)]
Separator = Annotated[str | None, typer.Option(help="Of columns; by default a comma.", rich_help_panel=_TEXT)]
Decimal = Annotated[str, typer.Option(help="The decimal point.", rich_help_panel=_TEXT)]
Encoding = Annotated[str, typer.Option(help="Such as latin-1.", rich_help_panel=_TEXT)]
Gap = Annotated[
    str | None,
    typer.Option(
        help="How long before a decision the last known costs are: 2 (days, or units of --time), 36h.",
        rich_help_panel=WORK,
    ),
]
Average = Annotated[
    bool,
    typer.Option(
        "--average",
        help="Average all models that cannot be told apart from the best; by default take the simplest of them.",
        rich_help_panel=WORK,
    ),
]
MaxSolves = Annotated[int | None, typer.Option(min=1, help="Most solver calls in all.", rich_help_panel=WORK)]
Jobs = Annotated[int | None, typer.Option(help="Models tried at a time; -1 is one per core.", rich_help_panel=WORK)]
Seed = Annotated[int, typer.Option(min=0, help="Seed of what is random.", rich_help_panel=WORK)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result, and show no progress.")]
Debug = Annotated[bool, typer.Option("--debug", callback=_debug, help="Show the traceback of an error.")]


def read(
    data: str,
    problem: Path | None,
    given: dict[str, Any],
    text: dict[str, Any],
    **options: Any,
) -> tuple[TableSamples, TableOptions, ProblemFile | None]:
    """Read the problem and the table; `given` are options of columns, `text` those of text files."""
    from decidewise.problems import ProblemFile  # noqa: PLC0415
    from decidewise.tables.options import TableOptions  # noqa: PLC0415
    from decidewise.tables.read import columns_of, read_samples  # noqa: PLC0415

    file = None if problem is None else ProblemFile.read(problem)
    try:
        chosen = TableOptions.of({} if file is None else file.table, **given)
    except InputError as error:
        raise InputError(f"{problem}: {error}") from error
    with as_input_errors():
        return read_samples(columns_of(data, text), chosen, file, **options), chosen, file


@contextmanager
def working(what: str, *, quiet: bool) -> Iterator[None]:
    """Show on a terminal what is being done, until it is done; show no bars either if `quiet`."""
    from rich.console import Console  # noqa: PLC0415

    from decidewise.progress import silenced  # noqa: PLC0415

    console = Console(stderr=True)
    with silenced(quiet):
        if quiet or not console.is_terminal:
            yield
        else:
            with console.status(what):
                yield


def check_writable(path: Path) -> None:
    """Raise before the work starts if a file cannot be written: a folder in its place, no folder, no right."""
    import os  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    if path.is_dir():
        raise InputError(f"{path}: Is a directory. Name a file.")
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise InputError(f"{path}: {folder} is a file, not a folder.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a file that can be replaced.")
    try:
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=".decidewise-")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}.") from error
    os.close(descriptor)
    Path(name).unlink()
