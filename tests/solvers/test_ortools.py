"""HiGHS, as we use it, and OR-Tools share a process, whichever comes first (google/or-tools#5246)."""

import subprocess
import sys

import pytest

OURS = """
import numpy as np
from decidewise.losses import Lava
from decidewise.problems import Knapsack
target = Lava().prepare(Knapsack([[2.0, 3.0, 4.0]], [5.0]), np.array([[1.0, 3.0, 3.0]]))
assert "highspy" in sys.modules
"""
THEIRS = """
from ortools.linear_solver import pywraplp
solver = pywraplp.Solver.CreateSolver("HIGHS")
x = solver.IntVar(0, 10, "x")
solver.Add(2 * x <= 7)
solver.Maximize(x)
assert solver.Solve() == pywraplp.Solver.OPTIMAL
assert round(x.solution_value(), 6) == 3
"""


@pytest.mark.parametrize("code", [OURS + THEIRS, THEIRS + OURS], ids=["highs first", "or-tools first"])
def test_both_solve_in_one_process(code):
    pytest.importorskip("ortools")
    result = subprocess.run([sys.executable, "-c", "import sys" + code], check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
