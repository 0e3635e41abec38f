from dataclasses import replace
from functools import partial
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from decidewise.app.pages import MARKERS, Axis, Chart, Mark, Panel, Series, styles
from decidewise_bench.report.chart_builders import charts_of, paired_wins, regret_by_method
from decidewise_bench.report.matplotlib_charts import draw_chart, draw_matrix, render
from decidewise_bench.report.read_results import read_boards, read_published
from decidewise_bench.report.results import DEFAULT_MODE, Matrix


@pytest.fixture
def board(rows, published):
    few = [row for row in rows.to_pylist() if row["degree"] in (1, 8) and row["samples"] in (400, 1600)]
    return next(
        board
        for board in read_boards(pa.Table.from_pylist(few), read_published(published))
        if board.problem == "shortest_path"
    )


def test_every_chart_is_drawn_in_both_formats(board):
    looks = styles(column.method for column in board.columns)
    for chart in charts_of(board):
        draw = partial(draw_matrix, chart) if isinstance(chart, Matrix) else partial(draw_chart, chart, looks)
        files = render(draw, chart.name)
        assert files["png"].startswith(b"\x89PNG")
        drawing = ElementTree.fromstring(files["svg"])
        assert len(list(drawing.iter("{http://www.w3.org/2000/svg}path"))) > 20
        assert "WISE" in "".join(drawing.itertext())


def test_the_same_chart_gives_the_same_bytes(board):
    chart = regret_by_method(board)
    looks = styles(column.method for column in board.columns)
    assert render(partial(draw_chart, chart, looks), "a") == render(partial(draw_chart, chart, looks), "a")


def test_one_mark_is_enough(row):
    (board,) = read_boards(pa.Table.from_pylist([row(plan="mine")]))
    chart = regret_by_method(board)
    assert render(partial(draw_chart, chart, styles(["WISE"])), "one")["png"]


def test_methods_look_the_same_in_every_report_and_never_alike():
    known = ("MSE", "WISE", "CaVE")
    assert styles(["WISE"], known)["WISE"] == styles(["MSE", "WISE", "mine"], known)["WISE"]
    assert styles(["CAVE"], known)["CAVE"] == styles(["CaVE"], known)["CaVE"]
    many = styles([f"method {i}" for i in range(7 * len(MARKERS))])
    assert len(set(many.values())) == 7 * len(MARKERS)


def test_names_are_text_in_figures(row):
    names = [r"$\frac{$", "$x$", "_hidden", "n" * 300, "名前", "<b>&"]
    (board,) = read_boards(pa.Table.from_pylist([row(plan="mine", method=name) for name in names]))
    looks = styles(names)
    for chart in (regret_by_method(board), paired_wins(board)):
        draw = partial(draw_matrix, chart) if isinstance(chart, Matrix) else partial(draw_chart, chart, looks)
        text = "".join(ElementTree.fromstring(render(draw, "odd")["svg"]).itertext())
        assert all(name in text for name in names if len(name) < 40)
        assert "n" * 39 + "…" in text


def test_a_legend_repeats_no_names_of_the_axis():
    series = tuple(Series(name, DEFAULT_MODE, (Mark(place, 1.0, 0.5, name),)) for place, name in enumerate("ab"))
    chart = Chart("ranks", "", "", Axis("", ticks=(0.0, 1.0), names=("a", "b")), Axis("rank"), (Panel("", series),))
    named, plain = (draw_chart(drawn, styles("ab")) for drawn in (chart, replace(chart, x=Axis("seconds"))))
    assert named.legends == []
    assert [text.get_text() for text in plain.legends[0].get_texts()] == ["a", "b"]
