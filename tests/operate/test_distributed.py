"""Against a real cluster: a scheduler and two workers, in processes of their own."""

import os
import signal
import subprocess
import sys
import threading
import time

import dask
import numpy as np
import pytest
from dask import array
from distributed import Client
from sklearn.base import clone

from decidewise import GeneralizedLinear, WiseRegressor, WiseRegressorCV, decide
from decidewise.data import make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.operate import distributed
from decidewise.problems import Knapsack, ParallelProblem
from decidewise.rows import ArrayRows

CLUSTER = """
import sys
from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()  # until the test is over
"""
BLOCKS = """
import os, time
from pathlib import Path
import numpy as np

def slow(block, marker, seconds):
    Path(marker).touch()
    time.sleep(seconds)
    return block

def deadly_once(block, marker):
    if not Path(marker).exists():
        Path(marker).touch()
        os._exit(1)
    return block
"""


def start_cluster(folder):
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        env=os.environ | {"PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "blocks_of_test.py").write_text(BLOCKS)
    sys.path.insert(0, str(folder))
    import blocks_of_test  # noqa: PLC0415

    yield blocks_of_test
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def cluster(blocks):
    with start_cluster(os.path.dirname(blocks.__file__)) as process:  # which closes its input, and waits
        yield process.stdout.readline().strip()


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    data = make_shortest_path(1_000, degree=4, seed=0)
    return data.X + 1e6, data.costs, data.problem


def split(X, costs, size=90):
    return array.from_array(X, chunks=(size, -1)), array.from_array(costs, chunks=(size, -1))


def coefficients(model):
    return getattr(model, "estimator_", model).coef_


def close(found, expected, tolerance=1e-9):
    return np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


MODELS = [WiseRegressor(), WiseRegressor(GeneralizedLinear("gamma", alpha=0.01)), WiseRegressor(scale="iterated")]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_arrays_give_the_fit_in_memory(model, data, client):
    X, costs, _ = data
    found = distributed.fit(clone(model), *split(X, costs))
    assert close(coefficients(found), coefficients(clone(model).fit(X, costs)))
    # The same blocks in the same tree: the same digits wherever they are added.
    assert (coefficients(found) == coefficients(clone(model).fit_rows(ArrayRows(X, costs, block_rows=90)))).all()


def test_frames_delayed_blocks_and_weights(data, client):
    pd = pytest.importorskip("pandas")
    try:
        from dask import dataframe  # noqa: PLC0415 - old versions need one more package
    except ImportError as missing:
        pytest.skip(str(missing))
    X, costs, problem = data
    weights = np.arange(len(X)) % 3 + 0.5
    names = [f"x_{j}" for j in range(X.shape[1])], [f"c_{j}" for j in range(costs.shape[1])]
    frame = pd.DataFrame(np.column_stack([X, costs, weights]), columns=[*names[0], *names[1], "w"])
    expected = WiseRegressor().fit(frame[names[0]], costs, sample_weight=weights)
    parts = dataframe.from_pandas(frame, npartitions=7)
    found = distributed.fit(WiseRegressor(), parts, features="x_*", costs="c_*", sample_weight="w")
    assert close(coefficients(found), coefficients(expected))
    assert list(found.feature_names_in_) == names[0]
    some = [
        dask.delayed((X[at : at + 150], costs[at : at + 150], weights[at : at + 150])) for at in range(0, 1000, 150)
    ]
    empty = dask.delayed((X[:0], costs[:0], weights[:0]))
    assert close(coefficients(distributed.fit(WiseRegressor(), [empty, *some, empty])), coefficients(expected))

    decisions = distributed.decide(found, problem, parts)
    assert (decisions.compute() == decide(expected, problem, frame[names[0]]).to_numpy()).all()
    regret = distributed.evaluate(found, problem, parts, features="x_*", costs="c_*")
    assert regret.percent.estimate == pytest.approx(
        normalized_regret(problem, expected.predict(frame[names[0]]), costs), rel=1e-12
    )


def test_decisions_and_regrets_of_arrays(data, client):
    X, costs, problem = data
    model = WiseRegressor().fit(X, costs)
    rows, targets = split(X, costs)
    decisions = distributed.decide(model, problem, rows)
    assert decisions.chunks[0] == rows.chunks[0]
    assert (decisions.compute() == decide(model, problem, X)).all()
    regret = distributed.evaluate(model, problem, rows, targets)
    assert regret.n_rows == 1_000
    assert regret.percent.estimate == pytest.approx(normalized_regret(problem, model.predict(X), costs), rel=1e-12)


def test_a_search_over_partitions_is_that_of_the_same_blocks_without_a_cluster(data, client):
    X, costs, problem = data
    candidates = {"least squares": GeneralizedLinear(), "wise gamma": WiseRegressor(GeneralizedLinear("gamma"))}
    search = WiseRegressorCV(problem, candidates, cv=2, random_state=0)
    found = distributed.fit(clone(search), *split(X, costs, 500))
    expected = clone(search).fit_rows(ArrayRows(X, costs, block_rows=500))
    for key in ("regret", "standard_error", "difference_standard_error", "status"):
        assert (found.cv_results_[key] == expected.cv_results_[key]).all()
    assert found.members_ == expected.members_
    assert (found.predict(X) == expected.predict(X)).all()
    blocks = [(X[:0], costs[:0]), (X[:500], costs[:500]), (X[:0], costs[:0]), (X[500:], costs[500:])]
    with_empty = distributed.fit(clone(search), [dask.delayed(block) for block in blocks])
    assert (with_empty.predict(X) == expected.predict(X)).all()
    blocks[3] = (X[500:], None)
    with pytest.raises(ValueError, match="partition 3 has no costs"):
        distributed.fit(clone(search), [dask.delayed(block) for block in blocks])


def test_solver_calls_and_candidates_in_memory_are_spread_over_the_workers(data, cluster):
    X, costs, problem = data
    parallel = ParallelProblem(problem, n_jobs=2)
    search = WiseRegressorCV(problem, {"a": GeneralizedLinear(), "b": WiseRegressor()}, random_state=0)
    with distributed.workers_at(cluster) as workers, workers.parallel_loops():
        decisions = parallel.solve(costs[:64])
        there = clone(search).fit(X[:100], costs[:100])
    assert (decisions == problem.solve(costs[:64])).all()
    here = clone(search).fit(X[:100], costs[:100])
    assert (there.cv_results_["regret"] == here.cv_results_["regret"]).all()


def test_a_worker_killed_in_the_middle_changes_no_digit(data, client, blocks, tmp_path):
    X, costs, _ = data
    plain = [(X[at : at + 90], costs[at : at + 90]) for at in range(0, 1000, 90)]
    parts = [dask.delayed(block) for block in plain]
    parts[5] = dask.delayed(blocks.deadly_once)(plain[5], str(tmp_path / "died"))
    # The first rows are in the first partition, so the worker dies in the pass over all.
    found = distributed.fit(WiseRegressor(GeneralizedLinear("gamma")), parts)
    assert (tmp_path / "died").exists()
    expected = WiseRegressor(GeneralizedLinear("gamma")).fit_rows(ArrayRows(X, costs, block_rows=90))
    assert (coefficients(found) == coefficients(expected)).all()


def test_errors_name_the_partition_and_the_row(data, client):
    X, costs, problem = data
    bad = costs.copy()
    bad[455, 3] = np.nan
    for call in (
        lambda rows, targets: distributed.fit(WiseRegressor(), rows, targets),
        lambda rows, targets: distributed.evaluate(WiseRegressor().fit(X, costs), problem, rows, targets),
    ):
        with pytest.raises(ValueError, match="partition 5, row 5, costs, column 3 has no value, or NaN"):
            call(*split(X, bad))
    some = [(X[:90], costs[:90]), (X[:90], None), (X[:90], costs[:80])]
    with pytest.raises(ValueError, match="partition 1 has no costs, and a fit needs them"):
        distributed.fit(WiseRegressor(), [dask.delayed(block) for block in some[:2]])
    with pytest.raises(ValueError, match=r"partition 1 has features, costs and weights of \[90, 80\] rows"):
        distributed.fit(WiseRegressor(), [dask.delayed(block) for block in some[::2]])
    with pytest.raises(ValueError, match="there are no rows at all"):
        distributed.fit(WiseRegressor(), [dask.delayed((X[:0], costs[:0]))])


def test_bad_input_needs_no_cluster(data):
    X, costs, _ = data
    rows, targets = split(X, costs)
    for arguments, expected in (
        ((rows.rechunk({1: 2}), targets), r"X is split by columns.*X\.rechunk\(\{1: -1\}\)"),
        ((rows, targets.rechunk({0: 100})), r"y is not split into the rows of X.*y\.rechunk\(\{0: X\.chunks\[0\]\}\)"),
        ((rows,), "needs the costs as well"),
        (([],), "there are no partitions at all"),
    ):
        with pytest.raises(ValueError, match=expected):
            distributed.fit(WiseRegressor(), *arguments)
    whole = dask.delayed((X[:90], costs[:90]))
    for second, expected in (
        ((X[:90],), "^partition 1 has no costs, and a fit needs them"),
        ((X[:90], np.empty((90, 0))), "^partition 1 has no costs, and a fit needs them"),
        (
            (X[:90], costs[:90, :3]),
            r"^partition 1 has rows of features \(5,\) and costs \(3,\); those of the first .*40",
        ),
        ((X[:90, :4], costs[:90]), r"^partition 1 has rows of features \(4,\) and costs \(40,\); those of the first"),
        ((X[:90], np.full((90, 40), "n/a")), "^partition 1 must hold numbers: could not convert string to float"),
    ):
        with pytest.raises(ValueError, match=expected):
            distributed.fit(WiseRegressor(), [whole, dask.delayed(second)])
    with pytest.raises(TypeError, match=r"got ndarray\. For rows in memory use the model's fit"):
        distributed.fit(WiseRegressor(), X, costs)
    with pytest.raises(ValueError, match="Knapsack differs by row"):
        distributed.evaluate(WiseRegressor(), Knapsack(np.ones((1, 40)), np.ones((1_000, 1))), rows, targets)


def test_partitions_of_a_frame_that_are_empty_or_lack_costs(data):
    X, costs, problem = data
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    names = [f"x_{j}" for j in range(X.shape[1])] + [f"c_{j}" for j in range(costs.shape[1])]
    table = pandas.DataFrame(np.hstack([X, costs]), columns=names)
    columns = {"features": "x_*", "costs": "c_*"}

    def fit(*parts):
        parts = [dask.delayed(part) for part in parts]
        frame = frames.from_delayed(parts, meta=table[:0], verify_meta=False)
        return distributed.fit(WiseRegressor(), frame, **columns)

    found = fit(table[:0], table[:500], table[:0], table[500:])
    assert close(coefficients(found), coefficients(WiseRegressor().fit(X, costs)))
    gap, text = table[:90].copy(), table[:90].astype(object)
    gap.iloc[7, 6], text.iloc[7, 6] = np.nan, "n/a"
    for bad, expected in (
        (table[:90].drop(columns="c_1"), "^partition 1 has no column 'c_1'"),
        (gap, r"^partition 1, row 7, column 'c_1' has no value, or NaN"),
        (text, "^partition 1, column 'c_1' must hold numbers: could not convert string to float: 'n/a'"),
    ):
        with pytest.raises(ValueError, match=expected):
            fit(table[:500], bad)
    with pytest.raises(ValueError, match="there are no rows at all"):
        fit(table[:0], table[:0])
    rows, targets = (array.from_array(values, chunks=((0, 500, 0, 500), -1)) for values in (X, costs))
    model = distributed.fit(WiseRegressor(), rows, targets)
    assert close(coefficients(model), coefficients(found), 1e-12)
    assert distributed.decide(model, problem, rows).compute().shape == costs.shape
    assert distributed.evaluate(model, problem, rows, targets).n_rows == 1_000


@pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups to kill")
def test_a_scheduler_that_goes_away_ends_with_a_sentence_and_keeps_finished_passes(data, blocks, tmp_path):
    X, costs, _ = data
    plain = [(X[at : at + 250], costs[at : at + 250]) for at in range(0, 1000, 250)]
    marker, checkpoint = tmp_path / "begun", tmp_path / "checkpoint.npz"
    model = WiseRegressor(GeneralizedLinear("gamma"))

    parts = [dask.delayed(blocks.slow, pure=True)(part, str(marker), 0.2) for part in plain]
    with dask.config.set({"distributed.comm.timeouts.connect": "30s", "distributed.comm.retry.count": 0}):
        process = start_cluster(os.path.dirname(blocks.__file__))
        client = Client(process.stdout.readline().strip())

        def kill():
            while not checkpoint.exists():  # the first pass is finished
                time.sleep(0.05)
            dask.config.set({"distributed.comm.timeouts.connect": "2s"})  # nobody will answer
            os.killpg(process.pid, signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        try:
            with pytest.raises(ConnectionError, match="lost the Dask scheduler at 'tcp://"):
                distributed.fit(clone(model), parts, checkpoint=checkpoint)
        finally:
            client.close()
            process.communicate()
    found = distributed.fit(clone(model), parts, checkpoint=checkpoint)  # in threads, since there is no cluster
    expected = clone(model).fit_rows(ArrayRows(X, costs, block_rows=250))
    assert (coefficients(found) == coefficients(expected)).all()
    assert not checkpoint.exists()
