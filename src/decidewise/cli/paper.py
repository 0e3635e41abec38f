"""`decidewise paper`: the paper's plans, by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from decidewise.cli.plans import PlanCommands
from decidewise.paper import CONTESTS, EXPLAINED, PLANS, PUBLISHED, TABLES

if TYPE_CHECKING:
    import pyarrow as pa


def find_plans(names: Sequence[str]) -> list[Path]:
    """Return the files of the named plans; without names, those of the paper's tables."""
    return [Path(name) if name.endswith(".toml") else PLANS / f"{name}.toml" for name in names or TABLES]


def write_report(table: pa.Table, out: Path, published: Path | None) -> Path:
    """Write the paper's report, by default with the paper's published numbers, and say how many are reproduced."""
    from decidewise.paper.report import write_report  # noqa: PLC0415

    return write_report(table, out, published or PUBLISHED, say=typer.echo)


paper_commands = PlanCommands("paper", find_plans, write_report, also=(EXPLAINED, *CONTESTS)).as_group()
