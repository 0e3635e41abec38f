import pyarrow as pa
import pytest

from decidewise_bench.paper import PUBLISHED
from decidewise_bench.paper.misses import group_misses
from decidewise_bench.paper.report import paper_boards
from decidewise_bench.paper.verdicts import count, judge, order, tolerance
from decidewise_bench.report.read_results import COLUMNS
from decidewise_bench.report.results import Setting, Summary

HEADER = "degree,samples,method,regret_mean,regret_std\n"


@pytest.fixture
def make_board(row, tmp_path):
    """Return the board of one published setting and the given regrets of ours: `{method: [regret of each trial]}`."""

    def build(problem, published, degree=1, samples=100, **ours):
        lines = [f"{degree},{samples},{method},{mean},{std}\n" for method, (mean, std) in published.items()]
        (tmp_path / f"{problem}.csv").write_text(HEADER + "".join(lines))
        rows = [
            row(plan=problem, problem=problem, degree=degree, samples=samples, method=method, trial=i, regret=regret)
            for method, regrets in ours.items()
            for i, regret in enumerate(regrets)
        ]
        (board,) = paper_boards(pa.Table.from_pylist(rows), tmp_path)
        return board

    return build


def verdicts(board):
    return {method: comparison.outcome for (_, method), comparison in judge(board).items()}


def test_tolerance_by_hand():
    # 2 * sqrt(0.09 / 4 + 0.16 / 20) + 0.25 = 2 * 0.174642... + 0.25
    assert tolerance("knapsack", Summary(12.0, 0.3), 4, Summary(12.0, 0.4)) == pytest.approx(0.599285)
    assert tolerance("shortest_path", Summary(12.0, 0.0), 1, Summary(12.0, 0.0)) == 0.25


@pytest.mark.parametrize(("difference", "verdict"), [(0.24, "reproduced"), (-0.24, "reproduced"), (0.26, "missed")])
def test_without_spread_a_quarter_of_a_point_is_allowed(make_board, difference, verdict):
    board = make_board("knapsack", {"WISE": (12.0, 0.0)}, WISE=[12.0 + difference] * 3)
    assert verdicts(board) == {"WISE": verdict}
    assert judge(board)[Setting(1, 100), "WISE"].difference == pytest.approx(difference)


def test_the_number_of_trials_is_that_of_the_rows(make_board):
    # A standard deviation of 1.0: two trials allow 2 / sqrt(2) + 0.25 = 1.66 points, eight only 0.96.
    few, many = [13.2 - 0.5**0.5, 13.2 + 0.5**0.5], [13.2 - 0.875**0.5, 13.2 + 0.875**0.5] * 4
    assert verdicts(make_board("knapsack", {"WISE": (12.0, 0.0)}, WISE=few)) == {"WISE": "reproduced"}
    assert verdicts(make_board("knapsack", {"WISE": (12.0, 0.0)}, WISE=many)) == {"WISE": "missed"}


def test_portfolio_allows_twelve_hundredths_whatever_the_spread(make_board):
    board = make_board("portfolio", {"SPO+": (0.9, 0.5), "PFY": (0.9, 0.5)}, **{"SPO+": [1.01], "PFY": [1.03]})
    assert verdicts(board) == {"SPO+": "reproduced", "PFY": "missed"}


@pytest.mark.parametrize(
    ("published_wise", "wise", "verdict"),
    [
        (0.48, 0.50, "reproduced"),  # the published order
        (0.48, 0.53, "missed"),  # close enough, but the other way round
        (0.48, 0.52, "missed"),  # a tie is not the published order either
        (0.50, 0.53, "reproduced"),  # a published gap of 0.02 does not exceed 0.02
    ],
)
def test_portfolio_order_of_mse_and_wise_counts_for_both(make_board, published_wise, wise, verdict):
    board = make_board("portfolio", {"MSE": (0.52, 0.02), "WISE": (published_wise, 0.02)}, MSE=[0.52], WISE=[wise])
    assert verdicts(board) == {"MSE": verdict, "WISE": verdict}
    assert all(c.wrong_order == (verdict == "missed") for c in judge(board).values())


def test_portfolio_order_waits_for_both(make_board):
    board = make_board("portfolio", {"MSE": (0.56, 0.02), "WISE": (0.48, 0.02)}, WISE=[0.59])
    assert verdicts(board) == {"MSE": "not run", "WISE": "reproduced"}


def test_only_the_papers_protocol_is_compared(row, published):
    board = paper_boards(pa.Table.from_pylist([row(mode="exact")]), published)[1]
    assert count(judge(board).values())["not run"] == 84


def test_a_cell_with_failures_alone_has_failed(row, published):
    board = paper_boards(pa.Table.from_pylist([row(regret=None, status="failed", reason="x")]), published)[1]
    assert count(judge(board).values())["failed"] == 1


def test_all_of_the_papers_cells_are_counted(rows, published):
    boards = paper_boards(rows, published)
    assert [sum(count(judge(board).values()).values()) for board in boards] == [120, 84, 60]
    assert [count(judge(board).values())["reproduced"] for board in boards] == [120, 84, 60]


def test_the_published_numbers_in_this_repository():
    boards = paper_boards(pa.table({name: [] for name in COLUMNS}), PUBLISHED)
    assert sum(len(board.published) for board in boards) == 264
    # The rows with a gap wide enough can be counted in the paper's tables.
    assert {b.problem: order(b).rows for b in boards if order(b)} == {"shortest_path": 12, "portfolio": 4}


def test_order_of_mse_and_wise_row_by_row(make_board):
    published = {"MSE": (9.29, 0.99), "WISE": (8.48, 0.98)}
    kept = order(make_board("shortest_path", published, MSE=[9.0], WISE=[8.9]))
    assert (kept.kept, kept.judged, kept.rows) == (1, 1, 1)
    lost = order(make_board("shortest_path", published, MSE=[8.9], WISE=[9.0]))
    assert (lost.kept, lost.judged, lost.rows) == (0, 1, 1)
    waiting = order(make_board("shortest_path", published, MSE=[8.9]))
    assert (waiting.kept, waiting.judged, waiting.rows) == (0, 0, 1)
    assert order(make_board("shortest_path", {"MSE": (16.1, 0.5), "WISE": (16.2, 0.5)}, MSE=[1.0], WISE=[2.0])) is None


@pytest.mark.parametrize(
    ("problem", "method", "degree", "ours", "title"),
    [
        ("shortest_path", "DBB", 4, 5.0, "DBB ends below"),
        ("shortest_path", "DBB", 4, 15.0, "does not gain from more samples"),
        ("shortest_path", "LAVA", 8, 5.0, "LAVA ends below"),
        ("shortest_path", "LAVA", 8, 15.0, "No reason known"),
        ("portfolio", "PFY", 1, 11.0, "large for returns of 0.2"),
        ("portfolio", "SPO+", 1, 11.0, "the learning rate is not known"),
        ("knapsack", "DBB", 4, 5.0, "DBB ends below"),
        ("knapsack", "LAVA", 1, 15.0, "LAVA ends above"),
        ("knapsack", "LAVA", 1, 5.0, "No reason known"),
        ("knapsack", "CaVE", 1, 5.0, "CaVE ends below"),
        ("knapsack", "MSE", 1, 11.0, "under-trained"),
        ("knapsack", "MSE", 4, 11.0, "No reason known"),
    ],
)
def test_misses_come_with_what_is_known_about_them(make_board, problem, method, degree, ours, title):
    board = make_board(problem, {method: (10.0, 0.1)}, degree=degree, **{method: [ours]})
    ((reason, cells),) = group_misses([(board, judge(board).values())])
    assert title in reason.title
    assert [(found.problem, miss.method) for found, miss in cells] == [(problem, method)]


def test_a_wrong_order_is_the_reason_given(make_board):
    board = make_board("portfolio", {"MSE": (0.56, 0.02), "WISE": (0.48, 0.02)}, MSE=[0.51], WISE=[0.53])
    ((reason, cells),) = group_misses([(board, judge(board).values())])
    assert "order of MSE and WISE is reversed" in reason.title
    assert len(cells) == 2


@pytest.mark.parametrize(
    ("ours", "tried", "explained"),
    [
        # One setting for all degrees: it brings all of them near the published 10, 20 and 30.
        ((5, 5, 5), {"rate/5": (10, 5, 5), "rate/20": (10, 20, 30)}, {1: "rate/20", 2: "rate/20", 4: "rate/20"}),
        # A setting for each cell would be a fit of the published numbers, not an explanation.
        ((5, 5, 5), {"rate/5": (10, 5, 5), "rate/20": (5, 20, 5), "rate/50": (5, 5, 30)}, {}),
        # No more cells than under the paper's setting.
        ((10, 20, 5), {"rate/20": (5, 20, 30)}, {}),
        # More cells; those that were reproduced before stay reproduced.
        ((10, 5, 5), {"rate/20": (10, 20, 5)}, {2: "rate/20"}),
        # Of several the first; a cell that it misses stays missed.
        ((5, 5, 5), {"rate/5": (10, 20, 5), "rate/20": (10, 5, 30)}, {1: "rate/5", 2: "rate/5"}),
        # A cell without trials under the setting is not met.
        ((5, 5, 5), {"rate/20": (10, None, None)}, {}),
    ],
)
def test_a_setting_explains_a_group_and_never_a_single_cell(row, tmp_path, ours, tried, explained):
    degrees = 1, 2, 4
    (tmp_path / "knapsack.csv").write_text(
        HEADER + "".join(f"{d},100,DBB,{10 * (i + 1)},0\n" for i, d in enumerate(degrees))
    )
    rows = [
        row(degree=degree, method="DBB", regret=float(regret)) for degree, regret in zip(degrees, ours, strict=True)
    ]
    rows += [
        row(plan="explained", degree=degree, method=f"DBB, {setting}", regret=float(regret))
        for setting, regrets in tried.items()
        for degree, regret in zip(degrees, regrets, strict=True)
        if regret is not None
    ]
    board, others = paper_boards(pa.Table.from_pylist(rows), tmp_path)
    judged = judge(board, others)
    assert {at.degree: cell.other for (at, _), cell in judged.items() if cell.outcome == "explained"} == explained
    assert {at.degree for (at, _), cell in judged.items() if cell.outcome == "reproduced"} == {
        degree for degree, regret, published in zip(degrees, ours, (10, 20, 30), strict=True) if regret == published
    }
    more = [row(degree=degree, method="DBB", regret=5.0, trial=1) for degree in degrees]  # the settings have one trial
    board_of_two, _ = paper_boards(pa.Table.from_pylist([*rows, *more]), tmp_path)
    assert count(judge(board_of_two, others).values())["explained"] == 0
    words = {at.degree: verdict.word for (at, _), verdict in board.verdicts.items() if verdict.mark == "†"}
    assert words == {degree: f"explained by {setting}" for degree, setting in explained.items()}
