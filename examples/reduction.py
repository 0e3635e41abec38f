"""Simulate the tree of sums of `decidewise.operate.distributed` over up to 1,000 workers: its depth, bytes and seconds.

Run: `python examples/reduction.py`. The sums of one partition and the time to combine two of them are measured here.
The network (one link per worker), the time that a scheduler takes per task and the speed of a worker are assumptions,
printed above the table; the speed is that of `python speed/streaming.py`.
"""

import heapq
from dataclasses import dataclass
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from decidewise import WiseRegressor
from decidewise.operate.distributed import FAN_IN
from decidewise.rows import ArrayRows
from decidewise.rows.source import add, combine_all


@dataclass(frozen=True)
class Cluster:
    """Assumptions about a cluster."""

    rows_per_second: float = 1_000_000  # of one worker with one core
    jitter: float = 0.2  # standard deviation of the time of a partition, as a fraction of it
    latency: float = 0.5e-3  # seconds until a message arrives
    bandwidth: float = 1e9  # bytes per second of each worker's link
    per_task: float = 0.3e-3  # seconds of the scheduler for each task


@dataclass
class Outcome:
    """What a simulated pass took."""

    seconds: float
    after_last: float  # seconds from the last partition to the total
    depth: int
    n_tasks: int
    bytes_moved: int
    bytes_of_busiest: int  # into one worker
    scheduler: float  # seconds of the scheduler for all tasks


def measure(n_features, n_costs):
    """Return the bytes of the sums of one partition, and the seconds of combining FAN_IN of them."""
    rng = np.random.default_rng(0)
    found = []

    class Watched(ArrayRows):
        def reduce(self, function, combine=add):
            found.append(function(next(self.blocks())))
            return super().reduce(function, combine)

    WiseRegressor().fit_rows(Watched(rng.normal(size=(500, n_features)), 1 + rng.random((500, n_costs))))
    sums, repeats = found[0], 50
    begin = process_time()
    for _ in range(repeats):
        combine_all([sums] * FAN_IN)
    return sum(array.nbytes for array in sums), (process_time() - begin) / repeats


def simulate(n_workers, n_partitions, rows_per_partition, n_bytes, combining, cluster, rng):
    """Return the outcome of one pass: partitions go to idle workers, and sums to the worker that has the first."""
    idle = [(0.0, worker) for worker in range(n_workers)]
    level = []  # (time at which the sum is ready, its worker)
    begin = 0.0
    for _ in range(n_partitions):
        begin += cluster.per_task  # tasks leave the scheduler one after another
        free, worker = heapq.heappop(idle)
        work = rows_per_partition / cluster.rows_per_second * max(0.3, rng.normal(1, cluster.jitter))
        done = max(free, begin) + cluster.latency + work
        heapq.heappush(idle, (done, worker))
        level.append((done, worker))
    last, depth, n_tasks, moved, into = max(time for time, _ in level), 0, n_partitions, 0, np.zeros(n_workers, int)
    transfer = cluster.latency + n_bytes / cluster.bandwidth
    while len(level) > 1:
        above = []
        for first in range(0, len(level), FAN_IN):
            group = level[first : first + FAN_IN]
            home = group[0][1]
            arriving = sum(worker != home for _, worker in group)
            moved += arriving * n_bytes
            into[home] += arriving * n_bytes
            ready = max(time for time, _ in group) + cluster.per_task + cluster.latency
            above.append((ready + arriving * transfer + combining, home))
        level, depth, n_tasks = above, depth + 1, n_tasks + len(above)
    end = level[0][0] + transfer  # to the client
    return Outcome(end, end - last, depth, n_tasks, moved + n_bytes, int(into.max()), n_tasks * cluster.per_task)


def main(
    n_features=10, n_costs=20, partitions_per_worker=20, rows_per_partition=1_000_000, workers=(1, 10, 100, 1_000)
):
    cluster, rng = Cluster(), np.random.default_rng(0)
    n_bytes, combining = measure(n_features, n_costs)
    print(
        f"Measured: sums of {n_features} features and {n_costs} costs have {n_bytes:,} bytes; combining {FAN_IN} takes "
        f"{1e6 * combining:.0f} µs.\nAssumed: {cluster.rows_per_second:,.0f} rows/s per worker, "
        f"{1e3 * cluster.latency:g} ms latency, {cluster.bandwidth / 1e9:g} GB/s per link, "
        f"{1e3 * cluster.per_task:g} ms of the scheduler per task; {partitions_per_worker} partitions of "
        f"{rows_per_partition:,} rows per worker."
    )
    table = Table(title="One pass: a tree of sums over workers")
    headings = ("workers", "rows", "seconds", "after the last partition", "depth", "tasks", "moved", "into the busiest")
    for heading in (*headings, "scheduler"):
        table.add_column(heading, justify="right")
    for n_workers in workers:
        n_partitions = n_workers * partitions_per_worker
        found = simulate(n_workers, n_partitions, rows_per_partition, n_bytes, combining, cluster, rng)
        table.add_row(
            f"{n_workers:,}",
            f"{n_partitions * rows_per_partition:.0e}",
            f"{found.seconds:.1f}",
            f"{1e3 * found.after_last:.1f} ms",
            str(found.depth),
            f"{found.n_tasks:,}",
            f"{found.bytes_moved / 1e6:.1f} MB",
            f"{found.bytes_of_busiest / 1e6:.2f} MB",
            f"{found.scheduler:.1f} s",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
