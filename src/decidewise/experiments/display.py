"""What a run shows: tables that fill on a terminal, and a line from time to time anywhere else.

A display reads the store, so it sees rows as they are done, those of other runs on the same store too. Names are shown
as they are: whatever Rich would take for markup is text.
"""

from __future__ import annotations

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

from decidewise.errors import InputError
from decidewise.experiments.cells import Cell
from decidewise.experiments.periodic import repeated
from decidewise.experiments.rows import Row
from decidewise.experiments.store import Store

#: Seconds between two looks at the store, between two lines of a log, and for which a small screen shows one table.
_LOOK_EVERY = 1.0
_LOG_EVERY = 10.0
_TABLE_STAYS = 8.0


class Tally:
    """The state of a run: which rows are done, how fast they come, and what they say so far."""

    def __init__(self, cells: Sequence[Cell], rows: Sequence[Row]) -> None:
        self.total = len(cells)
        self.rows = {_place(row): row for row in rows}
        self.begun, self.stored = monotonic(), len(self.rows)
        # Of each table, the cells that each entry is the mean of: {(plan, problem): {(degree, samples): {label: 20}}}.
        self._layout: dict[tuple[str, str], dict[tuple[int | None, int], Counter[str]]] = {}
        for cell in cells:
            lines = self._layout.setdefault((cell.plan, cell.problem), {})
            lines.setdefault((cell.degree, cell.samples), Counter())[_label(cell.method.name, cell.method.mode)] += 1

    def show(self, rows: Sequence[Row]) -> None:
        """Take note of rows; those known already change nothing."""
        self.rows.update((_place(row), row) for row in rows)

    @property
    def failed(self) -> list[Row]:
        """The rows that failed."""
        return [row for row in list(self.rows.values()) if row.status == "failed"]

    def line(self) -> str:
        """Say how far the run is, how fast, and when it will be done."""
        done, seconds = len(self.rows), monotonic() - self.begun
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
        """Return the mean regrets so far, one table per problem; dim where trials are missing, bold for the best."""
        regrets = defaultdict(list)
        for row in list(self.rows.values()):  # a copy: the display has a thread of its own
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
    """Prints a line from time to time, and each failure at once."""

    def __init__(self, cells: Sequence[Cell], rows: Sequence[Row], console: Console) -> None:
        super().__init__(cells, rows)
        self.console, self.last = console, self.begun
        self._print(f"{self.stored:,} of {self.total:,} cells are done already")

    def show(self, rows: Sequence[Row]) -> None:
        new = [row for row in rows if _place(row) not in self.rows]
        super().show(new)
        for row in new:
            if row.status == "failed":
                self._print(describe(row))
        if new and (len(self.rows) == self.total or monotonic() - self.last > _LOG_EVERY):
            self.last = monotonic()
            self._print(self.line())

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


class _Screen(Tally):
    """Draws itself, as often as Rich asks for it."""

    def __rich_console__(self, console: Console, options: object) -> Iterator[Group]:
        tables = self.tables()
        if sum(len(table.rows) + 6 for table in tables) + 2 > console.height:
            tables = [tables[int(monotonic() / _TABLE_STAYS) % len(tables)]]  # they take turns
        yield Group(Text(self.line()), ProgressBar(self.total, len(self.rows), width=60), *tables)


@contextmanager
def display(cells: Sequence[Cell], store: Store, console: Console) -> Iterator[None]:
    """Show the progress of a run while the block lasts."""
    if not console.is_terminal:
        with _watching(_Log(cells, store.rows(cells, aside=False), console), cells, store):
            yield
        return
    screen = _Screen(cells, store.rows(cells, aside=False))
    with Live(screen, console=console, refresh_per_second=2, transient=True), _watching(screen, cells, store):
        yield
    console.print(Text(screen.line()), *screen.tables(), sep="\n")


@contextmanager
def _watching(tally: Tally, cells: Sequence[Cell], store: Store) -> Iterator[None]:
    def look() -> None:
        tally.show(store.rows(cells, aside=False))

    try:
        with repeated(look, seconds=_LOOK_EVERY):
            yield
    finally:
        with suppress(InputError):  # the run meets the same error, and raises it
            look()


def describe(row: Row) -> str:
    """Say which cell failed, and why."""
    degree = "" if row.degree is None else f"degree {row.degree}, "
    place = f"{row.plan}, {row.problem}, {degree}{row.samples} samples, trial {row.trial}"
    return f"{_label(row.method, row.mode)} failed ({place}): {' '.join(row.reason.split())}"


def _label(method: str, mode: str) -> str:
    return method if mode == "adam" else f"{method} {mode}"


def _place(row: Row) -> tuple[str, str, int | None, int, str, str, int]:
    return row.plan, row.problem, row.degree, row.samples, row.method, row.mode, row.trial


def _table(title: str, grid: list[list[Text]]) -> Table:
    if len(grid[0]) > len(grid) + 8:
        grid = [list(column) for column in zip(*grid, strict=True)]  # many methods are listed below each other
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
