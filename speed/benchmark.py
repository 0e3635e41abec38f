"""State what a script of this folder claims: a line per comparison, printed as a table and kept as JSON in `out/speed`.

    with Bench(__file__, "Exact fits") as bench:
        ours, theirs = bench.time(fit, products)
        bench.claim("WISE", ours, theirs, peer="the bare products", at_most=1.25, same="both read all rows")

`Bench.time` runs the sides in turn, every other round in the opposite order, so that neither is always first after a
busy moment of the machine, and returns the median of each. A first call of each, which may compile or load, is not
counted. Processor time counts all threads of this process, but no other processes; wall time is what a user waits for.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "numpy", "scipy", "scikit-learn", "numba", "pyarrow", "highspy", "clarabel", "daqp", "ortools", "gurobipy", "pyepo",
    "cvxpy", "torch", "lightgbm", "dask", "fastapi",
)  # fmt: skip
CLOCKS = {"processor": process_time, "wall": perf_counter}
HEADINGS = ("what", "ours", "theirs", "by", "ratio", "target", "met", "equal work, remarks", "clock, rounds")
RIGHT = ("ours", "theirs", "ratio", "target")


@dataclass(frozen=True)
class Measured:
    """A figure: by default the median of some rounds, in seconds of a clock; `result` is what the work returned."""

    value: float
    clock: str = ""
    rounds: int = 1
    unit: str = "s"
    result: Any = None

    def per(self, n: float) -> "Measured":
        """Return the figure for each of n rows, edges or passes."""
        return replace(self, value=self.value / n)


@dataclass(frozen=True)
class Line:
    """One claim. The ratio is theirs over ours; but ours over theirs if it must be small, or their work is the limit.

    Without a peer, the targets bound our figure itself. `same` says what was compared to show equal work, and
    `is_same` whether it was equal; a line whose work was not equal never meets its target.
    """

    name: str
    ours: float | None
    unit: str = "s"
    theirs: float | None = None
    peer: str = ""
    at_most: float | None = None
    at_least: float | None = None
    same: str = ""
    is_same: bool = True
    limit: bool = False
    clock: str = ""
    rounds: str = "1"
    group: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times as fast as theirs ours is, or, of a limit, how many times as long it takes."""
        if self.ours is None or self.theirs is None:
            return None
        of_limit = self.limit or self.at_most is not None
        small, large = (self.theirs, self.ours) if of_limit else (self.ours, self.theirs)
        return large / small if small else float("inf")

    @property
    def met(self) -> bool | None:
        """Whether the target is met and the work was equal; None if there is neither a target nor a difference."""
        measured = self.ours if not self.peer else self.ratio
        bounded = self.at_most is not None or self.at_least is not None
        if measured is None or not bounded:
            return None if self.is_same else False
        high = self.at_most is None or measured <= self.at_most
        return high and (self.at_least is None or measured >= self.at_least) and self.is_same

    def cells(self) -> tuple[str, ...]:
        """Return what a table shows under `HEADINGS`."""
        unit = "" if self.peer else self.unit
        bounds = [(sign, bound) for sign, bound in (("≤", self.at_most), ("≥", self.at_least)) if bound is not None]
        target = " and ".join(f"{sign} {shown(bound, unit)}" for sign, bound in bounds)
        return (
            self.name,
            shown(self.ours, self.unit),
            shown(self.theirs, self.unit),
            self.peer,
            shown(self.ratio),
            target,
            {True: "yes", False: "NO", None: ""}[self.met],
            self.same,
            f"{self.clock}, {self.rounds}" if self.clock else "",
        )


def shown(value: float | None, unit: str = "") -> str:
    """Return a figure with three digits and, for seconds, the unit that suits it.

    >>> shown(0.00012, "s"), shown(1234.6), shown(None)
    ('120 µs', '1,235', '')
    """
    if value is None:
        return ""
    if unit == "s" and value:
        units = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
        scale, unit = next((pair for pair in units if abs(value) >= 0.9995 * pair[0]), units[-1])
        value /= scale
    digits = f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
    return f"{digits} {unit}".rstrip()


@dataclass
class Bench:
    """The claims of one script; leaving the context prints the tables.

    The file is written after every line, so that a script that is stopped keeps what it has measured.
    """

    script: str
    title: str
    quick: bool = False
    clock: str = "processor"
    rounds: int = 5
    warm_up: str = "one call of each side"
    lines: list[Line] = field(default_factory=list)
    group: str = ""

    def __post_init__(self) -> None:
        self.script = Path(self.script).stem
        self._begin, self._circumstances = perf_counter(), circumstances()

    def time(
        self, *works: Callable[[], Any], rounds: int | None = None, clock: str | None = None, warm: bool = True
    ) -> list[Measured]:
        """Run the works in turn, in alternating order, and return the median of each with its last result."""
        rounds, clock = rounds or self.rounds, clock or self.clock
        now, order = CLOCKS[clock], list(range(len(works)))
        results: list[Any] = [work() for work in works] if warm else [None] * len(works)
        seconds: list[list[float]] = [[] for _ in works]
        for _ in range(rounds):
            for side in order:
                start = now()
                results[side] = works[side]()
                seconds[side].append(now() - start)
            order.reverse()
        return [
            Measured(median(times), clock, rounds, result=result)
            for times, result in zip(seconds, results, strict=True)
        ]

    def claim(
        self,
        name: str,
        ours: Measured | float | None,
        theirs: Measured | float | None = None,
        *,
        unit: str | None = None,
        **fields: Any,
    ) -> Line:
        """Add a line; figures that are not timed are plain numbers with a unit."""
        sides = [
            side if isinstance(side, Measured | None) else Measured(side, unit=unit or "") for side in (ours, theirs)
        ]
        timed = next((side for side in sides if side is not None), Measured(0.0))
        values = [None if side is None else float(side.value) for side in sides]
        rounds = list(dict.fromkeys(str(side.rounds) for side in sides if side is not None))
        fields = {
            "clock": timed.clock,
            "rounds": " and ".join(rounds) or "1",
            "unit": unit or timed.unit,
            "group": self.group,
        } | fields
        fields["is_same"] = bool(fields.get("is_same", True))  # not a bool of NumPy
        line = Line(name, values[0], theirs=values[1], **fields)
        self.lines.append(line)
        write(self.report("it was stopped before its end"))
        Console(stderr=True, soft_wrap=True).print(
            f"  {line.name}: {', '.join(cell for cell in line.cells()[1:7] if cell)}", style="dim", highlight=False
        )
        return line

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        failed = None if error is None else traceback.format_exception_only(error)[-1].strip()
        report = self.report(failed)
        console = Console(width=None if sys.stdout.isatty() else 160)
        for table in tables(report):
            console.print(table)
        write(report)

    def report(self, failed: str | None = None) -> dict[str, Any]:
        """Return all that is known: lines, machine, versions, date and commit."""
        return {
            "script": self.script,
            "title": self.title,
            "warm_up": self.warm_up,
            "seconds": round(perf_counter() - self._begin, 1),
            "failed": failed,
            "quick": self.quick,
            **self._circumstances,
            "lines": [asdict(line) | {"ratio": line.ratio, "met": line.met} for line in self.lines],
        }


def peak_megabytes() -> float:
    """Return the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def parser(description: str) -> argparse.ArgumentParser:
    """Return the parser of a script's arguments, with `--quick`."""
    formatter = argparse.RawDescriptionHelpFormatter
    found = argparse.ArgumentParser(description=description, formatter_class=formatter)
    found.add_argument("--quick", action="store_true", help="small sizes, to try the script; kept in out/speed/quick")
    return found


def lines_of(report: dict[str, Any]) -> list[Line]:
    """Return the lines of a report that was read from its file."""
    return [Line(**{name: line[name] for name in Line.__dataclass_fields__}) for line in report["lines"]]


def groups_of(report: dict[str, Any]) -> dict[str, list[Line]]:
    """Return the lines by the title of their table."""
    groups: dict[str, list[Line]] = {}
    for line in lines_of(report):
        groups.setdefault(line.group or report["title"], []).append(line)
    return groups


def tables(report: dict[str, Any]) -> list[Table]:
    """Return the tables of a report, for the terminal."""
    found = []
    for title, lines in groups_of(report).items():
        table = Table(title=title)
        for heading in HEADINGS:
            table.add_column(heading, justify="right" if heading in RIGHT else "left")
        for line in lines:
            table.add_row(*line.cells())
        found.append(table)
    return found


def write(report: dict[str, Any]) -> Path:
    """Write a report to its file."""
    path = folder(report["quick"]) / f"{report['script']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def folder(quick: bool) -> Path:
    """Return the folder of the reports."""
    return ROOT / "out" / "speed" / "quick" if quick else ROOT / "out" / "speed"


def circumstances() -> dict[str, Any]:
    """Return machine, versions, date and commit."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "commit": commit(),
        "machine": {
            "processor": _first_line("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
            "cores": os.process_cpu_count() if sys.version_info >= (3, 13) else len(_affinity()),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {"python": platform.python_version()} | _versions(),
    }


def commit() -> str:
    """Return the commit of the code, marked if files have changed since."""
    git = ["git", "-C", str(ROOT)]
    try:
        name = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no", "--", "src", "speed"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name.strip() + (" with changes" if changed else "")


def _affinity() -> Any:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)


def _first_line(path: str, key: str) -> str:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
