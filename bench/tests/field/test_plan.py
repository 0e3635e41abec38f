"""The plans: every registered loss is in them, with the same budget; and the way from a plan to the page."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from decidewise import DecisionRegressor
from decidewise.app.cli.app import app
from decidewise.data import make_shortest_path
from decidewise.kit.importable import resolve
from decidewise.losses import Pg, Sfge, registry
from decidewise.problems import CountedProblem
from decidewise_bench.experiments import Store, cells_of_all, read_plan
from decidewise_bench.field import PLANS, TITLES
from decidewise_bench.field.methods import linear
from decidewise_bench.field.ranges import OF_LOSS

NAMES = ("field", "quick", "published")


@pytest.mark.parametrize("name", NAMES)
def test_every_registered_loss_is_in_the_plan(name):
    for problem in read_plan(PLANS / f"{name}.toml").problems:
        linear = {
            method.parameters["loss"]
            for method in problem.methods
            if method.model == "decidewise_bench.field.methods:linear" and method.parameters.get("init") != "wise"
        }
        assert linear == set(registry), "enter the loss in field/plans/methods.toml, and its parameter in ranges.py"
        assert problem.name in TITLES
        resolve(problem.data)


@pytest.mark.parametrize("name", NAMES)
def test_every_method_has_the_same_budget(name):
    for problem in read_plan(PLANS / f"{name}.toml").problems:
        budgets = {(method.parameters["tries"], method.parameters["epochs"]) for method in problem.methods}
        assert len(budgets) == 1
        for method in problem.methods:
            resolve(method.model)


def test_methods_start_and_run_as_their_authors_do():
    data = make_shortest_path(60, degree=4, seed=0)
    problem = CountedProblem(data.problem)
    plan = {method.name: method.parameters for method in read_plan(PLANS / "quick.toml").problems[0].methods}

    def built(name, **values):
        return linear(problem, random_state=0, **plan[name]).build(problem, learning_rate=0.01, **values)

    model = built("PG from SPO+", h=0.1).fit(data.X, data.costs)

    counted = problem.n_solves
    start = built("SPO+").fit(data.X, data.costs)
    expected = DecisionRegressor(problem, Pg(0.1), init=start, epochs=5, learning_rate=0.01, random_state=0)
    np.testing.assert_array_equal(model.predict(data.X), expected.fit(data.X, data.costs).predict(data.X))
    assert problem.n_solves == 2 * counted  # the solves of the start are counted
    assert built("SFGE as published", sigma=0.5).loss == Sfge(1, 0.5, "batch")
    assert built("SFGE per row", sigma=0.5).loss == Sfge(sigma=0.5)


def test_ranges_are_of_parameters_that_the_losses_have():
    for name, ranges in OF_LOSS.items():
        for parameter, range_ in ranges.items():
            assert 0 < range_.low < range_.high
            assert range_.reason
            for quantile in (0.0, 0.5, 1.0):
                registry[name](**{parameter: range_.at(quantile)})  # raises if the value is not allowed


def test_the_two_sizes_have_the_same_problems():
    field, quick = (read_plan(PLANS / f"{name}.toml").problems for name in ("field", "quick"))
    assert [problem.name for problem in field] == [problem.name for problem in quick]
    assert [problem.methods[0].name for problem in field] == [problem.methods[0].name for problem in quick]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three methods on two problems: one that runs everywhere, one that is refused, and one that crashes."""
    folder = tmp_path_factory.mktemp("field")
    (folder / "crash.py").write_text(
        "def crash(problem, *, random_state, tries, epochs):\n    raise ValueError('oh')\n"
    )
    (folder / "small.toml").write_text(
        """
        trials = 2
        parameters = { tries = 2, epochs = 1 }
        methods = [
      { name = "least squares", model = "decidewise_bench.field.methods:untuned", parameters.model = "least squares" },
          { name = "SPO+", model = "decidewise_bench.field.methods:linear", parameters = { loss = "spo+" } },
          { name = "implicit", model = "decidewise_bench.field.methods:linear", parameters = { loss = "implicit" } },
          { name = "crash", model = "crash:crash" },
        ]
        [[problems]]
        name = "shortest_path"
        data = "decidewise.data:make_shortest_path"
        degrees = [2]
        samples = [40]
        test_samples = 20
        [[problems]]
        name = "cubic_top_k"
        data = "decidewise_bench.field.problems:make_cubic_top_k"
        samples = [40]
        test_samples = 20
        """
    )
    arguments = [str(folder / "small.toml"), "--store", str(folder / "rows.sqlite")]
    return folder, arguments, CliRunner().invoke(app, ["field", "run", *arguments, "--jobs", "1"])


def test_a_refusal_is_a_row_and_a_crash_a_failure(run):
    folder, _, result = run
    assert result.exit_code == 1
    assert "4 of 16 cells failed" in result.output
    rows = Store(folder / "rows.sqlite").rows(cells_of_all([read_plan(folder / "small.toml")]))
    status = {(row.method, row.status) for row in rows}
    assert status == {("least squares", "ok"), ("SPO+", "ok"), ("implicit", "refused"), ("crash", "failed")}
    (refused, *_) = [row for row in rows if row.status == "refused"]
    assert refused.reason.startswith("Implicit differentiates the decision itself, and on the polytope of ShortestPath")
    for row in rows:
        chosen = json.loads(row.chosen) if row.chosen else {}
        assert chosen.keys() == ({"learning_rate"} if row.method == "SPO+" else set())


def test_the_page(run, tmp_path):
    _, arguments, _ = run
    result = CliRunner().invoke(app, ["field", "report", *arguments, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "report.html").read_text()
    assert "4 methods on 2 problems, 2 trials" in page
    assert 'title="Implicit differentiates the decision itself' in page
    assert "not for Shortest path and Cubic top-k, as it says itself." in page
    assert "2 failed on Shortest path; 2 failed on Cubic top-k." in page
    table = (tmp_path / "tables" / "standings.md").read_text().splitlines()
    assert "| implicit | refused | refused |  |  |  |  |" in table
    assert "| crash | failed | failed |  |  |  |  |" in table
    status = CliRunner().invoke(app, ["field", "status", *arguments])
    assert status.exit_code == 0
