"""Commands on plans: run them, show their status, report and export their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from decidewise.app.cli.output import Command, Group, fail
from decidewise.kit.errors import InputError
from decidewise.kit.files import check_apart, check_output

if TYPE_CHECKING:
    import pyarrow as pa

    from decidewise_bench.experiments import Cell, Plan, Store
    from decidewise_bench.report.sections import Report

Plans = Annotated[list[str] | None, typer.Argument(metavar="PLAN", help="Plans, as TOML files.")]
Trials = Annotated[int | None, typer.Option(min=1, help="Number of trials; overrides the plans.")]
StoreFile = Annotated[Path | None, typer.Option(help="The SQLite file of the rows; by default one in out/.")]
Code = Annotated[str | None, typer.Option(help="Read rows of another version of the code; `status` lists them.")]
Libraries = Annotated[
    str | None, typer.Option(help='Read rows made with other libraries, such as "NumPy 2.2.6"; `status` lists them.')
]


@dataclass(frozen=True)
class PlanCommands:
    """The commands of one group, such as `decidewise bench`.

    Parameters
    ----------
    name : str
        The name of the group, and of its files in `out/`.
    find : callable
        Returns the files of the plans named on the command line.
    build : callable
        Called as `build(table, published)`, where `published` is the folder given on the command line or None; returns
        the report.
    also : sequence of str
        Plans that are also read if no plan is named and the store has rows of them.
    prepare : callable, optional
        Called with each plan before it is run; returns the plan to run, such as one without what cannot be run here.
    """

    name: str
    find: Callable[[Sequence[str]], list[Path]]
    build: Callable[[pa.Table, Path | None], Report]
    also: Sequence[str] = ()
    prepare: Callable[[Plan], Plan] | None = None

    def as_group(self, about: str) -> typer.Typer:
        """Return the commands as a group to add to an application, with what its help says."""
        group = typer.Typer(cls=Group, no_args_is_help=True, help=about)
        for command in (self.run, self.status, self.report, self.export):
            group.command(cls=Command)(command)
        return group

    def run(
        self,
        plans: Plans = None,
        trials: Trials = None,
        jobs: Annotated[int, typer.Option(help="Worker processes; -1 is one per core.")] = -1,
        store: StoreFile = None,
        cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler whose workers to use.")] = None,
        fresh: Annotated[
            bool,
            typer.Option("--fresh", help="Recompute all cells; each keeps its row until the new one is stored."),
        ] = False,
        retry: Annotated[bool, typer.Option("--retry", help="Recompute failed cells.")] = False,
    ) -> None:
        """Compute the cells that have no row yet. Stop it at any moment; the same command continues.

        This imports, and so executes, the modules that a plan names: run only plans you trust.
        """
        from rich.console import Console  # noqa: PLC0415

        from decidewise_bench.experiments import Store, run  # noqa: PLC0415
        from decidewise_bench.experiments.display import describe  # noqa: PLC0415

        anew: Literal["all", "failed"] | None = "all" if fresh else "failed" if retry else None
        try:
            cells = self._cells(plans, trials, prepare=self.prepare)
            stored = Store(self._path(store))
            run(cells, stored, jobs=jobs, cluster=cluster, anew=anew, console=Console())
        except KeyboardInterrupt as stop:
            without = {"all": " without --fresh", "failed": " without --retry", None: ""}[anew]
            stop.args = (f"The rows so far are kept, and the same command{without} continues.",)
            raise
        failed = [row for row in stored.rows(cells) if row.status == "failed"]
        if failed:
            fail(f"{len(failed):,} of {len(cells):,} cells failed; the first: {describe(failed[0])}", code=1)

    def status(
        self,
        plans: Plans = None,
        trials: Trials = None,
        store: StoreFile = None,
        code: Code = None,
        libraries: Libraries = None,
    ) -> None:
        """Count the done, failed and missing rows of each plan, and list those of other code or libraries."""
        from rich.console import Console  # noqa: PLC0415
        from rich.table import Column, Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        from decidewise_bench.experiments.version import other_libraries  # noqa: PLC0415

        cells, stored = self._open(store, plans, trials, code, libraries)
        code_column = Column("code", no_wrap=True)  # unbroken, because users copy it
        table = Table(Column("plan", overflow="fold"), code_column, "libraries", "done", "failed", "missing")
        for plan in dict.fromkeys(cell.plan for cell in cells):
            mine = [cell for cell in cells if cell.plan == plan]
            rows = stored.rows(mine)
            failed = sum(row.status == "failed" for row in rows)
            counts = map(str, (len(rows) - failed, failed, len(mine) - len(rows)))
            asked = mine[0].version, mine[0].libraries
            table.add_row(Text(plan), Text(asked[0]), Text(other_libraries(asked[1]) or "as installed"), *counts)
            for made, count in stored.versions(plan).items():
                if made != asked:
                    others = other_libraries(made[1]) or "as installed"
                    table.add_row("", Text(made[0]), Text(others), str(count), style="dim")
        Console().print(table)

    def report(
        self,
        plans: Plans = None,
        trials: Trials = None,
        store: StoreFile = None,
        out: Annotated[Path | None, typer.Option(help="Folder for the report; by default one in out/.")] = None,
        published: Annotated[
            Path | None, typer.Option(help="Folder with published numbers, one CSV file per problem.")
        ] = None,
        code: Code = None,
        libraries: Libraries = None,
    ) -> None:
        """Write the report: one page, its tables and its figures."""
        from decidewise_bench.experiments import as_table  # noqa: PLC0415
        from decidewise_bench.report import write_report  # noqa: PLC0415

        cells, stored = self._open(store, plans, trials, code, libraries)
        folder = out or Path("out", self.name)
        if published is not None:
            check_apart(folder / "tables", published)
        rows = stored.rows(cells)
        if not rows:
            raise InputError(
                f"{stored.path} has no rows of these plans and this code; `decidewise {self.name} status` lists the "
                "rows that it has."
            )
        if len(rows) < len(cells):
            typer.echo(f"{len(cells) - len(rows):,} of {len(cells):,} rows are missing; the report shows the others.")
        folder.mkdir(parents=True, exist_ok=True)  # first, so that a bad path fails before the work starts
        report = self.build(as_table(rows), published)
        if report.shares:
            counts = ", ".join(f"{share.n} {share.label}" for share in report.shares if share.n)
            typer.echo(f"Published cells: {counts}.")
        typer.echo(f"Report: {write_report(report, folder)}")

    def export(
        self,
        to: Annotated[Path, typer.Option(help="The file to write, .parquet or .csv.")],
        plans: Plans = None,
        trials: Trials = None,
        store: StoreFile = None,
        code: Code = None,
        libraries: Libraries = None,
    ) -> None:
        """Write the rows to a Parquet or CSV file."""
        from decidewise_bench.experiments import as_table, export  # noqa: PLC0415

        cells, stored = self._open(store, plans, trials, code, libraries)
        check_output(to, stored.path, *self.find(plans or []))
        table = as_table(stored.rows(cells))
        export(table, to)
        typer.echo(f"{table.num_rows:,} rows: {to}")

    def _cells(
        self,
        plans: Sequence[str] | None,
        trials: int | None,
        code: str | None = None,
        libraries: str | None = None,
        prepare: Callable[[Plan], Plan] | None = None,
    ) -> list[Cell]:
        from decidewise_bench.experiments import cells_of_all, read_plan  # noqa: PLC0415
        from decidewise_bench.experiments.version import with_libraries  # noqa: PLC0415

        made_with = with_libraries(libraries) if libraries else None
        read = [read_plan(path) for path in self.find(plans or [])]
        read = [prepare(plan) for plan in read] if prepare else read
        return cells_of_all(read, trials=trials, version=code, libraries=made_with)

    def _path(self, store: Path | None) -> Path:
        return store or Path("out", f"{self.name}.sqlite")

    def _open(
        self,
        store: Path | None,
        plans: Sequence[str] | None,
        trials: int | None,
        code: str | None,
        libraries: str | None,
    ) -> tuple[list[Cell], Store]:
        """Return the cells of the plans and the store with their rows; raise if the store does not exist."""
        from decidewise_bench.experiments import Store  # noqa: PLC0415

        cells, path = self._cells(plans, trials, code, libraries), self._path(store)
        if not path.exists():
            raise InputError(f"there are no rows yet in {path}; `decidewise {self.name} run` computes them.")
        stored = Store(path)
        more = [self._cells([plan], trials, code, libraries) for plan in self.also if not plans]
        return [*cells, *(cell for some in more if stored.rows(some) for cell in some)], stored
