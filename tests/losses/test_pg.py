import numpy as np
import pytest

from decidewise.losses import Pg
from decidewise.problems import Ball, ShortestPath, TopK

MODES = ["backward", "forward", "central"]


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def evaluate(loss, problem, prediction, costs):
    return loss.value_and_grad(prediction, loss.prepare(problem, costs), np.random.default_rng(0))


@pytest.mark.parametrize(("mode", "low", "high"), [("backward", -1, 0), ("forward", 0, 1), ("central", -1, 1)])
def test_on_the_simplex_it_is_a_difference_of_minima(mode, low, high, rng):
    costs, prediction = rng.normal(size=(2, 50, 5))
    below, above = prediction + low * 0.3 * costs, prediction + high * 0.3 * costs
    width = 0.3 * (high - low)

    values, gradient = evaluate(Pg(h=0.3, mode=mode), TopK(5, 1, sense="min"), prediction, costs)

    np.testing.assert_allclose(values, (above.min(axis=1) - below.min(axis=1)) / width, atol=1e-12)
    np.testing.assert_allclose(gradient, (np.eye(5)[above.argmin(axis=1)] - np.eye(5)[below.argmin(axis=1)]) / width)


@pytest.mark.parametrize("problem", [ShortestPath(3, 3), TopK(6, 2, sense="min"), Ball(4)])
def test_backward_and_forward_enclose_the_cost_of_the_decision(problem, rng):
    costs, prediction = rng.normal(size=(2, 200, problem.n_costs))
    cost = (costs * problem.solve(prediction)).sum(axis=1)

    values = {mode: evaluate(Pg(h=0.5, mode=mode), problem, prediction, costs)[0] for mode in MODES}

    assert (values["backward"] >= cost - 1e-12).all()
    assert (values["forward"] <= cost + 1e-12).all()
    np.testing.assert_allclose(values["central"], (values["backward"] + values["forward"]) / 2, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_narrow_differences_tend_to_the_cost_of_the_decision(mode, rng):
    problem = Ball(4)
    costs, prediction = rng.normal(size=(2, 50, 4))
    cost = (costs * problem.solve(prediction)).sum(axis=1)

    values, _ = evaluate(Pg(h=1e-6, mode=mode), problem, prediction, costs)

    np.testing.assert_allclose(values, cost, atol=1e-4)


def test_labels_need_no_solver(monkeypatch):
    problem = TopK(3, 1)
    monkeypatch.setattr(problem, "minimize", lambda costs: pytest.fail("solved"))
    Pg().prepare(problem, [[1.0, 2.0, 3.0]])


@pytest.mark.parametrize("parameters", [{"h": 0.0}, {"h": np.nan}, {"mode": "sideways"}])
def test_parameters_are_checked(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        Pg(**parameters)
