"""The winner of a race is flattered by it; the regret of choosing is not."""

import numpy as np
import pytest

from decidewise.evaluate import Hindsight
from decidewise.models.selection.scores import CandidateScores, average_weights
from decidewise.problems import Ball


def scored(regrets):
    k, n = regrets.shape
    names = tuple(f"model {i}" for i in range(k))
    return CandidateScores(
        Hindsight(Ball(1), np.ones((n, 1)), np.ones(n)),
        names,
        regrets,
        ("scored",) * k,
        ("",) * k,
        (0.0,) * k,
        (n,) * k,
    )


def test_among_equals_the_winner_looks_better_than_it_is_and_choosing_does_not():
    rng = np.random.default_rng(0)
    lowest, chosen = [], []
    for _ in range(20):
        equals = scored(rng.exponential(size=(30, 200)))
        lowest.append(equals.results["regret"].min())
        chosen.append(100 * equals.regret_of_choosing(10, rng).mean())
    assert np.mean(lowest) < 90
    assert np.mean(chosen) == pytest.approx(100, abs=4)  # twice the standard error of the mean of 20 · 200 rows


@pytest.mark.parametrize(
    ("standard_errors", "constant", "expected"),
    [
        (2.5, ["model 0"], {"model 1": 1.0}),
        (1.5, ["model 0"], {"model 1": 0.75, "model 0": 0.25}),
        (0.5, ["model 0"], {"model 0": 0.75 + 0.125, "model 1": 0.125}),  # which is close, and so has a weight anyway
        (-0.5, ["model 0"], {"model 0": 1.0}),
        (0.5, ["no such model"], {"model 0": 0.5, "model 1": 0.5}),
        (1.5, [], {"model 1": 1.0}),
    ],
)
def test_what_ignores_the_features_has_a_share_until_two_standard_errors_prove_another_better(
    standard_errors, constant, expected
):
    n = 400
    signs = np.resize([1.0, -1.0], n)
    error = 1 / np.sqrt(n - 1)  # of the mean of the signs
    found = average_weights(scored(np.vstack([5 + signs + standard_errors * error, np.full(n, 5.0)])).results, constant)
    assert list(found) == list(expected)
    assert found == pytest.approx(expected)


def test_of_several_that_ignore_the_features_the_best_has_the_share():
    signs = np.resize([1.0, -1.0], 400)
    found = average_weights(
        scored(np.vstack([9 + signs, 5.05 + signs, np.full(400, 5.0)])).results, ["model 0", "model 1"]
    )
    assert list(found) == ["model 1", "model 2"]


def test_a_clear_winner_is_chosen_in_every_part():
    rng = np.random.default_rng(0)
    regrets = np.vstack([rng.exponential(size=200) + 1, rng.exponential(size=200)])
    np.testing.assert_array_equal(scored(regrets).regret_of_choosing(10, rng), regrets[1])
