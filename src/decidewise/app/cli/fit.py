"""`decidewise fit`: a model chosen and fitted on a table, in a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from decidewise.app.cli import table_options as opt
from decidewise.app.cli.output import as_input_errors, print_json
from decidewise.kit.errors import InputError


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
        from decidewise.app.tables.fitting import fit_in_blocks, fit_in_memory  # noqa: PLC0415
        from decidewise.app.tables.options import Reading  # noqa: PLC0415
        from decidewise.app.tables.read import columns_of, read_samples  # noqa: PLC0415
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
