"""A choice on rows that are not in memory is that in memory, for the same folds."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, PredefinedSplit

from decidewise import GeneralizedLinear, WiseRegressor, WiseRegressorCV
from decidewise.data import make_shortest_path
from decidewise.models import RowFolds, TimeFolds, default_candidates
from decidewise.models.selection.sums import is_sum_over_rows
from decidewise.problems import Knapsack, LinearProgram, Storage, TopK
from decidewise.rows import ArrayRows

N = 300


class CountedRows(ArrayRows):
    n_passes = 0

    def reduce(self, *arguments):
        self.n_passes += 1
        return super().reduce(*arguments)


@pytest.fixture(scope="module")
def data():
    return make_shortest_path(N, degree=4, seed=0)


def in_memory(data, candidates, n_folds=5, **options):
    folds = PredefinedSplit(np.arange(N) % n_folds)
    return WiseRegressorCV(data.problem, candidates, cv=folds, random_state=0, **options).fit(data.X, data.costs)


@pytest.mark.parametrize("rule", ["average", "minimum"])
def test_default_candidates_score_as_in_memory_in_few_passes(data, rule):
    rows = CountedRows(data.X, data.costs, block_rows=N)
    found = WiseRegressorCV(data.problem, rule=rule, random_state=0).fit_rows(rows)
    menu = default_candidates(data.X, data.costs)
    possible = {name: model for name, model in menu.items() if is_sum_over_rows(model)}
    assert len(possible) == 14
    assert rows.n_passes <= 30  # 65 fits of up to 15 passes each
    status = dict(zip(found.cv_results_["candidate"], found.cv_results_["status"], strict=True))
    assert {name for name, what in status.items() if what == "scored"} == set(possible)
    assert status["trees"] == status["directions"] == "not tried"
    expected = in_memory(data, possible, rule=rule)
    scored = found.cv_results_["status"] == "scored"
    for key in ("regret", "standard_error", "difference", "difference_standard_error"):
        np.testing.assert_allclose(found.cv_results_[key][scored], expected.cv_results_[key], rtol=1e-9, atol=1e-9)
    assert found.members_ == expected.members_
    assert found.weights_ == pytest.approx(expected.weights_, rel=1e-6)
    np.testing.assert_allclose(found.predict(data.X), expected.predict(data.X), rtol=1e-7)
    assert found.best_name_ in found.members_
    assert found.n_solves_ == 2 + (17 if rule == "average" else 15) * N


def grid(exponents=(0.0, 1.0), alphas=(0.0, 0.3)):
    return {f"{e:g}, {a:g}": WiseRegressor(GeneralizedLinear(alpha=a), exponent=e) for e in exponents for a in alphas}


def test_exponents_and_ridges_are_chosen_from_files_as_in_memory(data, tmp_path):
    columns = {f"x_{j}": x for j, x in enumerate(data.X.T)} | {f"c_{j}": c for j, c in enumerate(data.costs.T)}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    search = WiseRegressorCV(data.problem, grid(), cv=3, rule="minimum", random_state=0)
    found = search.fit_files(tmp_path, features="x_*", costs="c_*", block_rows=64)
    expected = in_memory(data, grid(), n_folds=3, rule="minimum")
    np.testing.assert_allclose(found.cv_results_["regret"], expected.cv_results_["regret"], rtol=1e-9)
    assert found.best_name_ == expected.best_name_
    np.testing.assert_allclose(found.best_estimator_.estimator_.coef_, expected.best_estimator_.estimator_.coef_, 1e-9)


def test_exponents_and_ridges_of_one_model_for_all_items_are_chosen_from_long_files(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4, 2))
    costs = 5 + X @ [1.0, -0.5] + 0.3 * rng.normal(size=(60, 4))
    lines = {"day": np.repeat(np.arange(60), 4), "hour": np.tile(np.arange(4), 60), "price": costs.ravel()}
    parquet.write_table(pa.table(lines | {f"x_{j}": X[:, :, j].ravel() for j in range(2)}), tmp_path / "a.parquet")
    long = {"features": "x_*", "costs": "price", "rows": "day", "items": "hour", "block_rows": 60}
    found = WiseRegressorCV(TopK(4, 1), grid(), cv=2, rule="minimum").fit_files(tmp_path, **long)
    np.testing.assert_allclose(found.predict(X), grid()[found.best_name_].fit(X, costs).predict(X), rtol=1e-9)


def test_an_average_is_drawn_to_the_mean_as_in_memory(data):
    rng = np.random.default_rng(0)
    noise = rng.uniform(1, 2, size=data.costs.shape) + 0.02 * data.costs / data.costs.mean()  # almost nothing to learn
    names = ("training mean", "least squares", "wise")
    candidates = {name: model for name, model in default_candidates(data.X, noise).items() if name in names}
    found = WiseRegressorCV(data.problem, candidates, random_state=0).fit_rows(ArrayRows(data.X, noise, block_rows=100))
    folds = PredefinedSplit(np.arange(N) % 5)
    expected = WiseRegressorCV(data.problem, candidates, cv=folds, random_state=0).fit(data.X, noise)
    assert found.weights_.keys() == expected.weights_.keys()
    assert 0 < found.weights_["training mean"] < 1
    assert found.weights_ == pytest.approx(expected.weights_)
    np.testing.assert_allclose(found.predict(data.X), expected.predict(data.X), rtol=1e-9)


def test_runs_of_rows_are_held_out_as_in_memory(data):
    candidates = {"wise": WiseRegressor(), "least squares": GeneralizedLinear()}
    model = WiseRegressorCV(data.problem, candidates, cv=RowFolds(3, rows_together=20), random_state=0)
    found = clone(model).fit_rows(ArrayRows(data.X, data.costs, block_rows=100))
    expected = clone(model).fit(data.X, data.costs)
    np.testing.assert_allclose(found.cv_results_["regret"], expected.cv_results_["regret"], rtol=1e-9)
    assert (
        found.cv_results_["regret"][0]
        != WiseRegressorCV(data.problem, candidates, cv=3, random_state=0)
        .fit_rows(ArrayRows(data.X, data.costs))
        .cv_results_["regret"][0]
    )


def test_blocks_do_not_matter_and_a_budget_bounds_the_solver_calls(data):
    candidates = {"wise": WiseRegressor(), "least squares": GeneralizedLinear()}
    one, some = (
        WiseRegressorCV(data.problem, candidates, cv=3, rule="minimum", random_state=0).fit_rows(
            ArrayRows(data.X, data.costs, block_rows=size)
        )
        for size in (N, 60)  # blocks of 60 rows keep the folds of three
    )
    np.testing.assert_allclose(one.cv_results_["regret"], some.cv_results_["regret"], rtol=1e-9)
    limited = WiseRegressorCV(data.problem, candidates, max_solves=300, random_state=0)
    limited.fit_rows(ArrayRows(data.X, data.costs, block_rows=100))
    assert 60 < limited.n_solves_ <= 300


def test_a_candidate_that_fails_is_a_row_and_the_others_go_on(data):
    costs = data.costs.copy()
    costs[250] = 0.0  # which a gamma deviance does not admit, after the first rows
    candidates = {"gamma": GeneralizedLinear("gamma"), "wise": WiseRegressor()}
    model = WiseRegressorCV(data.problem, candidates, random_state=0).fit_rows(ArrayRows(data.X, costs, block_rows=100))
    assert list(model.cv_results_["status"]) == ["failed", "scored"]
    assert "250" in model.cv_results_["error"][0]
    assert model.members_ == ["wise"]
    with pytest.raises(ValueError, match="none of the 1 candidates could be fitted and scored"):
        WiseRegressorCV(data.problem, {"a": WiseRegressor(LinearRegression())}).fit_rows(ArrayRows(data.X, costs))


def test_a_candidate_whose_predictions_cannot_be_decided_is_a_row(data):
    """Least squares predict costs below zero, which have no best decision; means of positive costs never do."""
    problem = LinearProgram([[-1.0] * 5], [-1.0])
    X = np.linspace(0, 1, N)[:, None]
    costs = np.maximum(0.05, 1 - 3 * X) + np.random.default_rng(0).uniform(0, 0.01, (N, 5))
    candidates = {"mean": DummyRegressor(), "least squares": GeneralizedLinear()}
    for fitted in (
        WiseRegressorCV(problem, candidates, random_state=0).fit_rows(ArrayRows(X, costs, block_rows=100)),
        WiseRegressorCV(problem, candidates, cv=KFold(5), random_state=0).fit(X, costs),
    ):
        assert list(fitted.cv_results_["status"]) == ["scored", "failed"]
        assert "SolverError" in fitted.cv_results_["error"][1]
        assert fitted.members_ == ["mean"]


def test_what_needs_the_rows_in_memory_is_refused(data):
    rows = ArrayRows(data.X, data.costs)
    by_row = Knapsack(np.ones((1, 40)), np.ones((N, 1)))
    for problem, options in ((by_row, {}), (data.problem, {"cv": TimeFolds(3)}), (data.problem, {"lags": (1,)})):
        with pytest.raises(ValueError, match="the problem must be the same for every row, cv a number of folds"):
            WiseRegressorCV(problem, **options).fit_rows(rows)


def test_costs_of_files_that_may_not_be_in_the_order_of_time_are_refused(tmp_path):
    path = tmp_path / "days.csv"
    path.write_text("x,c_1,c_10,c_2\n" + "1,2,3,4\n2,3,5,1\n" * 10)
    model = WiseRegressorCV(Storage(3, power=1, energy=1))
    with pytest.raises(ValueError, match=r"takes the order of its costs for that of time.*'c_10', 'c_2'"):
        model.fit_files(path, features="x", costs="c_*")
