"""`decidewise field`: every loss and every estimator in one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decidewise.cli.plans import PlanCommands
from decidewise.field import PLANS, PUBLISHED

if TYPE_CHECKING:
    import pyarrow as pa


def find_plans(names: Sequence[str]) -> list[Path]:
    """Return the files of the named plans; without names, the plan of all problems."""
    return [Path(name) if name.endswith(".toml") else PLANS / f"{name}.toml" for name in names or ("field",)]


def write_report(table: pa.Table, out: Path, published: Path | None) -> Path:
    """Write the report of the field, with the published numbers of this project if no others are given."""
    from decidewise.field.report import write_report  # noqa: PLC0415

    return write_report(table, out, published or PUBLISHED)


field_commands = PlanCommands("field", find_plans, write_report, also=("published",)).as_group()
