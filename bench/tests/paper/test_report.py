"""The report of the paper: what it adds to that of any rows."""

import csv
import json
import re
from collections import Counter

import pyarrow as pa
import pytest

from decidewise.app.pages import styles
from decidewise_bench.paper.report import paper_boards, paper_charts, paper_report
from decidewise_bench.report import write_report
from decidewise_bench.report.page import render_page
from decidewise_bench.report.read_results import COLUMNS


def page_of(table, published):
    report = paper_report(table, published)
    return render_page(report, styles((m for chart in report.charts for m in chart.methods), first=report.methods))


@pytest.fixture(scope="module")
def page(rows, published):
    return page_of(rows, published)


def test_summary_line(page):
    assert "<title>264 of 264 cells reproduced</title>" in page
    assert "<strong>264 of 264 cells reproduced</strong>" in page


def test_cells_not_run_are_counted_and_shown(rows, published):
    some = [row for row in rows.to_pylist() if row["problem"] == "knapsack" and row["method"] != "LAVA"]
    page = page_of(pa.Table.from_pylist(some), published)
    assert "72 of 264 cells reproduced" in page
    assert "192 not run" in page
    assert page.count('<span class="ours">not run</span>') >= 192
    assert 'id="regret_samples_knapsack"' in page
    assert 'id="regret_samples_portfolio"' not in page


def test_a_miss_is_listed_with_its_difference_and_what_is_known(row, published):
    page = page_of(pa.Table.from_pylist([row(method="WISE", regret=30.0), row(method="MSE", regret=30.0)]), published)
    assert "What was not reproduced" in page
    assert "No reason known" in page
    assert "under-trained" in page
    assert len(re.findall(r"<td>\+[12]\d\.\d\d\d</td>", page)) == 2


def test_explained_cells_are_shown_and_not_counted_as_reproduced(rows, published, tmp_path):
    wrong = [
        row | {"regret": row["regret"] / 2} if (row["problem"], row["method"]) == ("shortest_path", "DBB") else row
        for row in rows.to_pylist()
    ]
    other = [
        row | {"plan": "explained", "method": "DBB, rate/20"}
        for row in rows.to_pylist()
        if (row["problem"], row["method"], row["samples"]) == ("shortest_path", "DBB", 200)
    ]
    report = paper_report(pa.Table.from_pylist([*wrong, *other]), published)
    counts = [(share.n, share.label) for share in report.shares if share.n]
    assert counts == [(244, "reproduced"), (5, "explained by another setting"), (15, "missed")]
    page = write_report(report, tmp_path).read_text()
    assert "<title>244 of 264 cells reproduced</title>" in page
    assert '<a href="#explained">5 explained by another setting</a> · <a href="#misses">15 missed</a>' in page
    assert page.count('<abbr title="explained by rate/20">†</abbr>') == 5
    lines = csv.DictReader((tmp_path / "tables" / "shortest_path.csv").read_text().splitlines())
    verdicts = Counter(line["verdict"] for line in lines if line["method"] == "DBB")
    assert verdicts == {"explained by rate/20": 5, "missed": 15}
    sweep = csv.DictReader((tmp_path / "tables" / "explained_shortest_path.csv").read_text().splitlines())
    assert {line["method"]: bool(line["published_mean"]) for line in sweep} == {"DBB, rate/20": True}


def test_no_rows_at_all(published):
    assert "0 of 264 cells reproduced" in page_of(pa.table({name: [] for name in COLUMNS}), published)


def test_methods_are_in_the_order_of_the_paper(page):
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.DOTALL).group(1))
    assert list(data["styles"]) == ["MSE", "WISE", "SPO+", "PFY", "DBB", "CaVE", "LAVA"]
    assert any(note.endswith(": reproduced") for note in data["notes"])


def test_every_board_has_its_figures_and_the_first_that_of_the_text(rows, published):
    boards = paper_boards(rows, published)
    names = [[chart.name.removesuffix(f"_{board.name}") for chart in paper_charts(board)] for board in boards]
    common = ["regret_samples", "regret_time", "regret_calls", "excess"]
    assert names[0] == ["regret_samples", "regret_time_text", *common[1:], "speed_up", "paired_wins"]
    assert names[1] == names[2] == [*common, "paired_wins"]


def test_the_figure_of_the_text_has_its_settings(rows, published):
    chart = paper_charts(paper_boards(rows, published)[0])[1]
    assert [panel.title for panel in chart.panels] == ["400 samples", "1,600 samples"]
    assert {len(series.marks) for panel in chart.panels for series in panel.series} == {3}
    assert sorted({mark.size for mark in chart.panels[0].series[0].marks}) == [1.0, 1.3, 1.6]


@pytest.mark.parametrize("name", ["better", "explained", "misses", "idea", "pipelines", "text_shortest_path"])
def test_no_board_takes_a_place_of_the_papers_sections(row, published, name):
    (board,) = paper_boards(pa.Table.from_pylist([row(plan=name, problem=name)]), published)
    assert board.name.startswith(f"{name}-")
