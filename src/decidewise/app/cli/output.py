"""What commands print: results for programs as JSON, and errors as one line on stderr, with an exit code.

The exit code is 2 if an argument, a plan, a file or the machine is at fault, 130 after Ctrl-C and 143 after SIGTERM.
Any other error is a bug, and keeps its traceback. With `--debug`, every error does.
"""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from decidewise.kit.errors import InputError
from decidewise.kit.interrupts import Terminated, interruptible, is_interrupt

#: The entry of a context's `meta` that says whether errors show their traceback.
DEBUG = "decidewise.debug"
#: The commands of the distribution decidewise-bench.
BENCH = ("paper", "real", "field", "bench")


#: What an option or an argument takes, in the help: words of the shell, not types of Python.
_TAKEN = {"int": "N", "float": "NUMBER", "str": "TEXT", "Path": "FILE"}


def _in_words(params: list[Any]) -> list[Any]:
    for param in params:
        if not hasattr(param, "type_descriptor"):  # an older Typer, which has words of its own
            continue
        kind = next((word for name, word in _TAKEN.items() if name in str(param.type_descriptor.annotation)), "")
        if isinstance(param, TyperOption):
            param.metavar = param.metavar or ("" if param.is_flag else kind)
        else:
            param.display_type_rich = lambda ctx: ""
    return params


class Command(TyperCommand):
    """A command whose help says in words what options take."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, as the help shows them."""
        return _in_words(super().get_params(ctx))


class Group(TyperGroup):
    """A group of such commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, as the help shows them."""
        return _in_words(super().get_params(ctx))


class Commands(Group):
    """All commands, with one place that handles their errors."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the program; a reader that goes away, such as `| head`, has all it wants."""
        try:
            return super().main(*arguments, **options)
        except SystemExit as end:
            if isinstance(end.__context__, BrokenPipeError):
                sys.exit(0)
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; one of decidewise-bench that is not installed is an error that says so."""
        if args and args[0] in BENCH and self.get_command(ctx, args[0]) is None:
            where = "`pip install ./bench` in a checkout of decidewise"
            fail(f"`decidewise {args[0]}` is part of decidewise-bench: {where}.")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; turn an error that is not a bug into one line and an exit code."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # show ? for a character that the terminal lacks
        try:
            with interruptible():
                result = super().invoke(ctx)
                sys.stdout.flush()  # here, where a reader that has gone away is noticed
                return result
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except BaseException as error:
            if is_interrupt(error):
                advice = str(error) if isinstance(error, KeyboardInterrupt) else ""
                fail(f"stopped. {advice}", code=143 if isinstance(error, Terminated) else 130)
            message = _sentence(error)
            if message is None or ctx.meta.get(DEBUG):
                raise
            fail(message)


def _sentence(error: BaseException) -> str | None:
    """Return the message if the error is due to the input or the machine; None if it is a bug."""
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415

    if isinstance(error, BrokenProcessPool):
        return (
            f"a worker died, perhaps because it ran out of memory ({error}). The same command continues; try fewer "
            "--jobs, or workers with more memory."
        )
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return f"not enough memory. {error}"
    return str(error) if isinstance(error, (InputError, OSError, ImportError)) else None


def fail(message: str, *, code: int = 2) -> NoReturn:
    """Print the message as one line on stderr, and exit with the code."""
    typer.echo(f"Error: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)


def print_json(found: Any) -> None:
    """Print a result as JSON on standard output; a number that is not finite, which JSON has not, as null."""
    typer.echo(as_json(found, indent=2))


def as_json(found: Any, *, indent: int | None = None) -> str:
    """Return plain values as JSON; paths and dates are text.

    >>> as_json({"regret": float("nan"), "rows": [1, 2]})
    '{"regret": null, "rows": [1, 2]}'
    """
    return json.dumps(_finite(found), indent=indent, ensure_ascii=False, allow_nan=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value
