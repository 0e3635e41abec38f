import numpy as np
import pytest
from sklearn.linear_model import TweedieRegressor

from decidewise.models import GeneralizedLinear
from decidewise.models.linear import log_linear
from decidewise.models.linear.blocks import BLOCK_ROWS
from decidewise.models.linear.newton import Curvature, Preconditioner

POWERS = {"poisson": 1.0, "tweedie": 1.5, "gamma": 2.0}


@pytest.fixture
def wide():
    """Rows with 45 correlated features and three outputs of different sizes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 45)) @ rng.normal(size=(45, 45)) / 6
    means = np.exp(X @ rng.normal(size=(45, 3)) / 9) * [1.0, 1e-3, 1e4]
    return X, means * rng.gamma(2.0, 0.5, means.shape), rng.integers(0, 3, len(X)).astype(float)


@pytest.mark.parametrize("name", POWERS)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_many_features_give_the_answer_of_the_hessians(wide, name, weighted, alpha, monkeypatch):
    X, y, weights = wide
    model = GeneralizedLinear(name, alpha=alpha)
    found = model.fit(X, y, sample_weight=weights if weighted else None)
    coefficients, intercepts, passes = found.coef_, found.intercept_, found.n_iter_
    assert found.converged_.all()
    monkeypatch.setattr(log_linear, "_MANY_DIRECTIONS", 1_000)
    model.fit(X, y, sample_weight=weights if weighted else None)
    np.testing.assert_allclose(coefficients, model.coef_, atol=2e-5 * np.abs(model.coef_).max())
    np.testing.assert_allclose(intercepts, model.intercept_, rtol=1e-5)
    assert (passes <= model.n_iter_ + 2).all()


@pytest.mark.parametrize("name", POWERS)
def test_many_features_agree_with_scikit_learn(wide, name):
    X, y, weights = wide
    ours = GeneralizedLinear(name, alpha=0.3).fit(X, y[:, 0], sample_weight=weights)
    theirs = TweedieRegressor(power=POWERS[name], alpha=0.3, link="log", solver="newton-cholesky", tol=1e-12)
    theirs.fit(X, y[:, 0], sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)


def test_rows_of_several_blocks_are_joined(wide, monkeypatch):
    X, y, weights = (np.resize(part, (2 * BLOCK_ROWS + 7, *part.shape[1:])) for part in wide)
    model = GeneralizedLinear("gamma", alpha=0.1).fit(X, y, sample_weight=weights)
    one_by_one = GeneralizedLinear("gamma", alpha=0.1)
    monkeypatch.setattr(log_linear, "_DESIGN_ENTRIES", 0)
    np.testing.assert_allclose(model.coef_, one_by_one.fit(X, y, sample_weight=weights).coef_, atol=1e-6)


def test_a_group_of_zeros_and_an_outlier_need_no_hessian(wide):
    X, y, _ = wide
    X, y = X.copy(), y.copy()
    X[:, 0] = np.arange(len(X)) < 30
    y[:30, 1] = 0.0  # the best coefficient of this group is minus infinity
    X[0] *= 100
    model = GeneralizedLinear("poisson", alpha=1e-8).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.predict(X[1:30])[:, 1].max() < 1e-2 * y[:, 1].mean()


def test_systems_are_solved_whatever_the_preconditioner():
    rng = np.random.default_rng(1)
    design, curvatures = rng.normal(size=(12, 60)), rng.gamma(0.5, size=(60, 4))
    ridge, alphas = np.diag(np.r_[0.0, rng.uniform(1, 9, 11)]), np.array([0.0, 0.1, 1.0, 50.0])
    poor = Preconditioner.of(np.diag(rng.uniform(1, 200, 12)), ridge)
    hessians = Curvature(design, curvatures, alphas, ridge, poor)
    right = 1e-3 * rng.normal(size=(12, 4))
    for j, (solution, alpha) in enumerate(zip(hessians.solve(right, 0.0).T, alphas, strict=True)):
        exact = np.linalg.solve((design * curvatures[:, j]) @ design.T + alpha * ridge, right[:, j])
        np.testing.assert_allclose(solution, exact, rtol=0.01, atol=0.01 * np.abs(exact).max())
    some = np.array([True, False, True, False])
    np.testing.assert_allclose(hessians[some].times(right[:, some]), hessians.times(right)[:, some])
    good = Preconditioner.of((design * curvatures[:, 0]) @ design.T, ridge)
    np.testing.assert_allclose(
        ((design * curvatures[:, 0]) @ design.T + 0.1 * ridge) @ good.solve(right, alphas)[:, 1], right[:, 1]
    )
