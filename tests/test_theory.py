"""The paper's statements, each as a test of its name.

Distributions are finite, so that every expectation is a sum and a statement is checked as it stands, with its own
constants. Where a bound is attained a test shows it, so that no smaller constant would pass.
"""

import runpy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LinearRegression

from decidewise.evaluate import decision_regret
from decidewise.losses import Wise, wise
from decidewise.measure import norms, project, reweight, transform
from decidewise.models import WiseRegressor
from decidewise.problems import Assignment, Ball, Ellipsoid, Knapsack, KnownCosts, Portfolio, ShortestPath, TopK

POLYTOPES = [
    ShortestPath(3, 3),
    TopK(5, 2),
    Assignment(3),
    Knapsack([[3.0, 4.0, 5.0, 6.0, 7.0], [7.0, 3.0, 6.0, 4.0, 5.0]], [12.0, 13.0]),
]
LEVEL_SETS = [
    Ball(4, radius=1.5),
    Ellipsoid([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 4.0]], radius=0.7),
    Ellipsoid(np.diag([1.0, 9.0]), sense="max"),
]
REGIONS = [*POLYTOPES, *LEVEL_SETS, Portfolio([[0.5, 0.1, 0.0], [0.1, 0.4, 0.2], [0.0, 0.2, 0.9]], risk=0.3)]


def over(problems):
    return pytest.mark.parametrize("problem", problems, ids=lambda problem: f"{type(problem).__name__}-{problem.sense}")


@dataclass(frozen=True)
class Distribution:
    """A joint distribution of `k` feature values and `m` costs each: probability (k, m), costs (k, m, d).

    A predictor is its values (k, d).
    """

    probability: np.ndarray
    costs: np.ndarray

    @classmethod
    def random(cls, rng, d, k=4, m=5):
        costs = rng.lognormal(size=(k, m, 1)) * (rng.normal(size=(k, 1, d)) + rng.normal(size=(k, m, d)))
        return cls(rng.dirichlet(np.ones(k * m)).reshape(k, m), costs)

    @classmethod
    def uniform(cls, costs):
        """Return the distribution without features that gives each of the costs (m, d) the same probability."""
        costs = np.asarray(costs, dtype=float)
        return cls(np.full((1, len(costs)), 1 / len(costs)), costs[None])

    @property
    def norms(self):
        return np.linalg.norm(self.costs, axis=2)

    def expect(self, values):
        return np.sum(self.probability * values)

    def expect_given_x(self, values):
        conditional = self.probability / self.probability.sum(axis=1, keepdims=True)
        return np.einsum("km,km...->k...", conditional, values)

    @property
    def mean(self):
        return self.expect_given_x(self.costs)

    @property
    def bayes(self):
        return self.mean / self.expect_given_x(self.norms)[:, None]

    def wise_risk(self, f):
        return self.expect(wise(f[:, None], self.costs))

    def wise_excess(self, f):
        return self.wise_risk(f) - self.wise_risk(self.bayes)

    def decision_risk(self, problem, f):
        k, m, d = self.costs.shape
        regret = decision_regret(problem, f.repeat(m, axis=0), self.costs.reshape(-1, d))
        return self.expect(regret.reshape(k, m))

    def decision_excess(self, problem, f):
        return self.decision_risk(problem, f) - self.decision_risk(problem, self.mean)

    def rivals(self, rng):
        """Return predictors near the Bayes minimiser, far from it and opposed to it, and zero."""
        f = self.bayes
        steps = [scale * rng.normal(size=f.shape) for scale in np.logspace(-4, 1, 20)]
        return [*(f + step for step in steps), *steps, -f, -1e-6 * f, 0 * f]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@over(REGIONS)
def test_scale_invariance(problem, rng):
    costs = rng.integers(-2, 3, size=(50, problem.n_costs)).astype(float)
    prediction = rng.integers(-2, 3, size=costs.shape).astype(float)  # few values, hence many ties
    loss = decision_regret(problem, prediction, costs)
    for scale in (1e-6, 1 / 3, 7.0, 1e6):
        np.testing.assert_allclose(decision_regret(problem, scale * prediction, costs), loss, atol=1e-12)


@over(REGIONS)
def test_loss_scaling(problem, rng):
    prediction, costs = rng.normal(size=(2, 50, problem.n_costs))
    loss = decision_regret(problem, prediction, costs)
    assert loss.max() > 0.1
    for scale in (1e-6, 1 / 3, 7.0, 1e6):
        np.testing.assert_allclose(decision_regret(problem, prediction, scale * costs) / scale, loss, atol=1e-12)


@over(REGIONS)
def test_proposition_decision_risk_equivalence_under_measure_transformation(problem, rng):
    prediction, costs = rng.normal(size=(2, 60, problem.n_costs))
    costs *= rng.lognormal(size=(60, 1))
    risk_under_P = decision_regret(problem, prediction, costs).mean()
    risk_under_Q = np.mean(reweight(costs) * decision_regret(problem, prediction, project(costs)))
    assert risk_under_Q == pytest.approx(risk_under_P / np.linalg.norm(costs, axis=1).mean(), rel=1e-12)


def test_proposition_l2_risk_equivalence_under_measure_transformation(rng):
    prediction, costs = rng.normal(size=(2, 60, 4))
    costs *= rng.lognormal(size=(60, 1))
    risk_under_Q = np.mean(reweight(costs) * np.sum((prediction - project(costs)) ** 2, axis=1))
    assert risk_under_Q == pytest.approx(wise(prediction, costs).mean() / norms(costs).mean(), rel=1e-12)


@over(REGIONS)
def test_appendix_decision_risk_after_one_step_alone(problem, rng):
    """Step 1 weighs the decision loss by the norm once too often, step 2 once too little."""
    prediction, costs = rng.normal(size=(2, 60, problem.n_costs))
    costs *= rng.lognormal(size=(60, 1))
    size, loss = np.linalg.norm(costs, axis=1), decision_regret(problem, prediction, costs)
    after_step_1 = np.mean(reweight(costs) * loss)
    after_step_2 = decision_regret(problem, prediction, project(costs)).mean()
    assert after_step_1 == pytest.approx(np.mean(size * loss) / size.mean(), rel=1e-12)
    assert after_step_2 == pytest.approx(np.mean(loss / size), rel=1e-12)


def test_appendix_counterexample():
    """Only both steps together keep the direction of the mean, (2, 1/2)."""
    costs = np.array([[4.0, 0.0], [0.0, 1.0]])
    step_1 = np.average(costs, axis=0, weights=reweight(costs))
    step_2 = project(costs).mean(axis=0)
    both = np.average(project(costs), axis=0, weights=reweight(costs))
    np.testing.assert_allclose(step_1, [16 / 5, 1 / 5], rtol=1e-15)
    np.testing.assert_allclose(step_2, [1 / 2, 1 / 2], rtol=1e-15)
    np.testing.assert_allclose(both, [4 / 5, 1 / 5], rtol=1e-15)

    distribution, disc = Distribution.uniform(costs), Ball(2)
    excess = [distribution.decision_excess(disc, f[None]) for f in (step_1, step_2, both)]
    assert min(excess[:2]) > 0.01
    assert excess[2] == pytest.approx(0, abs=1e-15)


def test_proposition_wise_is_convex_and_smooth(rng):
    """Beyond its tangent the loss is `‖y‖‖q - p‖²`: at least 0, and at most half of `2 B_y` times the squared step."""
    p, q, costs = rng.normal(size=(3, 200, 4))
    loss = Wise()
    target = loss.prepare(Ball(4), costs)
    at_p, gradient_p = loss.value_and_grad(p, target, rng)
    at_q, gradient_q = loss.value_and_grad(q, target, rng)
    step, size = np.linalg.norm(q - p, axis=1), np.linalg.norm(costs, axis=1)
    beyond_tangent = at_q - at_p - np.sum(gradient_p * (q - p), axis=1)
    np.testing.assert_allclose(beyond_tangent, size * step**2, rtol=1e-9)

    slopes = np.linalg.norm(gradient_q - gradient_p, axis=1) / step
    assert slopes.max() <= 2 * size.max() * (1 + 1e-12)
    assert slopes[size.argmax()] == pytest.approx(2 * size.max())  # 2 B_y is attained


@pytest.mark.parametrize("B", [0.5, 1.0, 3.0])
def test_proposition_wise_is_lipschitz(rng, B):
    B_y = 2.0
    costs = rng.uniform(0, B_y, size=(500, 1)) * project(rng.normal(size=(500, 3)))
    p, q = rng.uniform(0, B, size=(2, 500, 1)) * [project(rng.normal(size=(500, 3))) for _ in range(2)]
    constant = 2 * B_y * (B + 1)
    assert np.all(np.abs(wise(p, costs) - wise(q, costs)) <= constant * np.linalg.norm(p - q, axis=1))

    step, longest = 1e-6, B_y * np.array([0.6, 0.0, 0.8])
    opposite = -longest / B_y
    rise = wise(B * opposite, longest) - wise((B - step) * opposite, longest)
    assert rise / step == pytest.approx(constant, rel=1e-5)


@pytest.mark.parametrize("B", [0.5, 1.0, 3.0])
def test_proposition_wise_is_bounded(rng, B):
    B_y = 2.0
    costs = rng.uniform(0, B_y, size=(500, 1)) * project(rng.normal(size=(500, 3)))
    prediction = rng.uniform(0, B, size=(500, 1)) * project(rng.normal(size=(500, 3)))
    bound = B_y * (B + 1) ** 2
    assert np.all(wise(prediction, costs) <= bound)
    longest = B_y * project(costs)
    np.testing.assert_allclose(wise(-B * longest / B_y, longest), bound)


@pytest.mark.parametrize("seed", range(3))
def test_proposition_bayes_risk_minimizer_of_wise(seed):
    """`E[y|x] / E[‖y‖ | x]` is what a numerical minimiser finds, and what `WiseRegressor` fits where it can."""
    distribution = Distribution.random(np.random.default_rng(seed), d=3)
    shape = distribution.bayes.shape
    found = minimize(lambda f: distribution.wise_risk(f.reshape(shape)), np.zeros(shape).ravel(), tol=1e-10)
    np.testing.assert_allclose(found.x.reshape(shape), distribution.bayes, atol=1e-5)

    k, m, d = distribution.costs.shape
    one_hot = np.eye(k).repeat(m, axis=0)
    model = WiseRegressor(scale="unit")
    model.fit(one_hot, distribution.costs.reshape(-1, d), distribution.probability.ravel())
    np.testing.assert_allclose(model.predict(np.eye(k)), distribution.bayes, atol=1e-10)


def test_bayes_minimizer_lies_in_the_unit_ball(rng):
    for _ in range(100):
        distribution = Distribution.random(rng, d=3)
        assert np.linalg.norm(distribution.bayes, axis=1).max() <= 1 + 1e-12
    certain = Distribution.uniform([[3.0, 4.0]])
    assert np.linalg.norm(certain.bayes) == pytest.approx(1)  # attained where the direction is known


@over(REGIONS)
def test_theorem_fisher_consistency(problem, rng):
    sign = -1 if problem.sense == "max" else 1
    for _ in range(10):
        distribution = Distribution.random(rng, problem.n_costs)
        decisions = problem.solve(distribution.bayes)
        np.testing.assert_allclose(decisions, problem.solve(distribution.mean), atol=1e-12)

        any_decisions = problem.solve(rng.normal(size=(2000, problem.n_costs)))  # of a polytope, every vertex
        expected_cost = sign * np.sum(distribution.mean * decisions, axis=1)
        assert np.all(expected_cost <= (sign * distribution.mean @ any_decisions.T).min(axis=1) + 1e-12)

        risk = distribution.decision_risk(problem, distribution.bayes)
        assert all(risk <= distribution.decision_risk(problem, f) + 1e-12 for f in distribution.rivals(rng))


def test_remark_absolute_error_is_not_fisher_consistent():
    """Its minimiser, the median, is (3, 4) and picks the first item; by the mean, (3.8, 2.4), the second is cheaper.

    All norms are 5, so that the change of measure does not help.
    """
    distribution = Distribution(np.array([[0.6, 0.4]]), np.array([[[3.0, 4.0], [5.0, 0.0]]]))
    cheapest = TopK(2, 1, sense="min")
    grid = np.stack(np.meshgrid(np.linspace(0, 5, 11), np.linspace(0, 5, 11)), axis=-1).reshape(-1, 1, 2)
    absolute = [distribution.expect(np.abs(f[:, None] - distribution.costs).sum(axis=2)) for f in grid]
    median = grid[np.argmin(absolute)]
    np.testing.assert_array_equal(median, [[3.0, 4.0]])
    assert distribution.decision_excess(cheapest, median) > 1
    assert distribution.decision_excess(cheapest, distribution.bayes) == 0


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_every_exponent_points_along_the_mean(rng, exponent):
    distribution = Distribution.random(rng, d=12)
    k, m, d = distribution.costs.shape
    costs, probability = distribution.costs.reshape(-1, d), distribution.probability.ravel()
    weights, targets = transform(costs, exponent)
    one_hot = np.eye(k).repeat(m, axis=0)
    model = WiseRegressor(exponent=exponent, scale="unit").fit(one_hot, costs, probability)

    by_hand = [np.average(targets[x], axis=0, weights=(weights * probability)[x]) for x in one_hot.T.astype(bool)]
    scale = distribution.expect_given_x(distribution.norms**exponent)[:, None]
    np.testing.assert_allclose(by_hand, distribution.mean / scale, rtol=1e-12)
    np.testing.assert_allclose(model.predict(np.eye(k)), distribution.mean / scale, rtol=1e-9, atol=1e-10)
    grid = ShortestPath(3, 3)
    np.testing.assert_array_equal(grid.solve(model.predict(np.eye(k))), grid.solve(distribution.mean))


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_every_scale_points_along_the_mean(rng, exponent):
    """`s(x) E[y|x] / E[a|x]` minimises the risk of weights `a/s²` and targets `y s/a`, also for iterated scales."""
    distribution = Distribution.random(rng, d=12)
    k, m, d = distribution.costs.shape
    costs, probability = distribution.costs.reshape(-1, d), distribution.probability.ravel()
    one_hot, grid = np.eye(k).repeat(m, axis=0), ShortestPath(3, 3)
    size = distribution.expect_given_x(distribution.norms**exponent)
    s = rng.uniform(0.1, 10, size=k)
    for power in (0.0, 1.0, 2.0):
        weights, targets = transform(costs, exponent, scale=s.repeat(m), power=power)
        by_hand = [np.average(targets[x], axis=0, weights=(weights * probability)[x]) for x in one_hot.T.astype(bool)]
        np.testing.assert_allclose(by_hand, (s / size)[:, None] * distribution.mean, rtol=1e-12)
    for scale in ("mean", "iterated", LinearRegression()):
        model = WiseRegressor(exponent=exponent, scale=scale).fit(one_hot, costs, probability)
        np.testing.assert_allclose(project(model.predict(np.eye(k))), project(distribution.mean), rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(grid.solve(model.predict(np.eye(k))), grid.solve(distribution.mean))


@pytest.mark.parametrize("scale", ["unit", "mean", "iterated"])
def test_lifted_fits_estimate_the_mean_and_decide_beside_known_costs(rng, scale):
    distribution = Distribution.random(rng, d=12)
    k, m, d = distribution.costs.shape
    model = WiseRegressor(scale=scale, lifted=True)
    model.fit(np.eye(k).repeat(m, axis=0), distribution.costs.reshape(-1, d), distribution.probability.ravel())
    np.testing.assert_allclose(model.predict(np.eye(k)), distribution.mean, rtol=1e-6, atol=1e-9)
    tolls = KnownCosts(ShortestPath(3, 3), rng.uniform(size=(k, d)))
    np.testing.assert_array_equal(tolls.solve(model.predict(np.eye(k))), tolls.solve(distribution.mean))


def test_lemma_equivalent_form_of_wise_excess_regret(rng):
    for _ in range(10):
        distribution = Distribution.random(rng, d=4)
        for f in distribution.rivals(rng):
            distance = np.linalg.norm(f - distribution.bayes, axis=1)
            size = distribution.expect_given_x(distribution.norms)
            expected = distribution.expect((size * distance**2)[:, None])
            assert distribution.wise_excess(f) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@over(REGIONS)
def test_proposition_excess_regret_calibration(problem, rng):
    """Also in a sharper form: the diameter of the region for `2 B_S`, and `E‖y‖` for the bound `B_y`."""
    decisions = problem.solve(rng.normal(size=(400, problem.n_costs)))
    assert np.linalg.norm(decisions, axis=1).max() <= problem.B_S * (1 + 1e-12)
    distances = np.linalg.norm(decisions[:, None] - decisions, axis=2)
    # Solving finds every vertex of these small polytopes, but only some points of a curved region.
    diameter = distances.max() if problem in POLYTOPES else 2 * problem.B_S
    for _ in range(10):
        distribution = Distribution.random(rng, problem.n_costs)
        B_y, mean_norm = distribution.norms.max(), distribution.expect(distribution.norms)
        for f in distribution.rivals(rng):
            excess = distribution.decision_excess(problem, f)
            root = np.sqrt(max(distribution.wise_excess(f), 0))
            assert -1e-12 <= excess <= 2 * problem.B_S * np.sqrt(B_y) * root + 1e-12
            assert excess <= diameter * np.sqrt(mean_norm) * root + 1e-12


@pytest.mark.parametrize(
    ("problem", "cost", "attained"),
    [(Ball(2, 3.0), [3.0, 4.0], 1.0), (TopK(2, 1), [1.0, -1.0], np.sqrt(0.5))],
    ids=["Ball", "TopK"],
)
def test_calibration_bound_is_attained(problem, cost, attained):
    """By a prediction that points the wrong way: fully on a ball, up to the diameter over `2 B_S` on a segment."""
    certain = Distribution.uniform([cost])
    f = -1e-9 * certain.bayes
    bound = 2 * problem.B_S * np.sqrt(certain.norms.max() * certain.wise_excess(f))
    assert certain.decision_excess(problem, f) / bound == pytest.approx(attained)


def test_proposition_wise_is_squared_under_P(rng):
    prediction, costs = rng.normal(size=(2, 100, 4))
    root = np.sqrt(np.linalg.norm(costs, axis=1, keepdims=True))
    squared = np.sum((root * prediction - costs / root) ** 2, axis=1)
    np.testing.assert_allclose(wise(prediction, costs), squared, rtol=1e-12)


@pytest.mark.parametrize("B", [1.0, 3.0])
def test_lemma_bernstein_for_bounded_squared_loss(rng, B):
    for _ in range(50):
        distribution = Distribution.random(rng, d=3)
        constant = 4 * distribution.norms.max() * (B + 1) ** 2
        at_bayes = wise(distribution.bayes[:, None], distribution.costs)
        for rival in distribution.rivals(rng):
            f = rival / np.maximum(1, np.linalg.norm(rival, axis=1, keepdims=True) / B)
            difference = wise(f[:, None], distribution.costs) - at_bayes
            assert distribution.expect(difference**2) <= constant * distribution.expect(difference) + 1e-12


def level_set_inequalities(problem, c1, c2):
    """Return both sides of the two inequalities recalled from Liu & Grigas, as pairs of arrays (n,)."""
    sign = -1 if problem.sense == "max" else 1
    w1, w2 = problem.solve(c1), problem.solve(c2)
    depth, moved = problem.r - problem.g_min, np.linalg.norm(w1 - w2, axis=1)
    regret = sign * np.sum(c1 * (w2 - w1), axis=1)
    growth = problem.L / (2 * np.sqrt(2 * problem.mu * depth)) * np.linalg.norm(c1, axis=1) * moved**2
    turned = np.sqrt(2 * problem.L * depth) / problem.mu * np.linalg.norm(project(c1) - project(c2), axis=1)
    return (regret, growth), (moved, turned)


@over(LEVEL_SETS)
def test_lemma_regret_and_movement_over_strongly_convex_level_sets(problem, rng):
    c1, step = rng.normal(size=(2, 500, problem.n_costs))
    c2 = c1 + rng.choice([1e-3, 0.1, 10.0], size=(500, 1)) * step
    for smaller, larger in level_set_inequalities(problem, c1, c2):
        assert np.all(smaller <= larger + 1e-12)
        if isinstance(problem, Ball):
            np.testing.assert_allclose(smaller, larger, atol=1e-12)  # on a ball both are equalities


def test_lemma_over_level_sets_needs_a_prediction_other_than_zero():
    """The first inequality is stated for any `c_2`; with `c_2 = 0` and ties to the centre, regret is twice as much."""
    (regret, growth), _ = level_set_inequalities(Ball(2), np.array([[3.0, 4.0]]), np.zeros((1, 2)))
    assert regret == pytest.approx(2 * growth)


def test_lemma_norm_equiv(rng):
    y1, step = rng.normal(size=(2, 2000, 3))
    y2 = y1 + rng.choice([1e-3, 0.1, 1.0, 10.0], size=(2000, 1)) * step
    turned, apart = np.linalg.norm(project(y1) - project(y2), axis=1), np.linalg.norm(y1 - y2, axis=1)
    assert np.all(turned <= 2 / np.linalg.norm(y1, axis=1) * apart)

    y1, y2 = np.array([[5.0, 0.0]]), np.array([[-1e-9, 0.0]])
    assert np.linalg.norm(project(y1) - project(y2)) == pytest.approx(2 / 5 * np.linalg.norm(y1 - y2))


def faster_constant(problem, B_y, gamma):
    """Return the `M` of the corollary on strongly convex level sets."""
    return 2 * B_y**2 * problem.L**2 * np.sqrt(2 * (problem.r - problem.g_min)) / (gamma**2 * problem.mu**2.5)


@over(LEVEL_SETS)
def test_corollary_risk_bound_over_strongly_convex_level_sets(problem, rng):
    """Also with the sharper constant `M γ / B_y`."""
    for _ in range(20):
        distribution = Distribution.random(rng, problem.n_costs)
        B_y, gamma = distribution.norms.max(), np.linalg.norm(distribution.mean, axis=1).min()
        M = faster_constant(problem, B_y, gamma)
        for f in distribution.rivals(rng):
            excess, wise_excess = distribution.decision_excess(problem, f), distribution.wise_excess(f)
            assert excess <= M * wise_excess + 1e-12
            assert excess <= M * gamma / B_y * wise_excess + 1e-12


@pytest.mark.parametrize("angle", [0.0, 0.5, 1.2])
def test_corollary_constant_is_attained_on_the_ball(angle):
    """By the prediction that points the wrong way: `M` itself when `γ = B_y`, else the sharper `M γ / B_y`."""
    disc, B_y, gamma = Ball(2, radius=3.0), 5.0, 5.0 * np.cos(angle)
    distribution = Distribution.uniform(B_y * np.array([[np.cos(angle), s * np.sin(angle)] for s in (-1, 1)]))
    f = -1e-9 * distribution.bayes
    ratio = distribution.decision_excess(disc, f) / distribution.wise_excess(f)
    assert ratio == pytest.approx(faster_constant(disc, B_y, gamma) * gamma / B_y)


def test_theorem_excess_regret_bound_and_corollary_rates(tmp_path):
    """The excess falls as n^-1/2 over a polytope at worst, and as n^-1 over a ball with mean costs away from zero."""
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "rates.py"))
    slopes = example["main"](trials=20, sizes=(64, 256, 1024), out=tmp_path / "rates.png")
    assert slopes == pytest.approx([-1 / 2, -1 / 2, -1], abs=0.12)
    assert (tmp_path / "rates.png").stat().st_size > 10_000
