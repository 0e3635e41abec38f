"""Small files in the formats of the real data, with numbers that say which row and item they are of."""

import zipfile

import numpy as np
import pytest

from decidewise_bench.real.files import VARIABLE

DAYS = 40


def price(day, period):
    return 30.0 + day + period


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of data in which the cost of a day and period is `price(day, period)`."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    _write_market(tmp_path / "epf_NP.csv")
    _write_irish(tmp_path / "ICON_data.zip")
    _write_knapsack(tmp_path / "knapsack_energy_Data.npz")
    return tmp_path


def _write_market(path):
    lines = ["time,price,dnn_forecast,lear_forecast"]
    for day in range(DAYS):
        date = np.datetime64("2016-12-27") + day
        lines += [f"{date} {h:02d}:00:00,{price(day, h)},{price(day, h) + 1},{price(day, h) + 2}" for h in range(24)]
    path.write_text("\n".join(lines) + "\n")


def _write_irish(path):
    names = "DateTime Holiday HolidayFlag DayOfWeek WeekOfYear Day Month Year PeriodOfDay ForecastWindProduction "
    names += "SystemLoadEA SMPEA ORKTemperature ORKWindspeed CO2Intensity ActualWindProduction SystemLoadEP2 SMPEP2"
    lines = ["#" + names]
    for day in range(DAYS):
        date = (np.datetime64("2011-11-01") + day).astype(object)
        for p in range(48):
            forecast = "NaN" if (day, p) == (20, 7) else price(day, p) + 1
            start = f'"{date:%a} {date.day}/{date.month}/{date.year} {p // 2:02d}:{30 * (p % 2):02d}" "All Saints"'
            calendar = f"0 {date.isoweekday() % 7} 44 {date.day} {date.month} {date.year} {p}"
            # The weather is missing, and each forbidden field gives itself away.
            lines.append(f"{start} {calendar} 300 3000 {forecast} NaN NaN -1e6 -1e6 -1e6 {price(day, p)}")
    tasks = "30\n1\n2\n0 190 0.1 0.0\n50\n1 170 0.1 0.1\n50\n2\n0 10 1 25 2.0\n60\n1 4 0 48 1.0\n60\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/prices2013.dat", "\n".join(lines) + "\n")
        archive.writestr("load1/day01.txt", tasks)


def _write_knapsack(path):
    X = np.zeros((DAYS, 48, 9))
    X[:, :, 0] = np.arange(DAYS)[:, None]
    values = price(np.arange(DAYS)[:, None], np.arange(48))
    X[:, :, 7] = values / 2  # the forecast of the price
    X[:, :, 8] = -1e6  # the intensity of CO2, which was not known
    half = DAYS // 2
    np.savez(
        path,
        X_1gtrain=X[:half].reshape(-1, 9),
        X_1gtest=X[half:].reshape(-1, 9),
        y_train=values[:half].ravel(),
        y_test=values[half:].ravel(),
        weights=np.tile([2, 3], 24),
    )


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Packages of data that cannot be imported, in a folder of the path: only their files may be read."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    for name in ("made_stocks", "made_demand"):
        (tmp_path / "site" / name).mkdir(parents=True)
        (tmp_path / "site" / name / "__init__.py").write_text("raise RuntimeError('imported')\n")
    rng = np.random.default_rng(0)
    days = np.datetime64("1990-01-02") + np.arange(5 * 130)
    prices = 100 * np.exp(np.cumsum(rng.normal(0, 0.01, (len(days), 3)), axis=0))
    lines = [f"{day},{','.join(map(str, row))}" for day, row in zip(days, prices, strict=True)]
    (tmp_path / "site" / "made_stocks" / "prices.csv").write_text("Date,A,B,C\n" + "\n".join(lines) + "\n")
    _write_bakery(tmp_path / "site" / "made_demand")
    _write_restaurant(tmp_path / "site" / "made_demand")
    return prices


def _write_bakery(folder):
    """Stores and products in any order; on day 35 all stores are closed."""
    head = "date,weekday,month,year,is_schoolholiday,is_holiday,is_holiday_next2days,store,product,rain,temperature,"
    lines, demand = [head + "promotion_currentweek,promotion_lastweek"], ["demand"]
    for store in (9, 2, 5):
        for product in (101, 109):
            for day in range(DAYS):
                date = np.datetime64("2016-01-02") + day
                lines.append(f"{date},FRI,JAN,2016,1,0,0,{store},{product},1e6,1e6,{int(store == 5)},0")
                demand.append(str(0.0 if day == 35 else 100 * store + day + (product == 109)))
    (folder / "bakery_data.csv").write_text("\n".join(lines) + "\n")
    (folder / "bakery_target.csv").write_text("\n".join(demand) + "\n")


def _write_restaurant(folder):
    """On day 3 the restaurant is closed."""
    lines, demand = ["date,weekday,month,year,is_holiday,is_closed,weekend,wind,clouds,rain,sunshine,temperature"], []
    for day in range(DAYS):
        date = np.datetime64("2013-10-04") + day
        lines.append(f"{date},FRI,OCT,2013,0,{int(day == 3)},0,1e6,1e6,1e6,1e6,1e6")
        demand.append("0,0,0,0" if day == 3 else f"{day + 1},{day + 2},{day + 3},{day + 4}")
    (folder / "yaz_data.csv").write_text("\n".join(lines) + "\n")
    (folder / "yaz_target.csv").write_text("fish,lamb,steak,shrimp\n" + "\n".join(demand) + "\n")
