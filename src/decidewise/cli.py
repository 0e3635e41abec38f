"""The command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import decidewise

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
    from decidewise.demo import run  # noqa: PLC0415  (heavy imports wait until a command needs them)

    run(out)
