"""Schedule tasks at predicted energy prices: the instances of the ICON challenge on forecasting and scheduling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decidewise.kit.errors import InputError
from decidewise.problems import LinearProgram

PERIODS = 48


class Job(NamedTuple):
    """A task that runs for `duration` periods without a break, inside the periods from `earliest` to `latest`.

    It needs `power` (which is paid for) and `usage` of the machines in each of its periods.
    """

    duration: int
    earliest: int
    latest: int
    power: float
    usage: float


class Instance(NamedTuple):
    """What the machines can carry in each period, all of them together, and the tasks of a day."""

    capacity: float
    jobs: tuple[Job, ...]


def read_instance(text: str) -> Instance:
    """Read an instance: minutes per period; resources; machines, each with its capacity; tasks, each with its usage.

    The machines become one whose capacity is their sum, and what it costs to switch or to leave them idle is left out,
    so that the energy of the tasks is all that is paid for.

    Examples
    --------
    >>> read_instance("30 1 2   0 190 0.1 0.0 50   1 170 0.1 0.1 60   1   0 10 1 25 471.4 30")
    Instance(capacity=110.0, jobs=(Job(duration=10, earliest=1, latest=25, power=471.4, usage=30.0),))
    """
    numbers = [float(word) for word in text.split()]
    minutes, n_resources, n_machines = (int(number) for number in numbers[:3])
    if (minutes * PERIODS, n_resources) != (24 * 60, 1):
        raise InputError(
            f"an instance must have periods of 30 minutes and one resource; this one has {minutes} minutes and "
            f"{n_resources} resources."
        )
    machines = np.reshape(numbers[3 : 3 + 5 * n_machines], (n_machines, 5))
    n_jobs, *rest = numbers[3 + 5 * n_machines :]
    jobs = np.reshape(rest, (int(n_jobs), 6)).tolist()
    return Instance(
        float(machines[:, 4].sum()), tuple(Job(int(d), int(e), int(last), p, u) for _, d, e, last, p, u in jobs)
    )


def schedule(instance: Instance, *, periods: int = PERIODS) -> LinearProgram:
    """Return the problem of when to start each task, at a price per period: one variable per task and start.

    Examples
    --------
    Two tasks of two periods that do not fit beside each other; the one that needs more power gets the cheap periods:

    >>> jobs = Job(2, 0, 48, power=1.0, usage=3.0), Job(2, 0, 48, power=2.0, usage=3.0)
    >>> prices = np.full(48, 9.0)
    >>> prices[4:8] = [1.0, 1.0, 2.0, 2.0]
    >>> schedule(Instance(5.0, jobs)).solve(prices)[3:9]
    array([0., 2., 2., 1., 1., 0.])
    """
    runs = []  # for each variable: the task, and the periods in which it runs
    for number, job in enumerate(instance.jobs):
        last_start = min(job.latest, periods) - job.duration
        runs += [(number, range(start, start + job.duration)) for start in range(job.earliest, last_start + 1)]
    started = np.zeros((len(instance.jobs), len(runs)))
    running = np.zeros((periods, len(runs)))
    for variable, (number, times) in enumerate(runs):
        started[number, variable] = 1.0
        running[times, variable] = 1.0
    of_run = np.array([number for number, _ in runs])
    power, usage = (np.array([getattr(job, name) for job in instance.jobs])[of_run] for name in ("power", "usage"))
    return LinearProgram(
        running * usage,
        np.full(periods, instance.capacity),
        started,
        np.ones(len(instance.jobs)),
        lower=0,
        upper=1,
        integrality=np.ones(len(runs)),
        costs=running * power,
        sense="min",
    )
