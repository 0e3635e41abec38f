import numpy as np
import pytest
from scipy.optimize import lsq_linear

from decidewise.losses import Lodl
from decidewise.losses.lodl import nonnegative_fit
from decidewise.problems import KnownCosts, TopK


def sampled(loss, problem, costs, seed=0):
    """Return the errors (s, n, d) and regrets (s, n) that the loss draws with one part."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((len(costs), loss.n_samples, costs.shape[1])).transpose(1, 0, 2)
    errors = loss.sigma * costs.std(axis=0) * noise
    decisions = np.array([problem.minimize(costs + error) for error in errors])
    return errors, ((decisions - problem.minimize(costs)) * costs).sum(axis=-1)


@pytest.mark.parametrize("directed", [False, True])
def test_weights_are_the_bounded_least_squares_fit(directed):
    problem, loss = TopK(5, 2, sense="min"), Lodl(n_samples=200, directed=directed, floor=0.0)
    costs = np.random.default_rng(1).normal(size=(6, 5))

    target = loss.prepare(problem, costs, rng=np.random.default_rng(0))

    errors, regrets = sampled(loss, problem, costs)
    for row in range(6):
        squares = errors[:, row] ** 2 / 5
        above = errors[:, row] > 0
        design = np.hstack([squares * above, squares * ~above]) if directed else squares
        expected = lsq_linear(design, regrets[:, row], (0, np.inf), tol=1e-12).x
        found = np.hstack([target.above[row], target.below[row]]) if directed else target.above[row]
        np.testing.assert_allclose(found, expected, atol=1e-5 * expected.max())


def test_planted_weights_are_recovered():
    rng = np.random.default_rng(0)
    errors = rng.normal(size=(300, 4))

    for weights in rng.uniform(0.5, 3.0, size=(20, 4)):
        regrets = (weights * errors**2).mean(axis=1)
        np.testing.assert_allclose(Lodl()._fit(errors[None], regrets[None]), [[weights, weights]], rtol=1e-9)


def test_columns_that_depend_on_each_other_are_fitted_too():
    design = np.random.default_rng(0).uniform(size=(50, 4))[:, [0, 1, 2, 3, 1, 0]]
    values = design @ [1.0, 2.0, 0.0, 0.5, 0.0, 0.0]
    for k in (4, 5, 6):
        weights = nonnegative_fit(design[:, :k] / np.linalg.norm(design[:, :k], axis=0), values)
        np.testing.assert_allclose(design[:, :k] / np.linalg.norm(design[:, :k], axis=0) @ weights, values, rtol=1e-9)
        assert (weights >= 0).all()


def test_labels_do_not_depend_on_parts_of_memory(monkeypatch):
    problem, costs = TopK(4, 1), np.random.default_rng(1).normal(size=(10, 4))
    whole = Lodl(50).prepare(problem, costs)

    monkeypatch.setattr("decidewise.losses.lodl._MOST_ENTRIES", 1)
    parts = Lodl(50).prepare(problem, costs)

    np.testing.assert_array_equal(parts.above, whole.above)


def test_too_few_samples_are_refused():
    with pytest.raises(ValueError, match="fits 6 weights per row, and 5 samples"):
        Lodl(5).prepare(TopK(6, 2), np.ones((3, 6)))
    with pytest.raises(ValueError, match="fits 12 weights per row"):
        Lodl(11, directed=True).prepare(TopK(6, 2), np.ones((3, 6)))
    Lodl(6).prepare(KnownCosts(TopK(6, 2), np.arange(6.0)), np.random.default_rng(0).normal(size=(3, 6)))
