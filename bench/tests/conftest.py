"""Made-up rows, of the shape of the paper, and reports of them."""

import csv

import numpy as np
import pyarrow as pa
import pytest

from decidewise_bench.paper.report import paper_report
from decidewise_bench.report import write_report

SHAPES = {
    "shortest_path": ((1, 2, 4, 6, 8), (200, 400, 800, 1600), ("MSE", "WISE", "SPO+", "PFY", "DBB", "LAVA")),
    "knapsack": ((1, 2, 4), (100, 200, 400, 800), ("MSE", "WISE", "SPO+", "PFY", "DBB", "CaVE", "LAVA")),
    "portfolio": ((1, 3, 7), (200, 400, 800, 1600), ("MSE", "WISE", "SPO+", "PFY", "DBB")),
}


def make_row(**changes):
    row = {
        "plan": "knapsack", "problem": "knapsack", "degree": 1, "samples": 100, "method": "WISE", "mode": "adam",
        "trial": 0, "regret": 12.0, "floor": 10.0, "label_seconds": 0.0, "train_seconds": 0.1, "evaluate_seconds": 0.01,
        "n_solves": 0, "seed": 42, "version": "0.1.0", "machine": "a machine", "status": "ok", "reason": "",
    }  # fmt: skip
    return row | changes


@pytest.fixture
def row():
    return make_row


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """A folder with published numbers for the paper's 264 cells; the numbers themselves are made up."""
    folder = tmp_path_factory.mktemp("published")
    rng = np.random.default_rng(0)
    for problem, (degrees, samples, methods) in SHAPES.items():
        scale = 0.08 if problem == "portfolio" else 1.0
        with (folder / f"{problem}.csv").open("w", newline="") as file:
            timed = ["seconds_mean", "seconds_std"] if problem == "shortest_path" else []
            writer = csv.writer(file)
            writer.writerow(["degree", "samples", "method", "regret_mean", "regret_std", *timed])
            for degree in degrees:
                for n in samples:
                    for rank, method in enumerate(methods):
                        mean = scale * (8 + rank + degree / 2 + 100 / n + rng.uniform(0, 0.3))
                        clock = [f"{(1 + 40 * (rank > 1)) * n / 100:.2f}", "0.10"] if timed else []
                        writer.writerow([degree, n, method, f"{mean:.2f}", f"{scale * 0.4:.2f}", *clock])
    return folder


@pytest.fixture(scope="session")
def rows(published):
    """Two trials of every published cell, close to its mean, with exact rows for MSE and WISE."""
    made = []
    for problem in SHAPES:
        for line in csv.DictReader((published / f"{problem}.csv").read_text().splitlines()):
            free = line["method"] in ("MSE", "WISE")
            for mode in ("adam", "exact") if free else ("adam",):
                for trial in range(2):
                    regret = float(line["regret_mean"]) + float(line["regret_std"]) * (trial - 0.5) / 10
                    n = int(line["samples"])
                    made.append(
                        make_row(
                            plan=problem, problem=problem, degree=int(line["degree"]), samples=n, method=line["method"],
                            mode=mode, trial=trial, regret=regret, floor=0.5 * regret, train_seconds=n / 1e4,
                            n_solves=0 if free else 101 * n,
                        )
                    )  # fmt: skip
    return pa.Table.from_pylist(made)


@pytest.fixture(scope="session")
def report(rows, published, tmp_path_factory):
    """A report of a few settings of the shortest path, among published numbers that are mostly not run yet."""
    few = [
        row
        for row in rows.to_pylist()
        if row["problem"] == "shortest_path" and row["degree"] in (1, 8) and row["samples"] in (400, 1600)
    ]
    return write_report(paper_report(pa.Table.from_pylist(few), published), tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def contest_report(rows, published, tmp_path_factory):
    """A report of nothing but the choice among models, on every row of the shortest path."""
    theirs = [row for row in rows.to_pylist() if row["problem"] == "shortest_path" and row["mode"] == "exact"]
    names = {"MSE": "SPO+ same model", "WISE": "WISE CV"}
    made = [row | {"plan": "better", "mode": "cv", "method": names[row["method"]]} for row in theirs]
    return write_report(paper_report(pa.Table.from_pylist(made), published), tmp_path_factory.mktemp("contest"))
