import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from decidewise import decide, predict
from decidewise.data import make_shortest_path
from decidewise.models import (
    DecisionBoostingRegressor,
    DecisionRegressor,
    GeneralizedLinear,
    WiseRegressor,
    WiseRegressorCV,
)
from decidewise.problems import TopK


class Fixed:
    """A model that predicts the same whatever it is given."""

    def __init__(self, prediction):
        self.prediction = prediction

    def predict(self, X):
        return self.prediction


def test_decisions_are_those_for_the_prediction():
    train, test = make_shortest_path(60, degree=2, seed=0).split(40)
    model = LinearRegression().fit(train.X, train.costs)
    decisions = decide(model, test.problem, test.X)
    assert np.array_equal(decisions, test.problem.solve(model.predict(test.X)))
    assert not np.array_equal(decisions, test.problem.solve(test.costs))


@pytest.mark.filterwarnings("ignore::decidewise.kit.errors.TrainingWarning")
@pytest.mark.parametrize("shape", [(40, 3), (40, 2, 3)], ids=["features", "features per item"])
def test_a_batch_of_no_rows_has_no_decisions(shape):
    rng = np.random.default_rng(0)
    X, costs, problem = rng.normal(size=shape), rng.uniform(1, 2, size=(40, 2)), TopK(2, 1)
    models = [
        WiseRegressor(),
        WiseRegressor(make_pipeline(StandardScaler(), GeneralizedLinear("gamma", alpha=0.1))),
        WiseRegressorCV(problem, cv=2, random_state=0),
        DecisionRegressor(problem, "spo+", epochs=1),
        DecisionBoostingRegressor(problem, n_estimators=2),
    ]
    for model in models if len(shape) == 2 else models[::3]:
        model.fit(X, costs)
        assert model.predict(X[:0]).shape == decide(model, problem, X[:0]).shape == (0, 2)
        with pytest.raises(ValueError, match=r"empty|0 sample"):
            model.fit(X[:0], costs[:0])
    assert decide(LinearRegression().fit(costs, costs), problem, costs[:0]).shape == (0, 2)
    with pytest.raises(ValueError, match="TopK needs 2 columns of costs"):
        problem.solve(np.empty((0, 3)))
    with pytest.raises(ValueError, match="differs by row and has 3 rows, and there are 0 rows"):
        TopK(2, [1, 2, 1]).solve(costs[:0])


def test_frames_in():
    X = pd.DataFrame({"hour": [0.0, 1.0, 2.0]})
    model = LinearRegression().fit(X, [[1.0, 3.0], [2.0, 2.5], [3.0, 2.0]])
    assert np.array_equal(decide(model, TopK(2, 1, sense="min"), X), [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("prediction", "message"),
    [
        (np.ones((3, 4)), r"TopK needs 2 columns of model.predict\(X\).* got model.predict\(X\).shape=\(3, 4\)"),
        (np.ones(3), r"model.predict\(X\) must be two-dimensional"),
        (np.ones((2, 2)), r"X has 3 rows, model.predict\(X\) has 2 rows"),
        (np.array([[0, 1], [np.nan, 0], [1, 1]]), r"model.predict\(X\) must be finite; row 1, column 0 has NaN"),
        ("abc", r"model.predict\(X\) must be an array of real numbers"),
    ],
)
def test_a_bad_prediction_is_named(prediction, message):
    with pytest.raises(ValueError, match=message):
        decide(Fixed(prediction), TopK(2, 1), np.ones((3, 1)))


def test_what_is_no_model_or_no_problem_is_named():
    with pytest.raises(TypeError, match=r"model must have a method predict\(X\).*got TopK"):
        decide(TopK(2, 1), TopK(2, 1), np.ones((3, 1)))
    with pytest.raises(TypeError, match="problem must be a decidewise problem"):
        decide(Fixed(np.ones((3, 2))), "top", np.ones((3, 1)))


class TestFrames:
    """A frame in, a frame of the same kind out."""

    X = pd.DataFrame({"wind": [0.0, 1.0, 2.0], "load": [1.0, 5.0, 2.0]}, index=["mon", "tue", "wed"])
    costs = pd.DataFrame({"day": [1.0, 2.0, 3.0], "night": [3.0, 2.5, 2.0]}, index=X.index)
    problem = TopK(2, 1, sense="min")

    @pytest.mark.parametrize("whole", [lambda model: model, lambda model: make_pipeline(StandardScaler(), model)])
    def test_of_pandas_keeps_the_index_and_names_the_costs(self, whole):
        model = whole(WiseRegressor()).fit(self.X, self.costs)
        for found, expected in (
            (decide(model, self.problem, self.X), self.problem.solve(model.predict(self.X))),
            (predict(model, self.X), model.predict(self.X)),
        ):
            pd.testing.assert_frame_equal(found, pd.DataFrame(expected, self.X.index, ["day", "night"]))
        assert isinstance(model.predict(self.X), np.ndarray)  # as scikit-learn has it

    def test_of_polars_and_arrow(self):
        X = pl.DataFrame(self.X.reset_index(drop=True))
        model = GeneralizedLinear().fit(X, pl.DataFrame(self.costs.reset_index(drop=True)))
        expected = self.problem.solve(model.predict(X))
        found = decide(model, self.problem, X)
        assert isinstance(found, pl.DataFrame)
        assert found.columns == ["day", "night"]
        np.testing.assert_array_equal(found.to_numpy(), expected)
        table = decide(Fixed(expected), self.problem, pa.table({"wind": [0.0, 1.0, 2.0]}))
        assert table.column_names == ["0", "1"]
        np.testing.assert_array_equal(np.column_stack(table.columns), self.problem.solve(expected))

    def test_of_a_model_without_names_are_numbered(self):
        model = LinearRegression().fit(self.X, self.costs)
        assert list(decide(model, self.problem, self.X)) == ["0", "1"]

    def test_an_array_stays_one_and_so_do_features_per_item(self):
        items = np.random.default_rng(0).normal(size=(30, 2, 3))
        model = GeneralizedLinear().fit(items, items.sum(axis=2))
        for found in (decide(model, self.problem, items), predict(model, items)):
            assert isinstance(found, np.ndarray)

    def test_of_no_rows(self):
        model = WiseRegressor().fit(self.X, self.costs)
        assert decide(model, self.problem, self.X[:0]).shape == predict(model, self.X[:0]).shape == (0, 2)
