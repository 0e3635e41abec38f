"""The tasks read their files as they are meant, know nothing of the future, and leave forbidden fields alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from decidewise.kit.errors import InputError
from decidewise.problems import Knapsack, LinearProgram, Portfolio, Storage, TopK
from decidewise_bench.real import demand, energy_knapsack, irish_prices, stocks, storage
from decidewise_bench.real.methods import GIVEN, YESTERDAY
from decidewise_bench.real.scheduling import Instance, Job, read_instance, schedule

WINDOW = {"seed": 1, "windows": 2, "step": 5}


def price(day, period):
    return 30.0 + day + period


def check_days(data, first, last, *, items, rise=1.0):
    """Check a window of days without a gap, where each price is 1 above that of the day before."""
    days = np.arange(first, last + 1)[:, None]
    assert_allclose(data.costs, price(days, np.arange(items)))
    columns = dict(zip(data.feature_names, np.moveaxis(data.X, 2, 0), strict=True))
    assert data.feature_names[YESTERDAY] == "yesterday"
    assert_allclose(columns["yesterday"], data.costs - rise)
    assert_allclose(columns["last week"], data.costs - 7 * rise)
    assert_allclose(columns["mean of yesterday"], np.tile(columns["yesterday"].mean(1, keepdims=True), (1, items)))
    assert np.abs(data.X).max() < 1e5  # none of the forbidden fields
    return columns


def test_storage(folder):
    data = storage.day_ahead_storage(20, file="epf_NP.csv", **WINDOW)
    columns = check_days(data, 20, 39, items=24)
    assert_allclose(data.X[:, :, GIVEN], data.costs + 1)
    assert_allclose(columns["lasso"], data.costs + 2)
    assert isinstance(data.problem, Storage)
    assert str(data.row_names[-1]) == str(np.datetime64("2016-12-27") + 39)


def test_a_window_ends_before_the_next(folder):
    data = storage.day_ahead_storage(20, file="epf_NP.csv", **(WINDOW | {"seed": 0}))
    check_days(data, 15, 34, items=24)


def test_cheapest_slots_drop_the_day_without_a_forecast(folder):
    data = irish_prices.cheapest_slots(32, file="ICON_data.zip", **(WINDOW | {"windows": 1, "seed": 0}), k=10)
    days = np.array([day for day in range(7, 40) if day != 20])
    assert_allclose(data.costs, price(days[:, None], np.arange(48)))
    assert_allclose(data.X[:, :, GIVEN], data.costs + 1)
    assert_allclose(data.X[:, :, YESTERDAY], data.costs - 1)  # also on day 21: day 20 has a price
    assert [str(day) for day in data.row_names] == [str(np.datetime64("2011-11-01") + day) for day in days]
    assert np.abs(data.X).max() < 1e5
    assert isinstance(data.problem, TopK)
    assert data.problem.sense == "min"
    weekend = data.X[:, 0, data.feature_names.index("weekend")]
    assert_allclose(weekend, [day.astype(object).weekday() >= 5 for day in data.row_names])


def test_scheduling(folder):
    data = irish_prices.scheduled_tasks(10, file="ICON_data.zip", instance="load1/day01.txt", **WINDOW)
    assert isinstance(data.problem, LinearProgram)
    # Prices rise all day, and the tasks do not fit beside each other: the one of more power comes first.
    expected = np.zeros(48)
    expected[1:11], expected[11:15] = 2.0, 1.0
    assert_allclose(data.problem.solve(data.costs[:1])[0], expected)


def test_a_schedule_is_the_best_of_all():
    jobs = (Job(5, 0, 14, 3.0, 4.0), Job(3, 2, 12, 2.0, 3.0), Job(4, 1, 48, 1.0, 2.0))
    prices = np.random.default_rng(0).uniform(1, 9, 48)
    prices[14:] += 20
    best = np.inf
    for a in range(10):
        for b in range(2, 10):
            for c in range(1, 45):
                used, power = np.zeros(48), np.zeros(48)
                for start, job in zip((a, b, c), jobs, strict=True):
                    used[start : start + job.duration] += job.usage
                    power[start : start + job.duration] += job.power
                if used.max() <= 6.0:
                    best = min(best, power @ prices)
    assert schedule(Instance(6.0, jobs)).solve(prices) @ prices == pytest.approx(best)


def test_other_instances_are_refused():
    with pytest.raises(InputError, match="30 minutes and one resource; this one has 15 minutes and 1"):
        read_instance("15 1 1  0 1 1 1 50  1  0 1 1 2 3 4")


def test_energy_knapsack(folder):
    file = "knapsack_energy_Data.npz"
    data = energy_knapsack.energy_knapsack(20, file=file, capacity=60, **WINDOW)
    check_days(data, 20, 39, items=48)
    assert_allclose(data.X[:, :, GIVEN], data.costs / 2 * np.tile([2, 3], 24))
    assert isinstance(data.problem, Knapsack)
    assert data.problem.solve(data.costs)[0] @ np.tile([2, 3], 24) <= 60


def test_weekly_portfolios(packages):
    data = stocks.weekly_portfolios(20, file="made_stocks:prices.csv", **WINDOW)
    weekly = packages[::5]
    returns = 100 * (weekly[1:] / weekly[:-1] - 1)
    assert_allclose(data.costs, returns[-20:])
    assert_allclose(data.X[:, :, YESTERDAY], returns[-21:-1])
    assert_allclose(data.X[-1, :, GIVEN], returns[-53:-1].mean(0))
    assert isinstance(data.problem, Portfolio)
    covariance = np.cov(returns[-105:-1].T)  # of the two years before, shrunk
    assert_allclose(np.diag(data.problem.covariance[-1]), np.diag(covariance))
    assert_allclose(data.problem.covariance[-1][0, 1], 0.9 * covariance[0, 1])
    assert_allclose(data.problem.risk[-1], data.problem.covariance[-1].mean())


def test_bakery(packages):
    data = demand.bakery(10, file="made_demand:bakery_data.csv", k=2, seed=0, windows=1, step=1)
    days = np.array([29, 30, 31, 32, 33, 34, 36, 37, 38, 39])  # day 35 is closed
    assert_allclose(data.costs, np.array([200, 500, 900]) + days[:, None])  # in the order of the stores
    before = data.X[:, :, YESTERDAY]
    assert_allclose(before[[0, 5, 7]], data.costs[[0, 5, 7]] - 1)
    assert_allclose(before[6], 0)  # yesterday was closed
    assert_allclose(data.X[0, :, GIVEN], data.costs[0] - (7 + 14 + 21 + 28) / 4)
    assert_allclose(data.X[0, :, data.feature_names.index("promotion")], [0, 1, 0])
    assert np.abs(data.X).max() < 1e5  # no weather
    names = ("saturday", "sunday")
    found = data.X[:, 0, [data.feature_names.index(name) for name in names]]
    weekdays = np.array([day.astype(object).weekday() for day in data.row_names])
    assert_allclose(found, weekdays[:, None] == [5, 6])


def test_restaurant(packages):
    data = demand.restaurant(5, file="made_demand:yaz_data.csv", k=3, seed=0, windows=1, step=1)
    assert_allclose(data.costs, np.arange(1, 5) + np.arange(35, 40)[:, None])
    assert_allclose(data.X[:, :, YESTERDAY], data.costs - 1)
    assert np.abs(data.X).max() < 1e5


def test_rows_that_are_not_there(folder):
    with pytest.raises(ValueError, match=r"2 windows of 33 rows, 5 apart, need 38 rows; there are 33"):
        storage.day_ahead_storage(33, file="epf_NP.csv", **(WINDOW | {"seed": 0}))
    with pytest.raises(ValueError, match="there is no window 2"):
        storage.day_ahead_storage(20, file="epf_NP.csv", **(WINDOW | {"seed": 2}))
