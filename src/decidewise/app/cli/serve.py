"""`decidewise serve`: a model and a problem behind HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from decidewise.app.cli import table_options as opt
from decidewise.app.cli.output import as_input_errors
from decidewise.kit.errors import InputError


def serve(
    model: Annotated[Path, typer.Argument(help="A model file, *.dw.")],
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
