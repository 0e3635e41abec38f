"""Features per item in training, choice, diagnosis and decisions."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from decidewise import DecisionRegressor, GeneralizedLinear, WiseRegressor, WiseRegressorCV, decide, diagnose
from decidewise.data import Dataset
from decidewise.evaluate import normalized_regret, regret_scorer
from decidewise.losses import registry
from decidewise.models import default_candidates
from decidewise.models.selection.ridge_path import fit_path
from decidewise.problems import ShortestPath, TopK
from decidewise.testing import check_model

N, D, Q = 60, 6, 3


def draw(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D, Q)) * [1.0, 20.0, 1.0] + [0.0, 300.0, 5.0]
    costs = np.exp((X - [0.0, 300.0, 5.0]) @ [0.6, 0.03, -0.4] + 2) * rng.uniform(0.7, 1.3, size=(n, D))
    return X, costs


@pytest.fixture(scope="module")
def data():
    X, costs = draw()
    return Dataset(X, costs, TopK(D, 2, sense="max"))


@pytest.mark.filterwarnings("ignore::decidewise.kit.errors.TrainingWarning")  # a start that is optimal cannot improve
@pytest.mark.parametrize("name", sorted(set(registry) - {"implicit", "compact"}))  # which refuse paths
def test_every_loss_trains_a_shared_model(name):
    problem = ShortestPath(2, 3)
    X = np.random.default_rng(0).normal(size=(20, problem.n_costs, 2))
    costs = 9 + X @ [1.0, 2.0]
    model = DecisionRegressor(problem, name, epochs=2, random_state=0).fit(X, costs)
    assert model.coef_.shape == (2,)
    assert isinstance(model.intercept_, float)
    assert model.predict(X).shape == costs.shape


@pytest.mark.parametrize("link", ["identity", "log"])
@pytest.mark.parametrize("per_item", ["none", "intercept", "coefficients"])
def test_training_equals_that_of_a_wide_model_with_tied_parameters(data, link, per_item):
    """Adam on the long-form gradient, written out: a step of the mean squared error."""
    X = (data.X - data.X.mean((0, 1))) / data.X.std((0, 1))
    costs = data.costs / data.costs.mean()
    start = np.array([0.1, 0.2, -0.1, 0.3])
    options = {"protocol": "paper", "init": start, "epochs": 1, "batch_size": N, "learning_rate": 0.1}
    model = DecisionRegressor(data.problem, "mse", link=link, per_item=per_item, random_state=0, **options).fit(
        X, costs
    )
    predictor = X @ start[1:] + start[0]
    prediction = np.exp(predictor) if link == "log" else predictor
    slope = 2 * (prediction - costs) * (prediction if link == "log" else 1)
    intercepts, coefficients = slope.sum(axis=0), np.einsum("nj,njk->jk", slope, X)
    # The first step of Adam goes along the signs of the gradient, here of sums over rows, or over rows and items.
    intercepts = intercepts if per_item != "none" else intercepts.sum()
    coefficients = coefficients if per_item == "coefficients" else coefficients.sum(axis=0)
    np.testing.assert_allclose(model.intercept_, start[0] - 0.1 * np.sign(intercepts), atol=1e-6)
    np.testing.assert_allclose(model.coef_, start[1:] - 0.1 * np.sign(coefficients), atol=1e-6)


@pytest.mark.parametrize("per_item", ["none", "intercept", "coefficients"])
def test_training_starts_at_a_shared_model_and_gives_units_back(data, per_item):
    start = GeneralizedLinear("gamma", per_item=per_item).fit(data.X, data.costs)
    model = DecisionRegressor(
        data.problem, "spo+", init=start, link="log", per_item=per_item, learning_rate=1e-12, epochs=1, random_state=0
    )
    np.testing.assert_allclose(model.fit(data.X, data.costs).predict(data.X), start.predict(data.X), rtol=1e-6)
    assert model.coef_.shape == start.coef_.shape


def test_spo_plus_with_shared_coefficients_lowers_the_training_regret():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 20, 1))
    costs = 10 * (X[:, :, 0] ** 3 - 0.65 * X[:, :, 0])  # least squares gets the sign of the slope wrong
    problem = TopK(20, 1, sense="max")
    regrets = {
        name: normalized_regret(problem, model.fit(X, costs).predict(X), costs)
        for name, model in {
            "wise": WiseRegressor(),
            "spo+": DecisionRegressor(problem, "spo+", epochs=30, learning_rate=0.1, random_state=0),
        }.items()
    }
    assert regrets["wise"] > 100
    assert regrets["spo+"] < 40


def test_models_are_checked_with_features_per_item(data):
    for model in (
        GeneralizedLinear(),
        GeneralizedLinear("poisson", per_item="intercept"),
        DecisionRegressor(data.problem, "spo+", epochs=2, early_stopping=True, n_neighbors=3),
        WiseRegressorCV(data.problem, [WiseRegressor(Ridge()), GeneralizedLinear("gamma")], cv=3),
    ):
        check_model(model, X=data.X, costs=data.costs)


def test_the_choice_the_diagnosis_and_decisions_take_features_per_item(data):
    model = WiseRegressorCV(data.problem, random_state=0).fit(data.X, data.costs)
    assert not any(model.cv_results_["error"])
    assert any("quadratic" in name for name in model.cv_results_["candidate"])  # 360 rows of items, 3 features
    assert decide(model, data.problem, data.X[:4]).sum() == 8
    found = diagnose(data.problem, data.X, data.costs, cv=3)
    assert not found.failures
    search = GridSearchCV(WiseRegressor(Ridge()), {"estimator__alpha": [0.1, 1.0]}, scoring=regret_scorer(data.problem))
    assert search.fit(data.X, data.costs).predict(data.X).shape == (N, D)


def test_wrong_items_are_refused(data):
    X = data.X[:, :-1]
    for call in (
        lambda: DecisionRegressor(data.problem, "spo+").fit(X, data.costs),
        lambda: WiseRegressorCV(data.problem).fit(X, data.costs),
        lambda: diagnose(data.problem, X, data.costs),
        lambda: default_candidates(X, data.costs),
    ):
        with pytest.raises(ValueError, match="X has features of 5 items and there are 6 costs"):
            call()
    with pytest.raises(ValueError, match=r"TopK needs 6 columns of model.predict\(X\)"):
        decide(WiseRegressor().fit(data.X, data.costs), data.problem, X)
    with pytest.raises(ValueError, match="init differs by item"):
        DecisionRegressor(data.problem, init=np.arange(24.0).reshape(4, 6)).fit(data.X, data.costs)
    with pytest.raises(ValueError, match=r"= \(4, 6\), the intercepts in the first row, or \(4,\) for all items"):
        DecisionRegressor(data.problem, init=np.zeros((3, 6))).fit(data.X, data.costs)
    with pytest.raises(ValueError, match='per_item="intercept" needs features per item'):
        DecisionRegressor(data.problem, per_item="intercept").fit(data.X[:, 0], data.costs)


def test_the_choice_has_shared_models_and_models_of_each_item():
    X, costs = draw(n=90)
    few = {
        name: model
        for name, model in default_candidates(X, costs).items()
        if name in ("training mean", "least squares", "gamma", "logarithms", "wise, ridge 0.1", "wise, ridge 1")
        or "own" in name
    }
    assert {name for name in few if "own" in name} == {
        f"{label}, own {kind}"
        for label in ("least squares", "wise", "gamma", "wise gamma")
        for kind in ("intercept", "coefficients")
    }

    model = WiseRegressorCV(TopK(D, 2), few, forecast={"the first": 0}, lags=(1,), random_state=0).fit(X, costs)

    assert not any(model.cv_results_["error"])
    regret = dict(zip(model.cv_results_["candidate"], model.cv_results_["regret"], strict=True))
    assert regret["gamma"] < regret["gamma, own coefficients"]  # the truth is one model for all items
    assert regret["least squares"] < regret["training mean"]
    assert model.predict(X[:4]).shape == (4, D)


def test_ridges_of_shared_models_are_those_of_separate_fits():
    X, costs = draw()
    path = [model for name, model in default_candidates(X, costs).items() if name.startswith("wise, ridge")]

    for together, model in zip(fit_path([clone(model) for model in path], X, costs), path, strict=True):
        np.testing.assert_allclose(together.predict(X), clone(model).fit(X, costs).predict(X), rtol=1e-7)


def test_the_diagnosis_says_what_sharing_saves():
    X, costs = draw(n=120)

    found = diagnose(TopK(D, 2), X, costs, max_solves=20_000)

    assert found.gain_of_sharing.low > 0
    assert "The shared model is what helps" in found.advice
    assert "saved by sharing one model among the items" in str(found)
    assert diagnose(TopK(D, 2), X[:, :, 0], costs, max_solves=9_000).gain_of_sharing is None
