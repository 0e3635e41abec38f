"""One model shared by all items: features of shape (n, d, q), against scikit-learn on the long table."""

import lightgbm
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import GammaRegressor, LinearRegression, PoissonRegressor, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from decidewise.measure import transform
from decidewise.models import GeneralizedLinear, WiseRegressor, default_candidates
from decidewise.models.linear import blocks as row_blocks
from decidewise.testing import check_model

N, D, Q = 40, 6, 3


@pytest.fixture
def table():
    """Features, positive costs, and weights of rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D, Q)) * [0.1, 1.0, 3.0] + [5.0, 0.0, -40.0]
    rates = np.exp((X - [5.0, 0.0, -40.0]) @ [1.0, 0.3, -0.1] + rng.normal(scale=0.2, size=D))
    return X, rates * rng.uniform(0.5, 1.5, size=(N, D)), rng.uniform(0, 2, size=N)


def long(X, costs, weights):
    return X.reshape(-1, X.shape[2]), costs.ravel(), np.repeat(weights, X.shape[1])


def one_hot(n=N):
    return np.tile(np.eye(D), (n, 1))


@pytest.mark.parametrize("pairs", [2**17, 12])  # in one block, and in many
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_least_squares_is_that_of_the_long_table(table, monkeypatch, pairs, fit_intercept, alpha):
    monkeypatch.setattr(row_blocks, "_BLOCK_PAIRS", pairs)
    X, costs, weights = table
    ours = GeneralizedLinear(alpha=alpha, fit_intercept=fit_intercept).fit(X, costs, weights)
    theirs = Ridge(alpha=alpha * D * weights.sum(), fit_intercept=fit_intercept, solver="svd")
    theirs.fit(*long(X, costs, weights)[:2], sample_weight=long(X, costs, weights)[2])
    assert ours.coef_.shape == (Q,)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-8)
    np.testing.assert_allclose(ours.predict(X[:3]), theirs.predict(X[:3].reshape(-1, Q)).reshape(3, D), rtol=1e-9)


@pytest.mark.parametrize(("deviance", "theirs"), [("poisson", PoissonRegressor), ("gamma", GammaRegressor)])
def test_log_linear_fits_are_those_of_the_long_table(table, deviance, theirs):
    X, costs, weights = table
    ours = GeneralizedLinear(deviance).fit(X, costs, weights)
    rows, targets, repeated = long((X - X.mean((0, 1))) / X.std((0, 1)), costs, weights)
    theirs = theirs(alpha=0, tol=1e-10, max_iter=10_000).fit(rows, targets, sample_weight=repeated)
    np.testing.assert_allclose(ours.coef_ * X.std((0, 1)), theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict(X).ravel(), theirs.predict(rows), rtol=1e-5)


def test_wise_weighs_all_items_of_a_row_by_the_norm_of_its_costs(table):
    X, costs, weights = table
    norms, directions = transform(costs)
    theirs = LinearRegression().fit(X.reshape(-1, Q), directions.ravel(), sample_weight=np.repeat(norms * weights, D))
    ours = WiseRegressor(scale="unit").fit(X, costs, weights)
    np.testing.assert_allclose(ours.estimator_.coef_, theirs.coef_, rtol=1e-8)
    # Any learner gets the same rows, here as another way to the same fit.
    wrapped = WiseRegressor(make_pipeline(StandardScaler(), LinearRegression()), scale="unit").fit(X, costs, weights)
    np.testing.assert_allclose(wrapped.predict(X), ours.predict(X), rtol=1e-8)
    mean = np.average(norms, weights=weights)
    np.testing.assert_allclose(WiseRegressor().fit(X, costs, weights).predict(X), mean * ours.predict(X), rtol=1e-8)
    assert (wrapped.n_items_in_, wrapped.n_features_in_) == (D, Q)


def test_rows_added_in_parts_give_the_fit_of_all(table):
    X, costs, weights = table
    for model in (WiseRegressor(), WiseRegressor(GeneralizedLinear(per_item="intercept"))):
        model.partial_fit(X[:25], costs[:25], weights[:25]).partial_fit(X[25:], costs[25:], weights[25:])
        whole = WiseRegressor(model.estimator).fit(X, costs, weights)
        np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_an_intercept_per_item_is_a_dummy_variable_that_is_not_penalised(table, alpha):
    X, costs, weights = table
    ours = GeneralizedLinear(per_item="intercept", alpha=alpha).fit(X, costs, weights)
    rows, targets, repeated = long(X, costs, weights)
    root = np.sqrt(repeated)[:, None]
    penalty = np.sqrt(alpha * repeated.sum()) * np.eye(Q, Q + D)
    design = np.vstack([np.hstack([rows, one_hot()]) * root, penalty])
    expected = np.linalg.lstsq(design, np.append(targets * root[:, 0], np.zeros(Q)), rcond=None)[0]
    np.testing.assert_allclose(ours.coef_, expected[:Q], rtol=1e-7)
    np.testing.assert_allclose(ours.intercept_, expected[Q:], rtol=1e-7)


def test_coefficients_per_item_are_pulled_to_the_shared_ones_by_the_ridge(table):
    X, costs, weights = table
    alpha = 0.2
    ours = GeneralizedLinear(per_item="coefficients", alpha=alpha).fit(X, costs, weights)
    rows, targets, repeated = long(X, costs, weights)
    root = np.sqrt(repeated)[:, None]
    own = (one_hot()[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    penalty = np.sqrt(alpha * repeated.sum()) * np.eye(Q + D * Q, Q + D * Q + D)
    design = np.vstack([np.hstack([rows, own, one_hot()]) * root, penalty])
    expected = np.linalg.lstsq(design, np.append(targets * root[:, 0], np.zeros(len(penalty))), rcond=None)[0]
    np.testing.assert_allclose(ours.coef_, expected[:Q] + expected[Q : Q + D * Q].reshape(D, Q), rtol=1e-7)
    np.testing.assert_allclose(ours.intercept_, expected[Q + D * Q :], rtol=1e-6)


@pytest.mark.parametrize("deviance", ["squared", "poisson", "gamma"])
def test_coefficients_per_item_without_a_ridge_are_one_fit_for_each_item(table, deviance):
    X, costs, weights = table
    ours = GeneralizedLinear(deviance, per_item="coefficients").fit(X, costs, weights)
    each = [GeneralizedLinear(deviance).fit(X[:, j], costs[:, j], weights) for j in range(D)]
    np.testing.assert_allclose(ours.coef_, [model.coef_ for model in each], rtol=1e-5, atol=1e-8)
    predicted = np.column_stack([model.predict(X[:, j]) for j, model in enumerate(each)])
    np.testing.assert_allclose(ours.predict(X), predicted, rtol=1e-6)


# Without a ridge, coefficients per item are one fit for each item, which is tested above.
@pytest.mark.parametrize(("per_item", "alpha"), [("intercept", 0.0), ("intercept", 0.05), ("coefficients", 0.05)])
def test_log_linear_fits_per_item_minimise_their_objective(table, per_item, alpha):
    X, costs, weights = table
    X = (X - X.mean((0, 1))) / X.std((0, 1))
    ours = GeneralizedLinear("gamma", per_item=per_item, alpha=alpha).fit(X, costs, weights)

    def objective(parameters):
        intercepts, shared, own = np.split(parameters, [D, D + Q])
        coefficients = shared + (own.reshape(D, Q) if len(own) else 0)
        means = np.exp(np.einsum("njk,jk->nj", X, np.broadcast_to(coefficients, (D, Q))) + intercepts)
        deviances = np.log(means) + costs / means
        return np.average(deviances, axis=0, weights=weights).mean() + alpha / 2 * (parameters[D:] ** 2).sum()

    start = np.zeros(D + Q + (D * Q if per_item == "coefficients" else 0))
    best = minimize(objective, start, method="BFGS", options={"gtol": 1e-8})
    intercepts, shared, own = np.split(best.x, [D, D + Q])
    expected = shared + own.reshape(D, Q) if len(own) else shared
    np.testing.assert_allclose(ours.intercept_, intercepts, atol=1e-5)
    np.testing.assert_allclose(ours.coef_, expected, atol=1e-5)


def test_a_feature_that_is_constant_for_every_item_has_no_effect_beside_intercepts_per_item(table):
    X, costs, _ = table
    sizes = np.broadcast_to(np.arange(D, dtype=float), (N, D))[:, :, None]
    for deviance in ("squared", "gamma"):
        alone = GeneralizedLinear(deviance, per_item="intercept").fit(X, costs)
        beside = GeneralizedLinear(deviance, per_item="intercept").fit(np.concatenate([X, sizes], axis=2), costs)
        np.testing.assert_allclose(beside.predict(np.concatenate([X, sizes], axis=2)), alone.predict(X), rtol=1e-5)


@pytest.mark.parametrize(
    "learner",
    [
        HistGradientBoostingRegressor(max_iter=5, random_state=0),
        lightgbm.LGBMRegressor(n_estimators=5, min_child_samples=2, verbosity=-1),
        KNeighborsRegressor(2),  # takes no weights
        make_pipeline(StandardScaler(), Ridge()),
        GeneralizedLinear("gamma"),
        GeneralizedLinear(per_item="coefficients", alpha=0.1),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_any_learner_takes_features_per_item(table, learner):
    X, costs, _ = table
    check_model(WiseRegressor(learner), X=X, costs=costs)
    for options in ({"lifted": True}, {"scale": "iterated"}, {"scale": Ridge()}):
        prediction = WiseRegressor(learner, **options).fit(X, costs).predict(X)
        assert np.median(prediction / costs) == pytest.approx(1, abs=0.5)


def test_every_candidate_takes_features_per_item(table):
    X, costs, _ = table
    X, costs = np.tile(X, (2, 1, 1)), np.tile(costs, (2, 1))  # 480 rows of items: enough for trees
    menu = default_candidates(X, costs)
    assert {"trees", "least squares + trees"} <= set(menu)
    for name, candidate in menu.items():
        assert np.isfinite(candidate.fit(X, costs).predict(X)).all(), name


def test_a_shared_model_predicts_any_number_of_items_and_one_with_parts_per_item_does_not(table):
    X, costs, _ = table
    for learner in (GeneralizedLinear(), LinearRegression()):
        model = WiseRegressor(learner).fit(X, costs)
        np.testing.assert_allclose(model.predict(X[:, :2]), model.predict(X)[:, :2])
    own = GeneralizedLinear(per_item="intercept").fit(X, costs)
    with pytest.raises(ValueError, match="X has 5 items, and GeneralizedLinear was fitted with 6, each with an interc"):
        own.predict(X[:, :5])


def refusals(table):
    X, costs, _ = table
    spoilt = X.copy()
    spoilt[7, 3, 1] = np.nan
    flat = X.reshape(N, -1)
    shared = GeneralizedLinear().fit(X, costs)
    wide = GeneralizedLinear().fit(flat, costs)
    return [
        (lambda: WiseRegressor().fit(X[:, :5], costs), "X has features of 5 items and there are 6 costs"),
        (lambda: GeneralizedLinear().fit(X[:, :5], costs), "X has features of 5 items and there are 6 costs"),
        (lambda: WiseRegressor().fit(spoilt, costs), "X must be finite; row 7, item 3, feature 1 has NaN"),
        (lambda: GeneralizedLinear("gamma").fit(spoilt, costs), "row 7, item 3, feature 1 has NaN"),
        (lambda: GeneralizedLinear(per_item="intercept").fit(spoilt, costs), "row 7, item 3, feature 1 has NaN"),
        (lambda: WiseRegressor(Ridge()).fit(spoilt, costs), "row 7, item 3, feature 1 has NaN"),
        (lambda: shared.predict(spoilt), "row 7, item 3, feature 1 has NaN"),
        (lambda: shared.predict(flat), r"fitted with features per item, X of shape \(n, 6, 3\)"),
        (lambda: shared.predict(X[:, :, :2]), "X has 2 features per item, but GeneralizedLinear is expecting 3"),
        (lambda: WiseRegressor(Ridge()).fit(X, costs).predict(flat), "fitted with features per item"),
        (lambda: wide.predict(X), "which has features per item"),
        (lambda: GeneralizedLinear(per_item="intercept").fit(flat, costs), "needs features per item"),
        (lambda: GeneralizedLinear(per_item="both").fit(X, costs), "per_item must be one of"),
        (lambda: GeneralizedLinear(per_item="intercept", fit_intercept=False).fit(X, costs), "set fit_intercept=True"),
        (lambda: WiseRegressor().fit(X[:0], costs[:0]), "is empty"),
        (lambda: GeneralizedLinear("gamma").fit(X, costs - costs[4, 2]), "row 0, column . is negative"),
    ]


@pytest.mark.parametrize("case", range(16))
def test_bad_features_are_refused_with_a_sentence(table, case):
    call, message = refusals(table)[case]
    with pytest.raises(ValueError, match=message):
        call()
