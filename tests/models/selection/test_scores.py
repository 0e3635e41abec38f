"""The winner of a race is flattered by it; the regret of choosing is not."""

import numpy as np
import pytest

from decidewise.evaluate import Hindsight
from decidewise.models.selection.scores import CandidateScores
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


def test_a_clear_winner_is_chosen_in_every_part():
    rng = np.random.default_rng(0)
    regrets = np.vstack([rng.exponential(size=200) + 1, rng.exponential(size=200)])
    np.testing.assert_array_equal(scored(regrets).regret_of_choosing(10, rng), regrets[1])
