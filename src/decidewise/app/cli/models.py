"""Models in files: `predict`, `decide`, `evaluate`, `inspect` and `serve`."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decidewise.app.cli import table_options as opt
from decidewise.app.cli.output import as_json, print_json
from decidewise.kit.errors import InputError, as_input_errors

if TYPE_CHECKING:
    from decidewise.app.tables.table_model import TableModel

New = Annotated[
    str,
    opt.table_argument(
        help="A table with the features of new rows: .csv, .tsv, .parquet, .arrow, a folder, a pattern, or - for stdin."
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="The table to write, .csv or .parquet; by default CSV on the screen.")
]


@opt.sharing
def predict(given: opt.RowsOptions, new: New, out: Out = None) -> None:
    """Predict the costs of new rows.

    \b
    decidewise predict model.dw new.csv --out predictions.parquet
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    _write_new(given, new, None, out)


@opt.sharing
def decide(
    given: opt.RowsOptions,
    new: New,
    problem: opt.Problem,
    out: Out = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Add how far each predicted cost may move before the decision changes (holds_from, holds_to), and "
            "the decision beyond (below, above). Takes some solves for each cost.",
        ),
    ] = False,
) -> None:
    """Decide new rows: a named decision and its predicted value for each; its regret too if the table has costs.

    \b
    decidewise decide model.dw new.csv --problem problem.toml --out decisions.parquet
    decidewise decide model.dw new.csv --problem problem.toml --json
    decidewise decide model.dw tomorrow.csv --problem problem.toml --explain
    decidewise decide model.dw 'years/*.parquet' --problem problem.toml --cluster tcp://10.0.0.5:8786 --out all.parquet
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    _write_new(given, new, problem, out, explain=explain)


@opt.sharing
def evaluate(given: opt.ModelOptions, data: opt.Data, problem: opt.Problem) -> None:
    """Measure the regret of a model on a table with costs that it was not trained on.

    \b
    decidewise evaluate model.dw later.csv --problem problem.toml
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    with opt.working(f"Loading {given.model}", quiet=given.is_silent):
        from decidewise.app.tables.new_rows import NewRows  # noqa: PLC0415
        from decidewise.kit.progress import silenced  # noqa: PLC0415
        from decidewise.problems import ProblemFile  # noqa: PLC0415

        fitted = _load(given)
        rows = NewRows(fitted, data, given.text, ProblemFile.read(problem), costs=True)
    with as_input_errors(), silenced(given.is_silent), opt.parallel(None, given.cluster) as (_, spread):
        in_blocks = opt.in_blocks(rows.blocks, given.stream, quiet=given.is_silent)
        found, title = rows.evaluate(in_blocks=in_blocks, spread=spread)
    if given.json:
        described = [
            {
                "name": row.name,
                "regret percent": row.regret._asdict(),
                "regret per row": row.mean_regret._asdict(),
                "minus forecast": None if row.difference is None else row.difference._asdict(),
            }
            for row in found
        ]
        how = {"intervals": found.method, "rows drawn together": found.block_length}
        print_json({"rows": found.n_samples, "models": described, **how})
        return
    typer.echo(str(found))
    if not given.quiet:
        unit = fitted.options.get("unit") or ""
        typer.echo(found.in_units(f"regret per {title}{', ' * bool(unit)}{unit}"))


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `decidewise fit` wrote.")],
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Show what a model file holds, without building the model.

    \b
    decidewise inspect model.dw
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    from decidewise.model_file import read_model_summary  # noqa: PLC0415

    summary = read_model_summary(model).as_dict()
    if json:
        print_json(summary)
        return
    training = summary.pop("training")
    shown = {
        "model": training.pop("candidate", None) or summary["model"],
        "estimator": summary["model"],
        "features": ", ".join(summary["feature_names"] or ()) or summary["n_features"],
        "costs": ", ".join(summary["cost_names"] or ()) or summary["n_costs"],
        "units": summary["units"],
        **training,
        "versions": ", ".join(f"{name} {number}" for name, number in summary["versions"].items()),
        "types to trust": ", ".join(summary["types"]) or "none",
    }
    for key, value in shown.items():
        if value not in (None, "", [], {}):
            line = f"{key}: {_in_words(value)}"  # a file's texts, which may hold commands of a terminal
            typer.echo("".join(letter if letter.isprintable() else "?" for letter in line))


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_in_words(part)}" for key, part in value.items())
    if isinstance(value, list):
        return "; ".join(_in_words(part) for part in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _load(given: opt.ModelOptions) -> TableModel:
    from decidewise.app.tables.table_model import TableModel  # noqa: PLC0415
    from decidewise.model_file import load_model  # noqa: PLC0415
    from decidewise.model_file.values import UntrustedTypesError  # noqa: PLC0415

    path = given.model
    try:
        model = load_model(path, trusted=given.trust or None)
    except UntrustedTypesError as error:
        raise InputError(
            f"{path} needs types that you must trust first: {', '.join(error.types)}. If you know where the file comes "
            "from, pass each by --trust."
        ) from error
    if not isinstance(model, TableModel):
        raise InputError(
            f"{path} holds a {type(model).__name__} that was saved from Python, which says nothing of tables. Use "
            "load_model in Python, or write a file by `decidewise fit`."
        )
    return model


def _write_new(
    given: opt.RowsOptions, table: str, problem: Path | None, out: Path | None, *, explain: bool = False
) -> None:
    """Write what becomes of new rows, and say on standard error what they had that training rows had not."""
    with opt.working(f"Loading {given.model}", quiet=given.is_silent):
        from decidewise.app.tables.new_rows import NewRows, Unfamiliar  # noqa: PLC0415
        from decidewise.evaluate.scorer import predicts_directions  # noqa: PLC0415
        from decidewise.kit.progress import silenced  # noqa: PLC0415
        from decidewise.problems import ProblemFile  # noqa: PLC0415
        from decidewise.rows.write_table import kind_of_output, write_blocks, write_table  # noqa: PLC0415

        if out is not None:
            kind_of_output(out)
            opt.check_output(out, table, problem, given.model)
        model = _load(given)
        file = None if problem is None else ProblemFile.read(problem)
        new = NewRows(model, table, given.text, file, costs=False if file is None else None, explain=explain)
    doing, done = ("Predicting", "Predictions of") if file is None else ("Deciding", "Decisions for")
    unfamiliar = Unfamiliar()
    n_rows = 0

    def blocks() -> Generator[dict[str, Any], None, None]:
        nonlocal n_rows
        with closing(new.results(f"{doing} {table}", in_blocks=in_blocks, spread=spread)) as results:
            for block in results:
                n_rows += block.n_rows
                unfamiliar.add(block.unfamiliar)
                yield block.columns

    on_screen = out is None and sys.stdout.isatty()  # where a bar would be among the rows
    with as_input_errors(), silenced(given.is_silent or on_screen), opt.parallel(None, given.cluster) as (_, spread):
        in_blocks = opt.in_blocks(new.blocks, given.stream, quiet=given.is_silent)
        with closing(blocks()) as columns:
            if out is not None:
                write_table(columns, out)
            elif given.json:
                _print_json(columns)
            else:
                write_blocks(columns, _Screen(), ".csv")
                sys.stdout.flush()
    notes = unfamiliar.sentences(model.features)
    if predicts_directions(model.estimator):
        notes.append("This model predicts directions: use its decisions, not the sizes of what it predicts.")
    if given.json and out is not None:
        print_json({"file": out, "rows": n_rows, "notes": notes})
    elif not given.quiet:
        for note in notes:
            typer.echo(note, err=True)
        if out is not None:
            typer.echo(f"{done} {n_rows:,} rows: {out}", err=True)


def _print_json(blocks: Generator[dict[str, Any], None, None]) -> None:
    """Print a list of rows by name as the blocks come; dates are text, and what is missing is null."""
    before = "["
    for columns in blocks:
        values = [_plain(column) for column in columns.values()]
        for row in zip(*values, strict=True):
            sys.stdout.write(f"{before}\n{as_json(dict(zip(columns, row, strict=True)))}")
            before = ","
    sys.stdout.write("\n]\n")
    sys.stdout.flush()


def _plain(column: Any) -> list[Any]:
    import numpy as np  # noqa: PLC0415

    values = np.asarray(column)
    return [str(value) for value in values] if values.dtype.kind == "M" else list(values.tolist())


class _Screen:
    """Standard output as a file of bytes, which is not closed."""

    closed = False

    def write(self, content: bytes) -> int:
        sys.stdout.write(bytes(content).decode())
        return len(content)

    def flush(self) -> None:
        sys.stdout.flush()

    def close(self) -> None:
        pass


def serve(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file, *.dw.")],
    problem: Annotated[
        Path | None, typer.Option("--problem", "-p", help="A problem.toml; without it there are only predictions.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 accepts requests from other machines.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.", min=0, max=65535)] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="DECIDEWISE_TOKEN",
            help="Token that requests must send, as Authorization: Bearer TOKEN. Safer in the variable, which "
            "other users of the machine cannot see.",
        ),
    ] = None,
    trust: Annotated[
        list[str] | None, typer.Option(help="A type the model file may load; only for files you trust.")
    ] = None,
    max_megabytes: Annotated[float, typer.Option(help="Size limit of a request.", min=0.001)] = 16.0,
    max_rows: Annotated[int, typer.Option(help="Limit on the rows in a request.", min=1)] = 10_000,
    seconds: Annotated[float, typer.Option(help="Time limit for one answer.", min=0.001)] = 30.0,
    jobs: Annotated[
        int | None, typer.Option(help="Requests to compute in parallel; by default one per core.", min=1)
    ] = None,
    debug: opt.Debug = False,
) -> None:
    """Answer POST /predict and POST /decide with JSON or Arrow; / is a page that says how.

    --problem executes the module that a file of kind "python" names: serve only files you trust.

    \b
    decidewise serve model.dw --problem problem.toml
    DECIDEWISE_TOKEN=secret decidewise serve model.dw -p problem.toml --host 0.0.0.0 --port 8080
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    from decidewise.app.server import Limits, serve  # noqa: PLC0415
    from decidewise.kit.checks import as_positive  # noqa: PLC0415

    if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token and token):
        raise InputError("the token must be printable ASCII without spaces at its ends.")
    some = {} if jobs is None else {"jobs": jobs}
    with as_input_errors():
        max_bytes = int(as_positive(max_megabytes, name="--max-megabytes") * 2**20)
        limits = Limits(max_bytes=max_bytes, max_rows=max_rows, seconds=seconds, **some)
    serve(
        model,
        problem,
        host=host,
        port=port,
        limits=limits,
        token=token,
        trusted=trust,
        say=lambda line: typer.echo(line, err=True),
    )
