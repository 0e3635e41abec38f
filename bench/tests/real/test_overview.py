import csv
import io
import math

import pyarrow as pa
import pytest

from decidewise.app.pages import styles
from decidewise_bench.real.overview import Overview, to_csv, to_markdown
from decidewise_bench.real.report import CONVENTIONS, real_report
from decidewise_bench.report.differences import Difference
from decidewise_bench.report.page import render_page
from decidewise_bench.report.read_results import read_boards


@pytest.fixture
def table(row):
    """Three tasks: the choice is near the best; it is beaten by the training mean; it has one window alone."""
    regrets = {
        "storage_NP": {
            "training mean": (30.0, 34.0), "least squares": (10.0, 14.0), "WISE": (12.0, 15.0), "choice": (10.0, 15.0),
        },
        "portfolios": {
            "training mean": (90.0, 91.0), "least squares": (95.0, 97.0), "WISE": (93.0, 96.0), "choice": (92.0, 92.5),
        },
        "bakery": {"training mean": (9.0,), "trees": (5.0,), "WISE trees": (6.0,), "choice": (4.0,)},
    }  # fmt: skip
    at = {"plan": "real", "degree": None, "samples": 361, "floor": None}
    return pa.Table.from_pylist(
        [
            row(**at, problem=problem, method=method, trial=trial, regret=regret)
            for problem, methods in regrets.items()
            for method, values in methods.items()
            for trial, regret in enumerate(values)
        ]
        + [row(**at, problem="bakery", method="SPO+", status="failed", regret=None, reason="no luck")]
    )


@pytest.fixture
def overview(table):
    return Overview.of(read_boards(table, None, CONVENTIONS))


def test_the_best_is_compared_window_by_window(overview):
    near, beaten, single = overview.tasks
    assert (near.best, beaten.best, single.best) == ("least squares", "training mean", "trees")
    assert near.to_best == pytest.approx((0.5, 0.5))  # 0 and 1: the standard error is sqrt(0.5) / sqrt(2)
    assert beaten.to_best == pytest.approx((1.75, 0.25))
    assert single.to_best.mean == -1.0
    assert math.isnan(single.to_best.error)
    assert [task.to_best.verdict for task in overview.tasks] == ["even", "higher", ""]
    assert [task.beaten_by for task in overview.tasks] == [[], ["training mean"], []]


def test_the_usual_rule_takes_the_standard_error_of_the_lowest_regret_itself(table, row):
    at = {"plan": "real", "problem": "restaurant", "degree": None, "samples": 361, "floor": None}
    regrets = {"WISE": (2.0, 8.0), "choice": (3.0, 9.5)}  # the difference has an error of 0.25, WISE itself one of 3
    rows = [
        row(**at, method=method, trial=trial, regret=regret)
        for method, values in regrets.items()
        for trial, regret in enumerate(values)
    ]
    overview = Overview.of(read_boards(pa.Table.from_pylist(table.to_pylist() + rows), None, CONVENTIONS))
    task = next(task for task in overview.tasks if task.board.problem == "restaurant")
    assert task.to_best == pytest.approx((1.25, 0.25))
    assert task.best_error == pytest.approx(3.0)
    assert task.best_regret == "5.00 ± 3.00"
    assert (overview.n_near, overview.n_usual, len(overview.judged)) == (1, 2, 3)


def test_a_difference_is_of_the_windows_that_both_have(overview):
    near, _, single = overview.tasks
    assert math.isnan(Difference.of(near.trials["WISE"], type(near.trials["WISE"])()).mean)
    assert Difference.of(near.trials["WISE"], single.trials["trees"]).mean == 12.0 - 5.0


def test_the_result_in_words(overview):
    assert overview.headline == "1 of 2 tasks: the choice within one standard error of the best method"
    first, usual, second, third, *pairs = overview.sentences
    assert "On 1 of 2 tasks" in first
    assert "On 1 of 2 it is so" in usual
    assert second.endswith("above the training mean or the given forecast on 1 (Weekly portfolios (training mean)).")
    # The lowest regrets are 12, 90.5 and 4; the other methods did not run on all tasks.
    assert third.endswith("on average (and at most): choice 2.0 (4), training mean 97.2 (167).")
    assert pairs == [
        "Regret of WISE, compared with least squares: lower on 1 (Weekly portfolios), higher on 1 (Storage, Nord Pool)."
    ]


def test_tables(overview):
    lines = to_markdown(overview).splitlines()
    assert lines[0] == "| task | training mean | least squares | WISE | trees | WISE trees | SPO+ | choice |"
    assert lines[2] == "| Storage, Nord Pool | 32.00 | **12.00** | 13.50 | – | – | – | 12.50 |"
    assert lines[4] == "| Bakery demand | 9.00 | – | – | 5.00 | 6.00 | failed | **4.00** |"
    assert lines[8] == "| Storage, Nord Pool | least squares | 12.00 ± 2.00 | +0.50 ± 0.50 | +1.50 ± 0.50 |  |  |"
    assert lines[10] == "| Bakery demand | trees | 5.00 | −1.00 |  |  | +1.00 |"
    rows = list(csv.DictReader(io.StringIO(to_csv(overview))))
    assert rows[3] == {
        "task": "storage_NP", "method": "choice", "windows": "2", "regret_mean": "12.5", "regret_std": "3.53553",
        "best": "least squares", "to_best": "0.5", "to_best_error": "0.5", "seconds": "0.1",
    }  # fmt: skip


def test_the_page(table):
    report = real_report(table)
    page = render_page(report, styles((m for chart in report.charts for m in chart.methods), first=report.methods))
    assert '<td class="bad">+1.75 ± 0.25</td>' in page
    assert 'data-layer="' not in page.partition("<script")[0]  # a single layer needs no switch
    assert report.sections[0].name == "overview"
    assert report.sections[-1].name == "failures"
