"""The generators against PyEPO, against pinned numbers, and against their own formulas."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest

from decidewise.data import (
    make_knapsack,
    make_portfolio,
    make_shortest_path,
    make_storage,
    make_travelling_salesman,
    make_vehicle_routing,
)
from decidewise.data.knapsack import mean_of_ceil
from decidewise.evaluate import decision_regret

MAKERS = {
    "shortest path": make_shortest_path,
    "knapsack": make_knapsack,
    "portfolio": make_portfolio,
    "storage": make_storage,
    "travelling salesman": partial(make_travelling_salesman, n_nodes=8),
    "vehicle routing": partial(make_vehicle_routing, n_customers=6),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_seed_decides_everything(make):
    data, again, other = make(20, degree=3, seed=5), make(20, degree=3, seed=5), make(20, degree=3, seed=6)
    for name in ("X", "costs", "mean_costs"):
        assert getattr(data, name).dtype == np.float64
        np.testing.assert_array_equal(getattr(data, name), getattr(again, name))
        assert not np.array_equal(getattr(data, name), getattr(other, name))
    assert data.costs.shape == data.mean_costs.shape == (20, data.problem.n_costs)
    assert data.problem.solve(data.costs).shape == data.costs.shape


@pytest.mark.parametrize("make", [make_knapsack, make_portfolio])
def test_instance_seed_shares_the_instance_and_nothing_else(make):
    one, other = make(10, degree=2, seed=1, instance_seed=42), make(10, degree=2, seed=2, instance_seed=42)
    np.testing.assert_array_equal(_instance(one), _instance(other))
    np.testing.assert_array_equal(_instance(one), _instance(make(10, degree=2, seed=42)))
    assert not np.array_equal(one.X, other.X)
    # The samples of a seed are the same on every instance.
    np.testing.assert_array_equal(one.X, make(10, degree=2, seed=1, instance_seed=7).X)


def _instance(data):
    return data.problem.weights if hasattr(data.problem, "weights") else data.problem.covariance


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_conditional_mean_decides_better_than_its_distortions(make):
    data = make(2_000 if make is not MAKERS["vehicle routing"] else 300, degree=4, seed=3)
    floor = decision_regret(data.problem, data.mean_costs, data.costs).mean()
    distorted = data.mean_costs * np.random.default_rng(0).uniform(0.5, 1.5, data.mean_costs.shape)
    assert 0 < floor < decision_regret(data.problem, distorted, data.costs).mean()


@pytest.mark.parametrize(("degree", "noise"), [(1, 0.5), (4, 0.5), (3, 1.0)])
def test_shortest_path_costs_are_centred_on_their_mean(degree, noise):
    data = make_shortest_path(4_000, degree=degree, seed=1, noise=noise)
    ratio = data.costs / data.mean_costs
    assert ratio.min() >= 1 - noise - 1e-6
    assert ratio.max() <= 1 + noise + 1e-6
    standard_error = noise / np.sqrt(3 * ratio.size)
    assert abs(ratio.mean() - 1) < 4 * standard_error


def test_shortest_path_without_noise_is_its_mean():
    data = make_shortest_path(50, degree=5, seed=1, noise=0.0)
    np.testing.assert_allclose(data.costs, data.mean_costs, rtol=1e-7)


@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0])
def test_mean_of_ceil_against_simulation(noise):
    values = np.array([-7.3, -1.0, -0.2, 0.0, 0.3, 1.0, 2.4, 6.0, 31.7])
    factors = np.random.default_rng(1).uniform(1 - noise, 1 + noise, (200_000, 1))
    simulated = np.ceil(values * factors)
    standard_error = simulated.std(axis=0) / np.sqrt(len(factors))
    assert (np.abs(mean_of_ceil(values, noise) - simulated.mean(axis=0)) <= 4.5 * standard_error + 1e-12).all()


def test_mean_of_ceil_at_its_limits():
    values = np.array([-2.5, -2.0, -0.5, 0.0, 0.5, 2.0, 2.5, 1e6 + 0.25])
    np.testing.assert_array_equal(mean_of_ceil(values, 0.0), np.ceil(values))
    away_from_integers = values[values != np.round(values)]
    np.testing.assert_allclose(
        mean_of_ceil(away_from_integers, 1e-9), np.ceil(away_from_integers), rtol=1e-7, atol=1e-7
    )
    # Across an integer, half of the noise lies on either side.
    np.testing.assert_allclose(mean_of_ceil(np.array([2.0, -2.0]), 1e-9), [2.5, -1.5], rtol=1e-6)


def test_knapsack_values_are_integers_around_their_mean():
    data = make_knapsack(4_000, degree=4, seed=2)
    np.testing.assert_array_equal(data.costs, np.round(data.costs))
    deviation = data.costs - data.mean_costs
    assert abs(deviation.mean()) < 4 * deviation.std() / np.sqrt(deviation.size)


def test_knapsack_options():
    data = make_knapsack(5, degree=1, seed=0, n_items=10, n_features=3, dimension=3, capacity=15)
    assert data.X.shape == (5, 3)
    assert data.problem.weights.shape == (3, 10)
    np.testing.assert_array_equal(data.problem.capacities, [15, 15, 15])
    assert data.problem.sense == "max"


def test_student_noise_has_the_covariance_and_heavier_tails():
    student = make_portfolio(20_000, degree=1, seed=4, n_assets=8)
    gaussian = make_portfolio(20_000, degree=1, seed=4, n_assets=8, noise="gaussian")
    deviation = {}
    for name, data in {"student": student, "gaussian": gaussian}.items():
        deviation[name] = (data.costs - data.mean_costs) / np.sqrt(np.diag(data.problem.covariance))
        assert (np.abs(deviation[name].mean(axis=0)) < 4 / np.sqrt(20_000)).all()
        assert abs((deviation[name] ** 2).mean() - 1) < 0.1
    # P(|t3| > 4 standard deviations) is 0.6 %, of the normal 0.006 %; the small loadings leave that nearly unchanged.
    beyond = {name: (np.abs(values) > 4).mean() for name, values in deviation.items()}
    assert beyond["gaussian"] < 0.0005
    assert 0.003 < beyond["student"] < 0.01


def test_vehicles_can_carry_what_customers_need():
    for seed in range(5):
        problem = make_vehicle_routing(1, degree=1, seed=seed).problem
        assert set(problem.demands) <= set(range(1, 10))
        assert problem.n_vehicles == np.ceil(problem.demands.sum() / 30) + 1


@pytest.mark.parametrize("degree", [1, 3, 7])
def test_portfolio_formulas(degree):
    data = make_portfolio(6, degree=degree, seed=9, n_assets=5, n_features=4)
    stream = np.random.RandomState(9)
    coins, loadings = stream.binomial(1, 0.5, (5, 4)), stream.uniform(-0.0025, 0.0025, (5, 4))
    X = stream.normal(0, 1, (6, 4))
    np.testing.assert_array_equal(data.X, X)
    for i in range(6):
        for j in range(5):
            mean = (0.05 / 2 * (coins[j] * X[i]).sum() + 0.2 ** (1 / degree)) ** degree
            assert data.mean_costs[i, j] == pytest.approx(mean, rel=1e-12)
        shock = stream.standard_t(3, 4), stream.standard_t(3, 5)
        expected = data.mean_costs[i] + (loadings @ shock[0] + 0.01 * shock[1]) / np.sqrt(3)
        np.testing.assert_allclose(data.costs[i], expected, rtol=1e-6)
    covariance = loadings @ loadings.T + 1e-4 * np.eye(5)
    np.testing.assert_allclose(data.problem.covariance, covariance, rtol=1e-12)
    assert data.problem.risk == pytest.approx(2.25 * covariance.mean(), rel=1e-12)


def test_storage_prices_are_centred_on_their_mean_and_spike():
    """With a tail of index 3 the means of many rows are close to their expectation, spikes included."""
    data = make_storage(40_000, degree=2, seed=5, spike_rate=0.05, tail=3.0)
    ratio = data.costs / data.mean_costs
    errors = ratio.mean(axis=0) - 1
    assert (np.abs(errors) < 5 * ratio.std(axis=0) / np.sqrt(len(ratio))).all()
    assert (ratio > 3).mean() == pytest.approx(0.05, abs=0.002)  # a spike is at least seven times the mean price
    calm = make_storage(50, degree=2, seed=5, noise=0.0, spike_rate=0.0)
    np.testing.assert_allclose(calm.costs, calm.mean_costs, rtol=1e-7)


def test_storage_prices_have_a_daily_shape():
    data = make_storage(2_000, degree=1, seed=1)
    typical = np.median(data.costs, axis=0)
    assert typical[:5].max() < typical[17:21].min()  # the night is cheaper than the evening


@pytest.mark.parametrize("degree", [1, 3, 6])
def test_travelling_salesman_formulas(degree):
    data = make_travelling_salesman(6, n_nodes=7, degree=degree, seed=9, noise=0.2, n_features=4)
    stream = np.random.RandomState(9)
    nodes = [*stream.uniform(-2, 2, (3, 2)), *stream.normal(0, 1, (4, 2))]
    B = stream.binomial(1, 0.5, (21, 4)) * stream.uniform(-2, 2, (21, 4))
    X = stream.normal(0, 1, (6, 4))
    np.testing.assert_array_equal(data.X, X)
    noise = stream.uniform(0.8, 1.2, (6, 21))
    for j, (a, b) in enumerate(combinations(range(7), 2)):
        distance = np.hypot(*(nodes[a] - nodes[b]))
        predictable = (X @ B[j] / 2 + 3) ** degree / 3 ** (degree - 1)
        np.testing.assert_allclose(data.mean_costs[:, j], distance + predictable, rtol=1e-12)
        np.testing.assert_allclose(data.costs[:, j], distance + predictable * noise[:, j], rtol=1e-7, atol=5.1e-5)
    assert data.problem.n_nodes == 7


def test_portfolio_without_factors_differs_by_factors_alone():
    plain, without = (make_portfolio(200, degree=2, seed=3, factor_noise=factors) for factors in (True, False))
    np.testing.assert_array_equal(plain.X, without.X)
    np.testing.assert_array_equal(plain.mean_costs, without.mean_costs)
    np.testing.assert_array_equal(plain.problem.covariance, without.problem.covariance)
    sizes = np.linalg.svd(plain.costs - without.costs, compute_uv=False)
    assert sizes[5] > 1e-3  # as many factors as features
    assert sizes[6] < 1e-6  # and nothing else, but for single precision
    errors = without.costs - without.mean_costs
    assert np.abs(np.corrcoef(errors.T) - np.eye(25)).max() < 0.5


def test_noise_level_scales_noise_and_covariance():
    one, two = (make_portfolio(10, degree=2, seed=1, noise_level=level) for level in (1.0, 2.0))
    np.testing.assert_allclose(two.problem.covariance, 4 * one.problem.covariance, rtol=1e-12)
    np.testing.assert_array_equal(one.mean_costs, two.mean_costs)
    np.testing.assert_allclose(two.costs - two.mean_costs, 2 * (one.costs - one.mean_costs), atol=1e-7)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, "n must be at least 1; got n=0"),
        ({"n": 2.5}, "n must be a Python or NumPy integer; got 2.5"),
        ({"degree": 0}, "degree must be at least 1"),
        ({"degree": 1.0}, "degree must be a Python or NumPy integer"),
        ({"seed": None}, "seed must be a Python or NumPy integer"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"n_features": 0}, "n_features must be at least 1"),
        ({"noise": "none"}, "noise"),
    ],
)
def test_bad_arguments(make, change, message):
    arguments = {"n": 5, "degree": 1, "seed": 0} | change
    with pytest.raises(ValueError, match=message):
        make(arguments.pop("n"), **arguments)


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (make_shortest_path, {"noise": -0.1}, r"noise must be a number at least 0 and at most 1; got noise=-0.1"),
        (make_shortest_path, {"noise": float("nan")}, r"noise must be a number at least 0 and at most 1"),
        (make_knapsack, {"noise": 1.5}, r"noise must be a number at least 0 and at most 1"),
        (make_knapsack, {"n_items": 0}, "n_items must be at least 1"),
        (make_knapsack, {"dimension": 0}, "dimension must be at least 1"),
        (make_knapsack, {"capacity": -1.0}, "capacit"),
        (make_storage, {"spike_rate": 1.5}, "spike_rate must be a number at least 0 and at most 1"),
        (make_storage, {"tail": 1.0}, "tail must be a number above 1"),
        (make_storage, {"efficiency": 0.0}, "efficiency must be a number above 0"),
        (make_travelling_salesman, {"n_nodes": 2}, "n_nodes must be at least 3"),
        (make_travelling_salesman, {"n_nodes": 5, "noise": 1.5}, r"noise must be a number at least 0 and at most 1"),
        (make_portfolio, {"n_assets": 0}, "n_assets must be at least 1"),
        (make_portfolio, {"noise_level": 0.0}, "noise_level must be a number above 0"),
        (make_portfolio, {"risk_multiple": -1.0}, "risk_multiple must be a number above 0"),
        (make_portfolio, {"noise": "cauchy"}, "noise must be one of 'student', 'gaussian'; got 'cauchy'"),
    ],
)
def test_bad_options(make, change, message):
    with pytest.raises(ValueError, match=message):
        make(5, degree=1, seed=0, **change)
