# What the package offers; see `decidewise.kit.lazy`.
from decidewise.problems.readers.cvxpy import from_cvxpy
from decidewise.problems.readers.files import read_problem
from decidewise.problems.readers.function import from_function
from decidewise.problems.readers.gurobi import from_gurobi
from decidewise.problems.readers.linopy import from_linopy
from decidewise.problems.readers.pyepo import from_pyepo
from decidewise.problems.readers.pyomo import from_pyomo

__all__ = [
    "from_cvxpy",
    "from_function",
    "from_gurobi",
    "from_linopy",
    "from_pyepo",
    "from_pyomo",
    "read_problem",
]
