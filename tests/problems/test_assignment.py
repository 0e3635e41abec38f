from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from decidewise.problems import Assignment


def assignments(n):
    """Every permutation matrix, in lexicographic order."""
    return np.array([np.eye(n)[list(columns)].ravel() for columns in permutations(range(n))])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("largest", [1, 2, 10])
def test_equals_enumeration_with_ties(n, largest, first_best):
    costs = np.random.default_rng(n).integers(-largest, largest + 1, size=(150, n * n)).astype(float)
    expected = first_best(assignments(n), costs)
    for scale in (1e-300, 1e-8, 0.1, 1 / 3, 1.0, 7.7, 1e8, 1e300):
        np.testing.assert_array_equal(Assignment(n).solve(scale * costs), expected)


@pytest.mark.parametrize("n", [2, 5, 20, 80])
@pytest.mark.parametrize("sense", ["min", "max"])
def test_equals_scipy(n, sense):
    rng = np.random.default_rng(n)
    costs = np.vstack([rng.normal(size=(5, n * n)), rng.exponential(size=(5, n * n)), rng.poisson(2, size=(5, n * n))])
    values = (costs * Assignment(n, sense=sense).solve(costs)).sum(axis=1)
    for row, value in zip(costs.reshape(-1, n, n), values, strict=True):
        assert value == pytest.approx(row[linear_sum_assignment(row, maximize=sense == "max")].sum(), rel=1e-9)


def test_equals_highs(highs_minimum):
    problem = Assignment(12)
    costs = np.random.default_rng(0).normal(size=(10, 144))
    values = (costs * problem.solve(costs)).sum(axis=1)
    np.testing.assert_allclose(values, highs_minimum(problem.polyhedron, costs), rtol=1e-7)


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 1.0, 1e8])
def test_ties_of_a_large_instance_go_to_the_first_permutation(scale):
    """With costs `u[i] + v[j]` every permutation is optimal, whatever the sums round to."""
    rng = np.random.default_rng(1)
    costs = scale * (rng.normal(size=(70, 1)) + rng.normal(size=70))
    np.testing.assert_array_equal(Assignment(70).solve(costs.ravel()), np.eye(70).ravel())


def test_sums_of_huge_costs_do_not_overflow():
    costs = 1.7e308 * np.array([1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    assert Assignment(3).solve(costs).reshape(3, 3).argmax(axis=1).tolist() == [2, 1, 0]


@pytest.mark.parametrize(("n", "message"), [(0, "n must be at least 1; got n=0"), (2.0, "integer"), (True, "integer")])
def test_bad_size(n, message):
    with pytest.raises(ValueError, match=message):
        Assignment(n)
