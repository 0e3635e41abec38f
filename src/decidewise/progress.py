"""Progress bars for slow loops and for rows that are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

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


class RowBar:
    """A bar with rows per second and the time left, shown if the rows take longer than `patience` seconds.

    Parameters
    ----------
    total : int, optional
        The number of rows, if it is known.
    done : int
        The number of rows that an earlier run has read.
    """

    def __init__(self, description: str, total: int | None, *, done: int = 0, patience: float = 1.0) -> None:
        self.description, self.total, self.patience = description, total, patience
        self.first = self.done = done
        self.begin = perf_counter()
        self.progress: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.progress is not None and not self.progress.disable:
            self.progress.stop()

    #: What the bar shows between itself and the time left.
    column: Callable[[], ProgressColumn] = partial(
        TextColumn, "{task.completed:,} rows, {task.fields[speed]:,.0f} rows/s"
    )

    def advance(self, n: int) -> None:
        """Count more rows."""
        self.done += n
        seconds = perf_counter() - self.begin
        if self.progress is None and seconds > self.patience:
            console = Console(stderr=True)
            self.progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                self.column(),
                TimeRemainingColumn(),
                console=console,
                transient=True,
                disable=bool(_silenced) or not (console.is_terminal or console.is_jupyter),
            )
            self.progress.start()
            self.task = self.progress.add_task(self.description, total=self.total, speed=0.0)
        if self.progress is not None:
            speed = (self.done - self.first) / max(seconds, 1e-9)
            self.progress.update(self.task, completed=self.done, speed=speed)


class ByteBar(RowBar):
    """A bar with the bytes read and the time left."""

    column = DownloadColumn
