"""Progress bars for slow loops and for rows that are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
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
        self.done, self.n_rows = done, 0
        self.begin = perf_counter()
        self.progress: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.progress is not None and not self.progress.disable:
            self.progress.stop()

    def columns(self) -> tuple[ProgressColumn, ...]:
        """Return what the bar shows between itself and the time left."""
        return (TextColumn("{task.completed:,} rows, {task.fields[speed]}"),)

    def advance(self, n: int, n_rows: int | None = None) -> None:
        """Count more of what the bar counts, and more rows, if it counts something else."""
        self.done += n
        self.n_rows += n if n_rows is None else n_rows
        seconds = perf_counter() - self.begin
        speed = f"{self.n_rows / max(seconds, 1e-9):,.0f} rows/s" if self.n_rows else ""
        if self.progress is None and seconds > self.patience:
            console = Console(stderr=True)
            self.progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                *self.columns(),
                TimeRemainingColumn(),
                console=console,
                transient=True,
                disable=bool(_silenced) or not (console.is_terminal or console.is_jupyter),
            )
            self.task = self.progress.add_task(self.description, total=self.total, completed=self.done, speed=speed)
            self.progress.start()
        if self.progress is not None:
            self.progress.update(self.task, completed=self.done, speed=speed)


class ByteBar(RowBar):
    """A bar with the bytes read, rows per second if they are counted, and the time left."""

    def columns(self) -> tuple[ProgressColumn, ...]:
        """Return what the bar shows between itself and the time left."""
        return DownloadColumn(), TextColumn("{task.fields[speed]}")

    def advance(self, n: int, n_rows: int | None = 0) -> None:
        """Count more bytes, and the rows in them."""
        super().advance(n, n_rows)
