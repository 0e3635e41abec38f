"""The progress of a run: tables that fill on a terminal, or a log line every few seconds elsewhere.

A display polls the store, so it also shows the rows of other runs on the same store. Names are shown literally, never
interpreted as Rich markup.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from statistics import fmean
from time import monotonic

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from decidewise.kit.errors import InputError
from decidewise_bench.experiments.cells import Cell
from decidewise_bench.experiments.periodic import repeated
from decidewise_bench.experiments.rows import Row
from decidewise_bench.experiments.store import Store

#: Seconds between two reads of the store.
_POLL_SECONDS = 1.0
#: Seconds between two lines of the log.
_LOG_SECONDS = 10.0
#: Seconds for which a terminal too small for all tables shows one of them.
_TABLE_SECONDS = 8.0


class Tally:
    """The state of a run: its finished rows, their rate, and their mean regrets so far."""

    def __init__(self, cells: Sequence[Cell], rows: Sequence[Row]) -> None:
        self.total = len(cells)
        self.rows = {_place(row): row for row in rows}
        self.started, self.stored = monotonic(), len(self.rows)
        # The number of cells behind each entry of each table: {(plan, problem): {(degree, samples): {label: 20}}}.
        self._layout: dict[tuple[str, str], dict[tuple[int | None, int], Counter[str]]] = {}
        for cell in cells:
            lines = self._layout.setdefault((cell.plan, cell.problem), {})
            lines.setdefault((cell.degree, cell.samples), Counter())[_label(cell.method.name, cell.method.mode)] += 1

    def update(self, rows: Sequence[Row]) -> None:
        """Add rows; rows that were added before change nothing."""
        self.rows.update((_place(row), row) for row in rows)

    @property
    def failed(self) -> list[Row]:
        """The rows that failed."""
        return [row for row in list(self.rows.values()) if row.status == "failed"]

    def line(self) -> str:
        """Return the progress of the run, its rate and the time left, as one line."""
        done, seconds = len(self.rows), monotonic() - self.started
        rate = (done - self.stored) / max(seconds, 1e-9)
        parts = [f"{done:,} of {self.total:,} cells", f"{rate:.1f} per second"]
        if done == self.total:
            parts.append(f"{timedelta(seconds=round(seconds))} in all")
        elif rate > 0:
            parts.append(f"{timedelta(seconds=round((self.total - done) / rate))} left")
        if self.failed:
            parts.append(f"{len(self.failed)} failed")
        return ", ".join(parts)

    def tables(self) -> list[Table]:
        """Return the mean regrets so far, one table per problem; dim if trials are missing, bold for the best."""
        regrets = defaultdict(list)
        for row in list(self.rows.values()):  # a copy, because another thread adds rows
            if row.regret is not None:
                regrets[row.plan, row.problem, row.degree, row.samples, _label(row.method, row.mode)].append(row.regret)
        tables = []
        for (plan, problem), lines in self._layout.items():
            labels = list(dict.fromkeys(label for counts in lines.values() for label in counts))
            has_degrees = any(degree is not None for degree, _ in lines)
            keys = [Text("degree")] * has_degrees + [Text("samples")]
            grid = [[*keys, *map(Text, labels)]]
            for (degree, samples), counts in sorted(lines.items(), key=lambda line: (line[0][0] or 0, line[0][1])):
                entries = [regrets[plan, problem, degree, samples, label] for label in labels]
                best = min((fmean(entry) for entry in entries if entry), default=None)
                shown = [_entry(e, counts[label], best) for e, label in zip(entries, labels, strict=True)]
                start = [Text(str(degree))] * has_degrees + [Text(str(samples))]
                grid.append([*start, *shown])
            tables.append(_table(problem if problem == plan else f"{plan}: {problem}", grid))
        return tables


class _Log(Tally):
    """Prints a line every `_LOG_SECONDS` at most, and each failure at once."""

    def __init__(self, cells: Sequence[Cell], rows: Sequence[Row], console: Console) -> None:
        super().__init__(cells, rows)
        self.console, self.last = console, self.started
        self._print(f"{self.stored:,} of {self.total:,} cells are done already")

    def update(self, rows: Sequence[Row]) -> None:
        new = [row for row in rows if _place(row) not in self.rows]
        super().update(new)
        for row in new:
            if row.status == "failed":
                self._print(describe(row))
        if new and (len(self.rows) == self.total or monotonic() - self.last > _LOG_SECONDS):
            self.last = monotonic()
            self._print(self.line())

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


class _Screen(Tally):
    """Shows the tables live; Rich calls it to redraw."""

    def __rich_console__(self, console: Console, options: object) -> Iterator[Group]:
        tables = self.tables()
        if sum(len(table.rows) + 6 for table in tables) + 2 > console.height:
            tables = [tables[int(monotonic() / _TABLE_SECONDS) % len(tables)]]  # one table at a time, in turn
        yield Group(Text(self.line()), ProgressBar(self.total, len(self.rows), width=60), *tables)


@contextmanager
def display(cells: Sequence[Cell], store: Store, console: Console) -> Iterator[None]:
    """Show the progress of a run for the duration of the block."""
    if not console.is_terminal:
        with _polling(_Log(cells, store.rows(cells, aside=False), console), cells, store):
            yield
        return
    screen = _Screen(cells, store.rows(cells, aside=False))
    live = Live(
        screen,
        console=console,
        refresh_per_second=2,
        transient=True,
        redirect_stderr=sys.stderr is not None and sys.stderr.isatty(),  # what goes to a file stays there
    )
    with live, _polling(screen, cells, store):
        yield
    console.print(Text(screen.line()), *screen.tables(), sep="\n")


@contextmanager
def _polling(tally: Tally, cells: Sequence[Cell], store: Store) -> Iterator[None]:
    """Update the tally from the store every `_POLL_SECONDS` during the block, and once at its end."""

    def poll() -> None:
        tally.update(store.rows(cells, aside=False))

    try:
        with repeated(poll, seconds=_POLL_SECONDS):
            yield
    finally:
        with suppress(InputError):  # the run gets the same error from the store, and raises it
            poll()


def describe(row: Row) -> str:
    """Return a line that says which cell failed, and why."""
    degree = "" if row.degree is None else f"degree {row.degree}, "
    place = f"{row.plan}, {row.problem}, {degree}{row.samples} samples, trial {row.trial}"
    return f"{_label(row.method, row.mode)} failed ({place}): {' '.join(row.reason.split())}"


def _label(method: str, mode: str) -> str:
    return method if mode == "adam" else f"{method} {mode}"


def _place(row: Row) -> tuple[str, str, int | None, int, str, str, int]:
    return row.plan, row.problem, row.degree, row.samples, row.method, row.mode, row.trial


def _table(title: str, grid: list[list[Text]]) -> Table:
    if len(grid[0]) > len(grid) + 8:
        grid = [list(column) for column in zip(*grid, strict=True)]  # list many methods below each other
    first, *others = grid[0]
    table = Table(Column(first), *(Column(heading, justify="right") for heading in others), title=Text(title))
    for line in grid[1:]:
        table.add_row(*line)
    return table


def _entry(regrets: Sequence[float], expected: int, best: float | None) -> Text:
    if not regrets:
        return Text()
    style = ["dim"] * (len(regrets) < expected) + ["bold green"] * (fmean(regrets) == best)
    return Text.assemble((f"{fmean(regrets):.2f}", " ".join(style)))
