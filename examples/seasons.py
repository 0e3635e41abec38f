"""Compare the choice with the forecast that you have, where the days to come are of another kind.

Hourly prices are drawn whose later days differ from the training days: an easy season and then a hard one, with other
costly hours; and a forecast that degrades. Or the features say nothing. For a battery and for the cheapest hours it
prints, in percent on the later days, the regret of the choice and of its null model (the forecast, or without one the
training mean, or doing nothing), and their difference with its standard error over the draws. `WiseRegressorCV` has its
default settings.

    python examples/seasons.py [--draws 8] [--rows 90]

It takes a minute.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

from decidewise import WiseRegressorCV, normalized_regret
from decidewise.data import Dataset
from decidewise.problems import Storage, TopK

HOURS, N_TEST, FIRST_SEED = 24, 180, 9_100
PROBLEMS = {"battery": Storage(HOURS, 1.0, 4.0, efficiency=0.9), "cheapest hours": TopK(HOURS, 6, sense="min")}
KINDS = ("easy, then hard", "a forecast that degrades", "features that say nothing")


def draw(kind: str, n: int, problem: Storage | TopK, seed: int) -> Dataset:
    """Draw `n` training days and the days that follow. Features of each hour: a forecast, yesterday, and its time."""
    rng, days, time = np.random.default_rng(seed), n + N_TEST + 1, 2 * np.pi * np.arange(HOURS) / HOURS
    later = np.arange(days)[:, None] > n
    moves = np.stack([np.cos(time), np.sin(2 * time), np.cos(2 * time)])
    shape = np.sin(time + later) if kind == KINDS[0] else np.sin(time)  # the costly hours of a summer come earlier
    states = np.zeros((days, 4))  # of the level and of what moves the shape: they depend on those of the day before
    for day in range(1, days):
        states[day] = 0.7 * states[day - 1] + rng.normal(size=4)
    swing = np.where(later, 1.0, 0.15) if kind == KINDS[0] else 0.6
    error = swing * (np.where(later, 1.5, 0.5) if kind == KINDS[1] else 0.7)
    known = 10 + shape + states[:, :1] + swing * states[:, 1:] @ moves
    prices = known + 0.5 * swing * rng.normal(size=known.shape)
    forecast = known + error * rng.normal(size=known.shape)
    if kind == KINDS[2]:
        X = rng.normal(size=(days, HOURS, 4))
    else:
        hour = np.broadcast_to(np.stack([np.sin(time), np.cos(time)], axis=-1), (days, HOURS, 2))
        X = np.concatenate([forecast[:, :, None], np.roll(prices, 1, axis=0)[:, :, None], hour], axis=2)
    return Dataset(X[1:], prices[1:], problem)


def regrets(kind: str, n: int, problem: Storage | TopK, seed: int) -> tuple[float, float]:
    """Return the regret on later days of the choice and of its null model, in percent."""
    train, test = draw(kind, n, problem, seed).split(n)
    forecast = None if kind == KINDS[2] else 0
    choice = WiseRegressorCV(problem, forecast=forecast, random_state=0)
    choice.fit(train.X, train.costs, times=np.arange(n))
    null = choice.candidates_[choice.null_model_].fit(train.X, train.costs)
    own, least = (normalized_regret(problem, model.predict(test.X), test.costs) for model in (choice, null))
    return own, least


def main(draws: int = 8, rows: int = 90) -> None:
    table = Table("later days", "decision", "choice", "null model", "difference", "lower", "higher")
    for kind in KINDS:
        for name, problem in PROBLEMS.items():
            seeds = range(FIRST_SEED, FIRST_SEED + draws)
            found = np.array([regrets(kind, rows, problem, seed) for seed in seeds])
            more = found[:, 0] - found[:, 1]
            error = more.std(ddof=1) / np.sqrt(draws)
            difference = f"{more.mean():+.2f} ± {error:.2f}"
            counts = (str((more < 0).sum()), str((more > 0).sum()))
            table.add_row(kind, name, *(f"{mean:.2f}" for mean in found.mean(axis=0)), difference, *counts)
    Console(width=120).print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare the choice with its null model on days of another kind.")
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--rows", type=int, default=90, help="training days")
    arguments = parser.parse_args()
    main(arguments.draws, arguments.rows)
