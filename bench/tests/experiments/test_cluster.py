"""Against a real cluster: a scheduler and two workers, in processes of their own."""

import os
import subprocess
import sys
import threading
import time

import dask
import pytest
from distributed import Client
from typer.testing import CliRunner

from decidewise import OtherCodeError
from decidewise.app.cli.app import app
from decidewise_bench.experiments import run
from decidewise_bench.experiments.cluster import workers_of

CLUSTER = """
import sys
from distributed import LocalCluster

with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()  # until the test is over
"""

METHODS = """
import os
from joblib import Parallel, delayed
from sklearn.linear_model import LinearRegression

def unlucky(problem, *, random_state):
    raise ArithmeticError("no luck today")

def deadly(problem, *, random_state):
    os._exit(1)

class Loop(LinearRegression):
    def fit(self, X, y):
        if set(Parallel()(delayed(os.getpid)() for _ in range(20))) != {os.getpid()}:
            raise RuntimeError("others were at work")
        return super().fit(X, y)

def loop(problem, *, random_state):
    return Loop()
"""


def start_cluster(folder):
    # A task is given up with the first worker that it kills, not the fourth.
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    settings = {"PYTHONPATH": path, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    return subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        env=os.environ | settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "cluster_methods.py").write_text(METHODS)
    return folder


@pytest.fixture(scope="module")
def cluster(folder):
    with start_cluster(folder) as process:  # which closes its input, and waits
        yield process.stdout.readline().strip()


@pytest.fixture
def odd(tiny, folder, monkeypatch):
    """Put a method of the module above into the tiny plan."""
    monkeypatch.syspath_prepend(folder)

    def replace(method):
        text = tiny.plan.read_text().replace(
            '{ name = "SPO+", loss = "spo+" }', f'{{ name = "Odd", model = "cluster_methods:{method}" }}'
        )
        tiny.plan.write_text(text)
        return tiny

    return replace


def results(rows):
    return [(row.degree, row.method, row.trial, row.seed, row.status, row.regret, row.floor) for row in rows]


def test_rows_are_those_of_a_local_run_and_a_second_run_computes_nothing(tiny, cluster):
    cells, store = tiny.cells(), tiny.store()
    run(cells, store, jobs=1)
    local = store.rows(cells)
    store.set_aside(cells)
    threads = set(threading.enumerate())
    arguments = ["bench", "run", str(tiny.plan), "--store", str(tiny.store_path), "--cluster", cluster]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    rows = store.rows(cells)
    assert results(rows) == results(local)
    assert {row.status for row in rows} == {"ok"}
    assert "12 of 12 cells are done already" in CliRunner().invoke(app, arguments).stdout
    assert store.rows(cells) == rows  # seconds and all
    assert not [t for t in set(threading.enumerate()) - threads if "loop" in t.name.lower()]  # no connection is left


def test_rows_are_stored_as_their_draws_finish(tiny, cluster, monkeypatch):
    cells, store = tiny.cells(trials=6), tiny.store()
    release, stored = type(store).release, []

    def note(self, name, done=None):
        stored.append(len(self.rows(cells)))
        release(self, name, done)

    monkeypatch.setattr(type(store), "release", note)
    run(cells, store, cluster=cluster)
    assert stored == [*range(3, 37, 3), 36]  # a draw has three methods; at last the run gives up all its claims


def test_tasks_are_drawn_only_as_workers_become_free(cluster):
    drawn = []
    tasks = ((drawn.append(i) or i,) for i in range(50))
    with workers_of(cluster, print) as starmap:
        results = starmap(abs, tasks)
        first = next(results)
        assert len(drawn) == 4  # two a thread
        assert sorted([first, *results]) == list(range(50))


def test_a_cluster_without_workers_is_waited_for_with_a_word(cluster, monkeypatch):
    monkeypatch.setattr("decidewise_bench.experiments.cluster._COUNT_SECONDS", 0.0)
    monkeypatch.setattr(Client, "nthreads", lambda self: {})
    said = []
    with workers_of(cluster, said.append) as starmap:
        assert list(starmap(time.sleep, iter([(0.3,)]))) == [None]
    assert said == [f"the cluster at {cluster} has no workers; waiting for some."]


def test_a_failing_method_is_a_row_and_the_others_go_on(odd, cluster):
    bench = odd("unlucky")
    cells, store = bench.cells(), bench.store()
    run(cells, store, cluster=cluster)
    rows = store.rows(cells)
    assert [row.status for row in rows] == ["ok", "failed", "ok"] * 4
    assert {row.reason for row in rows if row.status == "failed"} == {"ArithmeticError: no luck today"}


def test_parallel_loops_of_a_method_stay_in_their_worker(odd, cluster):
    bench = odd("loop")
    cells, store = bench.cells(), bench.store()
    run(cells, store, cluster=cluster)
    assert {row.reason for row in store.rows(cells)} == {""}


def test_a_worker_with_other_code_is_refused(tiny, cluster):
    with pytest.raises(OtherCodeError, match=r"the run began with 0.0.0\+000000000000"):
        run(tiny.cells(version="0.0.0+000000000000"), tiny.store(), cluster=cluster)


@pytest.mark.parametrize("address", ["nonsense", "carrier-pigeon://roof:1", "tcp://127.0.0.1:9"])
def test_no_scheduler_is_a_sentence_and_leaves_no_client_open(tiny, address, monkeypatch):
    clients = []

    class Noted(Client):
        def __init__(self, *args, **kwargs):
            clients.append(self)
            super().__init__(*args, **kwargs)

    monkeypatch.setattr("distributed.Client", Noted)
    arguments = ["bench", "run", str(tiny.plan), "--store", str(tiny.store_path), "--cluster", address]
    with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}):
        result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert f"Error: no Dask scheduler at '{address}'" in result.stderr
    assert [client.status for client in clients] in ([], ["closed"])


def test_a_method_that_takes_its_worker_down_ends_the_run_with_a_sentence(odd, cluster):
    bench = odd("deadly")
    arguments = ["bench", "run", str(bench.plan), "--store", str(bench.store_path), "--cluster", cluster]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "Error: a worker died" in result.stderr
    assert bench.store().claim(bench.cells(), "next") == bench.cells()  # claims end with the run
