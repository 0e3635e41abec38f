import pickle

import numpy as np
import pytest

from decidewise.kit.errors import SolverError
from decidewise.losses import SpoPlus
from decidewise.problems import Knapsack, ShortestPath, from_pyepo

pyepo = pytest.importorskip("pyepo")
pytest.importorskip("gurobipy")
from pyepo.model.grb import knapsackModel, optGrbModel, shortestPathModel  # noqa: E402

WEIGHTS, CAPACITIES = np.random.default_rng(1).uniform(3.0, 8.0, size=(2, 10)).round(1), np.array([20.0, 22.0])


@pytest.fixture
def costs():
    return np.random.default_rng(0).uniform(0.5, 2.0, size=(30, 24))


def build_path():
    return from_pyepo(shortestPathModel((4, 4))), ShortestPath(4, 4)


def build_knapsack():
    model = knapsackModel(WEIGHTS, CAPACITIES)
    model._model.Params.MIPGap = 0.0
    return from_pyepo(model), Knapsack(WEIGHTS, CAPACITIES)


@pytest.fixture(params=[build_path, build_knapsack], ids=["path", "knapsack"])
def pair(request):
    return request.param()


def test_decisions_are_as_good_as_ours(pair, costs):
    theirs, own = pair
    costs = costs[:, : own.n_costs]

    assert (theirs.sense, theirs.n_costs, theirs.polyhedron) == (own.sense, own.n_costs, None)
    objectives = [(costs * problem.solve(costs)).sum(axis=1) for problem in pair]
    np.testing.assert_allclose(*objectives, rtol=1e-6)
    np.testing.assert_allclose(theirs.solve(costs[3]), own.solve(costs[3]), atol=1e-6)


@pytest.mark.parametrize("backend", ["grb", "ort"])
def test_ties_do_not_depend_on_the_row_before(backend):
    """Gurobi itself goes on from the solution before, and then chose another path in 118 of 300 such rows."""
    model = pytest.importorskip(f"pyepo.model.{backend}").shortestPathModel((5, 5))
    rng = np.random.default_rng(0)
    costs, order = rng.integers(1, 4, size=(100, 40)).astype(float), rng.permutation(100)
    problem = from_pyepo(model)
    np.testing.assert_array_equal(problem.solve(costs)[order], problem.solve(costs[order]))


def test_losses_work_on_it(pair, costs):
    theirs, own = pair
    costs = costs[:, : own.n_costs]
    loss, rng = SpoPlus(), np.random.default_rng(0)

    values, gradient = loss.value_and_grad(costs[::-1], loss.prepare(theirs, costs), rng)
    own_values, own_gradient = loss.value_and_grad(costs[::-1], loss.prepare(own, costs), rng)

    np.testing.assert_allclose(values, own_values, atol=1e-5)
    np.testing.assert_allclose(gradient, own_gradient, atol=1e-5)


def test_the_callers_model_is_untouched(costs):
    model = shortestPathModel((4, 4))
    model.setObj(costs[0])
    before = model.solve()

    from_pyepo(model).solve(costs[1:])

    after = model.solve()
    np.testing.assert_array_equal(after[0], before[0])
    assert after[1] == before[1]


def test_it_can_be_pickled_with_its_added_constraints(costs):
    model = knapsackModel(WEIGHTS, CAPACITIES).addConstr(np.ones(10), 2)
    problem = from_pyepo(model)
    costs = costs[:, :10]

    twin = pickle.loads(pickle.dumps(problem))  # noqa: S301

    np.testing.assert_allclose(twin.solve(costs), problem.solve(costs), atol=1e-6)
    assert np.all(twin.solve(costs).sum(axis=1) < 2 + 1e-6)


def test_a_failure_names_its_row(costs):
    infeasible = from_pyepo(knapsackModel(WEIGHTS, CAPACITIES).addConstr(np.ones(10), -1))

    with pytest.raises(SolverError, match="row 0: knapsackModel failed: Gurobi found no solution") as error:
        infeasible.solve(costs[:, :10])

    assert error.value.row == 0


def test_only_the_row_that_fails():
    class Fussy(optGrbModel):
        def _getModel(self):
            import gurobipy  # noqa: PLC0415

            model = gurobipy.Model()
            return model, model.addMVar(2, lb=0.0, ub=[1.0, gurobipy.GRB.INFINITY])

    problem = from_pyepo(Fussy())  # the second variable has no upper bound

    np.testing.assert_allclose(problem.solve([[-1.0, 1.0], [1.0, 1.0]]), [[1.0, 0.0], [0.0, 0.0]])
    with pytest.raises(SolverError, match="row 1: Fussy"):
        problem.solve([[-1.0, 1.0], [1.0, -1.0]])


def modelled():
    """Six items of which four have predicted values, in an order of their own; the others are sold at known prices."""
    from pyepo import EPO, dsl  # noqa: PLC0415

    items, extra, values = dsl.Variable(4, vtype=EPO.BINARY), dsl.Variable(2, lb=0.0, ub=1.5), dsl.Parameter(4)
    known = np.array([0.5, 0.7]) @ extra - 2.0 * items[[1]].sum() + 3.0
    limits = [np.array([3.0, 4.0, 2.0, 5.0]) @ items + np.array([1.0, 2.0]) @ extra <= 8.0]
    return dsl.Problem(dsl.Maximize(values @ items[[2, 0, 3, 1]] + known), limits).compile("gurobi")


def test_known_costs_are_those_of_pyepo():
    model, values = modelled(), np.random.default_rng(2).uniform(0.5, 4.0, size=(25, 4)).astype(np.float32)
    problem = from_pyepo(model)

    decisions = problem.solve(values)
    lifted = problem.minimize_lifted(np.column_stack([-values, np.ones(25)]))

    assert (problem.n_costs, problem.sense, problem.has_known) == (4, "max", True)
    np.testing.assert_allclose(lifted[:, :-1], decisions, atol=1e-9)
    for row, decision, whole in zip(values.astype(float), decisions, lifted, strict=True):
        model.setObj(row)
        theirs, best = model.solve()
        np.testing.assert_allclose(decision, theirs[model.c_pred_index], atol=1e-6)
        assert row @ decision - whole[-1] == pytest.approx(best, abs=1e-6)
    without = problem.minimize_lifted(np.column_stack([-values, np.zeros(25)]))  # nothing known counts
    assert np.all((values * without[:, :-1]).sum(axis=1) >= (values * decisions).sum(axis=1) - 1e-6)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(problem)).solve(values), decisions, atol=1e-6)  # noqa: S301
    gap = SpoPlus().value_and_grad(values[::-1], SpoPlus().prepare(problem, values), np.random.default_rng(0))[0]
    assert np.all(gap >= -1e-6)
    assert gap.max() > 0.1


def test_models_that_are_not_problems():
    from pyepo import dsl  # noqa: PLC0415

    weights = dsl.Variable(3, lb=0.0, ub=1.0)
    prices = dsl.Parameter(3)
    whole = dsl.Problem(dsl.Minimize(prices @ weights), [weights.sum() >= 1]).compile("gurobi")
    quadratic = dsl.Problem(dsl.Minimize(prices @ weights + weights @ np.eye(3) @ weights), [weights.sum() >= 1])

    problem = from_pyepo(whole)
    assert not problem.has_known
    np.testing.assert_allclose(problem.solve([3.0, 1.0, 2.0]), [0.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="compiledGrbProblem has a quadratic objective, and it must be linear"):
        from_pyepo(quadratic.compile("gurobi"))
    with pytest.raises(TypeError, match="from_pyepo needs a PyEPO optModel object; got ShortestPath"):
        from_pyepo(ShortestPath(3, 3))
