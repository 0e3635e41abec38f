import csv
import io
import re

import pyarrow as pa
import pytest

from decidewise_bench.paper.report import paper_boards
from decidewise_bench.report.formats import to_csv, to_latex, to_markdown
from decidewise_bench.report.read_results import read_boards
from decidewise_bench.report.tables import regret_table, seconds_table


@pytest.fixture
def board(row, tmp_path):
    (tmp_path / "knapsack.csv").write_text(
        "degree,samples,method,regret_mean,regret_std,seconds_mean,seconds_std\n"
        "1,100,MSE,12.43,0.39,1.50,0.10\n1,100,WISE,12.01,0.34,1.60,0.10\n1,100,DBB,17.30,1.19,200.00,9.00\n"
    )
    rows = [row(method="MSE", trial=i, regret=r) for i, r in enumerate((12.4, 12.6))]
    rows += [row(method="WISE", trial=i, regret=r) for i, r in enumerate((14.0, 14.2))]
    rows += [row(method="MSE", mode="exact", trial=i, regret=r) for i, r in enumerate((11.5, 11.7))]
    rows += [row(method="WISE", mode="exact", trial=0, regret=11.4)]
    (board,) = paper_boards(pa.Table.from_pylist(rows), tmp_path)
    return board


def test_regret_table(board):
    table = regret_table(board)
    mse, wise, dbb, mse_exact, wise_exact, floor = table.rows[0].entries
    assert (mse.ours, mse.published, mse.difference, mse.verdict.word) == (
        "12.50 ± 0.14",
        "12.43 ± 0.39",
        "+0.07",
        "reproduced",
    )
    assert (wise.difference, wise.verdict.word) == ("+2.09", "missed")
    assert (dbb.ours, dbb.difference, dbb.verdict.word) == ("not run", "", "not run")
    assert (mse_exact.published, mse_exact.verdict) == ("", None)
    assert wise_exact.ours == "11.40 (n=1)"  # fewer trials than the others, and no spread
    assert (floor.ours, floor.is_floor) == ("10.00", True)


def test_best_of_each_mode_and_of_the_paper(board):
    *entries, _ = regret_table(board).rows[0].entries
    assert [entry.best for entry in entries] == [True, False, False, False, True]
    assert [entry.published_best for entry in entries] == [False, True, False, False, False]


def test_seconds_table(board):
    mse, _, dbb, mse_exact, _ = seconds_table(board).rows[0].entries
    assert (mse.ours, mse.published, mse.difference) == ("0.1 ± 0", "1.50 ± 0.10", "15×")
    assert (dbb.ours, dbb.published, dbb.difference) == ("not run", "200.00 ± 9.00", "")
    assert mse_exact.published == ""


def test_markdown(board):
    head, rule, line = to_markdown(regret_table(board)).splitlines()
    assert head == "| degree | samples | MSE | WISE | DBB | MSE, exact | WISE, exact | floor |"
    assert rule.count("---:") == 8
    assert line == (
        "| 1 | 100 | **12.50 ± 0.14** (12.43 ± 0.39, +0.07 ✓) | 14.10 ± 0.14 (**12.01 ± 0.34**, +2.09 ✗) "
        "| not run (17.30 ± 1.19, –) | 11.60 ± 0.14 | **11.40 (n=1)** | 10.00 |"
    )


def test_regrets_below_one_percent_have_three_decimals(row, published):
    rows = [row(plan="portfolio", problem="portfolio", samples=200, regret=0.8512)]
    board = paper_boards(pa.Table.from_pylist(rows), published)[2]
    assert "| 0.851 (" in to_markdown(regret_table(board))


def test_many_methods_are_rows_by_their_rank(row):
    rows = [row(method=f"m{i:02}", samples=n, regret=50.0 - i) for i in range(41) for n in (100, 200)]
    (board,) = read_boards(pa.Table.from_pylist(rows))
    table = regret_table(board)
    assert table.keys == ("method",)
    assert table.heads == ("degree 1, 100 samples", "degree 1, 200 samples")
    assert [row.start[0] for row in table.rows] == [*(f"m{i:02}" for i in reversed(range(41))), "floor"]
    assert [entry.ours for entry in table.rows[0].entries] == ["10.00", "10.00"]
    assert to_markdown(table).splitlines()[2] == "| m40 | **10.00** | **10.00** |"
    assert {column.method for column in board.leading.columns} == {f"m{i}" for i in range(29, 41)}


def test_latex_is_balanced_and_escaped(board, row):
    text = to_latex(regret_table(board), "Regret of 100% & more")
    assert r"\caption{Regret of 100\% \& more}" in text
    assert r"\textbf{12.50 $\pm$ 0.14}" in text
    assert r"+2.09 $\times$" in text
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert text.count("$") % 2 == 0
    assert re.findall(r"\\begin\{(\w+)\}", text) == ["table", "tabular"]
    assert re.findall(r"\\end\{(\w+)\}", text) == ["tabular", "table"]
    columns = re.search(r"\\begin\{tabular\}\{(\w+)\}", text).group(1)
    lines = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count(" & ") + 1 for line in lines} == {len(columns)}
    (own,) = read_boards(pa.Table.from_pylist([row(plan="mine", method="my_loss*")]))
    assert r" my\_loss* " in to_latex(regret_table(own), "")


def test_csv_has_every_cell(board):
    lines = {(line["method"], line["mode"]): line for line in csv.DictReader(io.StringIO(to_csv(board)))}
    assert len(lines) == 5
    mse = lines["MSE", "adam"]
    assert float(mse["regret_mean"]) == pytest.approx(12.5)
    assert float(mse["difference"]) == pytest.approx(0.07)
    assert (mse["verdict"], mse["trials"], mse["failed"]) == ("reproduced", "2", "0")
    assert lines["DBB", "adam"]["verdict"] == "not run"
    assert lines["DBB", "adam"]["regret_mean"] == ""
    assert lines["WISE", "exact"]["published_mean"] == ""


def test_names_are_text_in_every_format(row):
    names = ["=1+1", "<script>", "a|b", "[x](y)", "*_`", "^~", r"\frac{$}"]
    (board,) = read_boards(pa.Table.from_pylist([row(plan="mine", method=name) for name in names]))
    methods = [line["method"] for line in csv.DictReader(io.StringIO(to_csv(board)))]
    assert methods == ["'=1+1", *names[1:]]
    head = to_markdown(regret_table(board)).splitlines()[0]
    assert [cell.strip() for cell in re.split(r"(?<!\\)\|", head)[3:-2]] == [
        "=1+1", "&lt;script&gt;", r"a\|b", r"\[x\](y)", r"\*\_\`", r"^\~", r"\\frac{\$}",
    ]  # fmt: skip
    latex = to_latex(regret_table(board), "")
    assert r"\textless{}script\textgreater{} & a\textbar{}b" in latex
    assert r"\textasciicircum{}\textasciitilde{} & \textbackslash{}frac\{\$\}" in latex
