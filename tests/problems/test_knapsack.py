from itertools import product

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from decidewise import SolverError
from decidewise.problems import Knapsack
from decidewise.problems.knapsack import problem as knapsack
from decidewise.problems.knapsack.enumeration import maximal_packs
from decidewise.problems.knapsack.search import search_packs


@pytest.fixture(params=["listed", "searched"])
def solver(request, monkeypatch):
    """Both ways to solve: small instances are searched only when no pack may be listed."""
    if request.param == "searched":
        monkeypatch.setattr(knapsack, "MAX_PACKS", 0)


def all_packs(weights, capacities):
    """Every feasible pack, lexicographically largest first."""
    packs = np.array(list(product([1.0, 0.0], repeat=weights.shape[1])))
    return packs[np.all(packs @ weights.T <= capacities * (1 + 1e-9), axis=1)]


def random_instance(rng, n_items, n_dimensions):
    if rng.random() < 0.5:
        weights = rng.integers(0, 9, size=(n_dimensions, n_items)).astype(float)
    else:
        weights = rng.integers(300, 800, size=(n_dimensions, n_items)) / 100
    return weights, np.round(weights.sum(axis=1) * rng.uniform(size=n_dimensions), 1)


def best_value(values, weights, capacities):
    result = milp(
        -values,
        integrality=np.ones(len(values)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(weights, -np.inf, capacities),
        options={"mip_rel_gap": 0},
    )
    return -result.fun


@pytest.mark.usefixtures("solver")
@pytest.mark.parametrize("n_dimensions", [1, 2, 3])
def test_ties_go_to_the_first_pack_of_brute_force(n_dimensions):
    rng = np.random.default_rng(n_dimensions)
    for n_items in range(1, 13):
        weights, capacities = random_instance(rng, n_items, n_dimensions)
        values = rng.integers(-1, 4, size=(40, n_items)).astype(float)
        packs = all_packs(weights, capacities)
        expected = []
        for row in values:
            worthwhile = packs[~np.any(packs[:, row <= 0] > 0, axis=1)]
            expected.append(worthwhile[np.argmax(worthwhile @ row)])  # exact for integers; the first of the largest
        problem = Knapsack(weights, capacities)
        for scale in (1.0, 1e-8, 1 / 3, 7.7, 1e8):
            np.testing.assert_array_equal(problem.solve(scale * values), expected)
        assert pytest.approx(np.sqrt(packs.sum(axis=1).max())) == problem.B_S


@pytest.mark.parametrize("n_items", [16, 20])
def test_the_search_finds_the_listed_packs(n_items, monkeypatch):
    rng = np.random.default_rng(n_items)
    weights = rng.integers(300, 800, size=(2, n_items)) / 100
    values = np.vstack(
        [
            rng.normal(size=(50, n_items)),
            rng.integers(-2, 4, size=(50, n_items)),
            5 + 1e-3 * rng.normal(size=(50, n_items)),
            weights[0] + np.zeros((1, n_items)),
            np.ones((1, n_items)),
        ]
    )
    listed = Knapsack(weights, [20, 20])
    monkeypatch.setattr(knapsack, "MAX_PACKS", 0)
    searched = Knapsack(weights, [20, 20])
    np.testing.assert_array_equal(searched.solve(values), listed.solve(values))
    assert pytest.approx(listed.B_S, rel=1e-12) == searched.B_S


@pytest.mark.parametrize("n_dimensions", [1, 2, 3])
@pytest.mark.parametrize(("n_items", "fullness"), [(40, 0.5), (60, 1 / 3), (60, 0.5)])
def test_the_value_is_that_of_highs(n_items, n_dimensions, fullness):
    rng = np.random.default_rng(n_items)
    weights = rng.integers(300, 800, size=(n_dimensions, n_items)) / 100
    capacities = weights.sum(axis=1) * fullness
    values = np.vstack(
        [
            rng.normal(size=(2, n_items)),
            rng.integers(-3, 20, size=(2, n_items)),
            5 + 1e-2 * rng.normal(size=(1, n_items)),
        ]
    )
    packs = Knapsack(weights, capacities).solve(values)
    assert np.all(packs @ weights.T <= capacities * (1 + 1e-9))
    assert np.all(packs * (values <= 0) == 0)
    expected = [best_value(row, weights, capacities) for row in values]
    np.testing.assert_allclose((packs * values).sum(axis=1), expected, rtol=1e-9)


def test_many_ties_among_sixty_items():
    """All packs of the largest size are optimal; HiGHS confirms that no earlier item could have been taken."""
    rng = np.random.default_rng(0)
    weights = rng.integers(300, 800, size=(2, 60)) / 100
    capacities = weights.sum(axis=1) / 3
    problem = Knapsack(weights, capacities)
    pack = problem.solve(np.ones(60))
    most = best_value(np.ones(60), weights, capacities)
    assert pack.sum() == pytest.approx(most)
    assert pytest.approx(np.sqrt(most)) == problem.B_S
    for item in np.flatnonzero(pack == 0)[:10]:
        taken = np.append(np.flatnonzero(pack[:item]), item)
        later = np.arange(item + 1, 60)
        left = capacities - weights[:, taken].sum(axis=1)
        assert len(taken) + best_value(np.ones(len(later)), weights[:, later], left) < most - 0.5


def test_scale_does_not_matter_for_sixty_items():
    rng = np.random.default_rng(1)
    weights = rng.integers(300, 800, size=(2, 60)) / 100
    problem = Knapsack(weights, weights.sum(axis=1) / 2)
    values = rng.integers(0, 5, size=(20, 60)).astype(float)
    expected = problem.solve(values)
    for scale in (1e-8, 3e-5, 0.1, 1 / 3, 12_345.6, 1e8):
        np.testing.assert_array_equal(problem.solve(scale * values), expected)


@pytest.mark.usefixtures("solver")
class TestEdges:
    def test_decimal_weights_that_fill_the_knapsack_exactly(self):
        assert 0.1 + 0.1 + 0.1 > 0.3
        np.testing.assert_array_equal(Knapsack([0.1, 0.1, 0.1], 0.3).solve(np.ones(3)), np.ones(3))
        np.testing.assert_array_equal(Knapsack([0.1, 0.1, 0.1], 0.2999).solve(np.ones(3)), [1, 1, 0])

    def test_no_capacity_takes_what_weighs_nothing(self):
        problem = Knapsack([[0.0, 1.0, 0.0], [1.0, 1.0, 1.0]], [0.0, 2.0])
        np.testing.assert_array_equal(problem.solve([1.0, 9.0, 1.0]), [1, 0, 1])

    def test_nothing_fits(self):
        problem = Knapsack([1e300, 2.0], 1e-300)
        np.testing.assert_array_equal(problem.solve([[1.0, 2.0]]), [[0, 0]])
        assert problem.B_S == 0

    def test_everything_fits(self):
        problem = Knapsack([[1.0, 2.0], [2.0, 1.0]], [3.0, 3.0])
        np.testing.assert_array_equal(problem.solve([[1.0, 2.0], [0.0, -1.0]]), [[1, 1], [0, 0]])
        assert pytest.approx(np.sqrt(2)) == problem.B_S

    def test_values_of_any_magnitude(self):
        problem = Knapsack([1.0, 1.0, 1.0], 2.0)
        np.testing.assert_array_equal(problem.solve([1e300, 1e-300, 1.7e308]), [1, 0, 1])
        np.testing.assert_array_equal(problem.solve([5e-324, 0.0, 5e-324]), [1, 0, 1])

    def test_a_small_difference_is_no_tie(self):
        problem = Knapsack([1.0, 1.0, 1.0], 1.0)
        np.testing.assert_array_equal(problem.solve([1.0, 1.0 + 1e-9, 1.0]), [0, 1, 0])


def test_listed_packs_are_the_maximal_ones():
    rng = np.random.default_rng(2)
    for n_items in range(1, 11):
        weights, capacities = random_instance(rng, n_items, 2)
        capacities += 1.0
        packs = all_packs(weights, capacities)
        grown = packs[:, None, :] + np.eye(n_items)
        fits = np.all(grown @ weights.T <= capacities * (1 + 1e-9), axis=2) & np.all(grown <= 1, axis=2)
        listed = maximal_packs(np.ascontiguousarray((weights / capacities[:, None]).T), 1024)
        np.testing.assert_array_equal(listed.T, packs[~fits.any(axis=1)])
        if listed.shape[1] > 1:
            assert maximal_packs((weights / capacities[:, None]).T.copy(), listed.shape[1] - 1).shape == (n_items, 0)


def test_a_thousand_items_correlated_with_their_weights_go_to_highs():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 1000, 1000).astype(float)
    problem = Knapsack(weights, weights.sum() // 2, time_limit=30)
    values = np.vstack([weights + 100, rng.uniform(size=1000)])
    details = problem.solve_details(values)
    # Of n items the value is that of their weights, at most the capacity, plus 100 n.
    most = np.searchsorted(np.cumsum(np.sort(weights)), weights.sum() // 2, side="right")
    assert details.objective[0] == pytest.approx(weights.sum() // 2 + 100 * most, rel=1e-9)
    assert (list(details.status), list(details.gap)) == (["optimal"] * 2, [0.0, 0.0])


def test_the_pivots_of_relaxations_count_as_steps():
    # If they do not, a row of 1,000 items with many ties is given up after minutes instead of a second.
    weights, values = np.random.default_rng(0).integers(10, 1000, size=(2, 600)).astype(float)
    problem, steps = Knapsack(weights, weights.sum() // 2), np.array([10**7])

    _, stuck = search_packs(values[np.newaxis], problem._loads, steps)

    assert stuck < 0
    assert 10**7 - steps[0] > 600**2 / 2


def test_a_hard_row_has_the_best_pack_found_and_its_gap():
    """No subset of real numbers sums to the capacity, and none can be proved to be the nearest."""
    rng = np.random.default_rng(3)
    weights = rng.uniform(1, 1000, size=80)
    capacities = np.array([weights.sum() / 2, weights.sum() / 3])[:, np.newaxis]
    values = np.vstack([weights, weights])
    by_row = Knapsack(weights, capacities, time_limit=0.4, on_limit="best")
    details = by_row.solve_details(values)
    assert list(details.status) == ["limit"] * 2
    assert np.all((details.gap > 0) & (details.gap < 1e-3))
    assert np.all(details.decisions @ weights <= capacities[:, 0] * (1 + 1e-9))
    assert np.all(details.bound >= details.objective)
    with pytest.raises(SolverError, match=r"row 1: HiGHS ended with status 'Time limit reached'.*longer time_limit"):
        Knapsack(weights, weights.sum() / 2, time_limit=0.4).solve(np.vstack([np.ones(80), weights]))
    failed = Knapsack(weights, weights.sum() / 2, time_limit=0.4, on_error="nan").solve([np.ones(80), weights])
    assert np.isnan(failed[1]).all()
    assert failed[0].sum() > 40
    with pytest.raises(ValueError, match="time_limit must be"):
        Knapsack(weights, 1.0, time_limit=0)


def test_relaxation():
    problem = Knapsack([[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0])
    region = problem.polyhedron
    np.testing.assert_array_equal(region.A_ub.toarray(), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(region.b_ub, [5, 6])
    assert region.A_eq.shape == (0, 2)
    assert problem.is_integer


@pytest.mark.parametrize(
    ("weights", "capacities", "message"),
    [
        ([[1.0, -2.0]], [1.0], r"weights must not be negative; weights\[0, 1\] is -2"),
        ([1.0, 2.0], -1.0, r"capacities must not be negative; capacities\[0\] is -1"),
        ([[1.0, np.nan]], [1.0], "weights must be finite; row 0, column 1 has NaN"),
        ([[1.0, 2.0]], [np.inf], r"capacities must be finite; row 0 has \+inf"),
        (
            [[1.0, 2.0]],
            [1.0, 2.0],
            r"capacities must have one entry for each of the 1 rows of weights.*got capacities.shape=\(2,\)",
        ),
        ([[1.0], [2.0]], 3.0, r"capacities must be a vector of length 2; got capacities.shape=\(1,\)"),
        (np.ones((2, 2, 2)), [1.0], r"one row per dimension and one column per item; got weights.shape=\(2, 2, 2\)"),
        ([], 1.0, "weights is empty"),
        (["a"], 1.0, "weights must be an array of real numbers"),
    ],
)
def test_bad_arguments(weights, capacities, message):
    with pytest.raises(ValueError, match=message):
        Knapsack(weights, capacities)
