"""Optimal vertices of a polyhedron by HiGHS: the linear relaxation of an integer problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, vstack

from decidewise.checks import FloatArray
from decidewise.errors import SolverError
from decidewise.polyhedra.polyhedron import Polyhedron
from decidewise.scaling import unit_rows

if TYPE_CHECKING:
    import highspy


def relaxed_vertices(polyhedron: Polyhedron, costs: FloatArray) -> FloatArray:
    """Return a vertex of the polyhedron that minimises each row of costs: (n, d) -> (n, d).

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from scipy.sparse import csr_array
    >>> knapsack = SimpleNamespace(
    ...     A_ub=csr_array([[2.0, 3.0]]), b_ub=np.array([4.0]), A_eq=csr_array((0, 2)), b_eq=np.zeros(0),
    ...     lower=np.zeros(2), upper=np.ones(2),
    ... )
    >>> relaxed_vertices(knapsack, np.array([[-1.0, -3.0], [-3.0, -1.0], [-1.0, 1.0]])) + 0.0
    array([[0.5       , 1.        ],
           [1.        , 0.66666667],
           [1.        , 0.        ]])
    """
    from highspy import HighsModelStatus  # noqa: PLC0415  (HiGHS takes time to import, so only where it solves)

    solver = _load(polyhedron)
    columns = np.arange(costs.shape[1], dtype=np.int32)
    solver.changeColsCost(len(columns), columns, np.zeros(len(columns)))
    solver.run()
    start = solver.getBasis()
    directions, vertices = unit_rows(costs), np.empty_like(costs)
    for row in range(len(costs)):
        # Start every row from the same feasible basis, at unit length, so ties depend on neither other rows nor scale.
        solver.clearSolver()
        solver.setBasis(start)
        solver.changeColsCost(len(columns), columns, directions[row])
        solver.run()
        if solver.getModelStatus() != HighsModelStatus.kOptimal:
            status = solver.modelStatusToString(solver.getModelStatus())
            raise SolverError(f"HiGHS ended the linear relaxation with status {status!r}", row=row)
        vertices[row] = solver.getSolution().col_value
    return vertices


def _load(polyhedron: Polyhedron) -> highspy.Highs:
    import highspy  # noqa: PLC0415

    matrix = csc_array(vstack([polyhedron.A_ub, polyhedron.A_eq], format="csc"))
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = matrix.shape
    program.col_cost_ = np.zeros(matrix.shape[1])
    program.col_lower_, program.col_upper_ = polyhedron.lower, polyhedron.upper
    program.row_lower_ = np.concatenate([np.full(len(polyhedron.b_ub), -np.inf), polyhedron.b_eq])
    program.row_upper_ = np.concatenate([polyhedron.b_ub, polyhedron.b_eq])
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = matrix.indptr
    program.a_matrix_.index_ = matrix.indices
    program.a_matrix_.value_ = matrix.data
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("solver", "simplex"), ("presolve", "off"), ("threads", 1)):
        solver.setOptionValue(option, value)
    solver.passModel(program)
    return solver
