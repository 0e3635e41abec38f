"""Rows drawn from a population."""

import numpy as np
import pytest

from decidewise import GeneralizedLinear, WiseRegressor, decide, normalized_regret
from decidewise.data import draw_rows
from decidewise.problems import TopK


def test_rows_have_items_of_the_population_none_twice() -> None:
    numbers = np.arange(30.0)
    X, costs = draw_rows(numbers[:, None], -numbers, size=20, n_rows=500, seed=3)
    assert X.shape == (500, 20, 1)
    assert (X[:, :, 0] == -costs).all()  # features and costs stay together
    assert all(len(set(row)) == 20 for row in costs)
    counts = np.unique(costs, return_counts=True)[1]
    assert len(counts) == 30
    assert np.abs(counts / 500 - 2 / 3).max() < 0.1  # each item as often as any other
    assert (draw_rows(numbers[:, None], -numbers, size=20, n_rows=500, seed=3)[1] == costs).all()


def test_a_model_of_drawn_rows_decides_for_the_whole_population() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(4000, 3))
    gains = np.exp(features @ [1.0, 0.5, 0.0] + rng.normal(size=4000))
    X, costs = draw_rows(features[:2000], gains[:2000], size=40, n_rows=150, seed=0)
    model = WiseRegressor(GeneralizedLinear("gamma")).fit(X, costs)
    called = decide(model, TopK(2000, 200), features[np.newaxis, 2000:])
    assert called.sum() == 200
    mean = np.exp(features[np.newaxis, 2000:] @ [1.0, 0.5, 0.0])
    of_mean = normalized_regret(TopK(2000, 200), mean, gains[np.newaxis, 2000:])
    found = normalized_regret(TopK(2000, 200), model.predict(features[np.newaxis, 2000:]), gains[np.newaxis, 2000:])
    assert found < of_mean + 3  # percent, of which that of the mean costs itself is 30


def test_a_row_cannot_have_more_items_than_there_are() -> None:
    with pytest.raises(ValueError, match="size must be at most 5; got size=6"):
        draw_rows(np.zeros((5, 1)), np.zeros(5), size=6, n_rows=2, seed=0)
