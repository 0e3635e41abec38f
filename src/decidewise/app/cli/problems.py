"""`decidewise problems`: what problems there are, what each needs, and whether a file describes one."""

from __future__ import annotations

import math
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decidewise.app.cli import table_options as opt
from decidewise.app.cli.output import print_json
from decidewise.kit.errors import InputError

if TYPE_CHECKING:
    from decidewise.problems.readers.kinds import Kind

_SENSES = {"file": "of the file", "python": "of the object"}


def problems(
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help="A kind, such as knapsack; without it, all are listed.")
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print only an example of that kind, to be written to a file.")
    ] = False,
    check: Annotated[Path | None, typer.Option(help="Read a problem.toml instead, and solve one random row.")] = None,
    table: Annotated[
        Path | None, typer.Option(help="With --check: the table whose columns the file names; .csv, .parquet, ...")
    ] = None,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """List the kinds of problems, show what one of them needs, or check a file that describes one.

    --check executes the module that a file of kind "python" names: check only files you trust.

    \b
    decidewise problems knapsack
    decidewise problems knapsack --example > problem.toml
    decidewise problems --check problem.toml
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    if check is not None:
        if kind is not None or example:
            raise InputError("--check reads a file, which says the kind: leave out KIND and --example.")
        _show_check(_check(check, table), json)
    elif table is not None:
        raise InputError("--table goes with --check.")
    elif kind is None:
        if example:
            raise InputError("--example needs a kind, such as `decidewise problems knapsack --example`.")
        _show_list(json)
    else:
        _show_kind(_find(kind), example, json)


def _find(name: str) -> Kind:
    from decidewise.kit.checks import nearest_names  # noqa: PLC0415
    from decidewise.problems.readers.problem_file import kinds  # noqa: PLC0415

    known = kinds()
    if name not in known:
        raise InputError(f"there is no kind {name!r}{nearest_names(name, known)}")
    return known[name]


def _show_list(json: bool) -> None:
    from decidewise.problems.readers.problem_file import kinds  # noqa: PLC0415

    if json:
        print_json([_described(kind) for kind in kinds().values()])
        return
    for kind in kinds().values():
        typer.echo(
            f"{kind.name}\n    {kind.summary}\n    Needs {_in_words(_needed(kind) or ['constraints or bounds'])}."
        )
    typer.echo("`decidewise problems KIND` shows costs, ties and all arguments of a kind, and an example of its file.")


def _show_kind(kind: Kind, example: bool, json: bool) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from decidewise.problems.readers.kinds import as_toml  # noqa: PLC0415

    toml = as_toml(kind.name, kind.example)
    if example:
        typer.echo(toml, nl=False)
        return
    described = _described(kind)
    arguments = [
        {
            "name": argument.name,
            "type": argument.type,
            "default": None if argument.required else _default(argument.default),
            "required": argument.required,
            "text": argument.text,
        }
        for argument in kind.arguments.values()
    ]
    if json:
        shown = {**described, "arguments": arguments, "example": toml}
        print_json(shown)
        return
    typer.echo(f"{kind.name}: {kind.summary}\n")
    for heading in ("costs", "sense", "ties", "polyhedron"):
        if described[heading]:
            typer.echo(f"{heading}: {described[heading]}")
    table = Table("key", "type", "default", "what it is")
    for row in arguments:
        default = "required" if row["required"] else str(row["default"])
        table.add_row(*map(Text, (str(row["name"]), str(row["type"]), default, str(row["text"]))))
    Console().print(table)
    typer.echo(f"problem.toml, for example:\n\n{toml}")


def _check(path: Path, table: Path | None) -> dict[str, Any]:
    """Build the problem that a file describes, and solve one random row of costs, or one for each row of the table."""
    import numpy as np  # noqa: PLC0415

    from decidewise.kit.errors import SolverError  # noqa: PLC0415
    from decidewise.problems import ProblemFile  # noqa: PLC0415
    from decidewise.rows.file_blocks import read_files  # noqa: PLC0415

    file = ProblemFile.read(path)
    if file.columns and table is None:
        names = ", ".join(map(repr, file.columns))
        raise InputError(f"{path} takes the columns {names} from a table: pass it by --table.")
    problem = file.build(None if table is None else read_files(table))
    costs = np.random.default_rng(0).uniform(1, 2, size=(problem.n_rows or 1, problem.n_costs))
    begin = perf_counter()
    try:
        decisions = problem.solve(costs)
    except SolverError as error:
        raise InputError(f"{path}: the problem cannot be solved for random costs: {error}") from error
    except Exception as error:
        if file.kind.name != "python":
            raise
        raise InputError(f"{path}: solve failed: {type(error).__name__}: {error}") from error
    return {
        "file": str(path),
        "kind": file.kind.name,
        "class": type(problem).__name__,
        "n_costs": problem.n_costs,
        "sense": problem.sense,
        "known costs": problem.has_known,
        "columns by row": list(file.columns),
        "rows solved": len(costs),
        "seconds": round(perf_counter() - begin, 6),
        "costs of the first row": [round(cost, 6) for cost in costs[0].tolist()],
        "its decision": decisions[0].tolist(),
    }


def _show_check(found: dict[str, Any], json: bool) -> None:
    if json:
        print_json(found)
        return
    for key, value in found.items():
        typer.echo(f"{key}: {_in_words(value)}")


def _in_words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        entries = [f"{entry:.4g}" if isinstance(entry, float) else str(entry) for entry in value[:12]]
        return ", ".join(entries + [f"... ({len(value)} in all)"] * (len(value) > 12)) or "none"
    return str(value)


def _described(kind: Kind) -> dict[str, Any]:
    return {
        "kind": kind.name,
        "needs": _needed(kind),
        "costs": kind.size,
        "sense": kind.sense or _SENSES.get(kind.name, ""),
        "ties": kind.ties,
        "polyhedron": kind.polyhedron,
    }


def _needed(kind: Kind) -> list[str]:
    return [name for name, argument in kind.arguments.items() if argument.required]


def _default(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value  # JSON knows no infinity
