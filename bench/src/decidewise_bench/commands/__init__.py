"""The commands `decidewise paper`, `real`, `field` and `bench`, which the command line finds by their entry points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import decidewise_bench.field
import decidewise_bench.paper
import decidewise_bench.real
from decidewise.kit.errors import InputError
from decidewise_bench.commands.plans import PlanCommands

if TYPE_CHECKING:
    import pyarrow as pa

    from decidewise_bench.experiments import Plan
    from decidewise_bench.report.sections import Report


def _plans(room: Any, *by_default: str) -> Callable[[Sequence[str]], list[Path]]:
    """Return a function that finds the plans of a room by name; without names, those named here."""

    def find(names: Sequence[str]) -> list[Path]:
        return [Path(name) if name.endswith(".toml") else room.PLANS / f"{name}.toml" for name in names or by_default]

    return find


def _own_plans(names: Sequence[str]) -> list[Path]:
    if not names:
        raise InputError("name at least one plan, a TOML file such as mine.toml.")
    return [Path(name) for name in names]


def _paper_report(table: pa.Table, published: Path | None) -> Report:
    from decidewise_bench.paper.report import paper_report  # noqa: PLC0415

    return paper_report(table, published or decidewise_bench.paper.PUBLISHED)


def _real_report(table: pa.Table, published: Path | None) -> Report:
    from decidewise_bench.real.report import real_report  # noqa: PLC0415

    return real_report(table, published)


def _field_report(table: pa.Table, published: Path | None) -> Report:
    from decidewise_bench.field.report import field_report  # noqa: PLC0415

    return field_report(table, published or decidewise_bench.field.PUBLISHED)


def _own_report(table: pa.Table, published: Path | None) -> Report:
    from decidewise_bench.report.write import benchmark_report  # noqa: PLC0415

    return benchmark_report(table, published)


def _with_data(plan: Plan) -> Plan:
    """Return the plan without the tasks whose data are missing, and print which these are."""
    from decidewise_bench.real.files import with_data  # noqa: PLC0415

    return with_data(plan, typer.echo)


paper = PlanCommands(
    "paper",
    _plans(decidewise_bench.paper, *decidewise_bench.paper.TABLES),
    _paper_report,
    also=(decidewise_bench.paper.EXPLAINED, *decidewise_bench.paper.CONTESTS),
).as_group(
    "Repeat the paper's experiments: shortest_path, knapsack and portfolio, or quick for a short look. Also by name: "
    "better and travelling_salesman, which aim below the published regret."
)
real = PlanCommands("real", _plans(decidewise_bench.real, "real"), _real_report, prepare=_with_data).as_group(
    "Compare the methods on real data, in the order of time; tasks whose data are not here are left out."
)
field = PlanCommands("field", _plans(decidewise_bench.field, "field"), _field_report, also=("published",)).as_group(
    "Compare every loss and every estimator, tuned alike: field (an evening), quick (minutes) or published."
)
bench = PlanCommands("bench", _own_plans, _own_report).as_group("Run plans of your own.")
