"""Rows of different size, against brute force over the decisions of the present items."""

from itertools import permutations, product

import numpy as np
import pytest

from decidewise import DecisionRegressor, compare, normalized_regret
from decidewise.evaluate import Hindsight
from decidewise.kit.errors import SolverError
from decidewise.problems import (
    Assignment,
    Knapsack,
    KnownCosts,
    Levels,
    LinearProgram,
    Portfolio,
    PresentItems,
    QuadraticProgram,
    ShortestPath,
    TopK,
)
from decidewise.testing import check_problem

RNG = np.random.default_rng(0)
N, D = 60, 6
SOME = RNG.random((N, D)) < 0.6
SOME[SOME.sum(axis=1) < 2] = True
COSTS = RNG.integers(-4, 5, (N, D)).astype(float)  # small whole numbers, so that there are ties
WEIGHTS, USES = RNG.integers(1, 6, (2, D)), RNG.integers(0, 4, D)
SIZES = RNG.integers(1, 4, (N, 2))  # present rows and columns of a matrix of three


def first_of_best(decisions, costs):
    """Return the cheapest decision, of tied ones the lexicographically largest."""
    return max(decisions, key=lambda decision: (-(costs @ decision), *decision))


def every(costs, present, *, allowed):
    own = (np.array(w, dtype=float) for w in product((0, 1), repeat=D))
    return first_of_best([w for w in own if not w[~present].any() and allowed(w, present)], costs)


def of_top(costs, present):
    return every(costs, present, allowed=lambda w, _: w.sum() == 2)


def of_pack(costs, present):
    # Nothing without a value is packed.
    return every(costs, present & (costs < 0), allowed=lambda w, _: (WEIGHTS @ w <= [7, 8]).all())


def of_levels(costs, present):
    # Three items of two levels each: an item without any is left out, and the lower level comes first.
    def allowed(w, present):
        chosen, there = w.reshape(3, 2).sum(axis=1), present.reshape(3, 2).any(axis=1)
        return (chosen == there).all() and USES @ w <= 6

    return every(costs, present, allowed=allowed)


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize(
    ("build", "brute"),
    [
        (lambda sense: TopK(D, 2, sense=sense), of_top),
        (lambda sense: Knapsack(WEIGHTS, [7, 8], sense=sense), of_pack),
        (lambda sense: Knapsack(WEIGHTS, np.tile([7, 8], (N, 1)), sense=sense), of_pack),
        (lambda sense: Levels([[0, 1]] * 3, consumption=USES, budget=6, sense=sense), of_levels),
    ],
    ids=["top", "knapsack", "knapsack by row", "levels"],
)
def test_decisions_are_the_best_of_the_present_items(build, brute, sense) -> None:
    problem = PresentItems(build(sense), SOME)
    sign = -1.0 if sense == "max" else 1.0
    expected = [brute(sign * row, there) for row, there in zip(COSTS, SOME, strict=True)]
    np.testing.assert_array_equal(problem.solve(COSTS), expected)
    # What is predicted for absent items does not count, however large, and neither do other rows.
    np.testing.assert_array_equal(problem.solve(np.where(SOME, COSTS, 1e300 * COSTS)), expected)
    np.testing.assert_array_equal(problem.take([7, 3, 3]).solve(COSTS[[7, 3, 3]]), np.array(expected)[[7, 3, 3]])
    check_problem(problem, costs=RNG.normal(size=(N, D)))


@pytest.mark.parametrize("sense", ["min", "max"])
def test_an_assignment_has_as_many_pairs_as_the_smaller_side(sense) -> None:
    present = np.zeros((N, 3, 3), dtype=bool)
    sides = []
    for sample, (n_rows, n_columns) in enumerate(SIZES):
        sides.append((RNG.permutation(3)[:n_rows], RNG.permutation(3)[:n_columns]))
        present[sample][np.ix_(*sides[-1])] = True
    costs = RNG.normal(size=(N, 9))
    problem = PresentItems(Assignment(3, sense=sense), present.reshape(N, 9))
    sign = -1.0 if sense == "max" else 1.0
    for decision, row, (rows, columns) in zip(problem.solve(costs), sign * costs.reshape(N, 3, 3), sides, strict=True):
        if len(rows) <= len(columns):
            pairs = [list(zip(rows, some, strict=True)) for some in permutations(columns, len(rows))]
        else:
            pairs = [list(zip(some, columns, strict=True)) for some in permutations(rows, len(columns))]
        best = min(pairs, key=lambda chosen: sum(row[pair] for pair in chosen))
        assert {tuple(pair) for pair in np.argwhere(decision.reshape(3, 3))} == set(best)
    check_problem(problem, costs=costs)


@pytest.mark.parametrize("whole", [None, np.ones(D)])
def test_variables_of_absent_items_are_zero(whole) -> None:
    known = {"known": np.arange(D) / 10, "offset": 2.0}
    program = LinearProgram(WEIGHTS, [7, 8], upper=1, integrality=whole, sense="max", **known)
    costs = RNG.normal(size=(N, D))
    problem = PresentItems(program, SOME)
    decisions = problem.solve(costs)
    assert not decisions[~SOME].any()
    for row, there, decision in zip(costs, SOME, decisions, strict=True):
        alone = LinearProgram(
            WEIGHTS[:, there], [7, 8], upper=1, integrality=None if whole is None else whole[there], sense="max",
            known=known["known"][there],
        )  # fmt: skip
        np.testing.assert_allclose(decision[there], alone.solve(row[there]), atol=1e-9)
    # The regret of the best known value is zero, with known costs and with the constant.
    np.testing.assert_allclose(Hindsight.of(problem, np.where(SOME, costs, 0.0)).regret(costs), 0, atol=1e-12)
    check_problem(problem, costs=costs)


def test_a_quadratic_program_is_that_of_the_present_items() -> None:
    Q = np.diag(np.arange(1.0, D + 1))
    problem = PresentItems(QuadraticProgram(Q, lower=-9, upper=9), SOME)
    np.testing.assert_allclose(problem.solve(COSTS), np.where(SOME, -COSTS / np.diag(Q), 0.0), atol=1e-9)


def test_known_costs_go_around() -> None:
    tolls = RNG.normal(size=(N, D))
    problem = KnownCosts(PresentItems(TopK(D, 2), SOME), tolls)
    expected = PresentItems(TopK(D, 2), SOME).solve(COSTS + tolls)
    np.testing.assert_array_equal(problem.solve(COSTS), expected)
    check_problem(problem, costs=COSTS + RNG.normal(size=(N, D)))


def test_regret_and_training_count_present_items_alone() -> None:
    X = RNG.normal(size=(N, 3))
    problem = PresentItems(TopK(D, 2), SOME)
    costs = np.where(SOME, X @ RNG.normal(size=(3, D)), np.nan)
    predicted = np.where(SOME, -costs, 7.0)
    lost = best = 0.0
    for row, cost, there in zip(predicted, costs, SOME, strict=True):
        own = cost[there]
        two = np.sort(own)[-2:].sum()
        lost, best = lost + two - own[np.argsort(-row[there])[:2]].sum(), best + abs(two)
    assert normalized_regret(problem, predicted, costs) == pytest.approx(100 * lost / best)
    model = DecisionRegressor(problem, "spo+", epochs=200, random_state=0).fit(X, np.nan_to_num(costs))
    assert normalized_regret(problem, model.predict(X), costs) < 5
    assert "95 %" in str(compare(problem, {"own": predicted, "true": costs}, costs))


def test_what_is_proven_of_levels_is_said_of_each_row() -> None:
    levels, rng = [[0, 1, 2, 3]] * 60, np.random.default_rng(0)
    uses = rng.integers(1, 100, (3, 240))
    present = np.zeros((3, 240), dtype=bool)
    present[0, :4] = present[1] = True  # the second row is too hard for its time
    present[2, np.arange(0, 240, 4) + uses.sum(axis=0).reshape(60, 4).argmax(axis=1)] = True  # and these take too much
    budget = 0.8 * uses.reshape(3, 60, 4).mean(axis=2).sum(axis=1)
    limits = {"time_limit": 0.1, "on_limit": "best", "on_error": "nan"}
    problem = PresentItems(Levels(levels, consumption=uses, budget=budget, **limits), present)
    details = problem.solve_details(rng.normal(size=(3, 240)))
    assert list(details.status) == ["optimal", "limit", "failed"]


def test_sentences() -> None:
    with pytest.raises(ValueError, match=r"row 1 has no item that is present \(1 such rows in all\)"):
        PresentItems(TopK(2, 1), [[True, False], [False, False]])
    with pytest.raises(ValueError, match=r"cannot choose k=2 of the 1 items that are present in row 1. Pass k by row"):
        PresentItems(TopK(2, 2), [[True, True], [True, False]])
    with pytest.raises(ValueError, match="costs has 3 for item 1 of row 0, which is absent"):
        normalized_regret(PresentItems(TopK(2, 1), [[True, False]]), [[1.0, 0.0]], [[1.0, 3.0]])
    with pytest.raises(ValueError, match="present must be True where a row has the item"):
        PresentItems(TopK(2, 1), [[0.5, 1.0]])
    with pytest.raises(ValueError, match="2 columns of present"):
        PresentItems(TopK(2, 1), [[True, True, True]])
    for problem in (Portfolio(np.eye(2), 0.5), KnownCosts(TopK(2, 1), [1.0, 0.0]), ShortestPath(1, 3)):
        with pytest.raises(ValueError, match=f"{type(problem).__name__} does not know absent items; TopK"):
            PresentItems(problem, [[True, False]])
    with pytest.raises(ValueError, match=r"in row 0 of present, entry \(0, 1\) is absent"):
        PresentItems(Assignment(2), [[True, False, True, True]])
    with pytest.raises(ValueError, match="w1 is absent in row 0, and its bounds, 1 and 2, do not allow zero"):
        PresentItems(LinearProgram(lower=[0, 1], upper=2), [[True, False]])
    with pytest.raises(ValueError, match="costs are those of single variables"):
        PresentItems(LinearProgram(upper=[1, 1], costs=[[1, 1]]), [[True]])
    levels = PresentItems(Levels([[1, 2], [1, 2]], total=4), [[True, True, True, True], [True, True, False, False]])
    with pytest.raises(SolverError, match="row 1: no levels sum to the total, 4: the lowest sum to 1"):
        levels.solve(np.zeros((2, 4)))
