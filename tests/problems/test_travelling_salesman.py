"""Tours against enumeration, against HiGHS with subtour cuts, and against what must not change them."""

from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist

from decidewise.data import make_travelling_salesman
from decidewise.evaluate import decision_regret
from decidewise.kit.errors import SolverError
from decidewise.kit.gaps import note_gaps, noted_gaps
from decidewise.problems import CountedProblem, TravellingSalesman
from decidewise.problems.huge_costs import minimize_capped
from decidewise.problems.travelling_salesman import problem as travelling_salesman
from decidewise.solvers import Polyhedron


def as_decision(nodes):
    """Write a sequence of nodes as a decision, edge by edge."""
    n = len(nodes)
    taken = np.zeros((n, n))
    taken[nodes, np.roll(nodes, -1)] = 1.0
    return (taken + taken.T)[np.triu_indices(n, 1)]


@cache
def all_tours(n):
    """Return every tour once, the lexicographically largest decision first."""
    tours = [as_decision([0, *rest]) for rest in permutations(range(1, n)) if rest[0] < rest[-1]]
    return np.array(sorted(tours, key=tuple, reverse=True))


def highs_tour(problem, costs):
    """Solve with two edges at each node, and cut off the subtours until there are none."""
    plain = problem.polyhedron
    rows = [LinearConstraint(plain.A_eq, plain.b_eq, plain.b_eq)]
    while True:
        found = milp(
            costs,
            constraints=rows,
            integrality=np.ones(problem.n_costs),
            bounds=Bounds(0, 1),
            options={"mip_rel_gap": 0.0},
        )
        decision = np.round(found.x)
        a, b = problem.ends
        graph = np.zeros((problem.n_nodes, problem.n_nodes))
        graph[a, b] = decision
        n_parts, part = connected_components(graph, directed=False)
        if n_parts == 1:
            return decision
        for one in range(n_parts):
            rows.append(LinearConstraint((part[a] == one) != (part[b] == one), 2.0, np.inf))


COSTS = {
    "positive": lambda rng, size: rng.uniform(0.1, 1.0, size=size),
    "signed": lambda rng, size: rng.normal(size=size),
    "far from zero": lambda rng, size: 1e4 + rng.normal(size=size),
    "few integers": lambda rng, size: rng.integers(-2, 3, size=size).astype(float),
    "zero or one": lambda rng, size: rng.integers(0, 2, size=size).astype(float),
    "mostly zero": lambda rng, size: rng.integers(1, 9, size=size) * (rng.random(size) < 0.2),
}


@pytest.mark.parametrize("draw", COSTS.values(), ids=COSTS)
@pytest.mark.parametrize("n", range(3, 10))
def test_equals_enumeration_ties_included(n, draw, first_best):
    problem, tours = TravellingSalesman(n), all_tours(n)
    costs = draw(np.random.default_rng(n), (60, problem.n_costs))
    expected = first_best(tours, costs)
    np.testing.assert_array_equal(problem.solve(costs), expected)
    for scale in (1e-8, 1e8):
        np.testing.assert_array_equal(problem.solve(scale * costs), expected)
    np.testing.assert_array_equal(TravellingSalesman(n, sense="max").solve(costs), first_best(tours, -costs))


@pytest.mark.parametrize("degree", [1, 6, None], ids=["degree 1", "degree 6", "signed"])
@pytest.mark.parametrize("n", [12, 20])
def test_equals_highs_with_subtour_cuts(n, degree):
    problem = TravellingSalesman(n)
    if degree:
        costs = make_travelling_salesman(6, n_nodes=n, degree=degree, seed=1).costs
    else:
        costs = np.random.default_rng(1).normal(size=(6, problem.n_costs))
    np.testing.assert_array_equal(problem.solve(costs), [highs_tour(problem, row) for row in costs])


@pytest.mark.parametrize("n", [20, 30, 50])
def test_names_and_prices_of_nodes_do_not_matter(n):
    """The best tour of other names is the same tour; a price on each visit adds the same to every tour."""
    problem, rng = TravellingSalesman(n), np.random.default_rng(2)
    costs = make_travelling_salesman(6, n_nodes=n, degree=4, seed=2).costs
    decisions = problem.solve(costs)
    a, b = problem.ends

    prices = rng.normal(scale=costs.std(), size=(6, n))
    np.testing.assert_array_equal(problem.solve(costs + prices[:, a] + prices[:, b]), decisions)

    names = rng.permutation(n)
    edge = np.empty((n, n), int)
    edge[a, b] = edge[b, a] = np.arange(problem.n_costs)
    moved = edge[names[a], names[b]]
    np.testing.assert_array_equal(problem.solve(costs[:, moved]), decisions[:, moved])


@pytest.mark.parametrize("n", [3, 4, 5, 20, 50])
def test_where_all_tours_are_equal_the_first_is_taken(n):
    # The two ends of a path from node 0 take turns: 0-1, 0-2, 1-3, 2-4, ..., and meet at the end.
    first = as_decision([*range(n - 1 - n % 2, 0, -2), *range(0, n, 2)])
    problem, rng = TravellingSalesman(n), np.random.default_rng(3)
    a, b = problem.ends
    prices = rng.integers(-5, 6, size=n), rng.normal(size=n)  # exactly, and up to rounding
    for costs in (np.ones(problem.n_costs), np.zeros(problem.n_costs), *(price[a] + price[b] for price in prices)):
        np.testing.assert_array_equal(problem.solve(costs), first)


def test_points_on_a_circle_are_visited_in_their_order():
    n = 50
    angles = 2 * np.pi * np.arange(n) / n
    costs = pdist(np.column_stack([np.cos(angles), np.sin(angles)]))
    np.testing.assert_array_equal(TravellingSalesman(n).solve(costs), as_decision(np.arange(n)))


def test_polyhedron_at_has_valid_rows_that_bind():
    problem, tours = TravellingSalesman(8), all_tours(8)
    n_rows = 0
    for costs in np.random.default_rng(4).uniform(size=(40, 1, problem.n_costs)):
        decision = problem.solve(costs)
        region = problem.polyhedron_at(costs, decision)
        n_rows += len(region.b_ub)
        np.testing.assert_array_equal(region.A_ub @ decision[0], region.b_ub)
        assert np.all(region.A_ub @ tours.T <= region.b_ub[:, None])
        assert np.all(region.A_eq @ tours.T == region.b_eq[:, None])
    assert n_rows > 40


def every_set(problem):
    """Return the polyhedron with the rows of all sets of nodes against subtours."""
    nodes = np.arange(problem.n_nodes)
    sets = [np.isin(nodes, some) for size in range(3, problem.n_nodes - 2) for some in combinations(nodes, size)]
    inside = np.array([one[problem.ends[0]] & one[problem.ends[1]] for one in sets], float)
    plain = problem.polyhedron
    sizes = np.sum(sets, axis=1) - 1.0
    return Polyhedron(csr_array(inside), sizes, plain.A_eq, plain.b_eq, plain.lower, plain.upper)


def test_polyhedron_at_proves_nearly_every_tour_that_all_rows_prove(highs_minimum):
    problem, rng = TravellingSalesman(9), np.random.default_rng(5)
    costs = np.array([pdist(rng.uniform(size=(9, 2))) for _ in range(40)])
    decisions = problem.solve(costs)
    values = (costs * decisions).sum(axis=1)
    by_all, by_none = (
        highs_minimum(region, costs) > values - 1e-9 for region in (every_set(problem), problem.polyhedron)
    )
    by_few = [
        highs_minimum(problem.polyhedron_at(row[None], decision[None]), row[None])[0] > value - 1e-9
        for row, decision, value in zip(costs, decisions, values, strict=True)
    ]
    assert by_none.mean() < 0.5 < by_all.mean()
    assert np.mean(by_few) > 0.9 * by_all.mean()


def test_polyhedron_at_of_a_batch_has_the_rows_of_each_once():
    problem = TravellingSalesman(12)
    costs = np.random.default_rng(6).uniform(size=(5, problem.n_costs))
    decisions = problem.solve(costs)
    alone = [problem.polyhedron_at(costs[[i]], decisions[[i]]).A_ub for i in range(5)]
    expected = np.unique(vstack(alone).toarray(), axis=0)
    twice = CountedProblem(problem).polyhedron_at(np.tile(costs, (2, 1)), np.tile(decisions, (2, 1)))
    np.testing.assert_array_equal(np.unique(twice.A_ub.toarray(), axis=0), expected)
    assert len(twice.b_ub) == len(expected)


@pytest.mark.parametrize("n", [3, 4, 5])
def test_few_nodes_have_no_rows_against_subtours(n):
    problem = TravellingSalesman(n)
    costs = np.random.default_rng(7).normal(size=(4, problem.n_costs))
    region = problem.polyhedron_at(costs, problem.solve(costs))
    assert region.A_ub.shape == (0, problem.n_costs)
    assert region.b_ub.shape == (0,)


@pytest.fixture
def always_hard(monkeypatch):
    """Let every row be handed over to HiGHS."""
    monkeypatch.setattr(travelling_salesman, "steps_before", lambda *_: 1)


@pytest.mark.parametrize("draw", COSTS.values(), ids=COSTS)
@pytest.mark.parametrize("n", [3, 4, 6, 9])
def test_hard_rows_equal_enumeration(n, draw, always_hard):
    problem, tours = TravellingSalesman(n), all_tours(n)
    costs = draw(np.random.default_rng(n), (3, problem.n_costs))
    details = problem.solve_details(costs)
    assert all(any((tour == decision).all() for tour in tours) for decision in details.decisions)
    np.testing.assert_allclose(details.objective, (costs @ tours.T).min(axis=1), rtol=1e-9, atol=1e-9)
    assert (list(details.status), list(details.gap)) == (["optimal"] * 3, [0.0] * 3)


def test_hard_rows_of_sixty_nodes_equal_the_search(monkeypatch, always_hard):
    problem = TravellingSalesman(60)
    data = make_travelling_salesman(1, n_nodes=60, degree=4, seed=3)
    costs = np.vstack([data.costs, pdist(np.random.default_rng(9).normal(size=(60, 2)))])
    costs[1, 5] = 1e15  # forbidden
    found = problem.solve(costs)
    monkeypatch.undo()
    np.testing.assert_array_equal(found, problem.solve(costs))


def test_a_grid_of_a_hundred_nodes_is_solved():
    nodes = np.indices((10, 10)).reshape(2, -1).T
    details = TravellingSalesman(100, time_limit=60).solve_details(pdist(nodes))
    assert details.objective == pytest.approx([100.0])
    assert list(details.status) == ["optimal"]


def test_at_the_limit_a_row_has_the_best_tour_and_its_gap():
    costs = np.vstack([pdist(np.random.default_rng(1).normal(size=(150, 2))), 1.0 - as_decision(np.arange(150))])
    details = TravellingSalesman(150, time_limit=1.5, on_limit="best").solve_details(costs)
    assert list(details.status) == ["limit", "optimal"]
    a, b = TravellingSalesman(150).ends
    graph = csr_array((details.decisions[0], (a, b)), shape=(150, 150))
    assert connected_components(graph, directed=False)[0] == 1
    np.testing.assert_array_equal(np.bincount(a, details.decisions[0], 150) + np.bincount(b, details.decisions[0]), 2)
    assert details.bound[0] < 44.1637 < details.objective[0] + 1e-4 < 60  # the best tour, as found within a minute
    assert details.gap[1] == details.objective[1] == 0
    with pytest.warns(UserWarning, match="In hindsight 1 of 2 decisions is not proven optimal"):
        decision_regret(TravellingSalesman(150, time_limit=0.5, on_limit="best"), costs, costs)
    with pytest.raises(SolverError, match=r"row 0: no routes were (proved|found).* within 0\.2 s"):
        TravellingSalesman(150, time_limit=0.2).solve(costs)
    failed = TravellingSalesman(150, time_limit=0.2, on_error="nan").solve(costs)
    np.testing.assert_array_equal(np.isnan(failed).all(axis=1), [True, False])


def test_the_bound_of_a_row_with_huge_costs_holds_for_these_costs():
    """Solve by a method that takes what is second best, and says how far it may be from the best."""

    def second(costs):
        order = costs.argsort(axis=1)
        note_gaps(np.diff(np.take_along_axis(costs, order[:, :2], axis=1))[:, 0], np.ones(len(costs), bool))
        return np.eye(costs.shape[1])[order[:, 1]]

    costs = np.array([[1.5, 1.0, 1e15], [-1e15, 1.0, 2.0], [3e14, 1e15, -1.0], [3.0, 1.0, 2.0], [1e301, 2e301, 3e301]])
    with noted_gaps() as noted:
        decisions = minimize_capped(second, costs, 1)
    gaps, stopped = noted.by_row(5)
    assert stopped.all()
    best = costs.min(axis=1)
    assert np.all((costs * decisions).sum(axis=1) - gaps <= best + 1e-9 * np.abs(best))
    np.testing.assert_allclose(gaps[[0, 3, 4]], [0.5, 1.0, 1e301])


@pytest.mark.parametrize(
    ("n", "message"), [(2, "n_nodes must be at least 3"), (5.0, "n_nodes must be a Python or Num")]
)
def test_bad_number_of_nodes(n, message):
    with pytest.raises(ValueError, match=message):
        TravellingSalesman(n)
