"""The plan: every task in time, every method on every task, and the whole way from files to the page."""

import numpy as np
import pytest
from typer.testing import CliRunner

from decidewise.app.cli.app import app
from decidewise.data import Dataset
from decidewise.kit.importable import resolve
from decidewise.problems import TopK
from decidewise_bench.experiments import read_plan
from decidewise_bench.real import METHODS, PLANS, TITLES, methods

PLAN = read_plan(PLANS / "real.toml")
#: The methods that a task does not have, and why not.
WITHOUT = {
    "portfolios": {"log-linear"},  # half of the returns are negative
    "made_storage": {"yesterday", "given forecast"},  # its rows are drawn independently
}


def test_all_tasks_have_the_methods_and_a_title():
    assert [problem.name for problem in PLAN.problems] == list(TITLES)
    assert len(PLAN.problems) >= 10
    for problem in PLAN.problems:
        assert [method.name for method in problem.methods] == [
            name for name in METHODS if name not in WITHOUT.get(problem.name, set())
        ]
        resolve(problem.data)


@pytest.mark.parametrize("problem", PLAN.problems[:-1], ids=lambda problem: problem.name)
def test_windows_test_each_row_once_and_never_train_on_what_comes_later(problem):
    options = problem.options
    assert options["windows"] == PLAN.trials >= 3
    assert problem.seed == 0  # trial 0 is window 0
    assert options["step"] == problem.test_samples


def test_parameters_are_the_same_for_every_task_but_where_the_plan_says_so():
    special = {
        (problem.name, method.name): method.parameters
        for problem in PLAN.problems
        for method in problem.methods
        if method.parameters
    }
    assert special.keys() == {("made_storage", "choice")}


@pytest.fixture(scope="module")
def data():
    """Items whose value is twice their forecast; yesterday says nothing."""
    rng = np.random.default_rng(0)
    forecast = rng.uniform(1, 2, (70, 4))
    X = np.stack([forecast, rng.uniform(1, 2, (70, 4))], axis=2)
    return Dataset(X, 2 * forecast, TopK(4, 1))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_fits_and_decides(name, data):
    function = getattr(methods, name.lower().replace(" ", "_").replace("-", "_").replace("+", "_plus"))
    train, test = data.split(50)
    chosen = test.problem.solve(function(train.problem, random_state=0).fit(train.X, train.costs).predict(test.X))
    right = (chosen * test.costs).sum(axis=1) == test.costs.max(axis=1)
    if name in ("training mean", "yesterday"):
        assert 0 < right.sum() < 20
    elif "trees" in name:  # steps, not lines
        assert right.sum() >= 10
    else:
        assert right.all()


def test_from_a_file_to_the_page(folder, tmp_path, monkeypatch):
    (tmp_path / "small.toml").write_text(
        """
        trials = 2
        [[problems]]
        name = "storage_NP"
        data = "decidewise_bench.real.storage:day_ahead_storage"
        options = { file = "epf_NP.csv", windows = 2, step = 5 }
        seed = 0
        samples = [20]
        test_samples = 5
        methods = [
          { name = "given forecast", model = "decidewise_bench.real.methods:given_forecast" },
          { name = "choice", model = "decidewise_bench.real.methods:yesterday" },
        ]
        [[problems]]
        name = "elsewhere"
        data = "decidewise_bench.real.storage:day_ahead_storage"
        options = { file = "epf_FR.csv", windows = 2, step = 5 }
        samples = [20]
        test_samples = 5
        methods = [{ name = "WISE", model = "decidewise_bench.real.methods:wise" }]
        """
    )
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(app, ["real", "run", "small.toml", "--jobs", "1"])
    assert run.exit_code == 0, run.output
    assert "elsewhere is left out: there is no file" in run.output
    report = CliRunner().invoke(app, ["real", "report", "small.toml"])
    assert report.exit_code == 0, report.output
    assert "2 of 6 rows are missing" in report.output
    page = (tmp_path / "out" / "real" / "report.html").read_text()
    assert "1 of 1 tasks: the choice within one standard error of the best method" in page
    assert "Storage, Nord Pool" in page
    table = (tmp_path / "out" / "real" / "tables" / "overview.md").read_text()
    assert "| Storage, Nord Pool | **0.00** | **0.00** |" in table
    assert "| Storage, Nord Pool | given forecast | 0.00 ± 0.00 | +0.00 ± 0.00 |" in table
