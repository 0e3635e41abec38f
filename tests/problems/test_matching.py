import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from decidewise.problems import Assignment, Matching


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (7, 3), (20, 30)])
@pytest.mark.parametrize("sense", ["min", "max"])
def test_complete_equals_scipy(shape, sense):
    values = np.random.default_rng(shape).normal(size=(10, *shape))
    problem = Matching(*shape, complete=True, sense=sense)
    found = problem.solve(values.reshape(10, -1)).reshape(values.shape)
    for matrix, matching in zip(values, found, strict=True):
        best = matrix[linear_sum_assignment(matrix, maximize=sense == "max")].sum()
        assert (matrix * matching).sum() == pytest.approx(best, rel=1e-9)
        assert matching.sum() == min(shape)


def test_optional_equals_highs(highs_minimum):
    rng = np.random.default_rng(1)
    problem = Matching(12, 9, edges=np.argwhere(rng.random((12, 9)) < 0.4))
    values = rng.normal(0.2, 1.0, size=(20, problem.n_costs))
    found = problem.solve(values)
    np.testing.assert_allclose((values * found).sum(axis=1), -highs_minimum(problem.polyhedron, -values), rtol=1e-7)
    assert not found[values <= 0].any()


def test_a_square_complete_matching_is_an_assignment():
    costs = np.random.default_rng(2).integers(-2, 3, size=(50, 16)).astype(float)
    expected = Assignment(4).solve(costs)
    np.testing.assert_array_equal(Matching(4, 4, complete=True, sense="min").solve(costs), expected)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e6, 1e15, 1e300])
def test_pairs_that_are_not_possible_stay_out_at_any_scale(size):
    """The only complete matching is the diagonal, whatever it costs."""
    edges = [[0, 0], [1, 1], [2, 2], [0, 1], [1, 2]]
    problem = Matching(3, 3, edges=edges, complete=True, sense="min")
    np.testing.assert_array_equal(problem.solve(size * np.array([1.0, 1.0, 1.0, -1.0, 0.0])), [1, 1, 1, 0, 0])


def test_a_huge_value_does_not_blur_the_others():
    values = np.array([1e15, 0.3, 0.2, -1e15, 0.1, 0.3, 0.2, 0.2, 0.2])
    np.testing.assert_array_equal(Matching(3, 3).solve(values), [1, 0, 0, 0, 0, 1, 0, 1, 0])


def test_zero_values_match_nothing():
    assert not Matching(3, 2).solve(np.zeros(6)).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"left": 0}, "left must be at least 1"),
        ({"edges": [[0, 0, 0]]}, r"edges must be a list of pairs.*edges.shape=\(1, 3\)"),
        ({"edges": [[0, 0], [1]]}, "edges must be a list of pairs"),
        ({"edges": [[0, 0.5]]}, "edges must be integers, the numbers of nodes; got edges.dtype=float64"),
        ({"edges": [[0, 0], [0, 3]]}, "edge 1 has the right node 3; right nodes are 0 to 2"),
        ({"edges": [[0, 0], [1, 1], [0, 0]]}, r"edge 0, the pair \(0, 0\), is there twice"),
        ({"edges": [[0, 0], [1, 0]], "complete": True}, "no matching is complete: .* at most 1 pairs .* 2 nodes"),
        ({"complete": "yes"}, "complete must be"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        Matching(**({"left": 2, "right": 3} | arguments))
