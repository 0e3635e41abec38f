import re

import pyarrow as pa
import pytest

from decidewise_bench.report import benchmark_report, write, write_report
from decidewise_bench.report.chart_builders import regret_by_method


def test_files(report):
    assert report.name == "report.html"
    folder = report.parent
    assert {path.suffix for path in (folder / "tables").iterdir()} == {".csv", ".md", ".tex"}
    for problem in ("shortest_path", "knapsack", "portfolio"):
        assert (folder / "tables" / f"{problem}.md").stat().st_size > 200
    figures = {path.stem for path in (folder / "figures").iterdir()}
    assert {"pipelines", "change_of_measure", "counterexample", "regret_samples_shortest_path"} <= figures
    for name in figures:
        assert (folder / "figures" / f"{name}.png").stat().st_size > 5_000
        assert (folder / "figures" / f"{name}.svg").stat().st_size > 5_000


def test_every_link_leads_to_a_file(report):
    links = re.findall(r'href="((?:tables|figures)/[^"]+)"', report.read_text())
    assert len(links) > 20
    assert all((report.parent / link).is_file() for link in links)


def test_nothing_half_written_is_left(report, rows, published, tmp_path, monkeypatch):
    assert not [path for path in report.parent.rglob(".*") if path.is_file()]
    (tmp_path / "report.html").write_text("the old report")
    monkeypatch.setattr(write, "charts_of", lambda board: [])

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(write.Path, "chmod", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(benchmark_report(rows, published), tmp_path)
    assert (tmp_path / "report.html").read_text() == "the old report"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["report.html"]


def test_problems_of_similar_names_keep_their_own_tables_and_figures(row, tmp_path, monkeypatch):
    monkeypatch.setattr(write, "charts_of", lambda board: [regret_by_method(board)])
    table = pa.Table.from_pylist([row(plan="mine", problem="x y", regret=11.25), row(plan="mine", problem="x_y")])
    page = write_report(benchmark_report(table), tmp_path)
    names = re.findall(r'<section id="(mine[^"]+)"', page.read_text())
    assert len(set(names)) == 2
    tables = [(tmp_path / "tables" / f"{name}.md").read_text() for name in names]
    assert ["11.25" in table for table in tables] == [True, False]
    drawings = [(tmp_path / "figures" / f"regret_method_{name}.svg").read_bytes() for name in names]
    assert drawings[0] != drawings[1]
