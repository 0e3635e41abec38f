"""A progress bar for slow loops."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

Item = TypeVar("Item")
_silenced: list[bool] = []


def tracked(items: Collection[Item], description: str, *, patience: float = 1.0) -> Iterator[Item]:
    """Yield the items; if they take longer than `patience` seconds, show a bar on standard error until the end."""
    begin = perf_counter()
    progress: Progress | None = None
    try:
        for done, item in enumerate(items):
            if progress is None and perf_counter() - begin > patience:
                console = Console(stderr=True)
                watched = (console.is_terminal or console.is_jupyter) and not _silenced
                progress = Progress(console=console, transient=True, disable=not watched)
                progress.start()
                task = progress.add_task(description, total=len(items))
            if progress is not None:
                progress.update(task, completed=done)
            yield item
    finally:
        if progress is not None and not progress.disable:  # stopping a disabled bar would print an empty line
            progress.stop()


@contextmanager
def silenced(silent: bool = True) -> Iterator[None]:
    """Show no bars in this context, if `silent`."""
    if silent:
        _silenced.append(True)
    try:
        yield
    finally:
        if silent:
            _silenced.pop()
