"""Commands on plans: run them, look at what is done, report and export the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from decidewise.cli.errors import fail
from decidewise.errors import InputError

if TYPE_CHECKING:
    from decidewise.experiments import Cell, Store

Plans = Annotated[list[str] | None, typer.Argument(metavar="[PLAN]...", help="Plans, as TOML files.")]
Trials = Annotated[int | None, typer.Option(min=1, help="Trials, instead of what the plans say.")]
StoreFile = Annotated[Path, typer.Option(help="The SQLite file of the rows.")]
Code = Annotated[str | None, typer.Option(help="Read rows of another version of the code; `status` lists them.")]


def plan_commands(
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
        from decidewise.report.write import write_report  # noqa: PLC0415

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
        fail(f"{len(failed):,} of {len(cells):,} cells failed; the first: {describe(failed[0])}", code=1)


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
