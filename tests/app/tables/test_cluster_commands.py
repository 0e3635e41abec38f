"""The commands on tables against a real cluster: a scheduler and workers, in processes of their own."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client
from typer.testing import CliRunner

import decidewise
from decidewise.app.cli.app import app
from decidewise.app.tables.new_rows import NewRows
from decidewise.kit.errors import OtherCodeError
from decidewise.operate.distributed import workers_at

PROBLEM = 'kind = "top_k"\nn = 3\nk = 1\nsense = "min"\n'


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.output, result.exc_info)
    return result


def start(*arguments, path=None):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH")]))}
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler" if arguments[0] == "scheduler" else
         "distributed.cli.dask_worker", *map(str, arguments[1:])],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def start_scheduler(folder):
    file = folder / "scheduler.json"
    process = start("scheduler", "--port", 0, "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", file)
    for _ in range(600):
        if file.exists() and file.read_text().strip():
            return process, json.loads(file.read_text())["address"]
        time.sleep(0.1)
    raise TimeoutError("the scheduler did not start")


def start_worker(address, path=None):
    return start("worker", address, "--nthreads", 1, "--no-dashboard", "--no-nanny", path=path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    rng = np.random.default_rng(0)
    x = rng.normal(size=5_000)
    costs = np.exp(1 + 0.3 * x[:, None] * [1, -1, 0.5] + rng.normal(0, 0.1, (5_000, 3)))
    lines = [",".join(f"{value:.6g}" for value in row) for row in np.column_stack([x, costs])]
    heading = "x,cost_a,cost_b,cost_c\n"
    (folder / "large.csv").write_text(heading + "\n".join(lines) + "\n")
    (folder / "small.csv").write_text(heading + "\n".join(lines[:60]) + "\n")
    (folder / "problem.toml").write_text(PROBLEM)
    call = ("fit", folder / "small.csv", "-p", folder / "problem.toml", "--model", "wise", "-q")
    run(*call, "--out", folder / "m.dw")
    return folder


WORKERS = []


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler with one worker; tests may add others to `WORKERS`."""
    scheduler, address = start_scheduler(tmp_path_factory.mktemp("scheduler"))
    WORKERS.append(start_worker(address))
    yield address
    for process in (*WORKERS, scheduler):
        process.kill()
        process.wait()


def test_the_same_bytes_as_without_a_cluster(folder, cluster, tmp_path):
    problem = ("-p", folder / "problem.toml")
    for place, more in (("here", ()), ("there", ("--cluster", cluster))):
        decide = ("decide", folder / "m.dw", folder / "large.csv", *problem, *more)
        run(*decide, "--out", tmp_path / f"{place}.csv")
        run(*decide, "--out", tmp_path / f"{place}-blocks.csv", "--stream")
        run("fit", folder / "small.csv", *problem, *more, "--out", tmp_path / f"{place}.dw", "--max-solves", 2_000)
        evaluated = run("evaluate", folder / "m.dw", folder / "large.csv", *problem, *more, "--json").stdout
        (tmp_path / f"{place}.json").write_text(evaluated)
    for name in ("{}.csv", "{}-blocks.csv", "{}.dw", "{}.json"):
        here, there = (tmp_path / name.format(place) for place in ("here", "there"))
        assert here.read_bytes() == there.read_bytes(), name
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "here-blocks.csv").read_bytes()


@pytest.mark.parametrize("command", ["compare", "diagnose", "predict"])
def test_other_commands_take_a_cluster(folder, cluster, tmp_path, command):
    if command == "predict":
        run("predict", folder / "m.dw", folder / "small.csv", "--cluster", cluster, "--out", tmp_path / "p.csv")
        return
    call = (command, folder / "small.csv", "-p", folder / "problem.toml", "--max-solves", 1_000, "--json")
    here, there = (
        json.loads(run(*call, *(["--out", tmp_path / "c.html"] if command == "compare" else []), *more).stdout)
        for more in ((), ("--cluster", cluster))
    )
    if command == "compare":
        assert there["headline"] == here["headline"]
        assert [row["regret percent"] for row in there["models"]] == [row["regret percent"] for row in here["models"]]
    else:
        assert {key for key in here if here[key] != there[key]} <= {"seconds"}


@pytest.mark.parametrize("address", ["nonsense", "tcp://127.0.0.1:9"])
def test_no_scheduler_is_a_sentence(folder, tmp_path, address):
    call = ("decide", folder / "m.dw", folder / "small.csv", "-p", folder / "problem.toml", "--cluster", address)
    with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}):
        said = run(*call, "--out", tmp_path / "d.csv", code=2).stderr
    assert f"Error: no Dask scheduler at '{address}'" in said
    assert list(tmp_path.iterdir()) == []


class Slow:
    """Work that takes a while, and says which process does it."""

    def __init__(self, seconds, deadly=None):
        self.seconds, self.deadly = seconds, deadly

    def __call__(self, item):
        if self.deadly is not None and item == 5 and not Path(self.deadly).exists():
            Path(self.deadly).touch()
            os._exit(1)
        time.sleep(self.seconds)
        return os.getpid(), item * 1.5


def by_value(work):
    """Workers do not have this module: send its objects as they are."""
    from distributed.protocol.pickle import cloudpickle  # noqa: PLC0415

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return work


def numbers(n):
    yield from range(n)


def test_a_worker_that_joins_later_helps(cluster):
    pids, found, helpers = set(), [], []
    end = time.monotonic() + 60

    def items():  # until two workers have been seen
        number = 0
        while len(pids) < 2 and time.monotonic() < end:
            yield number
            number += 1

    try:
        with workers_at(cluster) as workers:
            for _, (pid, result) in workers.map_in_order(by_value(Slow(0.05)), items()):
                pids.add(pid)
                found.append(result)
                if len(found) == 3:
                    helpers.append(start_worker(cluster))
    finally:
        for helper in helpers:
            helper.kill()
            helper.wait()
    assert len(pids) == 2
    assert found == [item * 1.5 for item in range(len(found))]


def test_a_worker_killed_in_the_middle_changes_nothing(cluster, tmp_path):
    WORKERS.append(start_worker(cluster))
    with workers_at(cluster) as workers:
        workers.client.wait_for_workers(2, timeout=60)
        work = by_value(Slow(0.02, str(tmp_path / "died")))
        found = [result for _, (_, result) in workers.map_in_order(work, numbers(40))]
    assert (tmp_path / "died").exists()
    assert found == [item * 1.5 for item in range(40)]


def test_a_worker_with_other_code_is_refused_at_once_and_later(folder, cluster, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(Path(decidewise.__file__).parent, other / "decidewise")
    with (other / "decidewise" / "measure.py").open("a") as file:
        file.write("\n# another version\n")
    with workers_at(cluster) as workers, Client(cluster) as client:
        n_before = len(client.nthreads())
        stranger = start_worker(cluster, path=str(other))
        try:
            client.wait_for_workers(n_before + 1, timeout=60)
            with pytest.raises(OtherCodeError, match=r"has other code .* Install the same versions everywhere"):
                list(workers.map_in_order(by_value(Slow(0.05)), numbers(60)))  # it joined later
            call = ("decide", folder / "m.dw", folder / "small.csv", "-p", folder / "problem.toml")
            said = run(*call, "--cluster", cluster, "--out", tmp_path / "d.csv", code=2).stderr
            assert "Error: the worker tcp://" in said
            assert "has other code (decidewise " in said
            assert not (tmp_path / "d.csv").exists()
        finally:
            stranger.kill()
            stranger.wait()


def test_a_scheduler_that_goes_away_is_a_sentence_and_leaves_no_file(folder, tmp_path, monkeypatch):
    scheduler, address = start_scheduler(tmp_path)
    worker = start_worker(address)
    out = tmp_path / "out"
    out.mkdir()
    real = NewRows.results

    def results(self, *arguments, **options):
        for number, result in enumerate(real(self, *arguments, **options)):
            if number == 0:
                dask.config.set({"distributed.comm.timeouts.connect": "2s"})  # nobody will answer
                for process in (worker, scheduler):
                    process.kill()
                    process.wait()
            yield result

    monkeypatch.setattr(NewRows, "results", results)
    monkeypatch.setattr("decidewise.app.tables.new_rows._BLOCK_ROWS", 100)
    call = ("decide", folder / "m.dw", folder / "large.csv", "-p", folder / "problem.toml", "--out", out / "d.csv")
    with dask.config.set({"distributed.comm.timeouts.connect": "30s", "distributed.comm.retry.count": 0}):
        said = run(*call, "--cluster", address, code=2).stderr
    assert f"lost the Dask scheduler at '{address}'" in said
    assert list(out.iterdir()) == []


def test_a_cluster_without_workers_is_waited_for_with_a_word(tmp_path, monkeypatch):
    monkeypatch.setattr("decidewise.operate.distributed.workers._LOOK_SECONDS", 0.2)
    scheduler, address = start_scheduler(tmp_path)
    said, helpers = [], []

    def say(sentence):
        said.append(sentence)
        helpers.append(start_worker(address))

    try:
        with workers_at(address, say) as workers:
            found = [result for _, (_, result) in workers.map_in_order(by_value(Slow(0.0)), numbers(3))]
    finally:
        for process in (*helpers, scheduler):
            process.kill()
            process.wait()
    assert found == [0.0, 1.5, 3.0]
    assert said == [f"the cluster at {address} has no workers; waiting for some."]
