"""Known costs added to a problem: the same decisions as for the sum of the costs, lifted or not, in every wrapper."""

import numpy as np
import pytest

from decidewise.losses import Cave, Lava, SpoPlus
from decidewise.problems import (
    Ball,
    CachedProblem,
    CountedProblem,
    Knapsack,
    KnownCosts,
    ParallelProblem,
    ShortestPath,
    TopK,
    TravellingSalesman,
)
from decidewise.problems.views import in_unit, lift
from decidewise.testing import check_problem

RNG = np.random.default_rng(0)
PROBLEMS = {
    "path": ShortestPath(3, 3),
    "top, max": TopK(5, 2, sense="max"),
    "knapsack, max": Knapsack([[3.0, 4.0, 5.0, 6.0, 7.0]], [12.0], sense="max"),
    "tour": TravellingSalesman(5),
    "ball": Ball(4),
}
on_every_problem = pytest.mark.parametrize("inside", PROBLEMS.values(), ids=PROBLEMS)


def draw(problem, n_rows=30):
    return RNG.normal(size=(n_rows, problem.n_costs)), RNG.normal(scale=2.0, size=(n_rows, problem.n_costs))


@on_every_problem
def test_the_contract(inside):
    fixed, by_row = RNG.normal(size=inside.n_costs), RNG.normal(size=(40, inside.n_costs))
    check_problem(KnownCosts(inside, fixed), tolerance=1e-7)
    check_problem(KnownCosts(inside, by_row), tolerance=1e-7)
    check_problem(KnownCosts(KnownCosts(inside, fixed), by_row), tolerance=1e-7)


@on_every_problem
def test_decisions_are_those_of_the_sum(inside):
    costs, known = draw(inside)
    np.testing.assert_array_equal(KnownCosts(inside, known).solve(costs), inside.solve(costs + known))
    np.testing.assert_array_equal(KnownCosts(inside, known[0]).solve(costs), inside.solve(costs + known[0]))
    twice = KnownCosts(KnownCosts(inside, known), known[0])
    np.testing.assert_allclose(twice.solve(costs), inside.solve(costs + known + known[0]))
    np.testing.assert_allclose(twice.lifted.solve(lift(twice.lifted, costs))[:, :-1], twice.solve(costs))


@on_every_problem
def test_the_whole_solution_is_that_of_the_sum(inside):
    costs, known = draw(inside)
    for problem in (KnownCosts(inside, known), CountedProblem(KnownCosts(inside, known))):
        np.testing.assert_array_equal(problem.solution(costs)["decision"], problem.solve(costs))
        alone = problem.take([3]).solution(costs[3])["decision"]
        np.testing.assert_array_equal(alone, problem.take([3]).solve(costs[3]))


@on_every_problem
def test_the_lifted_value_is_the_whole_objective(inside):
    costs, known = draw(inside)
    for problem in (KnownCosts(inside, known), KnownCosts(CountedProblem(inside), known)):
        lifted = problem.lifted
        decisions = lifted.solve(lift(lifted, costs))
        whole = ((costs + known) * inside.solve(costs + known)).sum(axis=1)
        np.testing.assert_allclose((lift(lifted, costs) * decisions).sum(axis=1), whole)


def test_wrappers_pass_the_lifted_problem_on_and_count_once():
    costs, known = draw(PROBLEMS["path"])
    problem = KnownCosts(PROBLEMS["path"], known)
    expected = problem.lifted.solve(lift(problem.lifted, costs))
    counted = CountedProblem(problem)
    parallel = ParallelProblem(problem, n_jobs=2)
    for wrapper in (counted, parallel):
        lifted = wrapper.lifted
        np.testing.assert_array_equal(lifted.solve(lift(lifted, costs)), expected)
        np.testing.assert_array_equal(wrapper.take([4, 1]).lifted.solve(lift(lifted, costs[[4, 1]])), expected[[4, 1]])
    assert counted.n_solves == 32
    cached = CachedProblem(CountedProblem(KnownCosts(PROBLEMS["path"], known[0])), solve_ratio=1.0, rng=0)
    np.testing.assert_array_equal(cached.solve(costs), KnownCosts(PROBLEMS["path"], known[0]).solve(costs))
    assert cached.problem.n_solves == len(costs)
    assert cached.pool.shape[1] == problem.n_costs + 1
    check_problem(CountedProblem(problem), costs=costs)
    check_problem(cached)


def test_a_unit_divides_known_costs_too():
    costs, known = draw(PROBLEMS["path"])
    plain = PROBLEMS["path"]
    assert in_unit(plain, 7.0) is plain
    for problem in (KnownCosts(plain, known), CountedProblem(KnownCosts(plain, known))):
        scaled = in_unit(problem, 7.0)
        np.testing.assert_array_equal(scaled.solve(costs / 7), problem.solve(costs))
        lifted = problem.lifted.solve(lift(problem.lifted, costs))
        in_units = scaled.lifted.solve(lift(scaled.lifted, costs / 7))
        np.testing.assert_array_equal(in_units[:, :-1], lifted[:, :-1])
        np.testing.assert_allclose(in_units[:, -1], lifted[:, -1] / 7)


def test_the_lifted_polyhedron_serves_losses_that_need_one():
    """CaVE is zero exactly where the optimal decision is optimal for the prediction; LAVA has one more variable."""
    inside = PROBLEMS["path"]
    costs, known = draw(inside)
    problem = KnownCosts(inside, known[0])
    loss, rng = Cave(), np.random.default_rng(0)
    prediction = costs + RNG.normal(scale=0.5, size=costs.shape)
    values, gradient = loss.value_and_grad(prediction, loss.prepare(problem, costs), rng)
    same = (problem.solve(prediction) == problem.solve(costs)).all(axis=1)
    assert 0 < same.sum() < len(costs)
    np.testing.assert_array_equal(values < 1e-12, same)
    assert gradient.shape == costs.shape
    Lava().prepare(problem, costs)
    for loss in (Cave(), Lava()):
        with pytest.raises(ValueError, match="KnownCosts differs by row, so there is no polyhedron for all rows"):
            loss.prepare(KnownCosts(inside, known), costs)


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        (np.zeros(3), r"known must be a vector of length 12; got known.shape=\(3,\)"),
        (np.zeros((4, 3)), "ShortestPath needs 12 columns of known"),
        (np.full(12, np.nan), "known must be finite; row 0 has NaN"),
    ],
)
def test_bad_known_costs(known, sentence):
    with pytest.raises(ValueError, match=sentence):
        KnownCosts(PROBLEMS["path"], known)


def test_sums_that_overflow_are_refused():
    problem = KnownCosts(PROBLEMS["path"], np.full(12, 1e308))
    costs = np.vstack([np.ones(12), np.full(12, 1e308)])
    sentence = "row 1: the sum of its predicted and known costs left the range of float64"
    for call in (problem.solve, problem.solution, lambda costs: SpoPlus().prepare(problem, costs)):
        with pytest.raises(ValueError, match=sentence):
            call(costs)
    np.testing.assert_array_equal(problem.solve(costs[:1]), PROBLEMS["path"].solve(np.ones((1, 12))))


def test_a_wrong_number_of_rows():
    costs, known = draw(PROBLEMS["path"])
    problem = KnownCosts(PROBLEMS["path"], known)
    sentence = "KnownCosts differs by row and has 30 rows, and there are 29 rows of costs"
    for wrapper in (problem, problem.lifted.problem, ParallelProblem(problem, n_jobs=2)):
        with pytest.raises(ValueError, match="differs by row and has 30 rows"):
            wrapper.solve(costs[1:])
    with pytest.raises(ValueError, match=sentence):
        problem.solve(costs[1:])
    with pytest.raises(ValueError, match="known has 29 rows, and KnownCosts differs by row and has 30"):
        KnownCosts(problem, known[1:])
    with pytest.raises(ValueError, match="Use it without a cache"):
        CachedProblem(problem, 0.5, rng=0)
