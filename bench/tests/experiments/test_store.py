import os
import pickle
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest

from decidewise_bench.experiments import Store
from decidewise_bench.experiments.cells import compute


@pytest.fixture
def cells(tiny):
    return tiny.cells()


@pytest.fixture
def rows(cells):
    """A row for every cell, without the training."""
    (row,) = compute([cells[2]])
    return [
        replace(
            row, degree=c.degree, method=c.method.name, mode=c.method.mode, trial=c.trial, seed=c.seed, regret=float(i)
        )
        for i, c in enumerate(cells)
    ]


def test_rows_come_back_as_they_went_in_and_in_order(tiny, cells, rows):
    store = tiny.store()
    for i in (5, 3, 9):
        store.add(cells[i], rows[i])
    assert tiny.store().rows(cells) == [rows[3], rows[5], rows[9]]
    assert store.missing(cells) == [cell for i, cell in enumerate(cells) if i not in (3, 5, 9)]


def test_a_cell_keeps_its_first_row(tiny, cells, rows):
    store = tiny.store()
    store.add(cells[0], rows[0])
    store.add(cells[0], rows[1])
    assert store.rows(cells) == [rows[0]]


@pytest.mark.parametrize("change", ["plan", "seed", "version", "libraries"])
def test_another_plan_seed_or_version_does_not_see_old_rows(tiny, cells, rows, change):
    store = tiny.store()
    for cell, row in zip(cells, rows, strict=True):
        store.add(cell, row)
    if change == "version":
        other = tiny.cells(version="0.0.0+000000000000")
    elif change == "libraries":
        other = tiny.cells(libraries="NumPy 1.0")
    else:
        text = tiny.plan.read_text()
        line = {"plan": "epochs = 4", "seed": "seed = 7"}[change]
        tiny.plan.write_text(
            text.replace("epochs = 3", line)
            if change == "plan"
            else text.replace('name = "paths"', f'name = "paths"\n{line}')
        )
        other = tiny.cells()
    assert store.rows(other) == []
    assert store.missing(other) == other
    assert store.rows(cells) == rows


def test_more_trials_keep_the_rows_there_are(tiny, cells, rows):
    store = tiny.store()
    for cell, row in zip(cells, rows, strict=True):
        store.add(cell, row)
    more = tiny.cells(trials=3)
    assert store.missing(more) == [cell for cell in more if cell.trial == 2]


def test_a_row_set_aside_is_missing_and_yet_kept_until_its_successor_is_there(tiny, cells, rows):
    store = tiny.store()
    before = [replace(rows[0], status="failed"), *rows[1:3]]
    for cell, row in zip(cells, before, strict=False):
        store.add(cell, row)
    store.set_aside(cells[:2], only_failed=True)
    assert store.missing(cells[:3]) == cells[:1]
    assert store.rows(cells) == before
    store.set_aside(cells[:2])
    store.set_aside(cells[:2])  # twice is once
    assert store.missing(cells[:3]) == cells[:2]
    assert store.rows(cells) == before
    assert store.rows(cells, aside=False) == rows[2:3]
    assert store.claim(cells[:3], "next") == cells[:2]
    store.add(cells[0], rows[5])
    assert store.rows(cells) == [rows[5], *before[1:]]
    assert store.versions("tiny") == {(cells[0].version, cells[0].libraries): 3}


def test_a_cell_is_claimed_once(tiny, cells, rows):
    store = tiny.store()
    store.add(cells[0], rows[0])
    assert store.claim(cells[:3], "one") == cells[1:3]
    assert store.claim(cells[:4], "two") == [cells[3]]
    assert store.claim(cells[:3], "one") == cells[1:3]  # still its own
    store.release("one", [cells[1]])
    assert store.claim(cells[:4], "two") == [cells[1], cells[3]]
    store.release("one")
    assert store.claim(cells[2:3], "two") == [cells[2]]


def test_of_many_runs_at_once_one_gets_the_cell(tiny, cells):
    store = tiny.store()
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda i: len(store.claim(cells, f"run {i}")), range(16)))
    assert sorted(won) == [0] * 15 + [len(cells)]


def test_claims_of_a_process_that_is_gone_are_taken_over(tiny, cells, monkeypatch):
    store = tiny.store()
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: int(ended.stdout))
        assert store.claim(cells, "dead") == cells
    assert store.claim(cells[:3], "alive") == cells[:3]
    store.drop_stale_claims()
    with closing(sqlite3.connect(store.path)) as db:
        assert db.execute("SELECT DISTINCT run FROM claims").fetchall() == [("alive",)]
    assert store.claim(cells, "heir") == cells[3:]


def test_claims_of_a_run_that_is_silent_are_taken_over(tiny, cells, monkeypatch):
    store = tiny.store()
    clock = [1_000.0]
    monkeypatch.setattr("decidewise_bench.experiments.store.time.time", lambda: clock[0])
    assert store.claim(cells[:1], "silent") == cells[:1]
    assert store.claim(cells[1:2], "alive") == cells[1:2]
    clock[0] += 50
    store.record_heartbeat("alive")
    clock[0] += 50
    assert store.claim(cells[:2], "heir") == cells[:1]


def test_many_processes_may_create_the_same_file(tmp_path):
    code = "import sys, pathlib; from decidewise_bench.experiments import Store; Store(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(tmp_path / "rows.sqlite")]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in processes] == [0] * 3


def test_a_store_can_be_sent_to_a_worker(tiny):
    assert Store(str(tiny.store_path)) == tiny.store()
    assert pickle.loads(pickle.dumps(tiny.store())) == tiny.store()  # noqa: S301  (made a moment ago)


def test_files_of_another_kind_are_refused(tmp_path):
    (tmp_path / "text.sqlite").write_text("rows? " * 1000)
    with pytest.raises(ValueError, match=r"cannot use the store .*text.sqlite: file is not a database"):
        Store(tmp_path / "text.sqlite")
    for name, script in {"later": "PRAGMA user_version = 99", "foreign": "CREATE TABLE rows (a, b)"}.items():
        with closing(sqlite3.connect(tmp_path / f"{name}.sqlite")) as db:
            db.execute(script)
        before = (tmp_path / f"{name}.sqlite").read_bytes()
        with pytest.raises(ValueError, match=rf"{name}.sqlite is a database, but not a store of this decidewise"):
            Store(tmp_path / f"{name}.sqlite")
        assert (tmp_path / f"{name}.sqlite").read_bytes() == before


def test_a_store_of_the_version_before_is_refused_with_what_to_do(tmp_path):
    with closing(sqlite3.connect(tmp_path / "old.sqlite")) as db:
        db.executescript("CREATE TABLE rows (cell TEXT PRIMARY KEY, solver_calls INTEGER); PRAGMA user_version = 1;")
    with pytest.raises(ValueError, match=r"old.sqlite holds rows of an earlier decidewise .* Choose another file, or"):
        Store(tmp_path / "old.sqlite")
