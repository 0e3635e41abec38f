"""Targets, their batches, and the solves that labels and losses ask them for."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from decidewise import DecisionRegressor, OptimalityWarning
from decidewise.losses import SHARED, SpoPlus, Target
from decidewise.problems import TopK

PROBLEM = TopK(3, 1, sense="min")
COSTS = np.arange(12.0).reshape(4, 3)


@dataclass(frozen=True)
class PoolTarget(Target):
    weights: np.ndarray
    pool: np.ndarray = field(metadata=SHARED)


class TestTargets:
    def test_rows_are_cut_and_what_is_shared_is_not(self):
        # Of as many rows as there are costs, so that nothing but its declaration tells.
        target = PoolTarget(PROBLEM, COSTS, np.arange(4.0), np.ones((4, 3)))

        batch = target[[2, 0]]

        np.testing.assert_array_equal(batch.costs, COSTS[[2, 0]])
        np.testing.assert_array_equal(batch.weights, [2.0, 0.0])
        assert batch.pool is target.pool
        assert batch.problem is PROBLEM
        assert len(batch[:1]) == 1

    @pytest.mark.parametrize(
        ("weights", "came"),
        [(np.ones(3), r"of shape \(3,\)"), (np.float64(1.0), "a float64"), ([1.0] * 4, "a list"), (None, "a NoneType")],
    )
    def test_what_is_not_declared_as_shared_has_one_row_for_each_sample(self, weights, came):
        sentence = f"PoolTarget.weights must be an array with one row for each of the 4 samples; it is {came}. If all "
        with pytest.raises(ValueError, match=sentence):
            PoolTarget(PROBLEM, COSTS, weights, np.ones((2, 3)))

    def test_costs_of_any_leading_shape_are_solved_in_one_batch(self, monkeypatch):
        target = Target(PROBLEM, COSTS)
        costs = np.random.default_rng(0).normal(size=(5, 4, 3))
        expected = np.stack([PROBLEM.minimize(part) for part in costs])
        batches, minimize = [], PROBLEM.minimize
        monkeypatch.setattr(PROBLEM, "minimize", lambda rows: batches.append(len(rows)) or minimize(rows))

        np.testing.assert_array_equal(target.minimize(costs), expected)
        assert batches == [20]


class Mistaken(TopK):
    """Chooses the worst where it should choose the best."""

    def minimize(self, costs):
        return super().minimize(-costs)


@pytest.mark.parametrize(("sense", "wrong"), [("min", "maximise"), ("max", "minimise")])
def test_a_problem_that_maximises_by_mistake_is_told_so_when_it_labels(sense, wrong):
    costs = np.random.default_rng(0).uniform(1, 2, size=(50, 5))
    with pytest.warns(OptimalityWarning, match=f"another row is better.*Does it {wrong} although.*{sense!r}"):
        SpoPlus().prepare(Mistaken(5, 2, sense=sense), costs)
    with pytest.warns(OptimalityWarning, match=f"Does it {wrong}"):
        DecisionRegressor(Mistaken(5, 2, sense=sense), epochs=1, random_state=0).fit(costs[:, :2], costs)
    SpoPlus().prepare(TopK(5, 2, sense=sense), costs)  # and warnings are errors
