"""Losses that need constraints or faces, on programs whose decisions are expressions of their variables."""

import numpy as np
import pytest

from decidewise import DecisionRegressor
from decidewise.losses import as_loss
from decidewise.problems import Ball, CachedProblem, CountedProblem, KnownCosts, LinearProgram, Storage
from decidewise.problems.views import lift
from decidewise.testing import check_loss

HOURS = 4
UNIT = np.eye(HOURS)
SOLD = np.hstack([-UNIT, UNIT, 0 * UNIT])
FEES = np.repeat([0.3, 0.1, 0.0], HOURS)


def battery(sense="max", **options):
    """The store of `Storage(4, 1.0, 2.0)` in charge, discharge and level; sales less purchases have a price."""
    return LinearProgram(
        A_eq=np.hstack([-0.9 * UNIT, UNIT, UNIT - np.eye(HOURS, k=-1)]), b_eq=np.zeros(HOURS),
        lower=0, upper=[1] * (2 * HOURS) + [2] * HOURS, costs=SOLD, sense=sense, **options,
    )  # fmt: skip


def prices(n, seed=0):
    return np.random.default_rng(seed).uniform(1.0, 5.0, size=(n, HOURS))


@pytest.mark.parametrize("name", ["cave", "cave+", "cave-hybrid", "lava", "rfy", "rfwo"])
@pytest.mark.parametrize("options", [{}, {"known": -FEES}, {"known": FEES, "sense": "min"}], ids=["map", "max", "min"])
def test_the_contract_of_losses_through_the_map(name, options):
    check_loss(as_loss(name), battery(**options))


@pytest.mark.parametrize("known", [None, -FEES], ids=["map", "known"])
def test_cave_is_zero_exactly_where_the_decision_is_optimal(known):
    problem, costs = battery(known=known), prices(60)
    predictions = np.vstack(
        [costs[:30] * np.random.default_rng(1).uniform(0.95, 1.05, size=(30, 1)), prices(30, seed=2)]
    )
    lifted = problem.lifted
    wanted, found = (lifted.solve(lift(lifted, rows)) for rows in (costs, predictions))
    loss = (lift(lifted, predictions) * (found - wanted)).sum(axis=1)  # of the optimal decision under the prediction
    target = as_loss("cave").prepare(problem, costs)

    values, gradient = as_loss("cave").value_and_grad(predictions, target, None)

    assert gradient.shape == costs.shape
    assert 10 < np.sum(loss < 1e-9) < 50
    np.testing.assert_array_equal(values < 1e-9, loss < 1e-9)


def test_no_edge_of_lava_is_better_exactly_where_the_decision_is_optimal():
    problem, costs, predictions = battery(), prices(40), np.vstack([1.01 * prices(20), prices(20, seed=2)])
    loss = ((problem.solve(predictions) - problem.solve(costs)) * predictions).sum(axis=1)
    lava = as_loss("lava", threshold=1e-9)
    values, _ = lava.value_and_grad(predictions, lava.prepare(problem, costs), None)
    np.testing.assert_array_equal(values > 1e-6, loss > 1e-9)
    assert 10 < np.sum(loss > 1e-9) < 30


@pytest.mark.parametrize("name", ["rfy", "rfwo"])
def test_projections_through_the_map_are_those_of_the_same_region(name):
    loss, costs, prediction = as_loss(name), prices(12), prices(12, seed=3)
    through_map, own_solver = (
        loss.value_and_grad(prediction, loss.prepare(problem, costs), None)
        for problem in (battery(), Storage(HOURS, 1.0, 2.0))
    )
    for found, expected in zip(through_map, own_solver, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_training_through_the_map_and_its_wrappers():
    X = np.random.default_rng(0).normal(size=(40, 2))
    costs = 3 + X @ np.random.default_rng(1).normal(size=(2, HOURS))
    for problem in (battery(), battery(known=-FEES), KnownCosts(battery(), -FEES[:HOURS])):
        plain = DecisionRegressor(problem, "cave", epochs=2, random_state=0).fit(X, costs).predict(X)
        counted = CountedProblem(problem)
        model = DecisionRegressor(counted, "cave", epochs=2, random_state=0).fit(X, costs)
        np.testing.assert_array_equal(model.predict(X), plain)
        assert counted.n_solves == model.n_solves_ > 0
    cached = CachedProblem(battery(), 0.5, rng=0)
    DecisionRegressor(cached, "lava", epochs=1, random_state=0).fit(X, costs)


def test_known_costs_around_a_map_are_those_inside():
    fees, costs, prediction = FEES[:HOURS], prices(8), prices(8, seed=3)
    inside, around = battery(known=fees @ SOLD), KnownCosts(battery(), fees)
    for name in ("cave", "lava"):
        loss = as_loss(name)
        values = [loss.value_and_grad(prediction, loss.prepare(p, costs), None)[0] for p in (inside, around)]
        np.testing.assert_allclose(*values, atol=1e-12)


def test_what_has_no_constraints_or_faces_is_refused_with_what_to_use():
    costs = prices(3)
    mixed = battery(integrality=[1] + [0] * (3 * HOURS - 1))
    by_row = battery().by_row(b_eq=np.zeros((3, HOURS)))
    for problem, sentence in (
        (mixed, r"Cave needs .* \(only some of its variables are in whole numbers\). Choose a loss .* SpoPlus or Pfy"),
        (by_row, r"Cave needs .* \(its right-hand sides or bounds differ by row\). Choose a loss"),
        (KnownCosts(battery(), np.ones((3, HOURS))), r"Cave needs linear constraints, and KnownCosts"),
    ):
        with pytest.raises(ValueError, match=sentence):
            as_loss("cave").prepare(problem, costs)
    with pytest.raises(ValueError, match="Rfwo needs a region with flat faces, and Ball is not known to be one"):
        as_loss("rfwo").prepare(Ball(HOURS), costs)
    for name in ("rfy", "rfwo"):
        check_loss(as_loss(name), battery().by_row(b_eq=np.eye(HOURS)[[0] * 12] * np.linspace(0, 1, 12)[:, None]))
