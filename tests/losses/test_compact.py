import numpy as np
import pytest

from decidewise.losses import Compact, Qptl
from decidewise.losses.compact import combinations, factors
from decidewise.problems import Knapsack, LinearProgram, ShortestPath, TopK


def test_it_is_qptl_on_a_linear_program_of_the_combinations():
    """Written out: `y >= 0`, `P y` in the region, costs `Pᵀp`."""
    rng = np.random.default_rng(0)
    problem = TopK(8, 3, sense="min")
    prediction, costs = rng.uniform(0.5, 2, size=(2, 30, 8))
    loss = Compact(n_columns=4, lambd=0.7)
    target = loss.prepare(problem, costs)
    P = target.columns
    small = LinearProgram(np.vstack([P, -P]), np.repeat([1.0, 0.0], 8), P.sum(axis=0)[None], [3.0])
    qptl = Qptl(lambd=0.7)
    values, gradient = loss.value_and_grad(prediction, target, rng)
    theirs, slope = qptl.value_and_grad(prediction @ P, qptl.prepare(small, costs @ P), rng)
    lost = qptl.prepare(small, costs @ P).values - target.values  # what the best combination costs more
    np.testing.assert_allclose(values, theirs + lost, atol=1e-8)
    np.testing.assert_allclose(gradient, slope @ P.T, atol=1e-7)
    assert (lost > -1e-9).all()


def test_with_as_many_columns_as_costs_that_are_units_nothing_is_lost():
    problem = Knapsack([[3.0, 4.0, 5.0]], [7.0])
    region = combinations(problem.polyhedron, np.eye(3))
    np.testing.assert_array_equal(region.A_ub.toarray(), np.vstack([problem.polyhedron.A_ub.toarray(), np.eye(3)]))


def test_planted_columns_are_recovered():
    rng = np.random.default_rng(0)
    planted = np.zeros((9, 3))
    for k in range(3):
        planted[3 * k : 3 * k + 3, k] = rng.uniform(0.5, 1, size=3)
    planted /= np.linalg.norm(planted, axis=0)
    found = factors(rng.uniform(size=(60, 3)) @ planted.T, 3, rng)
    np.testing.assert_allclose(found[:, (found.T @ planted).argmax(axis=0)], planted, atol=0.05)
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), 1)


def test_regions_on_which_columns_leave_no_choice_are_refused():
    with pytest.raises(ValueError, match=r"3 columns, and the 8 equations of ShortestPath.*n_columns to 10.*Qptl"):
        Compact().prepare(ShortestPath(3, 3), np.ones((2, 12)))
    with pytest.raises(ValueError, match=r"not negative, and decisions of LinearProgram may be"):
        Compact().prepare(LinearProgram(lower=-1.0, upper=np.ones(3)), np.ones((2, 3)))
    apart = LinearProgram(
        A_eq=[[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], b_eq=[1.0, 1.0], upper=[1.0, 0.5, 1.0, 0.5]
    )
    assert Compact(n_columns=4).prepare(apart, np.random.default_rng(0).normal(size=(20, 4))).columns.shape == (4, 4)


def test_columns_without_a_feasible_combination_name_the_remedy(monkeypatch):
    monkeypatch.setattr("decidewise.losses.compact.factors", lambda *_: np.eye(6)[:, :3])
    with pytest.raises(ValueError, match=r"no combination of 3 columns is feasible for TopK\. Raise n_columns"):
        Compact().prepare(TopK(6, 5), np.random.default_rng(0).normal(size=(20, 6)))


@pytest.mark.parametrize("name", ["n_columns", "lambd", "max_iter"])
def test_bad_parameters(name):
    with pytest.raises(ValueError, match=name):
        Compact(**{name: 0})
