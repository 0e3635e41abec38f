"""From a table and a problem to an answer: `init`, `compare`, `fit` and `diagnose`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decidewise.app.cli import table_options as opt
from decidewise.app.cli.output import print_json
from decidewise.kit.errors import InputError, as_input_errors

if TYPE_CHECKING:
    from rich.table import Table

    from decidewise.app.tables.comparison import TableComparison


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to create the files in.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    debug: opt.Debug = False,
) -> None:
    """Write a small working example: a table, a problem file, and what to type.

    \b
    decidewise init example
    decidewise compare example/history.csv --problem example/problem.toml
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    from decidewise.app.tables.example import write_example  # noqa: PLC0415

    files = write_example(folder, force=force)
    typer.echo("Wrote " + ", ".join(str(path) for path in files) + ".")
    typer.echo(f"Next: decidewise compare {folder / 'history.csv'} --problem {folder / 'problem.toml'}")


@opt.sharing
def compare(
    table: opt.SharedOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("compare.html"),
    test: Annotated[
        float, opt.work(help="Share of the rows held out to measure the regret; no choice sees them.")
    ] = 0.25,
    one_model: opt.OneModel = False,
    sample: opt.Sample = None,
) -> None:
    """Find out which model decides best on a table, and by how much; print a table and write a page.

    \b
    decidewise compare history.csv --problem problem.toml
    decidewise compare 'days/*.parquet' -p problem.toml --costs 'price_*' --forecast 'forecast_*' --time day
    decidewise compare long.csv -p problem.toml --rows day --items hour --costs price --json
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    with opt.working(f"Comparing models on {table.data}", quiet=table.is_silent):
        from decidewise.app.tables.choice import CHOICE  # noqa: PLC0415
        from decidewise.app.tables.comparison import compare_samples  # noqa: PLC0415
        from decidewise.app.tables.headline import fit_command  # noqa: PLC0415
        from decidewise.app.tables.page import render_comparison  # noqa: PLC0415
        from decidewise.app.tables.samples import as_gap  # noqa: PLC0415
        from decidewise.kit.files import write_whole  # noqa: PLC0415

        opt.check_output(out, table.data, table.problem)
        samples, options, in_blocks = opt.read(table, sample)
        with as_input_errors(), opt.parallel(table.jobs, table.cluster) as (n_jobs, _):
            result = compare_samples(
                samples,
                test=test,
                gap=as_gap(table.gap, samples.times),
                categories=options.categories,
                one_model=one_model,
                max_solves=table.max_solves,
                max_seconds=table.max_seconds,
                jobs=n_jobs,
                seed=table.seed,
                in_blocks=in_blocks,
                **table.training,
            )
    searching: dict[str, Any] = {}
    if result.chosen == CHOICE:  # any other model is fitted without a search
        seconds = table.max_seconds and f"{table.max_seconds:g}"
        searching = {"one-model": one_model, "train-solves": table.train_solves}
        searching |= {"max-solves": table.max_solves, "max-seconds": seconds}
    searching |= {"seed": table.seed, "sample": sample if in_blocks else None}
    command = _command(table, searching)
    if not table.json:
        _show(result, quiet=table.quiet)  # before the page, so that a full disk does not lose it
    with opt.working(f"Writing {out}", quiet=table.is_silent):
        write_whole({out: render_comparison(result, command).encode()})
    if table.json:
        print_json(_as_dict(result, command) | {"page": str(out)})
    else:
        typer.echo(f"Page: {out}\nNext: {fit_command(result.chosen, command)}")


@opt.sharing
def diagnose(
    table: opt.SharedOptions,
    sample: opt.Sample = None,
) -> None:
    """Find out whether a decision-focused model would pay: what it saves, what is noise, and what to do.

    \b
    decidewise diagnose history.csv --problem problem.toml
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    with opt.working(f"Diagnosing {table.data}", quiet=table.is_silent):
        from decidewise.app.tables.choice import CHOICE  # noqa: PLC0415
        from decidewise.app.tables.features import TableFeatures  # noqa: PLC0415
        from decidewise.app.tables.headline import fit_command  # noqa: PLC0415
        from decidewise.app.tables.samples import as_gap  # noqa: PLC0415
        from decidewise.models import BlockFolds  # noqa: PLC0415
        from decidewise.operate.diagnose import diagnose as measure  # noqa: PLC0415

        samples, options, _ = opt.read(table, sample)
        with as_input_errors(), opt.parallel(table.jobs, table.cluster) as (n_jobs, _):
            prepared = TableFeatures(list(samples.lines), categories=options.categories, kept=samples.forecast)
            prepared.fit(samples.lines)
            found = measure(
                samples.problem,  # type: ignore[arg-type]  # a table is read with its problem here
                samples.features(prepared, of_levels=True),
                samples.costs,
                forecast=samples.forecast_columns(prepared) if samples.demand is None else None,
                cv=5 if samples.times is None else BlockFolds(5, gap=as_gap(table.gap, samples.times) or 0),
                groups=samples.groups if samples.times is None else None,
                times=samples.times,
                max_solves=table.max_solves,
                max_seconds=table.max_seconds,
                n_jobs=n_jobs,
                random_state=table.seed,
                **table.training,
            )
    searching = {"train-solves": table.train_solves or "auto"} if found.chosen == "spo+" else {}
    model = CHOICE if found.chosen == "spo+" else found.chosen
    next_command = fit_command(model, _command(table, searching | {"seed": table.seed}))
    if table.json:
        print_json(asdict(found) | {"command": next_command})
        return
    for note in () if table.quiet else (*samples.notes, *prepared.notes_):
        typer.echo(note)
    typer.echo(str(replace(found, call=f"Next: {next_command}")))


def _command(table: opt.SharedOptions, searching: dict[str, Any]) -> dict[str, Any]:
    """Return what `fit_command` repeats of a command, with the options of its search."""
    return {
        "data": opt.as_typed(table.data),
        "problem": str(table.problem),
        "given": table.roles
        | {"gap": table.gap}
        | {name: value if value is True else str(value) for name, value in searching.items() if value},
        "text": {name: value for name, value in table.text.items() if value not in (None, ".", "utf-8")},
    }


def _show(result: TableComparison, *, quiet: bool) -> None:
    from rich.console import Console  # noqa: PLC0415

    from decidewise.app.tables.headline import explanation, headline, how_measured, verdict_in_words  # noqa: PLC0415
    from decidewise.app.tables.health import alarms, doubts, health  # noqa: PLC0415

    if not quiet:
        for note in result.notes:
            typer.echo(note)
    Console().print(_table(result))
    findings = health(result)
    if not quiet:
        for line in (how_measured(result), *alarms(findings), *filter(None, [explanation(result.choice)])):
            typer.echo(line)
    typer.secho(f"{verdict_in_words(result, doubts(findings))}. {headline(result)}", bold=True)


def _table(result: TableComparison) -> Table:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from decidewise.app.tables.headline import row_in_words, saves_heading  # noqa: PLC0415

    shown = Table("model")
    for heading in ("regret %", "95 % interval", saves_heading(result), "fit"):
        shown.add_column(Text(heading), justify="right")
    for row in result.table:
        words = row_in_words(result, row)
        label = Text(row.name + " (advised)" * words["chosen"])
        cells = (words[key] for key in ("regret", "interval", "saved", "fit"))
        shown.add_row(label, *cells, style="bold" if words["chosen"] else None)
    for name in result.failures:
        shown.add_row(Text(name), "failed", style="dim")
    return shown


def _as_dict(result: TableComparison, command: dict[str, Any]) -> dict[str, Any]:
    from decidewise.app.tables.headline import explanation, fit_command, headline, how_measured  # noqa: PLC0415
    from decidewise.app.tables.health import doubts, health  # noqa: PLC0415

    findings = health(result)

    def interval(found: Any, factor: float = 1.0) -> Any:
        if found is None:
            return None
        estimate, *ends = (factor * value for value in found)
        return {"estimate": estimate, "low": min(ends), "high": max(ends)}

    return {
        "headline": headline(result),
        "verdict": result.verdict.outcome,
        "doubts": doubts(findings),
        "chosen": result.chosen,
        "command": fit_command(result.chosen, command),
        "challenger": result.challenger,
        "choice": result.choice.weights,
        "explanation": explanation(result.choice),
        "baseline": result.baseline,
        "saved percent": interval(result.share),
        "saved per row": interval(result.saving),
        "models": [
            {
                "name": row.name,
                "regret percent": interval(row.regret),
                "regret per row": interval(row.mean_regret),
                "saved per row": interval(row.mean_difference, -1.0),
                "fit seconds": result.fit_seconds[row.name],
            }
            for row in result.table
        ],
        "failed": result.failures,
        "measured": how_measured(result),
        "rows": {"all": len(result.samples), "chosen on": len(result.splits[0][0]), "measured on": len(result.rows)},
        "features": list(result.choice.prepared.feature_names_),
        "notes": list(result.notes),
        "leaks": result.leaks,
        "health": [asdict(finding) for finding in findings],
        "solver calls": result.n_solves,
        "seconds": result.seconds,
    }


@opt.sharing
def fit(
    table: opt.SharedOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write, by convention *.dw.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="Name of a candidate, such as 'least squares', or 'choice'; by default what `compare` recommends."
        ),
    ] = None,
    one_model: opt.OneModel = False,
    stream: opt.Stream = None,
    sample: Annotated[
        int | None,
        opt.work(
            min=100, help="With --stream: random rows to choose the model on (default 20,000); it is fitted on all."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        opt.work(help="With --stream: a checkpoint file; after a kill, the same command continues from it."),
    ] = None,
) -> None:
    """Fit the model that `compare` recommends, or a named one, on all rows; write it to a file with all that it needs.

    \b
    decidewise fit history.csv --problem problem.toml --out model.dw
    decidewise fit history.csv --problem problem.toml --model 'least squares' --out simple.dw
    decidewise fit 'years/*.parquet' --problem problem.toml --stream --checkpoint fit.npz --out model.dw
    """  # noqa: D301 - the mark keeps the lines of the examples as they are
    settings: dict[str, Any] = {
        "gap": table.gap, "one_model": one_model, "max_solves": table.max_solves, "max_seconds": table.max_seconds,
        "seed": table.seed, "name": model, **table.training,
    }  # fmt: skip
    with opt.working(f"Fitting a model to {table.data}", quiet=table.is_silent), as_input_errors():
        from decidewise.app.tables.blocks import TableBlocks  # noqa: PLC0415
        from decidewise.app.tables.columns import Reading  # noqa: PLC0415
        from decidewise.app.tables.fitting import fit_in_blocks, fit_in_memory  # noqa: PLC0415
        from decidewise.app.tables.samples import columns_of, read_samples  # noqa: PLC0415
        from decidewise.model_file import read_model_summary, save_model  # noqa: PLC0415

        opt.check_output(out, table.data, table.problem)
        if checkpoint is not None:
            opt.check_output(checkpoint, table.data, table.problem, out)
        options, file = opt.options_of(table)
        blocks = TableBlocks.of(table.data, options, table.text)
        wanted = True if sample or checkpoint else None
        if opt.in_blocks(blocks, stream if stream is not None else wanted, quiet=table.is_silent):
            with opt.parallel(table.jobs, table.cluster) as (n_jobs, spread), _advice(checkpoint):
                found = fit_in_blocks(
                    blocks,
                    file,
                    n_sampled=sample or opt.N_SAMPLED,
                    checkpoint=checkpoint,
                    spread=spread,
                    jobs=n_jobs,
                    **settings,
                )
        else:
            if wanted:
                raise InputError("--sample and --checkpoint are for tables that are read block by block: --stream.")
            samples = read_samples(columns_of(table.data, table.text), Reading(options, file))
            with opt.parallel(table.jobs, table.cluster) as (n_jobs, _):
                found = fit_in_memory(samples, options, jobs=n_jobs, **settings)
        summary = found.summary(options, table.problem.name)
        save_model(found.model, out, summary=summary)
        found.written()
    trusted = list(read_model_summary(out).types)
    if table.json:
        print_json({"file": out, "trust": trusted} | summary)
        return
    if not table.quiet:
        for note in found.notes:
            typer.echo(note)
    measured = f", {found.regret} % regret on held-out rows" if found.regret else ""
    typer.echo(f"{found.name}, fitted on {found.n_rows:,} rows{measured}: {out}")
    if trusted:
        typer.echo(f"To read this file, a reader must trust: {' '.join(f'--trust {name}' for name in trusted)}")


@contextmanager
def _advice(checkpoint: Path | None) -> Iterator[None]:
    """Say after Ctrl-C that the same command continues, if there is a checkpoint."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if checkpoint is not None and checkpoint.exists():
            stop.args = (f"What is finished is kept in {checkpoint}, and the same command continues.",)
        raise
