"""MOM and CILP, both without a solver in training, against their formulas."""

import numpy as np
import pytest
from scipy.optimize import linprog, nnls

from decidewise.losses import Cilp, Mom
from decidewise.losses.parts.cones import NormalCones
from decidewise.problems import Assignment, Knapsack, LinearProgram, ShortestPath, TopK

PROBLEMS = [ShortestPath(3, 3), Assignment(3), TopK(6, 2, sense="min")]
on_every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)


def draw(problem, n=60):
    rng = np.random.default_rng(0)
    costs = rng.uniform(0.5, 2.0, size=(n, problem.n_costs))
    return costs + rng.normal(scale=0.5, size=costs.shape), costs


def test_mom_sums_the_shortfall_of_every_swap():
    problem = TopK(6, 2)
    prediction, costs = draw(problem)

    values, gradient = Mom(threshold=0.7).value_and_grad(prediction, Mom(0.7).prepare(problem, costs), None)

    for p, w, value, slope in zip(prediction, problem.solve(costs), values, gradient, strict=True):
        shortfalls = {
            (chosen, other): 0.7 - (p[chosen] - p[other])  # a maximisation: the swap loses that much
            for chosen in np.flatnonzero(w == 1)
            for other in np.flatnonzero(w == 0)
        }
        assert value == pytest.approx(sum(max(0.0, short) for short in shortfalls.values()), abs=1e-9)
        expected = np.zeros(6)
        for (chosen, other), short in shortfalls.items():
            if short > 0:
                expected[other] += 1
                expected[chosen] -= 1
        np.testing.assert_allclose(slope, expected, atol=1e-9)


WEIGHTS = np.random.default_rng(1).uniform(3, 8, (2, 16))
COVER = LinearProgram(-WEIGHTS, [-20.0, -30.0])  # without upper bounds: some edges have no end


@pytest.mark.parametrize("problem", [Knapsack(WEIGHTS, [20.0, 20.0]), COVER], ids=["knapsack", "cover"])
def test_mom_sums_the_shortfall_of_every_reduced_cost(problem):
    prediction, costs = draw(problem, n=20)
    sign = -1 if problem.sense == "max" else 1
    region = problem.polyhedron
    rows = np.vstack([region.A_ub.toarray(), np.eye(16)[np.isfinite(region.upper)]])
    standard = np.hstack([rows, np.eye(len(rows))])  # with a slack for every row

    values, gradient = Mom(0.7).value_and_grad(prediction, Mom(0.7).prepare(problem, costs), None)

    for p, c, value, slope in zip(prediction, costs, values, gradient, strict=True):
        sides = np.append(region.b_ub, region.upper[np.isfinite(region.upper)])
        x = linprog(sign * c, rows, sides).x
        basic = np.append(x, sides - rows @ x) > 1e-9
        assert basic.sum() == len(rows)  # one basis only, so that the reduced costs are those of the paper
        tableau = np.linalg.solve(standard[:, basic], standard[:, ~basic])
        extended = np.append(sign * p, np.zeros(len(rows)))
        short = 0.7 - (extended[~basic] - extended[basic] @ tableau)
        assert value == pytest.approx(np.maximum(short, 0).sum(), abs=1e-9)
        expected = np.zeros(len(extended))
        expected[~basic] -= short > 0
        expected[basic] += tableau @ (short > 0)
        np.testing.assert_allclose(slope, sign * expected[:16], atol=1e-9)


@on_every_problem
@pytest.mark.parametrize("loss", [Mom(), Cilp(), Cilp(0.0)], ids=["mom", "cilp", "cilp without margin"])
def test_a_value_of_zero_makes_the_decision_optimal(loss, problem):
    prediction, costs = draw(problem, n=300)
    prediction[::3] = 40 * costs[::3] - 20  # many of these are far inside

    values, _ = loss.value_and_grad(prediction, loss.prepare(problem, costs), None)

    regret = (prediction * (problem.solve(costs) - problem.solve(prediction))).sum(axis=1)
    inside = values <= 1e-9
    assert 5 < inside.sum() < 295
    np.testing.assert_allclose(regret[inside], 0.0, atol=1e-6)


@on_every_problem
def test_cilp_against_scipy(problem):
    prediction, costs = draw(problem, n=20)
    loss = Cilp(margin=0.5)

    values, gradient = loss.value_and_grad(prediction, loss.prepare(problem, costs), None)

    cones = NormalCones(problem.polyhedron)
    normals = cones.normals.toarray()
    for p, binding, value, slope in zip(prediction, cones.binding(problem.solve(costs)), values, gradient, strict=True):
        one_sided = np.array([sign * row for sign, row in zip(binding, normals, strict=True) if abs(sign) == 1])
        equal = normals[binding == 2]
        inside = 0.5 * one_sided.sum(axis=0)
        generators = np.vstack([one_sided, equal, -equal]).T
        weights, _ = nnls(generators, -p - inside)
        nearest = -(inside + generators @ weights)
        assert value == pytest.approx(((p - nearest) ** 2).sum() / 2, abs=1e-8)
        np.testing.assert_allclose(slope, p - nearest, atol=1e-7)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="margin"):
        Cilp(-1.0)
    with pytest.raises(ValueError, match="threshold"):
        Mom(0.0)
