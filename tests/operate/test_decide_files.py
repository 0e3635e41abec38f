"""Decisions and regrets of rows in files are those of rows in memory."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.linear_model import LinearRegression

from decidewise import SolverError, WiseRegressor, decide, decide_files, evaluate_files
from decidewise.data import make_shortest_path
from decidewise.evaluate import Hindsight
from decidewise.problems import Knapsack, TopK, from_function


@pytest.fixture(scope="module")
def data():
    return make_shortest_path(500, degree=4, seed=0)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    columns = {f"x_{j}": data.X[:, j] for j in range(data.X.shape[1])}
    columns |= {f"c_{j}": data.costs[:, j] for j in range(data.costs.shape[1])}
    table = pa.table(columns | {"w": np.arange(500.0) % 3, "day": [f"day {i}" for i in range(500)]})
    for number in range(3):
        parquet.write_table(table.slice(200 * number, 200), folder / f"{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return WiseRegressor().fit_files(folder, features="x_*", costs="c_*")


def test_decisions_are_written_with_their_keys(data, folder, model, tmp_path):
    out = tmp_path / "new" / "decisions.parquet"
    assert decide_files(model, data.problem, folder, out, rows="day", block_rows=64) == 500
    written = parquet.read_table(out)
    assert written.column_names == ["day", *(f"c_{j}" for j in range(40))]
    assert written.column("day").to_pylist() == [f"day {i}" for i in range(500)]
    same = WiseRegressor().fit(data.X, data.costs)
    expected = decide(same, data.problem, data.X)
    assert (np.column_stack(written.columns[1:]) == expected).all()
    assert [path.name for path in out.parent.iterdir()] == ["decisions.parquet"]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_regret_is_that_in_memory(data, folder, model, weighted):
    weights = np.arange(500.0) % 3 if weighted else np.ones(500)
    found = evaluate_files(model, data.problem, folder, sample_weight="w" if weighted else None, block_rows=64)
    truth = Hindsight.of(data.problem, data.costs)
    regret = weights * truth.regret(WiseRegressor().fit(data.X, data.costs).predict(data.X))
    best = weights * np.abs(truth.best)
    assert found.n_rows == 500
    assert found.percent.estimate == pytest.approx(100 * regret.sum() / best.sum(), rel=1e-12)
    assert found.mean.estimate == pytest.approx(regret.sum() / weights.sum(), rel=1e-12)
    residuals = regret - regret.sum() / best.sum() * best
    error = 100 * np.sqrt((residuals**2).sum()) / best.sum()
    assert found.percent.high - found.percent.estimate == pytest.approx(1.96 * error, rel=1e-4)


def test_any_model_and_problems_that_differ_by_row(data, folder, tmp_path):
    model = LinearRegression().fit(data.X, data.costs)
    problem = Knapsack(np.ones((1, 40)), np.linspace(1, 9, 500)[:, None])
    arguments = {"features": "x_*", "block_rows": 64}
    decide_files(model, problem, folder, tmp_path / "a.parquet", **arguments)
    written = np.column_stack(parquet.read_table(tmp_path / "a.parquet").columns)
    assert (written == decide(model, problem, data.X)).all()
    for rows in (slice(0, 499), np.append(np.arange(500), 0)):
        with pytest.raises(ValueError, match="differs by row and has"):
            decide_files(model, problem.take(rows), folder, tmp_path / "b.parquet", **arguments)
    assert not (tmp_path / "b.parquet").exists()


def test_items_of_a_long_table_are_in_the_order_of_training(tmp_path):
    def write(name, hours):
        lines = [(day, hour) for day in range(30) for hour in hours]
        columns = {"day": [day for day, _ in lines], "hour": [hour for _, hour in lines]}
        columns["x"] = [float((7 * day + hour) % 5) for day, hour in lines]
        columns["price"] = [2 * x + 1 + 0.1 * hour for x, hour in zip(columns["x"], columns["hour"], strict=True)]
        parquet.write_table(pa.table(columns), tmp_path / name)

    write("train.parquet", [8, 9, 10])
    write("new.parquet", [10, 8, 9])
    long = {"features": "x", "rows": "day", "items": "hour"}
    model = WiseRegressor().fit_files(tmp_path / "train.parquet", **long, costs="price")
    for name in ("train", "new"):
        n = decide_files(model, TopK(3, 1), tmp_path / f"{name}.parquet", tmp_path / f"{name}-out.parquet", **long)
        assert n == 30
    train, new = (parquet.read_table(tmp_path / f"{name}-out.parquet") for name in ("train", "new"))
    assert train.equals(new)
    regrets = [
        evaluate_files(model, TopK(3, 1), tmp_path / f"{name}.parquet", **long, costs="price")
        for name in ("train", "new")
    ]
    assert regrets[0] == regrets[1]


def test_bad_input(data, folder, model, tmp_path):
    with pytest.raises(ValueError, match=r"1\.parquet is an input of this command"):
        decide_files(model, data.problem, folder, folder / "1.parquet")
    out = tmp_path / "a.parquet"
    plain = LinearRegression().fit(data.X, data.costs)
    with pytest.raises(ValueError, match="features must name the columns"):
        decide_files(plain, data.problem, folder, out)
    with pytest.raises(ValueError, match="costs must name the columns"):
        evaluate_files(plain, data.problem, folder, features="x_*")
    with pytest.raises(ValueError, match="costs must have the same columns in the same order as the model"):
        evaluate_files(model, data.problem, folder, costs=[f"c_{j}" for j in reversed(range(40))])
    with pytest.raises(ValueError, match="the model predicts 40 costs, and TopK has 3"):
        decide_files(model, TopK(3, 1), folder, out)

    def unlucky(costs):
        raise RuntimeError("no luck")

    with pytest.raises(SolverError, match=r"row 0: \(.*0\.parquet\) "):
        decide_files(model, from_function(unlucky, 40, sense="min"), folder, out)
    assert not list(tmp_path.iterdir())
