from itertools import product

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from decidewise import DecisionRegressor
from decidewise.losses import Mipaal, Qptl, Rfwo
from decidewise.problems import CountedProblem, Knapsack, LinearProgram, ShortestPath, TravellingSalesman

KNAPSACK = Knapsack([[3.0, 4.0, 5.0, 6.0], [5.0, 2.0, 4.0, 3.0]], [9.0, 8.0])


def evaluate(loss, problem, prediction, costs):
    return loss.value_and_grad(prediction, loss.prepare(problem, costs), np.random.default_rng(0))


def draw(problem, n=40, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 1.5, size=(2, n, problem.n_costs))


def choices(problem):
    points = np.array(list(product((0.0, 1.0), repeat=problem.n_costs)))
    region = problem.polyhedron
    return points[(points @ region.A_ub.T <= region.b_ub + 1e-9).all(axis=1)]


def test_cuts_are_facets_of_the_hull():
    _, costs = draw(KNAPSACK)
    target = Mipaal().prepare(KNAPSACK, costs)
    hull = ConvexHull(choices(KNAPSACK)).equations  # normals·z + offsets <= 0
    facets = hull / np.abs(hull[:, :-1]).max(axis=1, keepdims=True)

    assert target.n_cuts > 1
    cuts = np.column_stack([target.region.A_ub.toarray(), -target.region.b_ub])[-target.n_cuts :]
    for cut in cuts:
        assert np.abs(facets - cut).max(axis=1).min() < 1e-8


def test_cuts_close_the_relaxation_and_cut_off_no_decision():
    problem = TravellingSalesman(7)
    prediction, costs = draw(problem, n=15)
    loss = Mipaal()
    target = loss.prepare(problem, costs)
    np.testing.assert_allclose((costs * target.minimize(costs)).sum(axis=1), target.values, rtol=1e-5)
    assert ((costs * problem.minimize_relaxation(costs)).sum(axis=1) < target.values - 1e-3).any()

    refreshed = loss.refreshed(prediction, target, np.random.default_rng(0))
    tours = problem.minimize(np.random.default_rng(1).normal(size=(500, problem.n_costs)))
    assert (tours @ refreshed.region.A_ub.T <= refreshed.region.b_ub + 1e-9).all()
    best = (prediction * problem.minimize(prediction)).sum(axis=1)
    np.testing.assert_allclose((prediction * refreshed.minimize(prediction)).sum(axis=1), best, rtol=1e-5)
    assert refreshed.n_cuts >= target.n_cuts


def test_the_limit_of_all_cuts_is_the_hull_on_which_rfwo_projects():
    """QPTL with every facet of the hull as a constraint is RFWO; MIPaaL comes as near as its cuts do."""
    facets = np.unique(ConvexHull(choices(KNAPSACK)).equations.round(12), axis=0)
    with_facets = LinearProgram(facets[:, :-1], -facets[:, -1], lower=0.0, upper=1.0, sense="max")
    prediction, costs = draw(KNAPSACK)
    hull = evaluate(Rfwo(), KNAPSACK, prediction, costs)
    limit = evaluate(Qptl(lambd=1.0), with_facets, prediction, costs)
    np.testing.assert_allclose(limit[0], hull[0], atol=1e-8)
    np.testing.assert_allclose(limit[1], hull[1], atol=1e-6)

    # Smoothed decisions lie inside the region, where more facets matter than at the vertices of these costs.
    apart = {}
    for name, loss, labels in (
        ("cuts of these costs", Mipaal(lambd=1.0), costs),
        ("cuts of many costs", Mipaal(lambd=1.0), np.concatenate([costs, *draw(KNAPSACK, n=500, seed=1)])),
    ):
        target = loss.prepare(KNAPSACK, labels)[np.arange(len(costs))]
        apart[name] = np.abs(loss.value_and_grad(prediction, target, np.random.default_rng(0))[0] - hull[0]).max()
    relaxed, _ = evaluate(Qptl(lambd=1.0), KNAPSACK, prediction, costs)
    assert apart["cuts of many costs"] < 1e-8
    assert apart["cuts of many costs"] <= apart["cuts of these costs"] < np.abs(relaxed - hull[0]).max()


def test_an_integer_program_with_fewer_costs_than_variables():
    rng = np.random.default_rng(1)
    problem = LinearProgram(
        [[2.0, 3.0, 5.0]], [8.5], upper=2.0, integrality=np.ones(3), costs=[[1.0, 1.0, 0.0], [0.0, 1.0, 2.0]],
        known=[0.1, 0.0, 0.3], sense="max",
    )  # fmt: skip
    prediction, costs, change = rng.uniform(0.5, 2, size=(3, 4, 2))
    loss = Mipaal(lambd=1.0)
    target = loss.prepare(problem, costs)
    assert target.n_cuts > 0
    _, gradient = loss.value_and_grad(prediction, target, rng)
    ends = [loss.value_and_grad(prediction + s * 1e-6 * change, target, rng)[0] for s in (1, -1)]
    np.testing.assert_allclose((gradient * change).sum(axis=1), (ends[0] - ends[1]) / 2e-6, atol=1e-6)
    assert gradient.any()


def test_mixed_integer_programs_are_cut_to_their_hull():
    rng = np.random.default_rng(0)
    A = rng.integers(1, 9, size=(3, 8)).astype(float)
    mixed = LinearProgram(A, 0.4 * A.sum(axis=1), upper=1.0, integrality=[1] * 5 + [0] * 3, sense="max")
    _, costs = draw(mixed, n=20)
    target = Mipaal().prepare(CountedProblem(mixed), costs)
    assert target.n_cuts > 5
    np.testing.assert_allclose((target.costs * target.minimize(target.costs)).sum(axis=1), target.values, rtol=1e-5)
    assert ((target.costs * mixed.minimize_relaxation(target.costs)).sum(axis=1) < target.values - 0.1).any()
    decisions = mixed.minimize(rng.normal(size=(100, 8)))
    assert (decisions @ target.region.A_ub.T <= target.region.b_ub + 1e-6).all()  # of HiGHS, to its tolerance

    small = LinearProgram([[2.0, 3.0, 1.0], [1.0, 0.0, -1.0]], [4.0, 0.5], upper=[1, 1, 2], integrality=[1, 1, 0])
    prediction, costs = -np.stack(draw(small))
    loss = Mipaal(lambd=1.0)
    target = loss.prepare(small, np.concatenate([costs, rng.normal(size=(200, 3))]))[np.arange(len(costs))]
    found = loss.value_and_grad(prediction, target, rng)
    for ours, hull in zip(found, evaluate(Rfwo(), small, prediction, costs), strict=True):
        np.testing.assert_allclose(ours, hull, atol=1e-6)


def test_where_the_relaxation_has_integer_vertices_it_is_qptl():
    problem = ShortestPath(3, 3)
    prediction, costs = draw(problem)
    assert Mipaal().prepare(problem, costs).n_cuts == 0
    for ours, theirs in zip(*(evaluate(loss, problem, prediction, costs) for loss in (Mipaal(), Qptl())), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_training_adds_cuts_where_it_comes_to():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    costs = np.exp(0.5 * X @ rng.normal(size=(2, 4)))
    model = DecisionRegressor(KNAPSACK, Mipaal(refresh_every=1), epochs=2, random_state=0).fit(X, costs)
    assert np.isfinite(model.predict(X)).all()


def test_cuts_that_do_not_close_name_the_remedy():
    _, costs = draw(KNAPSACK)
    with pytest.raises(
        ValueError, match=r"max_cuts=1 cuts do not close the relaxation of Knapsack.*Raise max_cuts.*Rfwo"
    ):
        Mipaal(max_cuts=1).prepare(KNAPSACK, costs)


@pytest.mark.parametrize("name", ["max_cuts", "refresh_every", "lambd"])
def test_bad_parameters(name):
    with pytest.raises(ValueError, match=name):
        Mipaal(**{name: 0})
