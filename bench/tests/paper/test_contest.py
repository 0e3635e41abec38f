import csv
import io
import math
import re

import pyarrow as pa
import pytest

from decidewise.app.pages import styles
from decidewise_bench.paper.contest import Contest, contest_chart, is_contest
from decidewise_bench.paper.contest_tables import contest_to_csv, contest_to_latex, contest_to_markdown
from decidewise_bench.paper.report import paper_boards, paper_report
from decidewise_bench.report import write_report
from decidewise_bench.report.page import render_page

HEAD = "degree,samples,method,regret_mean,regret_std\n"


@pytest.fixture
def folder(tmp_path):
    """Published numbers of four problems; the last of them are of another paper, and have no spread."""
    numbers = {
        "shortest_path": "4,200,MSE,9.0,0.5\n4,200,SPO+,8.0,0.5\n4,800,MSE,8.5,0.5\n4,800,SPO+,7.5,0.5\n",
        "knapsack": "1,100,WISE,12.0,0.3\n",
        "portfolio": "1,200,MSE,0.88,0.02\n1,400,MSE,0.86,0.02\n",
        "travelling_salesman": "6,1000,SPO+,7.5,\n6,1000,CaVE+,7.0,\n",
    }
    for problem, lines in numbers.items():
        (tmp_path / f"{problem}.csv").write_text(HEAD + lines)
    return tmp_path


@pytest.fixture
def contest_rows(row):
    def rows(plan, problem, degree, samples, floor, ours, fair):
        at = {"plan": plan, "problem": problem, "degree": degree, "samples": samples, "floor": floor, "mode": "cv"}
        for method, regrets in (("WISE CV", ours), ("SPO+ same model", fair)):
            yield from (row(**at, method=method, trial=i, regret=regret) for i, regret in enumerate(regrets))

    return [
        *rows("better", "portfolio", 1, 200, 0.91, (0.92, 0.94), (0.95, 0.95)),  # the floor is out of reach
        *rows("better", "portfolio", 1, 400, 0.85, (0.87, 0.89), (0.87, 0.87)),  # within the margin
        *rows("better", "shortest_path", 4, 200, 6.0, (7.0, 7.2), (7.5, 7.7)),
        *rows("better", "shortest_path", 4, 800, 5.0, (7.5, 7.7), (7.4, 7.4)),  # above, but within 0.1; far from floor
        *rows("better", "knapsack", 1, 100, 11.0, (12.3, 12.3), (12.0, 12.2)),  # lost
        *rows("travelling_salesman", "travelling_salesman", 6, 1000, 6.0, (6.4, 6.6), (6.9, 7.1)),
        row(
            plan="travelling_salesman", problem="travelling_salesman", degree=6, samples=1000, mode="exact", regret=21.0
        ),
    ]


@pytest.fixture
def contest(contest_rows, folder):
    return Contest.among(paper_boards(pa.Table.from_pylist(contest_rows), folder))


def test_the_best_published_method_of_each_row_in_the_order_of_the_problems(contest):
    found = [(m.board.problem, *m.setting, *m.rival) for m in contest.matches]
    assert found == [
        ("shortest_path", 4, 200, "SPO+", 8.0),
        ("shortest_path", 4, 800, "SPO+", 7.5),
        ("knapsack", 1, 100, "WISE", 12.0),
        ("portfolio", 1, 200, "MSE", 0.88),
        ("portfolio", 1, 400, "MSE", 0.86),
        ("travelling_salesman", 6, 1000, "CaVE+", 7.0),
    ]


def test_who_wins_and_by_how_much(contest):
    assert [match.won for match in contest.matches] == [True, True, False, False, True, True]
    assert [round(match.difference, 3) for match in contest.matches] == [-0.9, 0.1, 0.3, 0.05, 0.02, -0.5]
    assert [match.near_floor for match in contest.matches] == [True, False, True, True, True, None]
    assert contest.matches[1].excess == pytest.approx(52.0)
    assert [match.fair_is_lower for match in contest.matches] == [False, True, True, False, True, False]


def test_counts(contest):
    assert contest.headline == "3 of 5 rows within a margin of the best published"
    assert [str(count) for count in contest.counts] == ["3 of 5", "1 of 5", "1 of 2", "4 of 5", "1 of 1", "3 of 6"]


def test_the_best_method_as_repeated_on_the_same_trials(contest_rows, row, folder):
    at = {"plan": "portfolio", "problem": "portfolio", "degree": 1, "samples": 200}
    repeated = [
        *(row(**at, method="MSE", trial=i, regret=regret) for i, regret in enumerate((0.94, 0.94))),
        *(row(**at, method="WISE", mode="exact", trial=i, regret=regret) for i, regret in enumerate((0.90, 0.91))),
        row(**at, method="SPO+", trial=0, regret=0.1),  # one trial of two does not compare
    ]
    contest = Contest.among(paper_boards(pa.Table.from_pylist([*contest_rows, *repeated]), folder))
    match = contest.matches[3]
    assert match.repeated == ("WISE, exact", pytest.approx(0.905))
    assert match.holds is False  # 0.930 is above by more than 0.02
    assert "| 0.905 WISE, exact ✗ |" in contest_to_markdown(contest)
    assert [str(count) for count in contest.counts][2] == "0 of 5 (4 not run)"


def test_what_is_known_about_the_rows_that_are_lost(contest):
    (beyond, first), (within, second) = contest.lost
    assert "floor exceeds the published number" in beyond
    assert [(match.board.problem, match.setting.samples) for match in first] == [("portfolio", 200)]
    assert "a better prediction" in within
    assert [match.board.problem for match in second] == ["knapsack"]


def test_rows_that_are_not_run_are_not_judged(row, folder):
    rows = [row(plan="better", problem="portfolio", samples=200, method="WISE CV", mode="cv", regret=0.9, floor=0.88)]
    contest = Contest.among(paper_boards(pa.Table.from_pylist(rows), folder))
    assert contest.headline == "1 of 2 (1 not run) rows within a margin of the best published"
    blank = contest.rows[1]
    assert [entry.text for entry in blank] == [
        *("Portfolio", "1", "400", "0.86 MSE", ""),
        *("not run", "", "not run", "", ""),
    ]
    assert contest.matches[0].fair_is_lower is None


def test_markdown(contest):
    lines = contest_to_markdown(contest).splitlines()
    assert len(lines) == 8
    assert (
        lines[2] == "| Shortest path | 4 | 200 | 8.00 SPO+ |  | **7.10 ± 0.14** | −0.90 | 7.60 ± 0.14 | 6.00 | 18.3 |"
    )
    assert lines[4].endswith("| 12.30 ± 0.00 | +0.30 ✗ | **12.10 ± 0.14** | 11.00 | 11.8 |")
    assert "| 0.930 ± 0.014 | +0.050 ✗ |" in lines[5].replace("**", "")


def test_latex(contest):
    text = contest_to_latex(contest)
    assert text.count(r"\midrule") == 4  # one before each degree of each problem
    assert text.count(r"\\") == 7
    assert r"+0.30 $\times$" in text
    assert len(set(re.findall(r"(?<!\\)[%&]", text.split(r"\toprule")[1]))) == 1  # no bare percent sign


def test_csv(contest):
    lines = list(csv.DictReader(io.StringIO(contest_to_csv(contest))))
    assert len(lines) == 6
    assert (lines[0]["published_method"], lines[0]["regret_mean"], lines[0]["difference"]) == ("SPO+", "7.1", "-0.9")
    assert (lines[5]["margin"], lines[5]["same_model_mean"], lines[5]["trials"]) == ("0", "7", "2")


def test_charts_show_the_regret_above_the_floor(contest):
    board = contest.boards[0]
    chart = contest_chart(board)
    assert chart.name == "contest_better_shortest_path"
    (panel,) = chart.panels
    marks = {(series.method, series.layer): [(m.x, round(m.y, 6)) for m in series.marks] for series in panel.series}
    assert marks == {
        ("SPO+", "published"): [(200, 2.0), (800, 2.5)],
        ("SPO+ same model", "cv"): [(200, 1.6), (800, 2.4)],
        ("WISE CV", "cv"): [(200, 1.1), (800, 2.6)],
    }
    assert "best published: SPO+ 8.00 %" in panel.series[0].marks[0].note
    assert contest_chart(contest.boards[-1]) is None  # a single row is no chart


def test_the_reproduction_is_as_without_it(rows, published, contest_rows, tmp_path):
    """Tables, counts and figures of the paper's own plans do not see the rows of the contests."""
    for file in published.iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "travelling_salesman.csv").write_text(HEAD + "6,1000,CaVE+,7.0,\n")
    alone = paper_boards(rows, tmp_path)
    assert [board.problem for board in alone] == ["shortest_path", "knapsack", "portfolio"]
    both = pa.Table.from_pylist([*rows.to_pylist(), *contest_rows])
    boards = paper_boards(both, tmp_path)
    assert boards[:3] == alone
    assert all(map(is_contest, boards[3:]))
    reports = paper_report(rows, tmp_path), paper_report(both, tmp_path)
    files = [dict(item for section in report.sections for item in section.files.items()) for report in reports]
    assert files[0].items() <= files[1].items()
    page = render_page(reports[1], styles(method for chart in reports[1].charts for method in chart.methods))
    assert "<title>264 of 264 cells reproduced</title>" in page
    assert page.count("Deciding better, without a solver in training") == 1
    assert "Travelling salesman, degree 6, 1,000 samples: MSE, exact" not in page
    assert "Travelling salesman, degree 6, 1,000 samples: WISE, exact 21.00 %" in page
    for board, section in zip(alone, re.split("<section", page)[2:5], strict=True):
        assert f'id="{board.name}"' in section
        assert "WISE CV" not in section


def test_a_plan_of_ones_own_may_have_the_same_name(row, folder):
    (board,) = paper_boards(pa.Table.from_pylist([row(plan="better", problem="routing")]), folder)
    assert not is_contest(board)
    assert Contest.among([board]).boards == []


def test_files_and_a_failure(contest_rows, row, folder, tmp_path):
    failed = row(plan="better", problem="knapsack", degree=1, samples=100, method="WISE CV", mode="cv", trial=2)
    failed |= {"status": "failed", "regret": None, "reason": "out of luck"}
    page = write_report(paper_report(pa.Table.from_pylist([*contest_rows, failed]), folder), tmp_path / "out")
    assert {path.name for path in (page.parent / "tables").iterdir()} == {"better.csv", "better.md", "better.tex"}
    text = page.read_text()
    assert "<title>3 of 5 rows within a margin of the best published</title>" in text
    assert "out of luck" in text
    links = re.findall(r'href="((?:tables|figures)/[^"]+)"', text)
    assert all((page.parent / link).is_file() for link in links)
    assert 'data-method="CaVE+"' not in text  # in no figure, so there is nothing to switch


def test_a_published_number_without_a_spread(folder, contest_rows):
    board = paper_boards(pa.Table.from_pylist(contest_rows), folder)[-1]
    assert all(math.isnan(cell.regret.std) for cell in board.published.values())
