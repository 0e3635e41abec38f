"""`compare_table` on frames: the same numbers as the command, as a table, a figure, a page and a fitted model."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot
from typer.testing import CliRunner

from decidewise import compare_table
from decidewise.app.cli.app import app
from decidewise.app.tables.example import write_example
from decidewise.kit.errors import InputError
from decidewise.problems import TopK, read_problem

ROLES = {"rows": "day", "items": "hour", "costs": "price", "forecast": "forecast", "time": "day", "unit": "EUR"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("example")
    write_example(folder)
    return folder


@pytest.fixture(scope="module")
def frame(folder):
    return pd.read_csv(folder / "history.csv").iloc[: 120 * 24]


@pytest.fixture(scope="module")
def found(frame):
    return compare_table(frame, TopK(24, 6, sense="min"), max_solves=1_400, **ROLES)


def test_the_numbers_are_those_of_the_command(found, frame, folder):
    frame.to_csv(folder / "short.csv", index=False)
    options = ["--problem", str(folder / "problem.toml"), "--max-solves", "1400", "--json"]
    told = CliRunner().invoke(app, ["compare", str(folder / "short.csv"), *options, "--out", str(folder / "page.html")])
    command = json.loads(told.stdout)
    assert found.headline == command["headline"]
    regrets = {model["name"]: model["regret percent"]["estimate"] for model in command["models"]}
    assert found.to_frame()["regret"].to_dict() == pytest.approx(regrets)


def test_a_table_is_shown_and_a_page_written(found, tmp_path):
    page = found._repr_html_()
    assert "<b>" not in page
    assert "font-weight: bold" in page
    for text in (str(found), page):
        assert found.result.chosen in text
        assert "EUR" in text
    path = found.to_html(tmp_path / "page.html")
    written = path.read_text()
    assert "In a shell" not in written  # there is no file that a command could read
    assert "model = found.fit()" in written


def test_the_figure_shows_the_regret_over_time(found):
    ax = found.plot()
    try:
        assert [label.get_text() for label in ax.get_yticklabels()] == [row.name for row in found.result.table]
        assert len(ax.figure.axes) == 2
    finally:
        pyplot.close(ax.figure)


def test_the_model_of_the_headline_decides_new_days(found, folder):
    problem = read_problem(folder / "problem.toml")
    new = pd.read_csv(folder / "new.csv")
    columns = found.fit().decide(new, problem).columns()
    day = pd.DataFrame(columns).groupby("day")["decision"]
    assert (day.sum() == 6).all()
    assert len(day) == new["day"].nunique()


def test_a_wide_frame_of_polars_and_a_file_of_the_problem(folder):
    rng = np.random.default_rng(0)
    wind = rng.uniform(0, 9, 60)
    table = {"wind": wind, **{f"p_{j}": 40 + j * wind - 5 * j + rng.normal(0, 3, 60) for j in range(3)}}
    (folder / "wide.toml").write_text('kind = "top_k"\nn = 3\nk = 1\nsense = "min"\n[table]\ncosts = "p_*"\n')
    frames = (pl.DataFrame(table), folder / "wide.toml"), (table, TopK(3, 1, sense="min"))
    first, second = (compare_table(table, problem, costs="p_*", max_solves=600) for table, problem in frames)
    assert first.headline == second.headline
    with pytest.raises(InputError, match="the table has no column 'price_\\*'"):
        compare_table(table, TopK(3, 1), costs="price_*")
    with pytest.raises(InputError, match="no key 'cost'"):
        compare_table(table, TopK(3, 1), cost="p_*")
