import json
import re

import pyarrow as pa
import pytest

from decidewise.report.chart_builders import charts_of
from decidewise.report.page import render_page
from decidewise.report.read_results import COLUMNS, read_boards
from decidewise.report.style import styles


def page_of(table, published=None):
    boards = read_boards(table, published)
    looks = styles(column.method for board in boards for column in board.columns)
    return render_page(table, boards, {board.name: charts_of(board) for board in boards}, looks, [])


@pytest.fixture(scope="module")
def page(rows, published):
    return page_of(rows, published)


def test_summary_line(page):
    assert "<title>264 of 264 cells reproduced</title>" in page
    assert "<strong>264 of 264 cells reproduced</strong>" in page


def test_nothing_is_fetched(page):
    addresses = re.findall(r"""https?://[^\s"'<>]+""", page)
    assert set(addresses) == {"http://www.w3.org/2000/svg"}  # a name that the script needs, not a place
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//|@import|url\(|<link|<script src""", page)
    assert not re.search(r"\b(fetch|XMLHttpRequest|import)\s*\(", page)


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


def test_failures_are_listed_with_their_reason(row, published):
    rows = [row(trial=i, status="failed", regret=None, reason="<b>no</b> memory & more") for i in range(3)]
    page = page_of(pa.Table.from_pylist([*rows, row(trial=3)]), published)
    assert "&lt;b&gt;no&lt;/b&gt; memory &amp; more" in page
    assert "<td>0, 1, 2</td>" in page


def test_names_cannot_break_out_of_the_page(row):
    page = page_of(pa.Table.from_pylist([row(plan="mine", method='</script><script>alert("x")</script>')]))
    assert "<script>alert" not in page


def test_places_on_the_page_are_distinct_whatever_boards_are_called(row):
    names = ("main", "summary", "idea", "data", "tip", "x", "x-title", "x y", "[ours]")
    page = page_of(pa.Table.from_pylist([row(plan=name, problem=name) for name in names]))
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert ">[ours]</h2>" in page


def test_a_plan_of_ones_own_has_no_verdicts(row):
    page = page_of(pa.Table.from_pylist([row(plan="mine", problem="routing", floor=None)]))
    assert "<h1>Benchmark</h1>" in page
    assert "reproduced" not in page.split("<main", 1)[1].split("<script", 1)[0]
    assert "Routing (mine)" in page


def test_no_rows_at_all(published):
    empty = pa.table({name: [] for name in COLUMNS})
    assert "There are no rows yet." in page_of(empty)
    assert "0 of 264 cells reproduced" in page_of(empty, published)


def test_data_of_the_script(page):
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.DOTALL).group(1))
    assert list(data["styles"]) == ["MSE", "WISE", "SPO+", "PFY", "DBB", "CaVE", "LAVA"]
    charts = set(data["charts"])
    assert charts == set(re.findall(r'data-chart="(\w+)"', page))
    mark = data["charts"]["regret_samples_knapsack"]["panels"][0]["series"][0]["marks"][0]
    assert data["notes"][mark[3]].startswith("MSE · degree 1, n = 100")


def test_the_page_can_be_read_aloud(page):
    assert page.count("<h1>") == 1
    assert page.count("<figure") == page.count("<figcaption>")
    assert all("<caption>" in table for table in re.findall(r'<table class="results">.*?</table>', page, re.DOTALL))
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    anchors = set(re.findall(r'href="#([^"]+)"', page))
    assert anchors <= set(ids)
