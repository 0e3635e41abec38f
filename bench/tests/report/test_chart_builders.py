import pyarrow as pa
import pytest

from decidewise.app.pages import FLOOR
from decidewise_bench.report.chart_builders import (
    charts_of,
    excess_over_floor,
    paired_wins,
    regret_by_samples,
    speed_up,
)
from decidewise_bench.report.read_results import read_boards, read_published
from decidewise_bench.report.results import PUBLISHED


def board_of(*rows, published=None):
    return read_boards(pa.Table.from_pylist(list(rows)), read_published(published) if published else None)[0]


@pytest.fixture
def boards(rows, published):
    return read_boards(rows, read_published(published))


def test_regret_by_samples(boards):
    chart = regret_by_samples(boards[0])
    assert [panel.title for panel in chart.panels] == ["degree 1", "degree 2", "degree 4"]
    layers = [(series.method, series.layer) for series in chart.panels[0].series]
    assert ("WISE", "adam") in layers
    assert ("WISE", "exact") in layers
    assert ("WISE", PUBLISHED) in layers
    assert layers[-1] == ("", FLOOR)
    mark = chart.panels[0].series[1].marks[0]
    assert mark.x == 100
    assert mark.note.startswith("MSE · degree 1, n = 100\nours ")
    assert "published" in mark.note
    assert "difference" in mark.note


def test_excess_is_paired_with_the_floor_of_its_trial(row):
    board = board_of(row(trial=0, regret=12.0, floor=10.0), row(trial=1, regret=15.0, floor=13.0))
    (series,) = excess_over_floor(board).panels[0].series
    assert (series.marks[0].y, series.marks[0].spread) == (2.0, 0.0)


def test_speed_up_is_a_geometric_mean_over_degrees(row, tmp_path):
    (tmp_path / "knapsack.csv").write_text(
        "degree,samples,method,regret_mean,regret_std,seconds_mean,seconds_std\n"
        "1,100,WISE,12,1,1.0,0\n2,100,WISE,12,1,4.0,0\n"
    )
    board = board_of(row(degree=1), row(degree=2), published=tmp_path)
    (series,) = speed_up(board).panels[0].series
    assert series.marks[0].y == pytest.approx(20.0)  # 10 times and 40 times


def test_paired_wins_by_hand(row):
    regrets = {"MSE": (3.0, 5.0, 1.0, 2.0), "WISE": (2.0, 4.0, 1.0, 9.0)}
    board = board_of(
        *(row(method=m, trial=i, regret=r) for m, rs in regrets.items() for i, r in enumerate(rs)),
        row(method="LAVA", trial=9),  # a trial that no other method has seen
    )
    matrix = paired_wins(board)
    assert matrix.labels == ("MSE", "WISE", "LAVA")
    assert matrix.shares[1][0] == 62.5  # two wins and a tie in four
    assert matrix.shares[0][1] == 37.5
    assert matrix.meetings[0][1] == 4
    assert matrix.shares[0][0] is None
    assert matrix.shares[0][2] is None


def test_what_the_rows_are_not_enough_for_is_left_out(row):
    names = [chart.name for chart in charts_of(board_of(row(floor=None, train_seconds=0.0)))]
    assert names == ["regret_method_knapsack"]
    assert charts_of(board_of(row(regret=None, status="failed", reason="x"))) == []


def test_axes_are_logarithmic_where_small_values_would_vanish(row):
    near = regret_by_samples(board_of(row(regret=10.0), row(method="MSE", regret=12.0)))
    far = regret_by_samples(board_of(row(regret=10.0), row(method="MSE", regret=60.0)))
    zero = regret_by_samples(board_of(row(regret=0.0, floor=0.0), row(method="MSE", regret=60.0)))
    assert [chart.y.scale for chart in (near, far, zero)] == ["linear", "log", "linear"]
