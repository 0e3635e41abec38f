"""Ranges of costs, against new solves just inside and outside; duals against new right-hand sides; contradictions."""

import numpy as np
import pandas as pd
import pytest

from decidewise import SolverError
from decidewise.problems import (
    Assignment,
    Ball,
    Knapsack,
    KnownCosts,
    LinearProgram,
    ShortestPath,
    Storage,
    TopK,
    read_problem,
)

RNG = np.random.default_rng(0)
USE = RNG.uniform(0.5, 2, size=(4, 6))
PROBLEMS = {
    "program": LinearProgram(USE, USE.sum(axis=1) * 0.3, upper=1, sense="max"),
    "degenerate program": LinearProgram(
        np.tril(np.ones((6, 6))), np.arange(1, 7.0), A_eq=[np.ones(6)], b_eq=[4], upper=2
    ),
    "expressions": LinearProgram(
        USE,
        USE.sum(axis=1) * 0.3,
        upper=1,
        costs=np.eye(3, 6) - np.eye(3, 6, k=3),
        known=RNG.normal(size=6),
        offset=3.0,
    ),
    "whole numbers": LinearProgram(USE, USE.sum(axis=1), upper=3, integrality=1, sense="max"),
    "top k": TopK(6, 2),
    "assignment": Assignment(3),
    "knapsack": Knapsack([[3.0, 4, 5, 2, 6]], [10.0]),
    "storage": Storage(8, power=1.0, energy=2.0),
    "known costs": KnownCosts(TopK(5, 2, sense="min"), RNG.normal(size=5)),
    "path": ShortestPath(3, 3),
    "by row": TopK(4, [1, 3, 2]),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_decision_holds_inside_its_range_and_not_outside(name):
    problem, rng = PROBLEMS[name], np.random.default_rng(3)
    costs = rng.uniform(1.0, 3.0, size=(3, problem.n_costs))
    told = problem.explain(costs)
    np.testing.assert_array_equal(told.decisions, problem.solve(costs))
    n_ends = 0
    for row in range(3):
        own = problem.take([row])
        for j in range(problem.n_costs):
            for end, beyond in ((told.lower, told.below), (told.upper, told.above)):
                moved = costs[[row]].copy()
                if np.isinf(end[row, j]):
                    moved[0, j] += np.sign(end[row, j]) * 1e3
                    assert own.solve(moved)[0, j] == pytest.approx(told.decisions[row, j])
                    continue
                n_ends += 1
                room = end[row, j] - costs[row, j]
                moved[0, j] = costs[row, j] + 0.999 * room
                assert own.solve(moved)[0] == pytest.approx(told.decisions[row])
                moved[0, j] = costs[row, j] + room + np.sign(room) * 1e-6
                assert own.solve(moved)[0, j] == pytest.approx(beyond[row, j])
                assert beyond[row, j] != pytest.approx(told.decisions[row, j])
    assert n_ends > 0


def test_duals_say_what_a_right_hand_side_is_worth(tmp_path):
    (tmp_path / "day.lp").write_text(
        "max\n profit: a + b + c\nst\n slack: a + b <= 99\n hours: a + 2 b + c <= 4\n need: a + b >= 1\n"
        " mix: a - c = 0.5\nbounds\n b <= 1\nend\n"
    )
    problem, costs = read_problem(tmp_path / "day.lp"), np.array([[2.0, 1.0, 3.0], [-2.0, -1.0, -3.0]])
    told = problem.explain(costs)
    assert told.names == [*told.reduced_costs] == ["a", "b", "c"]
    values = problem.solve_details(costs).objective
    for name, side in {"hours": 4.0, "need": 1.0, "mix": 0.5, "slack": 99.0}.items():
        more = problem.by_row(sides={name: np.full(2, side + 1e-3)}).solve_details(costs).objective
        np.testing.assert_allclose(told.duals[name], (more - values) / 1e-3, atol=1e-6)
    assert told.duals["hours"][0] > 0 > told.duals["need"][1]
    cheaper = read_problem(tmp_path / "day.lp", sense="min").explain(-costs)
    assert cheaper.duals["hours"] == pytest.approx(-told.duals["hours"])


def test_what_is_shown():
    sold = LinearProgram([[1.0, 1.0]], [4.0], upper=3, sense="max", names=["17:00", "18:00"])
    assert repr(sold.explain([[55.0, 50.0], [50.0, 55.0]])).splitlines()[5:7] == [
        "17:00: 1 at 50; 0 below 0; 3 above 55",
        "18:00: 3 at 55; 1 below 50",
    ]
    frame = TopK(2, 1).explain(pd.Series([1.0, 4.0], index=["day", "night"])).to_frame()
    assert frame.columns.tolist() == ["row", "name", "cost", "decision", "lower", "upper", "below", "above"]
    assert frame.loc[0].tolist() == [0, "day", 1.0, 0.0, -np.inf, 4.0, 0.0, 1.0]
    assert "has no duals" in TopK(2, 1).explain([1.0, 4.0]).why_no_duals
    assert "whole numbers" in PROBLEMS["whole numbers"].explain(np.ones(6)).why_no_duals
    assert "with wider ranges" in repr(TopK(20, 3).explain(RNG.normal(size=20)))
    with pytest.raises(ValueError, match="names must have one entry for each of the 2 costs; got 1"):
        TopK(2, 1).explain([1.0, 4.0], names=["day"])
    with pytest.raises(
        ValueError, match="Ball cannot explain a decision by ranges: its decisions move with every cost"
    ):
        Ball(3).explain(np.ones(3))


def test_a_side_without_solutions_has_no_end():
    told = LinearProgram(A_eq=[[1.0, -1.0]], b_eq=[0.0]).explain([1.0, 1.0])  # below -1 the cost falls without end
    assert np.isnan(told.lower[0]).all()
    assert np.isinf(told.upper[0]).all()


def test_contradictions_are_named(tmp_path):
    (tmp_path / "plan.lp").write_text(
        "min\n cost: a + b + c + d\nst\n most: a + b <= 3\n need: a + b + c >= 8\n cap: d + a <= 9\n few: c - b <= 1\n"
        "end\n"
    )
    named = (
        "the region is empty: .* the bounds of variable 'a', constraint 'most', constraint 'few' and constraint 'need'."
    )
    with pytest.raises(ValueError, match=named):
        read_problem(tmp_path / "plan.lp")
    with pytest.raises(ValueError, match=r"each other: the bounds of variable 'w0', .* constraint 0 of A_eq"):
        LinearProgram(A_eq=[[1.0, 1.0, 0.0]], b_eq=[3.0], upper=1)
    by_day = LinearProgram([[1.0, 1.0]], [2.0], [[1.0, 2.0]], [3.0], upper=4).by_row(b_ub=[[2.0], [1.0]])
    with pytest.raises(SolverError, match=r"^row 1: HiGHS .* contradict each other: .*constraint 0 of A_ub and"):
        by_day.solve([[1.0, 1.0], [1.0, 1.0]])
    with pytest.raises(SolverError, match="Fractions could keep them: it is whole numbers that cannot"):
        LinearProgram(A_eq=[[2.0, 2.0]], b_eq=[3.0], upper=5, integrality=1).solve([1.0, 2.0])
