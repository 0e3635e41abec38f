"""Programs that are a built-in problem: solved by its kernel, to HiGHS's values; and those that nearly are one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack

from decidewise import OptimalityWarning
from decidewise.problems import Assignment, Knapsack, Levels, LinearProgram, Matching, ShortestPath, TopK
from decidewise.problems.linear_program import recognised
from decidewise.testing import check_problem

RNG = np.random.default_rng(0)
WEIGHTS = RNG.integers(5, 30, size=(3, 14)).astype(float)
LEVELS = [[0, 2, 5], [0, 1, 2, 3], [1, 4], [0, 3]]
PAIRS = np.array([[i, j] for i in range(4) for j in range(6) if (i + j) % 3 != 1])
#: A problem, whether its variables are whole numbers, and what it is recognised as.
KINDS = {
    "one of all": (TopK(5, 1), False, "top_k"),
    "some of all": (TopK(12, 4), False, "top_k"),
    "assignment": (Assignment(5), False, "assignment"),
    "assignment in whole numbers": (Assignment(4), True, "assignment"),
    "smaller side complete": (Matching(3, 5, complete=True), False, "matching"),
    "some pairs": (Matching(4, 6, edges=PAIRS, complete=True), False, "matching"),
    "path": (ShortestPath(3, 4), False, "shortest_path"),
    "path in whole numbers": (ShortestPath(3, 4), True, "shortest_path"),
    "budget": (Levels(LEVELS, budget=9), True, "levels"),
    "total": (Levels(LEVELS, total=8), True, "levels"),
    "no budget": (Levels(LEVELS), True, "top_k"),
    "one capacity": (Knapsack(WEIGHTS[0], 90.0), True, "knapsack"),
    "three capacities": (Knapsack(WEIGHTS, WEIGHTS.sum(axis=1) // 3), True, "knapsack"),
}


def program(problem, whole, **changes):
    region = replace(problem.polyhedron, **changes)
    integrality = np.ones(problem.n_costs) if whole else None
    return lambda **options: LinearProgram(**vars(region), integrality=integrality, **options)


def check_against_highs(build, kind, seed=1):
    problem, referee = build(), build(solver="highs")
    costs = np.random.default_rng(seed).normal(size=(25, problem.n_costs)).round(1)
    costs[0] = 0.0
    decisions = problem.solve(costs)
    assert (problem.recognised, referee.recognised) == (kind, None)
    np.testing.assert_allclose((costs * decisions).sum(axis=1), (costs * referee.solve(costs)).sum(axis=1), atol=1e-9)
    assert not referee._solver.program.violated(referee._solver.program.values(decisions)).any()
    np.testing.assert_array_equal(decisions, np.stack([problem.solve(row) for row in costs]))


@pytest.mark.parametrize("name", KINDS)
def test_rows_and_columns_in_any_order_and_scale(name):
    problem, whole, kind = KINDS[name]
    region, rng = problem.polyhedron, np.random.default_rng(len(name))
    check_against_highs(program(problem, whole), kind)
    columns = rng.permutation(problem.n_costs)
    for side, sign in (("ub", [1.0]), ("eq", [1.0, -1.0])):
        A, b = getattr(region, f"A_{side}"), getattr(region, f"b_{side}")
        rows, factors = rng.permutation(len(b)), rng.uniform(0.1, 7, size=len(b)) * rng.choice(sign, size=len(b))
        A = csr_array(A * factors[:, np.newaxis])[rows][:, columns]
        region = replace(region, **{f"A_{side}": A, f"b_{side}": (b * factors)[rows]})
    changed = {"lower": region.lower[columns], "upper": region.upper[columns]}
    changed |= {key: getattr(region, key) for key in ("A_ub", "b_ub", "A_eq", "b_eq")}
    check_against_highs(program(problem, whole, **changed), kind)


def test_other_ways_to_write_them():
    whole = {"integrality": 1, "upper": 1}
    at_most_three = LinearProgram([np.ones(8)], [3.0], upper=1)
    assert at_most_three.recognised == "top_k"
    np.testing.assert_array_equal(at_most_three.solve([[-1.0, 2, -3, -4, 0, -2, 1, 1]]), [[0, 0, 1, 1, 0, 1, 0, 0]])
    two_of_each_day = np.repeat(np.eye(2), 4, axis=1)
    check_against_highs(lambda **o: LinearProgram(A_eq=two_of_each_day, b_eq=[2, 1], upper=1, **o), "top_k")
    needs = LinearProgram(-WEIGHTS, -WEIGHTS.sum(axis=1) / 3, **whole)
    assert repr(needs) == "LinearProgram(n_costs=14, sense='min', recognised='knapsack')"
    check_against_highs(lambda **o: LinearProgram(-WEIGHTS, -WEIGHTS.sum(axis=1) / 3, **whole, **o), "knapsack")
    offers = np.vstack([np.repeat(np.eye(3), 4, axis=1), WEIGHTS[0, :12]])  # at most one of each group
    offers = np.column_stack([offers, [0, 0, 0, 7.0]])  # and one of no group
    check_against_highs(lambda **o: LinearProgram(offers, [1, 1, 1, 45.0], **whole, **o), "levels")


def test_paths_as_people_write_them():
    """Sums out and in at the ends, in as many ways as there are nodes, and one node left out."""
    region, rng = ShortestPath(3, 3).polyhedron, np.random.default_rng(2)
    signs = rng.choice([-1.0, 1.0], size=9)
    for kept in (slice(None), slice(1, None), slice(None, -1)):
        A, b = (region.A_eq * signs[:, np.newaxis]).toarray()[kept], (region.b_eq * signs)[kept]
        check_against_highs(lambda A=A, b=b, **o: LinearProgram(A_eq=A, b_eq=b, **o), "shortest_path")


def near_misses():
    for name, (problem, whole, _) in KINDS.items():
        region, n = problem.polyhedron, problem.n_costs
        row = csr_array(np.where(np.arange(n) < 2, [[1.0]], 0.5 * (np.arange(n) == n - 1)))
        yield f"{name}, one row more", problem, whole, {
            "A_eq": vstack([region.A_eq, row], format="csr"), "b_eq": np.append(region.b_eq, 0.5 if not whole else 1.0)
        }  # fmt: skip
        yield f"{name}, one bound", problem, whole, {"upper": np.where(np.arange(n) == 1, 0.5, region.upper)}
        yield f"{name}, one bound below", problem, whole, {"lower": np.where(np.arange(n) == 1, -1.0, region.lower)}
    yield "some of all, and a half", TopK(12, 4), False, {"b_eq": np.array([4.5])}
    yield "fractions in a knapsack", Knapsack(WEIGHTS, [90.0] * 3), False, {}
    yield "a cycle", ShortestPath.from_edges([0, 1, 2, 1], [1, 2, 1, 3], 0, 3), False, {}
    yield "two units", ShortestPath(3, 3), False, {"b_eq": 2.0 * ShortestPath(3, 3).polyhedron.b_eq}


@pytest.mark.parametrize(
    ("problem", "whole", "changes"), [m[1:] for m in near_misses()], ids=[m[0] for m in near_misses()]
)
def test_near_misses_stay_with_highs(problem, whole, changes):
    near = program(problem, whole, **changes)()
    assert near.recognised is None
    assert "recognised" not in repr(near)


def test_what_has_no_kernel():
    pack = LinearProgram(WEIGHTS, WEIGHTS.sum(axis=1) // 3, upper=1, integrality=1)
    assert pack.recognised == "knapsack"
    assert pack.by_row(b_ub=np.tile(WEIGHTS.sum(axis=1) // 4, (5, 1))).recognised is None
    assert LinearProgram(np.ones((11, 4)) + np.eye(11, 4), np.full(11, 3.0), upper=1, integrality=1).recognised is None
    assert LinearProgram(lower=0, upper=[1, 1]).recognised is None


def test_maps_and_known_costs():
    some = {"A_eq": [np.ones(6)], "b_eq": [2.0], "upper": 1, "costs": [4, 0, 5], "known": [0, 3.0, -3.0, 1.0, 0, 0]}
    problem = LinearProgram(**some, sense="max", offset=2.0)
    assert problem.recognised == "top_k"
    check_problem(problem, tolerance=1e-9)
    costs = RNG.normal(size=(20, 3))
    best = LinearProgram(**some, sense="max", offset=2.0, solver="highs").solve_details(costs).objective
    np.testing.assert_allclose(problem.solve_details(costs).objective, best, atol=1e-12)


def test_hard_rows_go_to_highs(monkeypatch):
    monkeypatch.setattr(recognised, "_STEPS", 3_000)
    build = program(Knapsack(WEIGHTS, WEIGHTS.sum(axis=1) // 3), whole=True)
    problem, costs = build(), -RNG.uniform(5, 6, size=(12, 14))
    problem._recognised.parts[0][0]._packs = np.empty((0, 14))  # which needs no search
    seen = []
    solve = problem._solver.minimize
    monkeypatch.setattr(problem._solver, "minimize", lambda rows: seen.append(len(rows)) or solve(rows))
    details = problem.solve_details(costs)
    assert 0 < sum(seen) <= 12
    assert details.n_unproven == 0
    best = build(solver="highs").solve(costs)
    np.testing.assert_allclose(details.objective, (costs * best).sum(axis=1), atol=1e-9)


def test_a_kernel_that_is_worse_than_highs_is_found_out(monkeypatch):
    monkeypatch.setattr(TopK, "minimize", lambda self, costs: TopK.polyhedron.fget(self).upper * (costs == costs.max()))
    problem = LinearProgram(A_eq=[np.ones(4)], b_eq=[1.0], upper=1)
    with pytest.warns(OptimalityWarning, match="taken for a problem of the kind 'top_k'"):
        np.testing.assert_array_equal(problem.solve([[4.0, 1, 2, 3]]), [[0, 1, 0, 0]])
    np.testing.assert_array_equal(problem.solve([[4.0, 3, 2, 3]]), [[0, 0, 1, 0]])
