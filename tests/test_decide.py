import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from decidewise import decide
from decidewise.data import make_shortest_path
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
