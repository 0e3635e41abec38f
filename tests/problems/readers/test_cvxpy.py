"""Problems of CVXPY against its own answers."""

import warnings

import numpy as np
import pytest

from decidewise.problems import from_cvxpy
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


def test_what_is_refused():
    model, _ = battery()
    x, c = cp.Variable(HOURS), cp.Parameter(HOURS, name="c")
    with pytest.raises(ValueError, match=r"does not depend on the parameter 'c'; its parameters: .*price"):
        from_cvxpy(model, c)
    with pytest.raises(ValueError, match="the parameter 'c' is in a constraint"):
        from_cvxpy(cp.Problem(cp.Minimize(c @ x), [x >= c]), c)
    for quadratic in (
        cp.Problem(cp.Minimize(c @ x + cp.sum_squares(x)), [x >= 0]),
        cp.Problem(cp.Minimize(c @ x), [cp.norm(x) <= 1]),
    ):
        with pytest.raises(ValueError, match="only linear programs"):
            from_cvxpy(quadratic, c)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="not a disciplined parametrised program"):
            from_cvxpy(cp.Problem(cp.Minimize(cp.sum(cp.multiply(c, c)) + c @ x), [x >= 0]), c)
    with pytest.raises(ValueError, match="the parameters rate have no value"):
        from_cvxpy(cp.Problem(cp.Minimize(c @ x + cp.Parameter(name="rate") * x[0]), [x >= 0]), c)
    with pytest.raises(TypeError, match=r"needs a cvxpy.Problem and a cvxpy.Parameter; got Problem and ndarray"):
        from_cvxpy(model, np.ones(3))
