"""Problems of CVXPY against its own answers."""

import warnings

import numpy as np
import pytest

from decidewise.problems import ConicProgram, LinearProgram, from_cvxpy
from decidewise.problems.views import lift
from decidewise.testing.requirements import pickled

cp = pytest.importorskip("cvxpy")
HOURS = 6


def battery(whole=False):
    """A battery with a fee per unit bought, and on request whole units."""
    price, fee = cp.Parameter(HOURS, name="price"), cp.Parameter(nonneg=True, name="fee", value=0.3)
    buy, sell = (cp.Variable(HOURS, nonneg=True, integer=whole, name=name) for name in ("buy", "sell"))
    level = cp.cumsum(0.9 * buy - sell)
    objective = cp.Maximize(price @ (sell - buy) - fee * cp.sum(buy) + 5)
    return cp.Problem(objective, [buy <= 2, sell <= 2, level >= 0, level <= 4]), price


@pytest.mark.parametrize("whole", [False, True])
def test_a_battery_is_worth_what_cvxpy_says(whole):
    model, price = battery(whole)
    problem = from_cvxpy(model, price)
    costs = np.random.default_rng(0).uniform(1, 9, size=(8, HOURS))

    lifted = pickled(problem).minimize_lifted(np.column_stack([-costs, np.ones(8)]))

    assert problem.sense == "max"
    for row, values in zip(costs, lifted, strict=True):
        price.value = row
        model.solve(solver=cp.HIGHS)
        assert row @ values[:-1] - values[-1] == pytest.approx(model.value, abs=1e-6)
    np.testing.assert_allclose(problem.solve(costs), lifted[:, :-1], atol=1e-9)
    solution = problem.solution(costs)
    np.testing.assert_allclose(solution["sell[0]"] - solution["buy[0]"], lifted[:, 0], atol=1e-9)


def test_a_matrix_of_costs_is_written_row_by_row_and_constants_count():
    costs, plan = cp.Parameter((2, 3)), cp.Variable((2, 3))
    problem = from_cvxpy(
        cp.Problem(cp.Minimize(cp.sum(cp.multiply(costs, plan - 1))), [plan >= 0, cp.sum(plan, axis=1) == 1]), costs
    )
    rows = np.array([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
    np.testing.assert_allclose(problem.solve(rows.ravel()).reshape(2, 3), np.eye(3)[[1, 0]] - 1, atol=1e-12)


def conic_models():
    """Models with norms, squares, matrices, entropies, powers and a norm in the objective, each with its parameter."""
    c, x = cp.Parameter(4, name="c"), cp.Variable(4, name="x")
    C, X = cp.Parameter((3, 3), name="C"), cp.Variable((3, 3), PSD=True, name="X")
    power = cp.PowCone3D(x[0], x[1], x[2], 0.3)
    squares = [cp.norm(x) <= 1, cp.sum_squares(x - 0.5) <= 2, x >= -0.6]
    return {
        "norms": (cp.Problem(cp.Minimize(c @ x), squares), c),
        "matrix": (cp.Problem(cp.Minimize(cp.trace(C.T @ X)), [cp.trace(X) == 1, X[0, 1] >= 0.1]), C),
        "entropy": (cp.Problem(cp.Maximize(c @ x), [cp.sum(cp.entr(x)) >= 0.3, cp.sum(x) == 1]), c),
        "powers": (cp.Problem(cp.Maximize(c @ (2 * x - 1) + 3), [cp.pnorm(x, 3) <= 1, power, x[3] >= 0]), c),
        "penalty": (cp.Problem(cp.Minimize(c @ x + 3 * cp.norm(x)), [x >= 0, cp.sum(x) <= 3]), c),
    }


@pytest.mark.parametrize("name", conic_models())
def test_cones_are_worth_what_cvxpy_says(name):
    model, parameter = conic_models()[name]
    problem = from_cvxpy(model, parameter)
    costs = np.random.default_rng(1).normal(size=(6, parameter.size))
    sign = -1 if problem.sense == "max" else 1

    lifted = pickled(problem).lifted.solve(lift(problem.lifted, costs))

    assert type(problem) is ConicProgram
    known = sign * lifted[:, -1] if problem.has_known else np.zeros(6)
    decisions = lifted[:, : parameter.size]
    np.testing.assert_allclose(problem.solve(costs), decisions, atol=1e-7)
    for row, decision, rest in zip(costs, decisions, known, strict=True):
        parameter.value = row.reshape(parameter.shape)
        model.solve(solver=cp.CLARABEL)
        assert row @ decision + rest == pytest.approx(model.value, abs=1e-6)
        if name in ("norms", "penalty"):
            np.testing.assert_allclose(decision, model.variables()[0].value, atol=1e-3)


def test_what_is_linear_stays_with_highs():
    c, x = cp.Parameter(3), cp.Variable(3)
    assert type(from_cvxpy(cp.Problem(cp.Minimize(c @ x), [cp.norm1(x) <= 2]), c)) is LinearProgram


def test_what_is_refused():
    model, _ = battery()
    x, c = cp.Variable(HOURS), cp.Parameter(HOURS, name="c")
    with pytest.raises(ValueError, match=r"does not depend on the parameter 'c'; its parameters: .*price"):
        from_cvxpy(model, c)
    with pytest.raises(ValueError, match="the parameter 'c' is in a constraint"):
        from_cvxpy(cp.Problem(cp.Minimize(c @ x), [x >= c]), c)
    with pytest.raises(ValueError, match="has cones or squares, and some variables are in whole numbers"):
        from_cvxpy(cp.Problem(cp.Minimize(c @ x), [cp.norm(x) <= cp.Variable(integer=True), x <= 1]), c)
    with pytest.raises(ValueError, match="not convex by CVXPY's rules"):
        from_cvxpy(cp.Problem(cp.Minimize(c @ x), [cp.norm(x) >= 1]), c)
    C, X = cp.Parameter((3, 3), symmetric=True, name="C"), cp.Variable((3, 3), PSD=True)
    with pytest.raises(ValueError, match="the parameter 'C' is declared as symmetric, diagonal"):
        from_cvxpy(cp.Problem(cp.Minimize(cp.trace(C @ X)), [cp.trace(X) == 1]), C)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="not a disciplined parametrised program"):
            from_cvxpy(cp.Problem(cp.Minimize(cp.sum(cp.multiply(c, c)) + c @ x), [x >= 0]), c)
    with pytest.raises(ValueError, match="the parameters rate have no value"):
        from_cvxpy(cp.Problem(cp.Minimize(c @ x + cp.Parameter(name="rate") * x[0]), [x >= 0]), c)
    with pytest.raises(TypeError, match=r"needs a cvxpy.Problem and a cvxpy.Parameter; got Problem and ndarray"):
        from_cvxpy(model, np.ones(3))
