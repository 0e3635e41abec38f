"""`decidewise bench`: plans of your own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decidewise.cli.plans import PlanCommands
from decidewise.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


def find_plans(names: Sequence[str]) -> list[Path]:
    """Return the files of the named plans; raise if none is named."""
    if not names:
        raise InputError("name at least one plan, a TOML file such as mine.toml.")
    return [Path(name) for name in names]


def write_report(table: pa.Table, out: Path, published: Path | None) -> Path:
    """Write the report, with published numbers if a folder of them is given."""
    from decidewise.report import write_report  # noqa: PLC0415

    return write_report(table, out, published)


bench_commands = PlanCommands("bench", find_plans, write_report).as_group()
