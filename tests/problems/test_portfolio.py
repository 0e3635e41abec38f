import clarabel
import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.sparse import csc_matrix, eye, vstack

from decidewise.problems import Portfolio
from decidewise.problems.portfolio.critical_line import follow_risk_price


def random_covariance(rng, d, kind):
    if kind == "factors":
        loadings = rng.uniform(-0.0025, 0.0025, (d, 6))
        return loadings @ loadings.T + 1e-4 * np.eye(d)
    if kind == "dense":
        root = rng.normal(size=(d, d))
        return root @ root.T
    if kind == "identity":
        return np.eye(d)
    if kind == "low rank":
        root = rng.normal(size=(d, 3))
        return root @ root.T
    root = rng.normal(size=(d, d)) * np.geomspace(1e-3, 1e1, d)[:, None]
    covariance = root @ root.T
    covariance[:, 1] = covariance[:, 0]
    covariance[1, :] = covariance[0, :]
    return covariance


def best_value(returns, covariance, risk, budget):
    """The largest return by Clarabel, at a tolerance well below what is tested."""
    d = len(returns)
    values, vectors = np.linalg.eigh(covariance)
    root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    rows = vstack([-eye(d), np.ones((1, d)), np.zeros((1, d)), -root / np.sqrt(risk)], format="csc")
    bounds = np.concatenate([np.zeros(d), [budget, 1.0], np.zeros(d)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    cones = [clarabel.NonnegativeConeT(d + 1), clarabel.SecondOrderConeT(d + 1)]
    return -clarabel.DefaultSolver(csc_matrix((d, d)), -returns, rows, bounds, cones, settings).solve().obj_val


@pytest.mark.parametrize("kind", ["factors", "dense", "identity", "low rank", "duplicate assets in many scales"])
@pytest.mark.parametrize("tightness", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("ties", [False, True])
def test_the_value_is_clarabels_and_the_portfolio_feasible(kind, tightness, ties):
    rng = np.random.default_rng(0)
    d, budget = 25, 1.7
    covariance = random_covariance(rng, d, kind)
    risk = tightness * 2.25 * np.abs(covariance.mean())
    returns = rng.integers(-2, 3, size=(25, d)).astype(float) if ties else rng.normal(size=(25, d))
    decisions = Portfolio(covariance, risk, budget).solve(returns)
    values = (returns * decisions).sum(1)
    expected = [best_value(row, covariance, risk, budget) for row in returns]
    np.testing.assert_allclose(values, expected, rtol=1e-7, atol=1e-9)
    assert (decisions >= 0).all()
    assert (decisions.sum(1) <= budget * (1 + 1e-9)).all()
    assert (np.einsum("ij,jk,ik->i", decisions, covariance, decisions) <= risk * (1 + 1e-9)).all()


@pytest.mark.parametrize("d", [1, 2, 200])
def test_few_and_many_assets(d):
    rng = np.random.default_rng(1)
    covariance = random_covariance(rng, d, "dense") / d
    risk = 0.3 * covariance.trace() / d
    returns = rng.normal(size=(5, d))
    values = (returns * Portfolio(covariance, risk).solve(returns)).sum(1)
    np.testing.assert_allclose(
        values, [best_value(row, covariance, risk, 1.0) for row in returns], rtol=1e-7, atol=1e-8
    )


def test_the_data_of_the_paper_never_need_the_fallback():
    rng = np.random.default_rng(2)
    covariance = random_covariance(rng, 25, "factors")
    for returns in (0.2 + 0.02 * rng.normal(size=(500, 25)), rng.integers(-3, 4, size=(500, 25)).astype(float)):
        _, certified = follow_risk_price(returns, covariance / (2.25 * covariance.mean()))
        assert certified.all()


def test_two_assets_in_closed_form():
    # Uncorrelated assets of variance 1, both constraints tight: w1² + w2² = risk and w1 + w2 = 1.
    risk = 0.6
    w = (1 + np.sqrt(2 * risk - 1)) / 2
    np.testing.assert_allclose(Portfolio(np.eye(2), risk).solve([2.0, 1.0]), [w, 1 - w], rtol=1e-12)


def test_a_loose_risk_leaves_the_linear_program():
    rng = np.random.default_rng(3)
    returns = rng.normal(size=(20, 8))
    decisions = Portfolio(np.eye(8), 100.0).solve(returns)
    expected = [-linprog(-row, A_ub=np.ones((1, 8)), b_ub=[1.0]).fun for row in returns]
    np.testing.assert_allclose((returns * decisions).sum(1), expected, atol=1e-12)


def test_a_tight_risk_leaves_the_budget_free():
    returns = np.array([3.0, 4.0, -1.0])
    decisions = Portfolio(np.eye(3), 1e-4).solve(returns)
    np.testing.assert_allclose(decisions, [0.006, 0.008, 0.0], rtol=1e-12)


def test_nothing_is_bought_without_a_positive_return():
    np.testing.assert_array_equal(
        Portfolio(np.eye(3), 0.5).solve([[-1.0, -2.0, 0.0], [0.0, 0.0, 0.0]]), np.zeros((2, 3))
    )


@pytest.mark.parametrize("seed", range(10))
def test_ties_go_to_the_least_variance(seed):
    rng = np.random.default_rng(seed)
    covariance = random_covariance(rng, 6, "dense")
    returns = rng.permutation([1.0, 1.0, 1.0, 1.0, 0.5, -1.0])
    portfolio = Portfolio(covariance, 1e3)
    decision = portfolio.solve(returns)
    tied = np.flatnonzero(returns == 1)
    reference = minimize(
        lambda w: w @ covariance[np.ix_(tied, tied)] @ w,
        np.full(4, 0.25),
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14},
    )
    assert decision @ returns == pytest.approx(1, rel=1e-12)
    assert decision @ covariance @ decision == pytest.approx(reference.fun, rel=1e-6)


def test_the_minimisation_is_the_mirror():
    rng = np.random.default_rng(4)
    covariance, costs = random_covariance(rng, 6, "dense"), rng.normal(size=(9, 6))
    np.testing.assert_array_equal(
        Portfolio(covariance, 2.0, sense="min").solve(costs), Portfolio(covariance, 2.0).solve(-costs)
    )


def test_the_norm_is_bounded():
    rng = np.random.default_rng(5)
    for risk in (1e-3, 1.0, 1e3):
        covariance = random_covariance(rng, 6, "dense")
        portfolio = Portfolio(covariance, risk, 2.0)
        norms = np.linalg.norm(portfolio.solve(rng.normal(size=(200, 6))), axis=1)
        assert norms.max() <= portfolio.B_S * (1 + 1e-9)
    assert portfolio.polyhedron is None


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"covariance must be square.*\(2, 3\)"):
        Portfolio(np.ones((2, 3)), 1.0)
    with pytest.raises(ValueError, match=r"covariance must be symmetric; entry \(0, 1\) is 2 and entry \(1, 0\) 0"):
        Portfolio([[1.0, 2.0], [0.0, 1.0]], 1.0)
    with pytest.raises(ValueError, match=r"positive semidefinite; its smallest eigenvalue is -1"):
        Portfolio([[1.0, 2.0], [2.0, 1.0]], 1.0)
    with pytest.raises(ValueError, match=r"covariance must be finite; row 0, column 1 has NaN"):
        Portfolio([[1.0, np.nan], [np.nan, 1.0]], 1.0)
    with pytest.raises(ValueError, match="risk"):
        Portfolio(np.eye(2), 0.0)
    with pytest.raises(ValueError, match="budget"):
        Portfolio(np.eye(2), 1.0, budget=-1.0)
