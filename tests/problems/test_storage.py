import numpy as np
import pytest
from scipy.optimize import linprog

from decidewise.problems import Storage


def best_by_highs(store, prices, row=None):
    """The linear program in purchases, sales and levels; energy may be lost, since levels only have an upper bound."""
    n = store.n_costs

    def own(name):
        value = getattr(store, name)
        return value if row is None or value is None else value[row]

    out = 1 / own("discharge_efficiency")
    change = np.hstack([-own("efficiency") * np.eye(n), out * np.eye(n), np.eye(n) - np.eye(n, k=-1)])
    start = np.zeros(n)
    start[0] = own("initial")
    if store.cycles is not None:
        taken_out = np.concatenate([np.zeros(n), np.full(n, out), np.zeros(n)])
        change, start = np.vstack([change, taken_out]), np.append(start, own("cycles") * own("energy"))
    most = own("power") if store.discharge_power is None else own("discharge_power")
    bounds = [(0, own("power"))] * n + [(0, most)] * n + [(0, own("energy"))] * (n - 1)
    bounds += [(own("final"), own("energy"))]
    found = linprog(np.concatenate([prices, own("wear") - prices, 0 * prices]), A_ub=change, b_ub=start, bounds=bounds)
    return -found.fun


def check_feasible(store, sales):
    level = np.full(len(sales), store.initial)
    taken_out = np.maximum(sales, 0) / store.discharge_efficiency
    for taken, sold in zip(taken_out.T, sales.T, strict=True):
        level = np.minimum(level - taken - store.efficiency * np.minimum(sold, 0), store.energy)
        assert level.min() >= -1e-12
    assert level.min() >= store.final - 1e-12
    assert sales.min() >= -store.power
    assert sales.max() <= (store.discharge_power or store.power)
    if store.cycles is not None:
        assert taken_out.sum(axis=1).max() <= store.cycles * store.energy * (1 + 1e-12)


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


@pytest.mark.parametrize("cycles", [False, True], ids=["any cycles", "few cycles"])
@pytest.mark.parametrize("wear", [0.0, 0.4], ids=["no wear", "wear"])
def test_a_battery_as_sold_equals_highs(wear, cycles):
    rng = np.random.default_rng([int(10 * wear), cycles])
    n_bound = 0
    for _ in range(25):
        periods, power, energy = int(rng.integers(1, 13)), rng.uniform(0.1, 4), rng.uniform(0.3, 5)
        initial = rng.choice([0.0, energy, energy * rng.uniform()])
        final = rng.integers(2) * rng.uniform() * min(energy, initial + periods * 0.5 * power)
        each_way = {"discharge_power": rng.uniform(0.1, 4), "discharge_efficiency": rng.uniform(0.5, 1)}
        most = rng.choice([0.0, 0.3, 1.0, 2.0]) if cycles else None
        own = {"efficiency": rng.uniform(0.5, 1), "initial": initial, "final": final, "wear": wear, "cycles": most}
        store = Storage(periods, power, energy, **own, **each_way)
        prices = np.vstack([rng.normal(size=(2, periods)), rng.integers(-1, 4, size=(2, periods))])
        sales = store.solve(prices)
        check_feasible(store, sales)
        values = (prices * sales).sum(axis=1) - wear * np.maximum(sales, 0).sum(axis=1)
        best = [best_by_highs(store, row) for row in prices]
        np.testing.assert_allclose(values, best, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(store.solve_details(prices).objective, values, rtol=1e-9, atol=1e-9)
        if cycles:
            free = Storage(periods, power, energy, **own | {"cycles": None}, **each_way)
            n_bound += (np.abs(free.solve(prices) - sales).max(axis=1) > 1e-9).sum()
    assert n_bound >= 20 * cycles


def test_batteries_that_differ_by_row_equal_each_by_itself():
    rng = np.random.default_rng(5)
    energy, cycles, wear = rng.uniform(1, 3, 8), rng.uniform(0.2, 2, 8), rng.uniform(0, 0.3, 8)
    stores = Storage(10, 1.0, energy, discharge_power=0.7, discharge_efficiency=0.9, wear=wear, cycles=cycles)
    prices = rng.normal(1, 1, size=(8, 10))
    sales = stores.solve(prices)
    values = (prices * sales).sum(axis=1) - wear * np.maximum(sales, 0).sum(axis=1)
    np.testing.assert_allclose(values, [best_by_highs(stores, prices[row], row) for row in range(8)], rtol=1e-9)
    np.testing.assert_array_equal(stores.take([3, 5]).solve(prices[[3, 5]]), sales[[3, 5]])


def test_a_cycle_more_is_worth_less_and_less():
    """Prices of a real size: the value is concave in the cycles, and flat from where they no longer bind."""
    prices = 50 + 30 * np.sin(np.arange(96) * np.pi / 6) + np.random.default_rng(0).normal(0, 5, 96)
    values = [
        Storage(96, 50.0, 100.0, efficiency=0.9, wear=7.0, cycles=k).solve_details(prices).objective[0]
        for k in np.linspace(0, 12, 25)
    ]
    gains = np.diff(values)
    assert values[0] == 0
    assert gains[0] > 0
    assert np.all(np.diff(gains) <= 1e-7)
    assert gains[-1] == 0


def test_wear_counts_as_often_as_it_is_lifted():
    store = Storage(2, power=1.0, energy=1.0, efficiency=1.0, wear=3.0)
    lifted = store.lifted.minimize(np.array([[-1.0, -5.0, 1.0], [-1.0, -5.0, 2.0]]))
    np.testing.assert_array_equal(lifted, [[-1, 1, 3], [0, 0, 0]])
    with pytest.raises(ValueError, match="row 1: the cost of the known part is -1, and the wear of Storage is convex"):
        store.lifted.minimize(np.array([[-1.0, -5.0, 1.0], [-1.0, -5.0, -1.0]]))


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
    assert Storage(3, 1.0, 1.0, efficiency=1.0, discharge_efficiency=0.9).polyhedron is None
    assert Storage(3, 1.0, 1.0, efficiency=1.0, wear=1.0).missing == {"polyhedron": "with wear it has too many rows"}
    assert Storage(3, 1.0, 1.0, efficiency=1.0, cycles=1).polyhedron is None
    region = Storage(2, 1.0, 3.0, efficiency=1.0, initial=2.0, final=0.5, discharge_power=2.0).polyhedron
    np.testing.assert_array_equal([region.lower, region.upper], [[-1, -1], [2, 2]])
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
        ({"discharge_power": 0.0}, "discharge_power must be a number above 0"),
        ({"discharge_efficiency": 1.1}, "discharge_efficiency must be a number above 0 and at most 1"),
        ({"wear": -1.0}, "wear must be a number at least 0"),
        ({"cycles": -1.0}, "cycles must be a number at least 0"),
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
