"""Tables of demand: what each level would have cost, the usual ways to decide, and levels as decisions."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from decidewise import compare_table, load_model
from decidewise.app.cli.app import app
from decidewise.models import GeneralizedLinear, NearestScenarios, ResidualScenarios
from decidewise.problems import Levels, level_costs, newsvendor

N, ITEMS, LEVELS = 80, ("bread", "rolls"), [[0, 5, 10, 20], [0, 10, 30]]
PROBLEM = Levels(LEVELS, budget=35, cost=newsvendor(1, 3))
TOML = """kind = "levels"
levels = [[0, 5, 10, 20], [0, 10, 30]]
budget = 35
cost = { name = "newsvendor", over = 1, under = 3 }
"""


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.output, result.exc_info)
    return result


@pytest.fixture(scope="module")
def tables():
    """The same rows wide and long."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    demand = rng.poisson(np.exp(2 + 0.5 * np.outer(x, [1, -1]))).astype(float)
    wide = pd.DataFrame({"x": x} | {f"demand_{item}": demand[:, j] for j, item in enumerate(ITEMS)})
    columns = {"day": np.repeat(np.arange(N), 2), "item": np.tile(ITEMS, N), "x": np.repeat(x, 2)}
    return wide, pd.DataFrame(columns | {"demand": demand.ravel()})


@pytest.fixture(scope="module")
def found(tables):
    return compare_table(tables[0], PROBLEM, shuffle=True)


def test_the_usual_ways_are_those_of_their_estimators(tables, found):
    result = found.result
    rows, [(train, _)] = result.rows, result.splits
    X, demand = tables[0][["x"]].to_numpy(), tables[0].filter(like="demand_").to_numpy()
    costs = level_costs(demand, LEVELS, PROBLEM.cost)
    ways = {"demand forecast": GeneralizedLinear(), "demand scenarios": ResidualScenarios()}
    for name, model in (ways | {"similar rows": NearestScenarios()}).items():
        expected = PROBLEM.as_costs(model.fit(X[train], demand[train]).predict(X[rows]))
        np.testing.assert_allclose(result.predictions[name], expected, rtol=1e-9)
    np.testing.assert_allclose(result.predictions["training mean"][0], costs[train].mean(axis=0))
    least_squares = GeneralizedLinear().fit(X[train], costs[train]).predict(X[rows])
    np.testing.assert_allclose(result.predictions["least squares"], least_squares, atol=1e-9)
    assert result.baseline == "demand scenarios"
    assert "forecast of the demand" in found.headline


def test_the_page_shows_demand_and_levels(found, tmp_path):
    page = found.to_html(tmp_path / "page.html").read_text()
    assert "the realised demand of each item; the bars are the level that each model takes" in page
    assert "2 items" in page


@pytest.mark.parametrize("name", ["wise", "demand scenarios, corrected", "similar rows"])
@pytest.mark.parametrize("is_long", [False, True])
def test_from_a_table_to_levels(tables, tmp_path, name, is_long):
    table, toml, model, out = (tmp_path / file for file in ("t.csv", "problem.toml", "m.dw", "out.csv"))
    toml.write_text(TOML)
    tables[is_long].to_csv(table, index=False)
    keys = ["--rows", "day", "--items", "item"] if is_long else []
    run("fit", table, "--problem", toml, "--model", name, "--out", model, *keys)
    run("decide", model, table, "--problem", toml, "--out", out)
    fitted = load_model(model)
    decided = fitted.decide(table, toml)
    levels = decided.decisions
    assert set(np.unique(levels[:, 0])) <= set(LEVELS[0])
    assert (levels.sum(axis=1) <= 35).all()
    demand = tables[0].filter(like="demand_").to_numpy()
    paid = newsvendor(1, 3)(levels, demand).sum(axis=1)
    np.testing.assert_allclose(decided.realised, paid)
    lines = list(csv.DictReader(out.read_text().splitlines()))
    written = [line["decision"] for line in lines] if is_long else [line["decision_bread"] for line in lines]
    assert [float(entry) for entry in written[:: 2 if is_long else 1]] == levels[:, 0].tolist()
    regret = json.loads(run("evaluate", model, table, "--problem", toml, "--json").stdout)["models"][0]
    assert regret["regret per row"]["estimate"] == pytest.approx((paid - decided.best).mean())
    assert fitted.predict(table).shape == (N, 7)
    if name == "wise":
        assert fitted.predicted_names[:2] == ["bread_0", "bread_5"]
        other = tmp_path / "other.toml"
        other.write_text(TOML.replace("30", "40"))
        result = run("decide", model, table, "--problem", other, "--out", out, code=2)
        assert "the model was fitted for other levels than the problem has" in result.output
        refused = run("fit", table, "--problem", toml, "--out", model, "--stream", *keys, code=2)
        assert "a table of demand is read whole" in " ".join(refused.output.split())
        refused = run("decide", model, table, "--problem", toml, "--explain", code=2)
        assert "each level has a cost of its own" in " ".join(refused.output.split())


def test_a_column_of_demand_and_a_forecast_of_it(tables):
    one = tables[0][["x", "demand_bread"]].rename(columns={"demand_bread": "demand"}).assign(plan=7.0)
    found = compare_table(one, Levels(LEVELS[:1], cost=newsvendor(1, 3)), shuffle=True, forecast="plan")
    assert found.result.baseline == "forecast"
    assert {"forecast", "demand scenarios", "choice"} <= set(found.result.regrets)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"demand_bread": -3.0}, "has -3 for 'bread'; demand must not be negative"),
        ({"demand_cake": 1.0}, r"the table has 3 columns of demand, .* has 2"),
        ({"demand_rolls": None}, "no column 'demand_rolls'|2 columns|has 2"),
    ],
)
def test_bad_demand(tables, change, message):
    table = tables[0].assign(**{name: value for name, value in change.items() if value is not None})
    table = table.drop(columns=[name for name, value in change.items() if value is None])
    with pytest.raises(Exception, match=message):
        compare_table(table, PROBLEM, shuffle=True)
