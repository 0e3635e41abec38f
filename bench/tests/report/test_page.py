import json
import re

import pyarrow as pa
import pytest

from decidewise.app.pages import styles
from decidewise_bench.report.page import render_page
from decidewise_bench.report.read_results import COLUMNS
from decidewise_bench.report.write import benchmark_report


def page_of(table, published=None):
    report = benchmark_report(table, published)
    return render_page(report, styles(method for chart in report.charts for method in chart.methods))


@pytest.fixture(scope="module")
def page(rows, published):
    return page_of(rows, published)


def test_it_knows_of_no_paper(page):
    """Published numbers are shown beside ours, and nothing is said about them."""
    shown = page.split("<body>")[1]
    assert re.search("<title>[0-9,]+ trials</title>", page)
    assert "Each cell: ours, published, difference." in shown
    for word in ("paper", "reproduced", "missed", "Deciding better", "The idea"):
        assert word not in re.sub(r"<script>.*?</script>", "", shown, flags=re.DOTALL), word
    assert re.search(r'<span class="delta">[+−]0\.\d\d\s*</span>', shown)


def test_nothing_is_fetched(page):
    addresses = re.findall(r"""https?://[^\s"'<>]+""", page)
    assert set(addresses) == {"http://www.w3.org/2000/svg"}  # a name that the script needs, not a place
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//|@import|url\(|<link|<script src""", page)
    assert not re.search(r"\b(fetch|XMLHttpRequest|import)\s*\(", page)


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


def test_a_plan_of_ones_own(row):
    page = page_of(pa.Table.from_pylist([row(plan="mine", problem="routing", floor=None)]))
    assert "<h1>Benchmark</h1>" in page
    assert "Routing (mine)" in page


def test_data_without_degrees_or_floor(row):
    """Neither a column, nor a panel, nor a file of such data mentions a degree or a floor."""
    rows = [
        row(plan="mine", problem="prices", degree=None, floor=None, method=method, trial=trial, regret=regret + trial)
        for method, regret in (("MSE", 12.0), ("WISE", 11.0))
        for trial in range(2)
    ]
    failed = row(plan="mine", problem="prices", degree=None, floor=None, method="SPO+", status="failed", reason="no")
    report = benchmark_report(pa.Table.from_pylist([*rows, failed]))
    page = render_page(report, styles(["MSE", "WISE", "SPO+"]))
    shown = page.split("<body>")[1].split("<script>")[0]
    assert not re.search("degree|floor|None", shown)
    files = b"".join(content for section in report.sections for content in section.files.values())
    assert b"degree" not in files
    assert b"None" not in files
    assert [chart.name for chart in report.charts] == [
        "regret_method_mine_prices",
        "regret_time_mine_prices",
        "paired_wins_mine_prices",
    ]
    (panel,) = report.charts[0].panels
    assert report.charts[0].x.names == ("MSE", "WISE", "SPO+")
    assert [(series.method, [mark.x for mark in series.marks]) for series in panel.series] == [
        ("MSE", [0]),
        ("WISE", [1]),
    ]


def test_no_rows_at_all():
    assert "There are no rows yet." in page_of(pa.table({name: [] for name in COLUMNS}))


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
