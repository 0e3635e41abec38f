"""What becomes of an error in any command: one line on stderr, and an exit code.

What is wrong with an argument, a plan, a file or the machine is exit code 2. Ctrl-C ends with 130 and SIGTERM with 143.
Anything else is a mistake of ours: its traceback stays.
"""

from __future__ import annotations

import io
import sys
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from decidewise.errors import InputError
from decidewise.runtime.interrupts import Terminated, interruptible, is_interrupt


class Commands(TyperGroup):
    """All commands, and what becomes of an error in any of them."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal that has no × shows ?
        try:
            with interruptible():
                return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except BaseException as error:
            if is_interrupt(error):
                said = str(error) if isinstance(error, KeyboardInterrupt) else ""
                fail(f"stopped. {said}", code=143 if isinstance(error, Terminated) else 130)
            message = _sentence(error)
            if message is None:
                raise
            fail(message)


def _sentence(error: BaseException) -> str | None:
    """Say what is wrong with the input or the machine; None if the error is neither."""
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415

    if isinstance(error, BrokenProcessPool):
        return (
            f"a worker died, perhaps of too little memory ({error}). The same command continues; try fewer --jobs, or "
            "workers with more memory."
        )
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return f"not enough memory. {error}"
    return str(error) if isinstance(error, (InputError, OSError, ImportError)) else None


def fail(message: str, *, code: int = 2) -> NoReturn:
    """Print one line and end with an exit code."""
    typer.echo(f"Error: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)
