import numpy as np
import pytest
from scipy.stats import rankdata

from decidewise.problems import Ranking


@pytest.mark.parametrize("n", [1, 2, 7, 50])
def test_equals_scipy(n):
    scores = np.random.default_rng(n).integers(-3, 4, size=(40, n)).astype(float)
    np.testing.assert_array_equal(Ranking(n).solve(scores), rankdata(-scores, method="ordinal", axis=1))
    np.testing.assert_array_equal(Ranking(n, sense="max").solve(scores), rankdata(scores, method="ordinal", axis=1))


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_equals_highs_on_the_permutahedron(n, highs_minimum):
    scores = np.random.default_rng(n).normal(size=(15, n))
    values = (scores * Ranking(n).solve(scores)).sum(axis=1)
    np.testing.assert_allclose(values, highs_minimum(Ranking(n).polyhedron, scores), rtol=1e-7)


def test_the_permutahedron_is_listed_for_few_items_only():
    assert Ranking(10).polyhedron.A_ub.shape == (1_012, 10)  # all subsets but the empty one, single items and the whole
    assert Ranking(11).polyhedron is None


def test_bad_size():
    with pytest.raises(ValueError, match="n must be at least 1; got n=0"):
        Ranking(0)
