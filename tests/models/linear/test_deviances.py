import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_tweedie_deviance

from decidewise.kit.scaling import unit_rows
from decidewise.models import GeneralizedLinear, WiseRegressor
from decidewise.models.linear.deviances import Deviance

DEVIANCES = [
    Deviance.of("squared"),
    Deviance.of("poisson"),
    Deviance.of("gamma"),
    Deviance.of("tweedie", 1.3),
    Deviance.of("tweedie", 1.5),
]
each_deviance = pytest.mark.parametrize("deviance", DEVIANCES, ids=str)


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.gamma(1, size=200), rng.normal(size=200)


@each_deviance
def test_values_are_half_scikit_learns_deviance_but_for_a_term_of_the_target(deviance, points):
    targets, predictor = points

    def value(y, eta):
        return deviance.expand(np.array([y]), np.array([eta])).values[0]

    def half(y, eta):
        return mean_tweedie_deviance([y], [np.exp(eta)], power=deviance.power) / 2

    for y, eta in zip(targets[:20], predictor[:20], strict=True):
        assert value(y, eta) - value(y, 0.0) == pytest.approx(half(y, eta) - half(y, 0.0), rel=1e-9, abs=1e-12)


@each_deviance
def test_derivatives_are_those_of_the_values(deviance, points):
    targets, predictor = points
    step = 1e-5
    here, above, below = (deviance.expand(targets, predictor + shift) for shift in (0.0, step, -step))
    np.testing.assert_allclose(here.slopes, (above.values - below.values) / (2 * step), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(here.curvatures, (above.slopes - below.slopes) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("power", [1, 1.01, 1.5, 1.99, 2])
def test_from_poisson_to_gamma_the_log_link_is_convex_zero_targets_included(power, points):
    targets, predictor = points
    for y in (targets, np.zeros_like(targets)):
        assert (Deviance.of("tweedie", power).expand(y, 3 * predictor).curvatures >= 0).all()


def test_the_names_are_powers_of_one_family():
    assert [deviance.power for deviance in DEVIANCES] == [0, 1, 2, 1.3, 1.5]
    assert [deviance.link for deviance in DEVIANCES] == ["identity", "log", "log", "log", "log"]
    assert Deviance.of("gamma", power=1.5).power == 2
    for power in (0, 0.99, 2.01, np.nan):
        with pytest.raises(ValueError, match=r"power must be a number at least 1 and at most 2"):
            Deviance.of("tweedie", power)


class TestBregman:
    """`docs/theory.md`: whatever the weight and the divergence, the minimiser is `E[y|x] / E[a|x]`."""

    MODELS = (
        GeneralizedLinear(),
        GeneralizedLinear("squared", link="log"),
        GeneralizedLinear("poisson"),
        GeneralizedLinear("gamma"),
        GeneralizedLinear("tweedie", power=1.5),
    )
    each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.deviance}-{model.link}")

    @pytest.fixture
    def groups(self):
        """Return a saturated design of three groups, and heavy-tailed costs whose distribution differs by group."""
        rng = np.random.default_rng(1)
        group = np.arange(600) % 3
        costs = rng.lognormal(group[:, None] + np.arange(4), 1.0, size=(600, 4))
        return np.eye(3)[group], costs

    @each_model
    @pytest.mark.parametrize("exponent", [0.0, 0.75, 1.0, 2.0])
    def test_the_change_of_measure_keeps_the_direction_of_the_mean(self, groups, model, exponent):
        X, costs = groups
        sizes = np.linalg.norm(costs, axis=1) ** exponent
        expected = (X.T @ costs) / (X.T @ sizes)[:, None]
        unit = WiseRegressor(model, exponent=exponent, scale="unit").fit(X, costs).predict(np.eye(3))
        np.testing.assert_allclose(unit, expected, rtol=1e-6)
        for scale in ("mean", "iterated", Ridge()):
            prediction = WiseRegressor(model, exponent=exponent, scale=scale).fit(X, costs).predict(np.eye(3))
            np.testing.assert_allclose(unit_rows(prediction), unit_rows(expected), rtol=1e-5)

    @each_model
    def test_so_does_any_other_positive_weight(self, groups, model):
        X, costs = groups
        for weights in (1 + costs[:, 0] ** 2, np.exp(-costs[:, 1]), costs.min(axis=1)):
            prediction = model.fit(X, costs / weights[:, None], sample_weight=weights).predict(np.eye(3))
            np.testing.assert_allclose(prediction, (X.T @ costs) / (X.T @ weights)[:, None], rtol=1e-5)

    @each_deviance
    def test_the_derivative_of_the_weighted_risk_is_that_of_the_proof(self, groups, deviance):
        _, costs = groups
        y, weights = costs[:, 2], np.linalg.norm(costs, axis=1)
        for m in np.geomspace(1e-3, 1e3, 13):
            slopes = deviance.expand(y / weights, np.full(len(y), np.log(m))).slopes
            # The slope is in log m, hence the factor m.
            proof = m * m**-deviance.power * (m * weights.mean() - y.mean())
            assert (weights * slopes).mean() == pytest.approx(proof, rel=1e-9)
