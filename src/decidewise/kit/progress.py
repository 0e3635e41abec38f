"""Progress on standard error: a line for each slow piece of work, with its time left, shown only on a terminal.

A line is shown on a terminal or in a notebook with ipywidgets, and nowhere else, if its work takes longer than a
second. A thread does so: neither an import nor a first step that takes long is silent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from multiprocessing import parent_process
from threading import RLock, Timer
from time import perf_counter
from typing import Any, Self, TypeVar

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

Item = TypeVar("Item")
#: Seconds before a line is shown.
PATIENCE = 1.0
#: The most letters of a description, and of a bar, so that a line of 80 letters has enough for how far it is.
_WIDTH = 36
_silenced: list[bool] = []


def tracked(items: Collection[Item], description: str, *, patience: float = PATIENCE) -> Iterator[Item]:
    """Yield the items, with a line that counts them."""
    with Line(description, len(items), patience=patience) as line:
        for item in items:
            yield item
            line.advance()


@contextmanager
def silenced(silent: bool = True) -> Iterator[None]:
    """Show no lines for the work in this context, if `silent`."""
    if silent:
        _silenced.append(True)
    try:
        yield
    finally:
        if silent:
            _silenced.pop()


class Line:
    """A line that says what is done, how far it is and the time left; a context.

    There is `total` to do, if that is known, of which an earlier run has done `done`; the line is shown after some
    seconds of `patience`.
    """

    def __init__(
        self, description: str, total: int | None = None, *, done: int = 0, patience: float = PATIENCE
    ) -> None:
        self.description, self.total, self.patience = description, total, patience
        self.first = self.done = done
        self.begin = perf_counter()

    def __enter__(self) -> Self:
        _display.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        _display.remove(self)

    def advance(self, n: int = 1) -> None:
        """Count what has been done."""
        self.done += n
        _display.update(self)

    @property
    def amount(self) -> str:
        """How much is done, in words."""
        return "" if self.total is None else f"{self.done:,} of {self.total:,}"

    @property
    def time(self) -> str:
        """The time left; the time since the start if it is not known how much there is to do."""
        seconds = perf_counter() - self.begin
        if self.total is None:
            return str(timedelta(seconds=int(seconds)))
        if self.done == self.first:
            return "-:--:-- left"
        left = seconds * max(0.0, self.total - self.done) / (self.done - self.first)
        return f"{timedelta(seconds=round(left))} left"


class RowBar(Line):
    """A line that counts rows, with rows per second."""

    @property
    def amount(self) -> str:
        """How many rows are done, and how fast."""
        speed = (self.done - self.first) / max(perf_counter() - self.begin, 1e-9)
        return f"{self.done:,} rows, {speed:,.0f} rows/s"


class ByteBar(Line):
    """A line that counts bytes, with rows per second if the rows in them are counted."""

    n_rows = 0

    def advance(self, n: int = 1, n_rows: int = 0) -> None:
        """Count more bytes, and the rows in them."""
        self.n_rows += n_rows
        super().advance(n)

    @property
    def amount(self) -> str:
        """How many bytes are done, and how fast the rows are."""
        done = decimal(self.done)
        words = done if self.total is None else f"{done} of {decimal(self.total)}"
        speed = self.n_rows / max(perf_counter() - self.begin, 1e-9)
        return f"{words}, {speed:,.0f} rows/s" if self.n_rows else words


class _Display:
    """The place on standard error where all lines of the process are shown below each other."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.lock = RLock()
        self.timers: dict[Line, Timer] = {}
        self.tasks: dict[Line, TaskID] = {}
        self.progress: Progress | None = None

    def add(self, line: Line) -> None:
        if _silenced or parent_process() is not None:  # the lines of workers would overwrite each other
            return
        timer = self.timers[line] = Timer(line.patience, self._show, [line])
        timer.daemon = True
        if line.patience > 0:
            timer.start()
        else:
            self._show(line)

    def update(self, line: Line) -> None:
        with self.lock:
            if self.progress is not None and line in self.tasks:
                self.progress.update(self.tasks[line], completed=line.done)

    def remove(self, line: Line) -> None:
        with self.lock:
            timer = self.timers.pop(line, None)
            if timer is not None:
                timer.cancel()
            if self.progress is None or line not in self.tasks:
                return
            task = self.tasks.pop(line)
            if self.tasks:
                self.progress.remove_task(task)
            else:
                self.progress.stop()
                self.progress = None

    def _show(self, line: Line) -> None:
        console = Console(stderr=True)
        if not (console.is_terminal or console.is_jupyter):
            return
        with self.lock:
            if line not in self.timers:  # it has ended meanwhile
                return
            shown = self.progress or watched(
                TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, max_width=_WIDTH)),
                BarColumn(None, table_column=Column(max_width=_WIDTH)),  # as wide as there is place
                _Words("amount"),
                _Words("time"),
                console=console,
                transient=True,
            )
            self.tasks[line] = shown.add_task(line.description, total=line.total, completed=line.done, line=line)
            if self.progress is None:
                self.progress = shown
                shown.start()


class _Words(ProgressColumn):
    """What a line says of itself."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(table_column=Column(no_wrap=True))

    def render(self, task: Task) -> Text:
        return Text(getattr(task.fields["line"], self.name))


def watched(*columns: ProgressColumn, console: Console, **options: Any) -> Progress:
    """Return bars that never take what is printed to a file: Rich prints it above them, and so to the terminal.

    A notebook without ipywidgets cannot show any, and Rich would warn with every refresh: there they are not shown.
    """
    to_terminal = sys.stdout is not None and sys.stdout.isatty()
    hidden = console.is_jupyter and find_spec("ipywidgets") is None
    return Progress(*columns, console=console, redirect_stdout=to_terminal, disable=hidden, **options)


_display = _Display()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_display.reset)  # a thread of the parent may have held the lock
