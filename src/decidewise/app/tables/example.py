"""A small working example: a table, a problem file and what to type."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from decidewise.kit.errors import InputError
from decidewise.kit.files import write_whole

N_DAYS, N_NEW, HOURS, RUN = 400, 7, 24, 6
_FIRST = np.datetime64("2025-01-01")
_WEATHER = ("calm", "windy", "stormy")

PROBLEM = f"""# Which {RUN} of the {HOURS} hours of a day to run in: the cheapest. `decidewise problems` lists kinds.
kind = "top_k"
n = {HOURS}
k = {RUN}
sense = "min"

# What the columns of the table are; all other columns are features. Options of a command take precedence.
[table]
rows = "day"            # one sample per day ...
items = "hour"          # ... with one line for each of its hours
costs = "price"         # what was paid: known afterwards
forecast = "forecast"   # the forecast that decisions are made by today
time = "day"            # train on the past, test on what came after
unit = "EUR"
"""

README = f"""# Which hours to run in

A machine runs in {RUN} of the {HOURS} hours of a day, at prices that are known only afterwards. `history.csv` has
{N_DAYS} days: a forecast of the price of each hour, the load, the wind (with gaps), the weather, and the price paid.
`problem.toml` says what is to be decided, and what the columns are. The numbers are made up.

    decidewise compare history.csv --problem problem.toml       # which model decides best, by how much: compare.html
    decidewise fit history.csv --problem problem.toml --out model.dw
    decidewise decide model.dw new.csv --problem problem.toml --out decisions.csv

`new.csv` has the next {N_NEW} days, whose prices are not known yet. To use your own table, write what its columns are
under `[table]`; `decidewise problems` lists the kinds of problems.
"""


def write_example(folder: Path, *, force: bool = False) -> list[Path]:
    """Write the example into a folder, which is created if need be, and return the paths of its files.

    Raise an `InputError` if one of them exists, unless `force` is true.
    """
    history, new = _tables()
    files = {"README.md": README, "history.csv": history, "new.csv": new, "problem.toml": PROBLEM}
    there = [name for name in files if (folder / name).exists()]
    if there and not force:
        raise InputError(f"{folder / there[0]} exists already. Name another folder, or replace it by --force.")
    write_whole({folder / name: text.encode() for name, text in files.items()})
    return [folder / name for name in files]


def _tables() -> tuple[str, str]:
    """Return the history and the new days as CSV: effects on prices multiply; the forecast misses a part of them."""
    rng = np.random.default_rng(13)
    n = N_DAYS + N_NEW
    hour, day = np.arange(HOURS), np.arange(n)[:, np.newaxis]
    season = np.cos(2 * np.pi * day / 365)
    week = np.where((day + 2) % 7 >= 5, -0.3, 0.0)  # the first day is a Wednesday
    weather = rng.choice(3, size=(n, 1), p=(0.5, 0.35, 0.15))
    wind = np.clip(np.array([4.0, 9.0, 14.0])[weather] + rng.normal(0, 2.0, (n, HOURS)), 0, None)
    peaks = 0.25 * np.exp(-((hour - 8) ** 2) / 8) + 0.4 * np.exp(-((hour - 19) ** 2) / 10)
    load = 50 + 8 * season + 30 * (peaks - peaks.mean()) + rng.normal(0, 2.5, (n, HOURS))
    level = 3.6 + 0.06 * (load - 50) + week - 0.11 * (wind - 7)
    price = np.exp(level + rng.normal(0, 0.25, (n, HOURS)))
    forecast = np.exp(3.6 + 0.05 * (load - 50) + 0.5 * week - 0.07 * (wind - 7) + rng.normal(0, 0.15, (n, HOURS)))
    gaps = rng.uniform(size=(n, HOURS)) < 0.02
    lines = [
        f"{_FIRST + d},{h},{forecast[d, h]:.2f},{load[d, h]:.1f},{'' if gaps[d, h] else format(wind[d, h], '.1f')},"
        f"{_WEATHER[weather[d, 0]]},{price[d, h]:.2f}"
        for d in range(n)
        for h in range(HOURS)
    ]
    heading = "day,hour,forecast,load,wind,weather,price"
    known = N_DAYS * HOURS
    future = [line.rpartition(",")[0] for line in lines[known:]]
    return (
        "\n".join([heading, *lines[:known]]) + "\n",
        "\n".join([heading.rpartition(",")[0], *future]) + "\n",
    )
