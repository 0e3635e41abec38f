"""What holds for all tests; made-up rows, of the shape of the paper; and a browser to look at pages with."""

import csv
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from decidewise_bench.paper.report import write_report

# A shell that starts the tests in the background has them ignore Ctrl-C, which some of them send.
signal.signal(signal.SIGINT, signal.default_int_handler)

SHAPES = {
    "shortest_path": ((1, 2, 4, 6, 8), (200, 400, 800, 1600), ("MSE", "WISE", "SPO+", "PFY", "DBB", "LAVA")),
    "knapsack": ((1, 2, 4), (100, 200, 400, 800), ("MSE", "WISE", "SPO+", "PFY", "DBB", "CaVE", "LAVA")),
    "portfolio": ((1, 3, 7), (200, 400, 800, 1600), ("MSE", "WISE", "SPO+", "PFY", "DBB")),
}


@pytest.fixture
def as_everywhere():
    """Return a function of what was said and of a complaint: both without what differs by system."""

    def without(said, complaint):
        if os.name != "posix":
            complaint = re.sub(r"(No such file|Is a directory|File exists|Not a directory).*", "", complaint)
        return said.replace(os.sep, "/"), complaint

    return without


def make_row(**changes):
    row = {
        "plan": "knapsack", "problem": "knapsack", "degree": 1, "samples": 100, "method": "WISE", "mode": "adam",
        "trial": 0, "regret": 12.0, "floor": 10.0, "label_seconds": 0.0, "train_seconds": 0.1, "evaluate_seconds": 0.01,
        "n_solves": 0, "seed": 42, "version": "0.1.0", "machine": "a machine", "status": "ok", "reason": "",
    }  # fmt: skip
    return row | changes


@pytest.fixture
def row():
    return make_row


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """A folder with published numbers for the paper's 264 cells; the numbers themselves are made up."""
    folder = tmp_path_factory.mktemp("published")
    rng = np.random.default_rng(0)
    for problem, (degrees, samples, methods) in SHAPES.items():
        scale = 0.08 if problem == "portfolio" else 1.0
        with (folder / f"{problem}.csv").open("w", newline="") as file:
            timed = ["seconds_mean", "seconds_std"] if problem == "shortest_path" else []
            writer = csv.writer(file)
            writer.writerow(["degree", "samples", "method", "regret_mean", "regret_std", *timed])
            for degree in degrees:
                for n in samples:
                    for rank, method in enumerate(methods):
                        mean = scale * (8 + rank + degree / 2 + 100 / n + rng.uniform(0, 0.3))
                        clock = [f"{(1 + 40 * (rank > 1)) * n / 100:.2f}", "0.10"] if timed else []
                        writer.writerow([degree, n, method, f"{mean:.2f}", f"{scale * 0.4:.2f}", *clock])
    return folder


@pytest.fixture(scope="session")
def rows(published):
    """Two trials of every published cell, close to its mean, with exact rows for MSE and WISE."""
    made = []
    for problem in SHAPES:
        for line in csv.DictReader((published / f"{problem}.csv").read_text().splitlines()):
            free = line["method"] in ("MSE", "WISE")
            for mode in ("adam", "exact") if free else ("adam",):
                for trial in range(2):
                    regret = float(line["regret_mean"]) + float(line["regret_std"]) * (trial - 0.5) / 10
                    n = int(line["samples"])
                    made.append(
                        make_row(
                            plan=problem, problem=problem, degree=int(line["degree"]), samples=n, method=line["method"],
                            mode=mode, trial=trial, regret=regret, floor=0.5 * regret, train_seconds=n / 1e4,
                            n_solves=0 if free else 101 * n,
                        )
                    )  # fmt: skip
    return pa.Table.from_pylist(made)


@pytest.fixture(scope="session")
def report(rows, published, tmp_path_factory):
    """A report of a few settings of the shortest path, among published numbers that are mostly not run yet."""
    few = [
        row
        for row in rows.to_pylist()
        if row["problem"] == "shortest_path" and row["degree"] in (1, 8) and row["samples"] in (400, 1600)
    ]
    return write_report(pa.Table.from_pylist(few), tmp_path_factory.mktemp("report"), published)


@pytest.fixture(scope="session")
def contest_report(rows, published, tmp_path_factory):
    """A report of nothing but the choice among models, on every row of the shortest path."""
    theirs = [row for row in rows.to_pylist() if row["problem"] == "shortest_path" and row["mode"] == "exact"]
    names = {"MSE": "SPO+ same model", "WISE": "WISE CV"}
    made = [row | {"plan": "better", "mode": "cv", "method": names[row["method"]]} for row in theirs]
    return write_report(pa.Table.from_pylist(made), tmp_path_factory.mktemp("contest"), published)


BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Browser:
    """A page in headless Chromium, driven by its debugging protocol through a pair of pipes."""

    def __init__(self, executable: str, profile: Path) -> None:
        import fcntl  # noqa: PLC0415 - not on Windows

        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        # The browser speaks on its file descriptors 3 and 4; the pipes are moved there from numbers out of the way.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
        move = "import os, sys; [os.dup2(int(end), 3 + i) for i, end in enumerate(sys.argv[1:3])]"
        command = [sys.executable, "-c", f"{move}; os.execv(sys.argv[3], sys.argv[3:])", *map(str, ends), executable]
        flags = [
            "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe",
            f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([*command, *flags], pass_fds=ends, **quiet)
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self._ids = count(1)
        self._rest = b""
        self._session: str | None = None
        self.events: list[dict] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params):
        """Send one command and return its result; events that come in between are kept."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        for answer in self._messages():
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)
        raise AssertionError("the browser went away, or has said nothing for a minute")

    def open(self, page: Path) -> None:
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.run("1")
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def run(self, script: str):
        """Evaluate an expression in the page and return its value."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def complaints(self) -> list[dict]:
        """Return exceptions, console errors and warnings, and every request for anything but the page itself."""
        noisy = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        requests = [e for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [e for e in self.events if e.get("method") in noisy] + requests[1:]

    def close(self) -> None:
        self._session = None
        self.call("Browser.close")
        self._process.wait(timeout=30)
        os.close(self._out)
        os.close(self._in)

    def _messages(self) -> Iterator[dict]:
        while True:
            while b"\0" in self._rest:
                message, self._rest = self._rest.split(b"\0", 1)
                yield json.loads(message)
            ready, _, _ = select.select([self._in], [], [], 60)
            received = os.read(self._in, 1 << 16) if ready else b""
            if not received:
                return
            self._rest += received


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        pytest.skip("no Chromium here: as root, `.ci/chromium` installs it")
    pytest.importorskip("fcntl", reason="the browser is reached by pipes that Windows lacks")
    opened = Browser(executable, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()
