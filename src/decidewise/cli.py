"""The command line. Heavy imports wait inside the functions until a command needs them.

What is wrong with an argument, a plan, a file or the machine is one line on stderr and exit code 2; `_Commands` is the
one place for that. Ctrl-C ends with 130 and SIGTERM with 143. Anything else is a mistake of ours: its traceback stays.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from typer.core import TyperGroup

import decidewise
from decidewise.errors import InputError
from decidewise.interrupts import Terminated, interruptible, is_interrupt

if TYPE_CHECKING:
    from decidewise.experiments import Cell, Store


class _Commands(TyperGroup):
    """All commands, and what becomes of an error in any of them."""

    def invoke(self, ctx: Any) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal that has no × shows ?
        try:
            with interruptible():
                return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except BaseException as error:
            if is_interrupt(error):
                said = str(error) if isinstance(error, KeyboardInterrupt) else ""
                _fail(f"stopped. {said}", code=143 if isinstance(error, Terminated) else 130)
            message = _sentence(error)
            if message is None:
                raise
            _fail(message)


app = typer.Typer(cls=_Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False)

_PACKAGE = Path(decidewise.__file__).parent
#: The paper's plans and published numbers: installed they are in the package, in a checkout they stand beside `src`.
PAPER = (_PACKAGE if (_PACKAGE / "paper").is_dir() else _PACKAGE.parents[1]) / "paper"
TABLES = ("shortest_path", "knapsack", "portfolio")
#: Plans beyond the tables: run by name, and read with the tables once they have rows. (The report has the same names;
#: importing them would slow down the start, and a test holds them equal.)
CONTESTS = ("better", "travelling_salesman")


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"decidewise {decidewise.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Train on the costs that drive your decisions, with no solver in the training loop."""


@app.command()
def demo(out: Annotated[Path, typer.Option(help="Folder for the figure.")] = Path("out")) -> None:
    """Fit least squares and WISE on synthetic shortest paths: one table, one figure, under a minute."""
    from decidewise.demo import run  # noqa: PLC0415

    run(out)


@app.command()
def warmup() -> None:
    """Compile all solvers for this machine, so that no first answer has to wait; a minute at most, once."""
    from decidewise.warmup import warm_up  # noqa: PLC0415

    warm_up()


Plans = Annotated[list[str] | None, typer.Argument(metavar="[PLAN]...", help="Plans, as TOML files.")]
Trials = Annotated[int | None, typer.Option(min=1, help="Trials, instead of what the plans say.")]
StoreFile = Annotated[Path, typer.Option(help="The SQLite file of the rows.")]
Code = Annotated[str | None, typer.Option(help="Read rows of another version of the code; `status` lists them.")]


def _experiments(
    name: str,
    find: Callable[[Sequence[str]], list[Path]],
    published: Path | None = None,
    also: Sequence[str] = (),
) -> typer.Typer:
    """Return the commands on plans; `find` turns their arguments into files.

    Where no plan is named, the plans of `also` are read too if the store has rows of them.
    """
    group = typer.Typer(no_args_is_help=True)
    default_store, default_out = Path("out", f"{name}.sqlite"), Path("out", name)

    def read(plans: Sequence[str] | None, trials: int | None, code: str | None = None) -> list[Cell]:
        from decidewise.experiments import cells_of_all, read_plan  # noqa: PLC0415

        return cells_of_all([read_plan(path) for path in find(plans or [])], trials=trials, version=code)

    def open_store(path: Path, *, new: bool = False) -> Store:
        from decidewise.experiments import Store  # noqa: PLC0415

        if not (new or path.exists()):
            raise InputError(f"there are no rows yet in {path}; `decidewise {name} run` makes them.")
        return Store(path)

    def load(path: Path, plans: Sequence[str] | None, trials: int | None, code: str | None) -> tuple[list[Cell], Store]:
        cells, store = read(plans, trials, code), open_store(path)
        more = [read([plan], trials, code) for plan in also if not plans]
        return [*cells, *(cell for some in more if store.rows(some) for cell in some)], store

    @group.command()
    def run(
        plans: Plans = None,
        trials: Trials = None,
        jobs: Annotated[int, typer.Option(help="Worker processes; -1 is one a core.")] = -1,
        store: StoreFile = default_store,
        cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to work for you.")] = None,
        fresh: Annotated[
            bool, typer.Option("--fresh", help="Compute all cells anew; each keeps its row until the new one is there.")
        ] = False,
        retry: Annotated[bool, typer.Option("--retry", help="Compute those cells anew that failed.")] = False,
    ) -> None:
        """Compute the cells that have no row yet. Stopped at any moment, the same command continues.

        This imports the modules that a plan names, and so executes them: run only plans you trust.
        """
        anew: Literal["all", "failed"] | None = "all" if fresh else "failed" if retry else None
        try:
            _run(read(plans, trials), open_store(store, new=True), jobs, cluster, anew)
        except KeyboardInterrupt as stop:
            without = {"all": " without --fresh", "failed": " without --retry", None: ""}[anew]
            stop.args = (f"The rows so far are kept, and the same command{without} continues.",)
            raise

    @group.command()
    def status(plans: Plans = None, trials: Trials = None, store: StoreFile = default_store, code: Code = None) -> None:
        """Count the rows of each plan: done, failed and missing; and those that other code has left."""
        _status(*load(store, plans, trials, code))

    @group.command()
    def report(
        plans: Plans = None,
        trials: Trials = None,
        store: StoreFile = default_store,
        out: Annotated[Path, typer.Option(help="Folder for the report.")] = default_out,
        published: Annotated[
            Path | None, typer.Option(help="Folder with published numbers, a CSV a plan.")
        ] = published,
        code: Code = None,
    ) -> None:
        """Write the report: one page, its tables and its figures."""
        from decidewise.experiments import as_table  # noqa: PLC0415
        from decidewise.report import write_report  # noqa: PLC0415

        cells, stored = load(store, plans, trials, code)
        rows = stored.rows(cells)
        if not rows:
            raise InputError(
                f"{store} has no rows of these plans and this code; `decidewise {name} status` lists what there is."
            )
        if len(rows) < len(cells):
            typer.echo(f"{len(cells) - len(rows):,} of {len(cells):,} rows are missing; the report is of the others.")
        page = write_report(as_table(rows), out, published)
        typer.echo(f"Report: {page}")

    @group.command()
    def export(
        to: Annotated[Path, typer.Option(help="The file to write, .parquet or .csv.")],
        plans: Plans = None,
        trials: Trials = None,
        store: StoreFile = default_store,
        code: Code = None,
    ) -> None:
        """Write the rows to a Parquet or CSV file."""
        from decidewise.experiments import as_table  # noqa: PLC0415
        from decidewise.experiments import export as write  # noqa: PLC0415

        cells, stored = load(store, plans, trials, code)
        table = as_table(stored.rows(cells))
        write(table, to)
        typer.echo(f"{table.num_rows:,} rows: {to}")

    return group


def _run(
    cells: list[Cell], store: Store, jobs: int, cluster: str | None, anew: Literal["all", "failed"] | None
) -> None:
    from rich.console import Console  # noqa: PLC0415

    from decidewise.experiments import run  # noqa: PLC0415
    from decidewise.experiments.display import describe  # noqa: PLC0415

    run(cells, store, jobs=jobs, cluster=cluster, anew=anew, console=Console())
    failed = [row for row in store.rows(cells) if row.status == "failed"]
    if failed:
        _fail(f"{len(failed):,} of {len(cells):,} cells failed; the first: {describe(failed[0])}", code=1)


def _status(cells: list[Cell], store: Store) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table("plan", "code", "done", "failed", "missing")
    for plan in dict.fromkeys(cell.plan for cell in cells):
        mine = [cell for cell in cells if cell.plan == plan]
        rows = store.rows(mine)
        failed = sum(row.status == "failed" for row in rows)
        table.add_row(Text(plan), Text(mine[0].version), *map(str, (len(rows) - failed, failed, len(mine) - len(rows))))
        for version, count in store.versions(plan).items():
            if version != mine[0].version:
                table.add_row("", Text(version), str(count), style="dim")
    Console().print(table)


def _sentence(error: BaseException) -> str | None:
    """Say what is wrong with the input or the machine; None if the error is neither."""
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415

    if isinstance(error, BrokenProcessPool):
        return (
            f"a worker died, perhaps of too little memory ({error}). The same command continues; try fewer --jobs, or "
            "workers with more memory."
        )
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return f"not enough memory. {error}"
    return str(error) if isinstance(error, (InputError, OSError, ImportError)) else None


def _fail(message: str, *, code: int = 2) -> NoReturn:
    typer.echo(f"Error: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)


def _paper_plans(names: Sequence[str]) -> list[Path]:
    return [Path(name) if name.endswith(".toml") else PAPER / f"{name}.toml" for name in names or TABLES]


def _given_plans(names: Sequence[str]) -> list[Path]:
    if not names:
        raise InputError("name at least one plan, a TOML file.")
    return [Path(name) for name in names]


app.add_typer(
    _experiments("paper", _paper_plans, PAPER / "published", CONTESTS),
    name="paper",
    help="Repeat the paper's experiments: shortest_path, knapsack and portfolio, or quick for a short look. By name "
    "also better and travelling_salesman, which are to decide better than published.",
)
app.add_typer(_experiments("bench", _given_plans), name="bench", help="Run plans of your own.")
