"""Models in files: `fit`, `predict`, `decide`, `evaluate` and `inspect`."""

from __future__ import annotations

import json as as_json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decidewise.cli import table_options as opt
from decidewise.cli.errors import as_input_errors
from decidewise.errors import InputError

if TYPE_CHECKING:
    from decidewise.tables.comparison import Choice
    from decidewise.tables.options import TableOptions
    from decidewise.tables.samples import TableSamples
    from decidewise.tables.table_model import TableModel

ModelFile = Annotated[Path, typer.Argument(help="A file that `decidewise fit` wrote.")]
New = Annotated[
    str,
    typer.Argument(help="A table with the features of new rows: .csv, .tsv, .parquet, .arrow, a folder, a pattern."),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(help="A type that the file may build; `inspect` lists those it needs. Only for files you trust."),
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="The table to write, .csv or .parquet; by default CSV on the screen.")
]


def fit(
    data: opt.Data,
    problem: opt.Problem,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write, by convention *.dw.")],
    model: Annotated[
        str | None, typer.Option(help="A candidate by name, such as 'least squares'; by default the best is chosen.")
    ] = None,
    costs: opt.Costs = None,
    features: opt.Features = None,
    rows: opt.Rows = None,
    items: opt.Items = None,
    forecast: opt.Forecast = None,
    known: opt.Known = None,
    time: opt.Time = None,
    groups: opt.Groups = None,
    categories: opt.Categories = None,
    unit: opt.Unit = None,
    gap: opt.Gap = None,
    average: opt.Average = False,
    max_solves: opt.MaxSolves = None,
    jobs: opt.Jobs = None,
    seed: opt.Seed = 0,
    separator: opt.Separator = None,
    decimal: opt.Decimal = ".",
    encoding: opt.Encoding = "utf-8",
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Choose a model on all rows of a table, fit it, and write it to a file with all that it needs.

    \b
    decidewise fit history.csv --problem problem.toml --out model.dw
    decidewise fit history.csv --problem problem.toml --model 'least squares' --out simple.dw
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    from decidewise.model_file import read_model_summary, save_model  # noqa: PLC0415
    from decidewise.progress import silenced  # noqa: PLC0415
    from decidewise.tables.comparison import choose  # noqa: PLC0415
    from decidewise.tables.held_out import as_gap  # noqa: PLC0415
    from decidewise.tables.table_model import TableModel  # noqa: PLC0415

    opt.check_writable(out)
    given = {
        "costs": costs, "features": features, "rows": rows, "items": items, "forecast": forecast, "known": known,
        "time": time, "groups": groups, "categories": categories, "unit": unit,
    }  # fmt: skip
    text = {"separator": separator, "decimal": decimal, "encoding": encoding}
    with opt.working(f"Reading {data} ...", quiet=quiet or json):
        samples, options, _ = opt.read(data, problem, given, text)
    with as_input_errors(), silenced(quiet or json):
        choice = choose(
            samples,
            categories=options.categories,
            gap=as_gap(gap, samples.times),
            average=average,
            max_solves=max_solves,
            jobs=jobs,
            seed=seed,
            name=model,
        )
        fitted = TableModel.fitted(choice.estimator, choice.prepared, options, samples)
        summary = _summary(choice, samples, options, problem)
        save_model(fitted, out, summary=summary)
    trusted = list(read_model_summary(out).types)
    if json:
        typer.echo(as_json.dumps({"file": str(out), "trust": trusted} | summary, indent=2, default=str))
        return
    if not quiet:
        for note in (*samples.notes, *choice.prepared.notes_):
            typer.echo(note)
    regret = summary.get("regret percent")
    measured = (
        f", {regret['estimate']:.2f} % ± {1.96 * regret['standard error']:.2f} regret out of fold" if regret else ""
    )
    typer.echo(f"{choice.name}, fitted on {len(samples):,} rows{measured}: {out}")
    if trusted:
        typer.echo(f"To read this file, a reader must trust: {' '.join(f'--trust {name}' for name in trusted)}")


def predict(
    model: ModelFile,
    new: New,
    out: Out = None,
    trust: Trust = None,
    separator: opt.Separator = None,
    decimal: opt.Decimal = ".",
    encoding: opt.Encoding = "utf-8",
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Predict the costs of new rows.

    \b
    decidewise predict model.dw new.csv --out predictions.parquet
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    from decidewise.tables.decisions import prediction_columns  # noqa: PLC0415

    kind = _output(out)
    fitted = _load(model, trust)
    with as_input_errors(), opt.working(f"Reading {new} ...", quiet=quiet):
        samples = fitted.read(new, separator=separator, decimal=decimal, encoding=encoding, costs=False)
        columns = prediction_columns(samples, fitted.predict_samples(samples), fitted.options.get("items"))
    _write(columns, out, kind)
    _say_new(fitted, samples, out, f"Predictions of {len(samples):,} rows", quiet=quiet)


def decide(
    model: ModelFile,
    new: New,
    problem: opt.Problem,
    out: Out = None,
    trust: Trust = None,
    separator: opt.Separator = None,
    decimal: opt.Decimal = ".",
    encoding: opt.Encoding = "utf-8",
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Decide new rows: a named decision and its predicted value for each; its regret too if the table has costs.

    \b
    decidewise decide model.dw new.csv --problem problem.toml --out decisions.parquet
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    from decidewise.problems import ProblemFile  # noqa: PLC0415

    kind = _output(out)
    fitted = _load(model, trust)
    file = ProblemFile.read(problem)
    with as_input_errors(), opt.working(f"Deciding {new} ...", quiet=quiet):
        samples = fitted.read(new, file, separator=separator, decimal=decimal, encoding=encoding)
        decisions = fitted.decide_samples(samples)
        columns = decisions.columns()
    _write(columns, out, kind)
    _say_new(fitted, samples, out, f"Decisions for {len(samples):,} rows", quiet=quiet)


def evaluate(
    model: ModelFile,
    data: opt.Data,
    problem: opt.Problem,
    trust: Trust = None,
    separator: opt.Separator = None,
    decimal: opt.Decimal = ".",
    encoding: opt.Encoding = "utf-8",
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Measure the regret of a model on a table with costs that it was not trained on.

    \b
    decidewise evaluate model.dw later.csv --problem problem.toml
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    from decidewise.evaluate import check_in_units, compare  # noqa: PLC0415
    from decidewise.problems import ProblemFile  # noqa: PLC0415
    from decidewise.progress import silenced  # noqa: PLC0415
    from decidewise.tables.table_model import forecast_of  # noqa: PLC0415

    fitted = _load(model, trust)
    file = ProblemFile.read(problem)
    with as_input_errors(), opt.working(f"Reading {data} ...", quiet=quiet or json):
        samples = fitted.read(
            data, file, separator=separator, decimal=decimal, encoding=encoding, costs=True, in_order=True
        )
    with as_input_errors(), silenced(quiet or json):
        check_in_units(fitted.estimator, samples.problem)  # type: ignore[arg-type]
        predictions = {"model": fitted.predict_samples(samples)}
        forecast = forecast_of(samples)
        if forecast is not None:
            predictions = {"forecast": forecast, **predictions}
        blocks = None if samples.times is None else "auto"
        found = compare(samples.problem, predictions, samples.costs, blocks=blocks)  # type: ignore[arg-type]
    if json:
        described = [
            {
                "name": row.name,
                "regret percent": row.regret._asdict(),
                "regret per row": row.mean_regret._asdict(),
                "minus forecast": None if row.difference is None else row.difference._asdict(),
            }
            for row in found
        ]
        typer.echo(as_json.dumps({"rows": len(samples), "models": described}, indent=2))
        return
    typer.echo(str(found))
    if not quiet:
        unit = fitted.options.get("unit") or ""
        typer.echo(found.in_units(f"regret per {samples.title}{', ' * bool(unit)}{unit}"))


def inspect(model: ModelFile, json: opt.Json = False, debug: opt.Debug = False) -> None:
    """Show what a model file holds, without building the model.

    \b
    decidewise inspect model.dw
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    from decidewise.model_file import read_model_summary  # noqa: PLC0415

    summary = read_model_summary(model).as_dict()
    if json:
        typer.echo(as_json.dumps(summary, indent=2, ensure_ascii=False))
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


def _load(path: Path, trust: list[str] | None) -> TableModel:
    from decidewise.model_file import load_model  # noqa: PLC0415
    from decidewise.tables.table_model import TableModel  # noqa: PLC0415

    try:
        model = load_model(path, trusted=trust or None)
    except InputError as error:
        said, _, _ = str(error).partition(" If you know where the file comes from")
        hint = " If you know where the file comes from, pass each by --trust." if said != str(error) else ""
        raise InputError(said + hint) from error
    if not isinstance(model, TableModel):
        raise InputError(
            f"{path} holds a {type(model).__name__} that was saved from Python, which says nothing of tables. Use "
            "load_model in Python, or write a file by `decidewise fit`."
        )
    return model


def _output(out: Path | None) -> str:
    from decidewise.data.files import kind_of_output  # noqa: PLC0415

    if out is None:
        return ".csv"
    kind = kind_of_output(out)
    opt.check_writable(out)
    return kind


def _write(columns: dict[str, Any], out: Path | None, kind: str) -> None:
    from decidewise.data.files import table_bytes  # noqa: PLC0415
    from decidewise.runtime.files import write_whole  # noqa: PLC0415

    with as_input_errors():
        content = table_bytes(columns, kind)
    if out is None:
        sys.stdout.write(content.decode())
        sys.stdout.flush()
    else:
        write_whole({out: content})


def _say_new(fitted: TableModel, samples: TableSamples, out: Path | None, what: str, *, quiet: bool) -> None:
    """Say on standard error what new rows had that training rows had not, and where the table is."""
    if quiet:
        return
    for note in fitted.features.new_names(samples.lines):
        typer.echo(note, err=True)
    if getattr(fitted.estimator, "predicts_directions", False):
        typer.echo("This model predicts directions: decisions are meant, not the sizes of predicted costs.", err=True)
    if out is not None:
        typer.echo(f"{what}: {out}", err=True)


def _summary(choice: Choice, samples: TableSamples, options: TableOptions, problem: Path) -> dict[str, Any]:
    from decidewise.tables.savings import shown_key  # noqa: PLC0415

    summary: dict[str, Any] = {
        "candidate": choice.name,
        "feature_names": list(choice.prepared.feature_names_),
        "cost_names": list(samples.cost_names),
        "rows": len(samples),
        "first": shown_key(samples.keys[0]),
        "last": shown_key(samples.keys[-1]),
        "problem": problem.name,
        "table": options.as_dict(),
        "notes": list(choice.prepared.notes_),
    }
    if options.unit:
        summary["units"] = options.unit
    if choice.regret is not None:
        summary["regret percent"] = {"estimate": choice.regret[0], "standard error": choice.regret[1]}
    return summary
