"""A progress bar for labels that take their time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

Item = TypeVar("Item")


def tracked(items: Sequence[Item], description: str, *, patience: float = 1.0) -> Iterator[Item]:
    """Yield the items, with a bar on standard error once they have taken `patience` seconds; it vanishes at the end."""
    begin = perf_counter()
    console = Console(stderr=True)
    progress = Progress(console=console, transient=True, disable=not (console.is_terminal or console.is_jupyter))
    task = progress.add_task(description, total=len(items))
    try:
        for item in items:
            if perf_counter() - begin > patience:
                progress.start()
            yield item
            progress.advance(task)
    finally:
        progress.stop()
