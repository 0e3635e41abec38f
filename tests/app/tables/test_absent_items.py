"""Long tables whose rows lack items, from the table to decisions."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from decidewise import compare_table, load_model, read_model_summary
from decidewise.app.cli.app import app
from decidewise.app.server.bodies import read_body
from decidewise.app.server.service import Service
from decidewise.kit.errors import InputError
from decidewise.problems import ProblemFile, Storage, TopK

WHO = ["anna", "bob", "cleo", "dora", "emil"]


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.output, result.exc_info)
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("absent")
    rng = np.random.default_rng(0)
    table = pd.MultiIndex.from_product([range(60), WHO], names=["day", "who"]).to_frame(index=False)
    table = table.assign(load=rng.normal(5, 2, len(table)), kind=rng.choice(["u", "v"], len(table)))
    table["gain"] = 3 + 2 * table["load"] + (table["kind"] == "v") + rng.normal(size=len(table)) * table["load"]
    table.loc[table["day"] == 59, "gain"] = np.nan  # of today
    there = (rng.random(len(table)) < 0.5) | table["who"].isin(["bob", "dora"])
    table[there].sample(frac=1, random_state=0).to_csv(folder / "past.csv", index=False)
    (folder / "problem.toml").write_text(
        'kind = "top_k"\nn = 5\nk = 2\n[table]\nrows = "day"\nitems = "who"\ncosts = "gain"\nabsent_items = true\n'
        'item_order = ["anna", "bob", "cleo", "dora", "emil"]\n'
    )
    return folder


def test_a_model_learns_from_present_items_and_decides_among_them(folder):
    problem, table = folder / "problem.toml", pd.read_csv(folder / "past.csv")
    model, out = folder / "model.dw", folder / "decisions.csv"
    run("fit", folder / "past.csv", "-p", problem, "--model", "least squares", "--out", model)
    run("decide", model, folder / "past.csv", "--problem", problem, "--out", out)
    found = pd.read_csv(out).merge(table, on=["day", "who"], validate="one_to_one")
    assert len(found) == len(table)  # no line for an absent item
    # Least squares on the lines that are there, and have gains.
    design = np.column_stack([np.ones(len(found)), found["load"], found["kind"] == "v"]).astype(float)
    known = found["gain"].notna().to_numpy()
    coefficients = np.linalg.lstsq(design[known], found["gain"][known])[0]
    np.testing.assert_allclose(found["prediction"], design @ coefficients, rtol=1e-9)
    for _, day in found.groupby("day"):
        best = day["prediction"].nlargest(2).index
        assert set(day.index[day["decision"] == 1]) == set(best)
        if day["gain"].notna().all():
            regret = day["gain"].nlargest(2).sum() - day["gain"][best].sum()
            np.testing.assert_allclose(day["regret"], regret, atol=1e-9)
        else:
            assert day["regret"].isna().all()
    # A server decides among those that are sent, and does not ask for what is made of them.
    service = Service(load_model(model), read_model_summary(model), ProblemFile.read(problem))
    assert service.feature_names == ("day", "who", "load", "kind")
    lines = table[(table["day"] == 3) | (table["day"] == 59)]
    content = f'{{"rows": {lines.drop(columns="gain").to_json(orient="records")}}}'.encode()
    answer = service.decide(read_body(content, "application/json", per_item=False, max_rows=99))
    decided = dict(zip([(key, who) for key in answer.keys for who in WHO], answer.values.ravel(), strict=True))
    for line in found[found["day"].isin([3, 59])].itertuples():
        assert decided.pop((line.day, line.who)) == line.decision
    assert not any(decided.values())
    # In blocks it is the same model.
    table.sort_values("day").to_csv(folder / "sorted.csv", index=False)
    run("fit", folder / "sorted.csv", "-p", problem, "--model", "least squares", "--stream", "--out", folder / "s.dw")
    run("decide", folder / "s.dw", folder / "sorted.csv", "--problem", problem, "--stream", "--out", folder / "s.csv")
    again = pd.read_csv(folder / "s.csv").merge(found, on=["day", "who"], validate="one_to_one")
    np.testing.assert_allclose(again["prediction_x"], again["prediction_y"], rtol=1e-9)
    assert (again["decision_x"] == again["decision_y"]).all()


def test_a_comparison_chooses_among_models(folder):
    found = compare_table(folder / "past.csv", folder / "problem.toml")
    assert found.to_frame().loc["least squares", "regret"] < found.to_frame().loc["training mean", "regret"]


def test_sentences(folder):
    table = pd.read_csv(folder / "past.csv").dropna()
    options = {"rows": "day", "items": "who", "costs": "gain"}
    for problem, own, sentence in (
        (TopK(5, 2), {}, r"If rows may lack items, say so: absent_items"),
        (TopK(5, 2), {"absent_items": "yes"}, "must be true or false; got 'yes'"),
        (TopK(5, 2), {"absent_items": True, "items": None, "costs": "load"}, "absent_items= is for long tables"),
        (
            TopK(5, 5),
            {"absent_items": True},
            r"cannot choose k=5 of the .* items that are present in row .* k = \{ column",
        ),
        (Storage(5, 1.0, 2.0), {"absent_items": True, "item_order": WHO}, "Storage does not know absent items; TopK"),
    ):
        with pytest.raises(ValueError, match=sentence):
            compare_table(table, problem, **(options | own))
    with pytest.raises(InputError, match="the table has a column of this name"):
        compare_table(table.assign(present=1), TopK(5, 2), **options, absent_items=True)
    table.loc[table.index[3], "gain"] = np.nan
    with pytest.raises(InputError, match="has no value for"):
        compare_table(table, TopK(5, 2), **options, absent_items=True)
    unordered = folder / "unordered.toml"
    unordered.write_text((folder / "problem.toml").read_text().split("item_order")[0])
    said = run(
        "fit", folder / "past.csv", "-p", unordered, "--model", "wise", "--stream", "--out", folder / "m", code=2
    )
    assert "needs the names of all items: --item-order" in said.output
