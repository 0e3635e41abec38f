"""What holds for the tests of both trees, and a browser to look at pages with."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

# A shell that starts the tests in the background has them ignore Ctrl-C, which some of them send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# These examples need a tool that `make test-core` does not install.
TOOLS = {
    "problems/readers/cvxpy": "cvxpy",
    "problems/readers/gurobi": "gurobipy",
    "problems/readers/linopy": "linopy",
    "problems/readers/pyomo": "pyomo",
    "solvers/others": "ortools",
}
collect_ignore = [f"src/decidewise/{file}.py" for file, tool in TOOLS.items() if not find_spec(tool)]


@pytest.fixture
def as_everywhere():
    """Return a function of what was said and of a complaint: both without what differs by system."""

    def without(said, complaint):
        if os.name != "posix":
            complaint = re.sub(r"(No such file|Is a directory|File exists|Not a directory).*", "", complaint)
        return said.replace(os.sep, "/"), complaint

    return without


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
