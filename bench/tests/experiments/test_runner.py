import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from decidewise import OtherCodeError
from decidewise_bench.experiments import cells_of_all, read_plan, run
from decidewise_bench.experiments.cells import compute


def results(rows):
    """What must be the same whenever and wherever a row is computed."""
    return [(row.problem, row.degree, row.method, row.mode, row.trial, row.seed, row.regret, row.floor) for row in rows]


def wait_for(condition, *, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def members(group):
    """The processes of a session that are left."""
    found = subprocess.run(["ps", "-o", "pid=", "-s", str(group)], capture_output=True, text=True, check=False)
    return map(int, found.stdout.split())


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_run_computes_every_cell_once_and_then_nothing(tiny, monkeypatch):
    cells, store = tiny.cells(), tiny.store()
    run(cells, store, jobs=1)
    rows = store.rows(cells)
    assert len(rows) == len(cells)
    assert {row.status for row in rows} == {"ok"}
    assert all(row.regret > 0 and row.floor > 0 for row in rows)
    monkeypatch.setattr("decidewise_bench.experiments.runner.compute", None)  # calling it would fail
    run(cells, store, jobs=1)
    assert store.rows(cells) == rows  # seconds and all


def test_workers_give_the_same_results_as_this_process(tiny):
    cells, store = tiny.cells(), tiny.store()
    run(cells, store, jobs=1)
    here = store.rows(cells)
    run(cells, store, jobs=2, anew="all")
    assert results(store.rows(cells)) == results(here)
    assert store.rows(cells) != here  # their seconds


def test_fewer_trials_first_and_the_others_later(tiny):
    few, all_cells, store = tiny.cells(trials=1), tiny.cells(), tiny.store()
    run(few, store, jobs=1)
    first = store.rows(few)
    assert len(first) == len(few) == len(all_cells) // 2
    run(all_cells, store, jobs=1)
    assert store.rows(all_cells)[: len(few)] == first


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs the process table of Linux")
def test_killed_midway_a_run_continues_with_exactly_the_missing_cells(slow, monkeypatch):
    killed = slow.start("--jobs", "2")
    store = slow.store()
    wait_for(lambda: slow.n_fits() >= 4 or killed.poll() is not None)
    assert killed.poll() is None, killed.communicate()
    workers = children(killed.pid)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    wait_for(lambda: not any(map(is_running, workers)))  # no worker outlives its run

    cells = slow.cells()
    before = store.rows(cells)
    missing = store.missing(cells)
    assert 0 < len(before) < len(cells)
    fits = slow.n_fits()
    resumed = slow.start("--jobs", "2")
    output, _ = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, output
    after = store.rows(cells)
    assert len(after) == len(cells)
    assert [row for row in after if row in before] == before  # untouched, their seconds included
    assert slow.n_fits() - fits == sum(cell.method.name == "Slow" for cell in missing)
    with closing(sqlite3.connect(store.path)) as db:
        assert db.execute("SELECT count(*) FROM claims").fetchone() == (0,)  # those of the killed run are gone too

    other = replace(store, path=store.path.with_name("whole.sqlite"))
    monkeypatch.setenv("FITS", os.devnull)
    run(cells, other, jobs=1)
    assert results(after) == results(other.rows(cells))


@pytest.mark.skipif(os.name != "posix", reason="needs process groups")
@pytest.mark.parametrize(("jobs", "number", "code"), [("2", signal.SIGINT, 130), ("1", signal.SIGTERM, 143)])
def test_a_signal_ends_the_run_and_its_workers_with_a_sentence_and_no_failed_row(slow, jobs, number, code):
    process = slow.start("--jobs", jobs)
    output = process.stdout.readline()  # where there are workers they start now, and may not be hit
    if jobs == "1":
        wait_for(lambda: slow.n_fits() > 0)
    os.killpg(process.pid, number)
    output += process.communicate(timeout=60)[0]
    assert process.returncode == code
    sentence = "Error: stopped. The rows so far are kept, and the same command continues."
    assert [line for line in output.splitlines() if " of 64 cells" not in line] == [sentence]
    assert "failed" not in {row.status for row in slow.store().rows(slow.cells())}
    assert not any(map(is_running, members(process.pid)))


def test_two_runs_at_once_share_the_work(slow):
    processes = [slow.start("--jobs", "1") for _ in range(2)]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    cells = slow.cells()
    assert len(slow.store().rows(cells)) == len(cells)
    assert slow.n_fits() == sum(cell.method.name == "Slow" for cell in cells)


def test_cells_of_a_living_run_are_waited_for(tiny, monkeypatch):
    cells, store = tiny.cells(), tiny.store()
    assert store.claim(cells[:1], "another") == cells[:1]
    monkeypatch.setattr("decidewise_bench.experiments.runner.time.sleep", lambda _: store.release("another"))
    run(cells, store, jobs=1)
    assert store.missing(cells) == []


def test_a_run_that_is_to_compute_all_anew_and_is_stopped_keeps_every_row_and_can_go_on(tiny, monkeypatch):
    cells, store = tiny.cells(), tiny.store()
    run(cells, store, jobs=1)
    before, computed = store.rows(cells), []

    def compute_two(together):
        computed.extend(together)
        if len(computed) > 6:
            raise KeyboardInterrupt
        return compute(together)

    monkeypatch.setattr("decidewise_bench.experiments.runner.compute", compute_two)
    with pytest.raises(KeyboardInterrupt):
        run(cells, store, jobs=1, anew="all")
    after = store.rows(cells)
    assert results(after) == results(before)
    assert [new != old for new, old in zip(after, before, strict=True)] == [True] * 6 + [False] * 6
    computed.clear()
    monkeypatch.setattr(
        "decidewise_bench.experiments.runner.compute", lambda cells: computed.extend(cells) or compute(cells)
    )
    run(cells, store, jobs=1)
    assert computed == cells[6:]
    assert store.rows(cells)[:6] == after[:6]


def test_claims_end_with_the_run(tiny, monkeypatch):
    cells, store = tiny.cells(), tiny.store()

    def interrupted(cells):
        raise KeyboardInterrupt

    monkeypatch.setattr("decidewise_bench.experiments.runner.compute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(cells, store, jobs=1)
    assert store.claim(cells, "next") == cells


@pytest.mark.parametrize("other", [{"version": "0.0.0+000000000000"}, {"libraries": "NumPy 1.0"}])
def test_a_worker_with_other_code_or_libraries_is_refused(tiny, other):
    cells, store = tiny.cells(**other), tiny.store()
    (name,) = other.values()
    with pytest.raises(OtherCodeError, match=f"the run began with {re.escape(name)}"):
        run(cells, store, jobs=1)
    assert store.rows(cells) == []


def test_a_cluster_needs_its_extra(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'decidewise\[dask\]'"):
        run(tiny.cells(), tiny.store(), cluster="tcp://nowhere:8786")


def test_two_plans_of_one_name_are_refused(tiny):
    plan = read_plan(tiny.plan)
    with pytest.raises(ValueError, match="two plans are called 'tiny'"):
        cells_of_all([plan, plan])
