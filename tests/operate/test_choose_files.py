"""The choice from files is that of fitting every candidate on every fold in memory."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from decidewise import GeneralizedLinear, WiseRegressor, choose_files
from decidewise.data import make_shortest_path
from decidewise.evaluate import Hindsight
from decidewise.problems import KnownCosts, ShortestPath, TopK

GRID = {"exponents": [0.0, 1.0], "alphas": [0.0, 0.3]}


def write(folder, X, costs):
    columns = {f"x_{j}": X[:, j] for j in range(X.shape[1])} | {f"c_{j}": costs[:, j] for j in range(costs.shape[1])}
    parquet.write_table(pa.table(columns), folder / "a.parquet")
    return folder


@pytest.mark.parametrize("together", [1, 7])
def test_out_of_fold_regrets_are_those_of_separate_fits(together, tmp_path):
    data = make_shortest_path(300, degree=6, seed=0)
    choice = choose_files(
        data.problem,
        write(tmp_path, data.X, data.costs),
        features="x_*",
        costs="c_*",
        folds=3,
        rows_together=together,
        block_rows=64,
        **GRID,
    )
    fold = np.arange(300) // together % 3
    truth = Hindsight.of(data.problem, data.costs)
    for (exponent, alpha), regret in choice.regrets.items():
        prediction = np.empty_like(data.costs)
        for held_out in range(3):
            model = WiseRegressor(GeneralizedLinear(alpha=alpha), exponent=exponent)
            model.fit(data.X[fold != held_out], data.costs[fold != held_out])
            prediction[fold == held_out] = model.predict(data.X[fold == held_out])
        assert regret.percent.estimate == pytest.approx(truth.normalized_regret(prediction), rel=1e-9)
    assert choice.best == min(choice.regrets, key=lambda pair: choice.regrets[pair].percent.estimate)
    exponent, alpha = choice.best
    expected = WiseRegressor(GeneralizedLinear(alpha=alpha), exponent=exponent).fit(data.X, data.costs)
    np.testing.assert_allclose(choice.model.estimator_.coef_, expected.estimator_.coef_, rtol=1e-9)
    assert str(choice).count("chosen") == 1


def test_one_model_for_all_items(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4, 2))
    costs = 5 + X @ [1.0, -0.5] + 0.3 * rng.normal(size=(60, 4))
    lines = {"day": np.repeat(np.arange(60), 4), "hour": np.tile(np.arange(4), 60), "price": costs.ravel()}
    parquet.write_table(pa.table(lines | {f"x_{j}": X[:, :, j].ravel() for j in range(2)}), tmp_path / "a.parquet")
    long = {"features": "x_*", "costs": "price", "rows": "day", "items": "hour", "block_rows": 60}
    choice = choose_files(TopK(4, 1), tmp_path, **long, **GRID, folds=2)
    model = WiseRegressor(GeneralizedLinear(alpha=choice.best[1]), exponent=choice.best[0]).fit(X, costs)
    np.testing.assert_allclose(choice.model.predict(X), model.predict(X), rtol=1e-9)


def test_bad_input(tmp_path):
    folder = write(tmp_path, np.ones((2, 1)), np.ones((2, 2)))
    columns = {"features": "x_*", "costs": "c_*"}
    for arguments, expected in (
        ({"folds": 1}, "folds must be"),
        ({"alphas": []}, "at least one number"),
        ({"exponents": [-1.0]}, "exponents must be"),
        ({"rows_together": 9}, "no rows of positive weight outside fold 0 of 5"),
    ):
        with pytest.raises(ValueError, match=expected):
            choose_files(TopK(2, 1), folder, **columns, **arguments)
    with pytest.raises(ValueError, match="has known costs"):
        choose_files(KnownCosts(TopK(2, 1), np.ones(2)), folder, **columns)


def test_a_candidate_whose_predictions_cannot_be_decided_is_a_row(tmp_path):
    """Without the change of measure, the fit predicts a cycle below zero for the last rows."""
    problem = ShortestPath.from_edges([0, 1, 2, 1, 2], [1, 2, 1, 3, 3], source=0, target=3)
    X = np.linspace(0, 1, 200)[:, None]
    costs = np.maximum(0.05, 1 - 3 * X) + np.random.default_rng(0).uniform(0, 0.01, (200, 5))
    files = {"features": "x_*", "costs": "c_*", "alphas": [0.0], "block_rows": 64}
    choice = choose_files(problem, write(tmp_path, X, costs), exponents=[0.0, 1.0], **files)
    assert choice.best == (1.0, 0.0)
    assert "a cycle has a negative cost" in choice.failures[0.0, 0.0]
    assert "0         0  failed: SolverError: " in str(choice)
    with pytest.raises(ValueError, match="none of the 1 candidates"):
        choose_files(problem, tmp_path, exponents=[0.0], **files)
