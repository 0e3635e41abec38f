"""PG-DCA, adaptive PG and SFGE."""

import numpy as np
import pytest

from decidewise.losses import Dpo, Pg, PgAdaptive, PgDca, Sfge
from decidewise.problems import ShortestPath, TopK


def draw(problem, n=300):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, problem.n_costs)), rng.uniform(0.5, 2.0, size=(n, problem.n_costs))


@pytest.mark.parametrize("problem", [ShortestPath(3, 3), TopK(6, 2)], ids=lambda problem: type(problem).__name__)
def test_pg_dca_majorises_backward_pg_and_touches_it_at_the_snapshot(problem):
    rng = np.random.default_rng(1)
    prediction, costs = draw(problem)
    loss, pg = PgDca(h=0.3), Pg(h=0.3)
    target = loss.refreshed(prediction, loss.prepare(problem, costs), rng)

    at_snapshot, slope = loss.value_and_grad(prediction, target, rng)
    expected, expected_slope = pg.value_and_grad(prediction, pg.prepare(problem, costs), rng)
    np.testing.assert_allclose(at_snapshot, expected, atol=1e-12)
    np.testing.assert_allclose(slope, expected_slope, atol=1e-12)

    elsewhere = prediction + rng.normal(size=prediction.shape)
    values, _ = loss.value_and_grad(elsewhere, target, rng)
    below, _ = pg.value_and_grad(elsewhere, pg.prepare(problem, costs), rng)
    assert np.all(values >= below - 1e-12)
    assert (values > below + 1e-3).mean() > 0.3
    middle, _ = loss.value_and_grad((prediction + elsewhere) / 2, target, rng)
    assert np.all(middle <= (at_snapshot + values) / 2 + 1e-12)  # convex


def test_adaptive_pg_finds_the_smallest_width_that_is_good_enough():
    problem = TopK(6, 1, sense="min")
    prediction, costs = draw(problem)
    loss = PgAdaptive(h=1e-3, slack=0.2)
    target = loss.prepare(problem, costs)

    width = loss.refreshed(prediction, target, np.random.default_rng(0)).width

    def excess(width):
        paid = (costs * problem.solve(prediction + width * costs)).sum(axis=1).mean()
        return paid / costs.min(axis=1).mean() - 1

    assert width > 0.1
    assert excess(width) <= 0.2 < excess(width * 0.999)
    assert loss.refreshed(costs, target, np.random.default_rng(0)).width == 1e-3  # already good: the smallest
    refreshed = loss.refreshed(prediction, target, np.random.default_rng(0))
    forward = Pg(h=width, mode="forward")
    for ours, theirs in zip(
        loss.value_and_grad(prediction, refreshed, None),
        forward.value_and_grad(prediction, forward.prepare(problem, costs), None),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_sfge_divides_the_gradient_of_dpo_by_the_spread_of_each_row():
    problem = TopK(5, 2)
    prediction, costs = draw(problem, n=20)
    sfge, dpo = Sfge(n_samples=50, sigma=0.7), Dpo(n_samples=50, sigma=0.7)

    values, gradient = sfge.value_and_grad(prediction, sfge.prepare(problem, costs), np.random.default_rng(3))
    expected, theirs = dpo.value_and_grad(prediction, dpo.prepare(problem, costs), np.random.default_rng(3))

    np.testing.assert_allclose(values, expected)
    noise = np.random.default_rng(3).standard_normal((50, 20, 5))
    regrets = (costs * (problem.solve(costs) - np.array([problem.solve(prediction + s) for s in -0.7 * noise]))).sum(-1)
    np.testing.assert_allclose(gradient, 49 / 50 * theirs / regrets.std(axis=0)[:, None])


def test_sfge_as_published_standardises_one_sample_a_row_over_the_batch():
    problem = TopK(5, 2, sense="min")
    prediction, costs = draw(problem, n=20)
    loss = Sfge(n_samples=1, sigma=0.7, standardize="batch")

    values, gradient = loss.value_and_grad(prediction, loss.prepare(problem, costs), np.random.default_rng(3))

    noise = np.random.default_rng(3).standard_normal((20, 5))
    regrets = (costs * (problem.solve(prediction + 0.7 * noise) - problem.solve(costs))).sum(axis=1)
    np.testing.assert_allclose(values, regrets, atol=1e-12)
    score = noise / 0.7  # the gradient of the log density of the sample in the prediction
    np.testing.assert_allclose(gradient, ((regrets - regrets.mean()) / regrets.std())[:, None] * score)


def test_sfge_has_no_gradient_where_all_samples_decide_alike():
    problem = ShortestPath(5, 5)
    prediction, costs = draw(problem, n=500)
    loss = Sfge(sigma=1e-6)

    _, gradient = loss.value_and_grad(prediction, loss.prepare(problem, costs), np.random.default_rng(0))

    assert not gradient.any()  # the mean of ten equal regrets may differ from them by rounding


@pytest.mark.parametrize(
    ("loss", "parameters"),
    [(PgDca, {"h": 0.0}), (PgDca, {"refresh_every": 0}), (PgAdaptive, {"slack": -1.0}), (Sfge, {"n_samples": 1})],
)
def test_parameters_are_checked(loss, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        loss(**parameters)
