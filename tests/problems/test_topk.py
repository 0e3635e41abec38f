from itertools import combinations

import numpy as np
import pytest

from decidewise.problems import TopK


def choices(n, k):
    """Every choice of k items, in lexicographic order."""
    return np.array([np.isin(np.arange(n), items) for items in combinations(range(n), k)], dtype=float)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (6, 1), (6, 3), (6, 6), (8, 5)])
@pytest.mark.parametrize("largest", [1, 3])
def test_equals_enumeration_with_ties(n, k, largest, first_best):
    costs = np.random.default_rng(n).integers(-largest, largest + 1, size=(200, n)).astype(float)
    for scale in (1e-8, 0.1, 1.0, 1 / 3, 1e8):
        np.testing.assert_array_equal(TopK(n, k, sense="min").solve(scale * costs), first_best(choices(n, k), costs))
        np.testing.assert_array_equal(TopK(n, k).solve(scale * costs), first_best(choices(n, k), -costs))


def test_equals_highs(highs_minimum):
    problem = TopK(60, 17)
    costs = np.random.default_rng(0).normal(size=(20, 60))
    values = (costs * problem.solve(costs)).sum(axis=1)
    np.testing.assert_allclose(values, -highs_minimum(problem.polyhedron, -costs), rtol=1e-7)


def test_maximises_unless_told_otherwise():
    assert TopK(3, 1).solve([1.0, 3.0, 2.0]).tolist() == [0, 1, 0]
    assert TopK(3, 1, sense="min").solve([1.0, 3.0, 2.0]).tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("n", "k", "message"),
    [
        (3, 4, "cannot choose k=4 of n=3"),
        (3, 0, "k must be at least 1; got k=0"),
        (0, 1, "n must be at least 1"),
        (3, 2.0, "k must be .* integer; got 2.0"),
        (True, 1, "n must be .* integer; got True"),
    ],
)
def test_bad_arguments(n, k, message):
    with pytest.raises(ValueError, match=message):
        TopK(n, k)
