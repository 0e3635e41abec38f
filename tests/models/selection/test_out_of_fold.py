"""Folds with half the rows tell the floor."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, RepeatedKFold

from decidewise.models.selection.folds import affordable, folds
from decidewise.models.selection.out_of_fold import OutOfFold
from decidewise.models.selection.race import race
from decidewise.problems import Knapsack, TopK


def held_out(X, costs, cv, rng, max_solves=None):
    splits = folds(cv, X, costs, None, rng)
    return OutOfFold.of(TopK(8, 2), X, costs, splits, affordable(splits, 1, max_solves, rng))


def test_halves_split_the_training_rows_and_hold_out_the_same():
    rng = np.random.default_rng(0)
    whole = held_out(rng.normal(size=(50, 2)), rng.normal(size=(50, 8)), KFold(5), rng)
    halved = whole.halved(rng)
    assert halved.n_solves == 2 * whole.n_solves == 100
    for (train, test), first, second in zip(whole.splits, halved.splits[::2], halved.splits[1::2], strict=True):
        np.testing.assert_array_equal(np.sort(np.concatenate([first[0], second[0]])), train)
        assert len(first[0]) == len(second[0]) == 20
        np.testing.assert_array_equal(first[1], test)
        np.testing.assert_array_equal(second[1], test)


def test_twice_the_regret_minus_that_with_half_the_rows_is_the_floor():
    excess, error = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 4))
        mean = X @ rng.normal(size=(4, 8))
        rows = held_out(X, mean + 2 * rng.normal(size=(60, 8)), 5, rng)
        regret, halved = rows.regret(LinearRegression()), rows.halved(rng).regret(LinearRegression())
        floor = rows.truth.regret(mean)
        excess.append(100 * (regret - floor).sum() / rows.truth.scale)
        error.append(100 * (2 * regret - halved - floor).sum() / rows.truth.scale)
    assert np.mean(excess) > 3
    assert abs(np.mean(error)) < 0.3 * np.mean(excess)


def test_folds_without_a_row_to_score_are_not_fitted():
    rng = np.random.default_rng(0)
    few = held_out(np.zeros((40, 1)), np.ones((40, 8)), KFold(20), rng, max_solves=6)
    assert len(few.rows) == few.n_solves == 3
    assert len(few.splits) <= 3


def test_fewer_than_two_rows_are_an_error():
    with pytest.raises(ValueError, match=r"1 rows can be scored, but a comparison needs at least two"):
        affordable([(np.arange(5), np.array([7]))], 1, None, np.random.default_rng(0))


def test_parts_of_the_folds_give_what_all_folds_give():
    rng = np.random.default_rng(0)
    whole = held_out(
        rng.normal(size=(40, 2)), rng.normal(1, 1, size=(40, 8)), RepeatedKFold(n_splits=4, n_repeats=2), rng
    )
    parts = whole.trial_fold()
    together = whole.together((part, part.scored([LinearRegression()])[0]) for part in parts)
    at_once = whole.scored([LinearRegression()])[0]
    np.testing.assert_allclose(together.regrets, at_once.regrets)
    np.testing.assert_allclose(together.predictions, at_once.predictions)


def test_a_sample_of_the_predictions_is_kept():
    rng = np.random.default_rng(0)
    X, costs = rng.normal(size=(60, 2)), rng.normal(1, 1, size=(60, 8))
    whole = held_out(X, costs, KFold(3), rng)
    np.testing.assert_array_equal(whole.sample, np.arange(60))
    few = replace(whole, sample=whole.rows[::7])
    every, some = (rows.scored([LinearRegression()])[0].predictions for rows in (whole, few))
    np.testing.assert_array_equal(some, every[::7])
    np.testing.assert_allclose(np.linalg.norm(every, axis=1), 1)  # directions
    large = OutOfFold.of(TopK(8, 2), np.zeros((50_000, 1)), np.ones((50_000, 8)), whole.splits, np.arange(50_000))
    assert large.sample.size * 8 == 100_000
    assert (np.diff(large.sample) > 0).all()
    weekdays = np.bincount(large.sample % 7) / large.sample.size  # no day of the week is left out
    np.testing.assert_allclose(weekdays, 1 / 7, atol=0.01)


def test_no_predictions_are_kept_if_that_would_be_few_rows():
    rng = np.random.default_rng(0)
    X, costs = rng.normal(size=(40, 2)), rng.normal(1, 1, size=(40, 6_000))
    wide = OutOfFold.of(TopK(6_000, 2), X, costs, [(np.arange(20), np.arange(20, 40))], np.arange(20, 40))
    assert len(wide.sample) == 0
    scores = race(wide, {"least squares": LinearRegression(), "mean": DummyRegressor()})
    assert wide.fitted_weights(scores, ["mean"]) == ({}, 0)


def test_weights_are_not_fitted_where_nothing_is_to_be_decided_in_the_sample():
    # Nothing is worth packing in the rows of the sample, so its regrets are no percentage of anything.
    rng = np.random.default_rng(0)
    X, costs = rng.normal(size=(40, 2)), rng.normal(1, 1, size=(40, 8))
    costs[::2] = -np.abs(costs[::2])
    problem, splits = Knapsack(np.ones((1, 8)), [2.0]), [(np.arange(20), np.arange(20, 40))]
    rows = OutOfFold.of(problem, X, costs, splits, np.arange(20, 40))
    rows = replace(rows, sample=rows.rows[::2])
    scores = race(rows, {"least squares": LinearRegression(), "forest": RandomForestRegressor(5, random_state=0)})
    assert rows.fitted_weights(scores, []) == ({}, 0)
