"""Run all scripts of this folder, one after another, and write `docs/notes/benchmark_tables.md`.

Run: `make speed`, or `python speed/all.py [script ...]`. A script that fails or takes too long is a line of the
summary, and the others run all the same. `--resume` leaves out what the present commit has measured already, after an
interruption; `--quick` tries everything in small sizes, in a folder of its own, and leaves the page alone.
"""

import subprocess
import sys
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.table import Table

import page
from benchmark import Bench, circumstances, folder, lines_of, parser, write

#: In the order of the page.
SCRIPTS = (
    "fits",
    "shared_items",
    "generalized_linear",
    "solves",
    "problems",
    "linear_program",
    "quadratic_program",
    "conic_program",
    "against_pyepo",
    "lava_protocol",
    "losses",
    "trees",
    "choice",
    "compare",
    "growth",
    "streaming",
    "serve",
    "first_calls",
)
MOST_SECONDS = 15 * 60


def run(script, *, quick):
    """Run a script in a process of its own, and return its report; one that left none gets one that says why."""
    before, start = report_of(script, quick), perf_counter()
    command = [sys.executable, str(Path(__file__).with_name(f"{script}.py")), *(["--quick"] if quick else [])]
    try:
        code = subprocess.run(command, timeout=MOST_SECONDS, check=False).returncode
        reason = f"it ended with code {code}" if code else None
    except subprocess.TimeoutExpired:
        reason = f"it took more than {MOST_SECONDS / 60:.0f} minutes"
    report = report_of(script, quick)
    if report is None or report == before:
        report = Bench(script, script, quick).report("it wrote no report")
    elif reason is None:
        return report
    failed = report | {"failed": reason or report["failed"], "seconds": round(perf_counter() - start, 1)}
    write(failed)
    return failed


def report_of(script, quick):
    """Return the report of a script's last run, if there is one."""
    return next((report for report in page.read(folder(quick)) if report["script"] == script), None)


def is_done(report):
    """Return whether a report is of the present commit and complete."""
    return report is not None and not report["failed"] and report["commit"] == circumstances()["commit"]


def summary(reports):
    """Return the table that is printed at the end."""
    table = Table(title=f"{sum(report['seconds'] for report in reports) / 60:.1f} minutes in all")
    for heading in ("script", "minutes", "lines", "met", "missed"):
        table.add_column(heading)
    for report in reports:
        lines = lines_of(report)
        missed = [line.name for line in lines if line.met is False]
        what = "\n".join([*([f"FAILED: {report['failed']}"] if report["failed"] else []), *missed])
        met = str(sum(line.met is True for line in lines))
        table.add_row(report["script"], f"{report['seconds'] / 60:.1f}", str(len(lines)), met, what)
    return table


def main(arguments):
    unknown = [script for script in arguments.scripts if script not in SCRIPTS]
    if unknown:
        sys.exit(f"there is no script {unknown[0]!r}; there are {', '.join(SCRIPTS)}.")
    console = Console(width=None if sys.stdout.isatty() else 120)
    for script in () if arguments.page else arguments.scripts or SCRIPTS:
        known = report_of(script, arguments.quick)
        if arguments.resume and is_done(known):
            console.print(f"{script}: measured {known['date']}", style="bold", highlight=False)
            continue
        console.print(f"{script} ...", style="bold", highlight=False)
        run(script, quick=arguments.quick)
    reports = [report for script in SCRIPTS if (report := report_of(script, arguments.quick)) is not None]
    console.print(summary(reports))
    if not arguments.quick:
        page.write_page(reports)
        console.print(f"The page {page.PAGE.relative_to(page.ROOT)} has the figures.", highlight=False)
    return 1 if any(report["failed"] for report in reports) else 0


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("scripts", nargs="*", metavar="script", help="only these; by default all")
    options.add_argument("--resume", action="store_true", help="leave out what this commit has measured already")
    options.add_argument("--page", action="store_true", help="run nothing, only write the page from what there is")
    sys.exit(main(options.parse_args()))
