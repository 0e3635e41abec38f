"""Fit, decide and evaluate a table that is eight times as large as the memory that the process may use.

Run: `sudo python examples/larger_than_memory.py` (Linux, as root, who may limit memory; two minutes, 4 GB of disk).
A child process in a control group with a limit of 480 MB reads 3.8 GB of Parquet files. The kernel would kill it if it
held more; what the kernel keeps of files it gives back when memory is short.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

WORK = """
import os, sys, time
from pathlib import Path

folder, out, *group = sys.argv[1:]
if group:
    Path(group[0]).write_text(str(os.getpid()))

from decidewise import WiseRegressor, decide_files, evaluate_files
from decidewise.problems import TopK

columns = {"features": "x_*", "costs": "c_*"}
start = time.perf_counter()
model = WiseRegressor().fit_files(folder, **columns)
print(f"fit: {time.perf_counter() - start:.0f} s", flush=True)
problem = TopK(20, 5)
decide_files(model, problem, folder, out)
print(f"decide: {time.perf_counter() - start:.0f} s", flush=True)
print(f"regret: {evaluate_files(model, problem, folder)}")
status = Path("/proc/self/status").read_text()
peak, files = (int(status.partition(name)[2].split()[0]) / 1024 for name in ("VmHWM:", "RssFile:"))
print(f"most memory of the process: {peak:.0f} MB, with {files:.0f} MB of libraries, which the kernel can drop")
"""


def write(folder: Path, n_bytes: int) -> int:
    """Write Parquet files of 10 features and 20 costs, and return their size."""
    rng = np.random.default_rng(0)
    effects, size, count = rng.normal(size=(10, 20)), 0, 0
    n_rows = min(200_000, n_bytes // 240)
    while size < n_bytes:
        X = rng.normal(size=(n_rows, 10))
        costs = 10 + X @ effects + rng.normal(size=(n_rows, 20))
        names = [f"x_{j}" for j in range(10)] + [f"c_{j}" for j in range(20)]
        path = folder / f"part-{count:03d}.parquet"
        parquet.write_table(pa.table(dict(zip(names, np.hstack([X, costs]).T, strict=True))), path, compression="none")
        size, count = size + path.stat().st_size, count + 1
    return size


def limited(megabytes: int) -> Path:
    """Make a control group with a limit, of either version of Linux's, and return its file of processes."""
    for root, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = Path(root) / f"decidewise-{os.getpid()}"
        try:
            group.mkdir()
            (group / name).write_text(str(megabytes * 2**20))
            return group / "cgroup.procs"
        except OSError:
            continue
    raise SystemExit("This system lets nobody limit memory here: run as root on Linux with control groups.")


def main(megabytes: int = 480, times: int = 8, limit: bool = True) -> None:
    group = [limited(megabytes)] if limit else []
    try:
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder, "data")
            data.mkdir()
            size = write(data, times * megabytes * 2**20)
            print(f"{size / 2**20:,.0f} MB in files, {megabytes} MB of memory", flush=True)
            command = [sys.executable, "-c", WORK, data, Path(folder, "decisions.parquet"), *group]
            if code := subprocess.run(command, check=False).returncode:
                raise SystemExit(f"The process ended with code {code}.")
    finally:
        for processes in group:
            processes.parent.rmdir()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=480, help="the limit")
    parser.add_argument("--times", type=int, default=8, help="how many times as large the files are")
    arguments = parser.parse_args()
    main(arguments.megabytes, arguments.times)
