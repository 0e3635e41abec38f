import numpy as np
import pytest
from scipy.optimize import linprog

from decidewise.problems import Storage


def best_by_highs(store, prices):
    """The linear program in purchases, sales and levels; energy may be lost, since levels only have an upper bound."""
    n = store.n_costs
    change = np.hstack([-store.efficiency * np.eye(n), np.eye(n), np.eye(n) - np.eye(n, k=-1)])
    start = np.zeros(n)
    start[0] = store.initial
    bounds = [(0, store.power)] * 2 * n + [(0, store.energy)] * (n - 1) + [(store.final, store.energy)]
    found = linprog(np.concatenate([prices, -prices, 0 * prices]), A_ub=change, b_ub=start, bounds=bounds)
    return -found.fun


def check_feasible(store, sales):
    level = np.full(len(sales), store.initial)
    for sold in sales.T:
        level = np.minimum(level - np.where(sold > 0, sold, store.efficiency * sold), store.energy)
        assert level.min() >= -1e-12
    assert level.min() >= store.final - 1e-12
    assert np.abs(sales).max() <= store.power


@pytest.mark.parametrize("efficiency", [1.0, 0.9, 0.5])
def test_equals_highs(efficiency):
    rng = np.random.default_rng(int(100 * efficiency))
    for _ in range(25):
        periods, power, energy = int(rng.integers(1, 13)), rng.uniform(0.1, 4), rng.uniform(0.3, 5)
        initial = rng.choice([0.0, energy, energy * rng.uniform()])
        final = rng.integers(2) * rng.uniform() * min(energy, initial + periods * efficiency * power)
        store = Storage(periods, power, energy, efficiency=efficiency, initial=initial, final=final)
        prices = np.vstack([rng.normal(size=(2, periods)), rng.integers(-1, 4, size=(2, periods))])
        sales = store.solve(prices)
        check_feasible(store, sales)
        best = [best_by_highs(store, row) for row in prices]
        np.testing.assert_allclose((prices * sales).sum(axis=1), best, rtol=1e-9, atol=1e-9)


def test_ties_trade_as_little_and_as_late_as_possible():
    store = Storage(5, power=1.0, energy=1.0, efficiency=0.5)
    np.testing.assert_array_equal(store.solve(np.zeros(5)), np.zeros(5))
    np.testing.assert_array_equal(store.solve([0.1, 0.2, 0.1, 0.2, 0.2]), np.zeros(5))  # a trip earns nothing
    np.testing.assert_array_equal(store.solve([1.0, 1.0, 1.0, 3.0, 3.0]), [0, -1, -1, 0, 1])


def test_negative_prices_pay_for_energy_that_is_lost():
    store = Storage(4, power=2.0, energy=1.0, efficiency=1.0)
    np.testing.assert_array_equal(store.solve([-1.0, -1.0, -1.0, 5.0]), [-2, -2, -2, 1])


def test_prices_that_forbid_do_not_blur_the_others():
    store = Storage(6, power=1.0, energy=1.0, efficiency=1.0)
    prices = np.array([1e15, 1.0, 1.1, 1.0, 1.2, 1e15])
    np.testing.assert_array_equal(store.solve(prices), [0, -1, 1, -1, 0, 1])


def test_a_long_horizon_ends_where_it_should():
    store = Storage(1_000, power=0.1, energy=0.7, efficiency=0.9, initial=0.3, final=0.5)
    prices = np.random.default_rng(0).lognormal(size=(3, 1_000))
    sales = store.solve(prices)
    check_feasible(store, sales)
    np.testing.assert_allclose(store.solution(prices)["level"][:, -1], 0.5, atol=1e-12)
    assert (prices[0] * sales[0]).sum() == pytest.approx(best_by_highs(store, prices[0]), rel=1e-9)


def test_solution_names_its_parts():
    store = Storage(3, power=1.0, energy=2.0, efficiency=0.5, initial=1.0)
    solution = store.solution([1.0, 9.0, 5.0])
    np.testing.assert_array_equal(solution["sold"], [0, 1, 0.5])
    np.testing.assert_array_equal(solution["bought"], [1, 0, 0])
    np.testing.assert_array_equal(solution["level"], [1.5, 0.5, 0])


def test_polyhedron_only_without_losses():
    assert Storage(3, 1.0, 1.0, efficiency=0.9).polyhedron is None
    region = Storage(2, 1.0, 3.0, efficiency=1.0, initial=2.0, final=0.5).polyhedron
    np.testing.assert_array_equal(region.A_ub.toarray(), [[1, 0], [1, 1], [0, 1]])
    np.testing.assert_array_equal(region.b_ub, [2, 1.5, 2.5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"periods": 0}, "periods must be at least 1"),
        ({"power": 0.0}, "power must be a number above 0"),
        ({"energy": np.inf}, "energy must be a number above 0"),
        ({"efficiency": 1.1}, "efficiency must be a number above 0 and at most 1"),
        ({"initial": 3.0}, "initial must be a number at least 0 and at most 2"),
        ({"final": -1.0}, "final must be a number at least 0 and at most 2"),
        ({"periods": 1, "final": 1.5}, "final=1.5 cannot be reached: charging in all 1 periods leads from initial=0"),
    ],
)
def test_bad_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        Storage(**({"periods": 4, "power": 1.0, "energy": 2.0} | change))


def test_a_level_that_rounding_took_beyond_an_end_is_at_that_end():
    beyond = Storage(3, power=1.0, energy=2.0, initial=[-4.4e-16, 2 + 4.4e-16])
    np.testing.assert_array_equal(beyond.initial, [0, 2])
    np.testing.assert_array_equal(Storage(3, power=1.0, energy=[2.0, 3.0], initial=-1e-16).initial, [0, 0])
    with pytest.raises(ValueError, match="initial must be a number"):
        Storage(3, power=1.0, energy=2.0, initial=-1e-6)
