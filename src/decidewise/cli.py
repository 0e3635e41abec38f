"""The command line. Heavy imports wait in the functions until a command needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

import decidewise

if TYPE_CHECKING:
    from decidewise.experiments import Cell, Plan

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False)


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


Plans = Annotated[list[str] | None, typer.Argument(metavar="PLAN...", help="Names or TOML files of plans.")]
Trials = Annotated[int | None, typer.Option(min=1, help="Trials, instead of those in the plans.")]
Code = Annotated[str | None, typer.Option(help="Read the rows of another version of the code; status lists them.")]


def _experiments(name: str, find: Callable[[Sequence[str]], list[Path]], published: Path | None) -> typer.Typer:
    """Return the commands that run plans and read their rows; `find` turns arguments into files."""
    group = typer.Typer(no_args_is_help=True)
    default_store, default_out = Path("out", f"{name}.sqlite"), Path("out", name)

    def read(plans: Sequence[str] | None, trials: int | None, code: str | None = None) -> list[Cell]:
        from decidewise.experiments import cells_of_all, read_plan  # noqa: PLC0415

        try:
            return cells_of_all([read_plan(path) for path in find(plans or [])], trials=trials, version=code)
        except ValueError as error:
            _fail(str(error))

    return group
