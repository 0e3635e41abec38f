import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from decidewise.losses import registry
from decidewise_bench.experiments import cells_of_all, read_plan
from decidewise_bench.paper import CONTESTS, EXPLAINED, PLANS, PUBLISHED, TABLES
from decidewise_bench.paper.contest import CHOICE, FAIR

LEARNING_RATES = {
    "shortest_path": {200: 5e-3, 400: 5e-3, 800: 2e-3, 1600: 1e-3},
    "knapsack": {100: 1e-2, 200: 5e-3, 400: 3e-3, 800: 3e-3},
    "portfolio": {200: 5e-3, 400: 5e-3, 800: 2e-3, 1600: 1e-3},
}
PARAMETERS = {"PFY": {"n_samples": 3, "sigma": 1.0}, "DBB": {"lambd": 100.0 / 32}, "CaVE": {"relaxed": True}}


def read(name):
    return read_plan(PLANS / f"{name}.toml")


def published(name):
    with Path(PUBLISHED, f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", TABLES)
def test_a_plan_covers_its_published_table(name):
    cells = cells_of_all([read(name)])
    adam = Counter((c.degree, c.samples, c.method.name) for c in cells if c.method.mode == "adam")
    assert adam == {(int(r["degree"]), int(r["samples"]), r["method"]): 20 for r in published(name)}
    exact = Counter((c.degree, c.samples, c.method.name) for c in cells if c.method.mode == "exact")
    assert exact == {key: 20 for key in adam if key[2] in ("MSE", "WISE")}


@pytest.mark.parametrize("name", TABLES)
def test_the_papers_protocol(name):
    plan = read(name)
    (problem,) = plan.problems
    assert (plan.name, problem.name) == (name, name)
    assert (plan.trials, plan.epochs, plan.batch_size) == (20, 100, 32)
    trained = [method for method in problem.methods if method.mode == "adam"]
    assert all({n: problem.rate(method, n) for n in problem.samples} == LEARNING_RATES[name] for method in trained)
    assert problem.test_samples == {"shortest_path": 10_000, "knapsack": 2_000, "portfolio": 5_000}[name]
    for method in problem.methods:
        assert method.parameters == PARAMETERS.get(method.name, {})


def test_instances():
    assert {cell.seed for cell in cells_of_all([read("shortest_path")])} == set(range(42, 62))
    for name in ("knapsack", "portfolio"):
        cells = cells_of_all([read(name)])
        assert {cell.options["instance_seed"] for cell in cells} == {42}
        assert {cell.seed for cell in cells} == set(range(43, 63))


def test_there_are_264_published_cells():
    assert sum(len(published(name)) for name in TABLES) == 264


def test_better_is_on_the_data_of_the_tables():
    better = read("better")
    assert better.trials == 20
    for problem, table in zip(better.problems, (read(name).problems[0] for name in TABLES), strict=True):
        for field in ("name", "data", "degrees", "samples", "test_samples", "seed", "options"):
            assert getattr(problem, field) == getattr(table, field)
    rows = {(cell.problem, cell.degree, cell.samples) for cell in cells_of_all([better])}
    assert len(rows) == 44


@pytest.mark.parametrize("name", CONTESTS)
def test_contests_have_the_methods_that_the_report_compares(name):
    for problem in read(name).problems:
        wise, fair = problem.methods[-2:]
        assert [(wise.name, wise.mode), (fair.name, fair.mode)] == [CHOICE, FAIR]
        assert wise.parameters.get("max_solves") == fair.parameters.get("max_solves")  # or they may choose differently


def test_the_tours_have_published_numbers():
    (problem,) = read("travelling_salesman").problems
    assert {(int(r["degree"]), int(r["samples"])) for r in published("travelling_salesman")} == {
        (degree, samples) for degree in problem.degrees for samples in problem.samples
    }


def test_quick_covers_every_problem_and_every_loss():
    quick = read("quick")
    assert {problem.name for problem in quick.problems} == set(TABLES)
    used = {method.loss for problem in quick.problems for method in problem.methods}
    assert used == set(registry)
    for problem in quick.problems:
        (table,) = read(problem.name).problems
        assert {(m.name, m.mode) for m in table.methods} <= {(m.name, m.mode) for m in problem.methods}


def test_the_rates_are_tried_on_cells_of_the_portfolio():
    """A sweep gives each method at each rate; where the rate is the plan's own, the cell is that of the table."""
    rates = (5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 1e-1)
    cells = cells_of_all([read("portfolio_rates")])
    found = Counter((c.method.loss, c.learning_rate, c.degree, c.samples, c.trial, c.seed) for c in cells)
    assert found == {
        (loss, rate, degree, samples, trial, 43 + trial): 1
        for loss in ("mse", "wise", "spo+", "pfy", "dbb")
        for rate in rates
        for degree in (1, 7)
        for samples in (200, 400, 1600)
        for trial in (0, 1)
    }
    table = {(c.degree, c.samples, c.trial): c for c in cells_of_all([read("portfolio")]) if c.method.loss == "pfy"}
    for cell in cells:
        same = table[cell.degree, cell.samples, cell.trial]
        for name in ("problem", "data", "options", "seed", "test_samples", "epochs", "batch_size", "random_state"):
            assert getattr(cell, name) == getattr(same, name)
        if cell.method.loss == "pfy":
            assert cell.method.parameters == same.method.parameters
            assert cell.method.name == f"PFY, learning_rate {cell.learning_rate}"


def test_the_settings_tried_change_one_thing_on_the_data_of_the_tables():
    plan = read(EXPLAINED)
    for problem, table in zip(plan.problems, (read(name).problems[0] for name in TABLES), strict=True):
        for field in ("name", "data", "degrees", "samples", "test_samples", "seed", "options"):
            assert getattr(problem, field) == getattr(table, field)
        stated = {method.name: method for method in table.methods if method.mode == "adam"}
        for method in problem.methods:
            name, _, setting = method.name.partition(", ")
            paper = stated[name]
            assert (method.loss, method.mode) == (paper.loss, paper.mode)
            what, sign, factor = re.fullmatch(r"(rate|λ|σ)([/×])(\d+)", setting).groups()
            expected = {"rate": 1.0, "lambd": 1.0, "sigma": 1.0}
            key = {"rate": "rate", "λ": "lambd", "σ": "sigma"}[what]
            expected[key] = float(factor) if sign == "×" else 1 / float(factor)
            for n in problem.samples:
                assert problem.rate(method, n) == pytest.approx(expected["rate"] * LEARNING_RATES[problem.name][n])
            assert method.parameters == pytest.approx(
                {key: value * expected.get(key, 1.0) for key, value in paper.parameters.items()}, rel=2e-3
            )
