"""The command line, put together of its groups of commands and of those that other distributions bring.

Slow imports are inside the functions that need them.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer

import decidewise
from decidewise.app.cli.models import decide, evaluate, inspect, predict, serve
from decidewise.app.cli.output import Command, Commands
from decidewise.app.cli.problems import problems
from decidewise.app.cli.tables import compare, diagnose, fit, init

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"decidewise {decidewise.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Train on the costs that drive your decisions, with no solver in the training loop."""


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the example and the page.")] = Path("out"),
) -> None:
    """Write the example of `init` and compare models on it: a table and a page, under a minute."""
    out.mkdir(parents=True, exist_ok=True)  # first, so that an error names the folder
    example = out / "example"
    init(example, force=True)
    compare(data=str(example / "history.csv"), problem=example / "problem.toml", out=out / "compare.html")


def warmup() -> None:
    """Compile all solvers for this machine once, so that the first solver call does not wait; at most a minute."""
    from decidewise.app.warmup import warm_up  # noqa: PLC0415

    warm_up()


# In the order in which they are needed, as the help lists them.
for panel, commands in {
    "Decide on tables": (init, compare, fit, decide, predict, evaluate),
    "Models and files": (inspect, serve, problems, warmup),
    "Learn and check": (demo, diagnose),
}.items():
    for command in commands:
        app.command(cls=Command, rich_help_panel=panel)(command)
# Of other distributions, such as decidewise-bench.
for entry in entry_points(group="decidewise.commands"):
    app.add_typer(entry.load(), name=entry.name, rich_help_panel="Evidence")
