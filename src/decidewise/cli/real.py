"""`decidewise real`: the methods on real data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from decidewise.cli.plans import PlanCommands
from decidewise.real import PLANS

if TYPE_CHECKING:
    import pyarrow as pa

    from decidewise.experiments import Plan


def find_plans(names: Sequence[str]) -> list[Path]:
    """Return the files of the named plans; without names, the plan of all tasks."""
    return [Path(name) if name.endswith(".toml") else PLANS / f"{name}.toml" for name in names or ("real",)]


def with_data(plan: Plan) -> Plan:
    """Return the plan without the tasks whose data are missing, and print which these are."""
    from decidewise.real.available import with_data  # noqa: PLC0415

    return with_data(plan, typer.echo)


def write_report(table: pa.Table, out: Path, published: Path | None) -> Path:
    """Write the report on real data."""
    from decidewise.real.report import write_report  # noqa: PLC0415

    return write_report(table, out, published)


real_commands = PlanCommands("real", find_plans, write_report, prepare=with_data).as_group()
