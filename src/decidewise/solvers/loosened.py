"""A program whose constraints contradict each other by rounding alone, made to hold a point.

Supplies and demands that were written with eight decimals, say, need not add up to the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csc_array, eye_array, hstack

from decidewise.kit.checks import FloatArray
from decidewise.solvers.program import Highs, Program

#: What is missing may be this part of what a constraint adds up, or of 1 if that is more.
ROUNDING = 1e-7


def loosened(program: Program, time_limit: float | None = None) -> tuple[Program, FloatArray] | None:
    """Return the program with as little room added as one point needs, and the room as a part of the values (n + m,).

    None if some constraint would need more than rounding.
    """
    m, n = program.A.shape
    lower, upper = program.lower.copy(), program.upper.copy()
    crossed = lower > upper
    lower[crossed] = upper[crossed] = (lower[crossed] + upper[crossed]) / 2
    if not (program.upper[crossed] + ROUNDING * (1.0 + np.abs(lower[crossed])) >= program.lower[crossed]).all():
        return None
    # Every row may be missed from below or from above, at a cost.
    elastic = Program(
        A=csc_array(hstack([program.A, eye_array(m), -eye_array(m)], format="csc")),
        row_lower=program.row_lower,
        row_upper=program.row_upper,
        lower=np.concatenate([lower, np.zeros(2 * m)]),
        upper=np.concatenate([upper, np.full(2 * m, np.inf)]),
    )
    sides = np.where(np.isfinite(program.row_upper), program.row_upper, program.row_lower)
    weights = 1.0 / (1.0 + np.abs(np.where(np.isfinite(sides), sides, 0.0)))
    highs = Highs(elastic, time_limit=time_limit, solver="simplex", primal_feasibility_tolerance=1e-10)
    if not highs.run(np.concatenate([np.zeros(n), weights, weights])):
        return None
    point = np.clip(highs.solver.getSolution().col_value[:n], lower, upper)
    values = program.values(point[np.newaxis])
    if program.violated(values, ROUNDING).any():
        return None
    values = values[0]
    room = np.maximum(0.0, np.maximum(program.all_lower - values, values - program.all_upper))
    wider = replace(
        program,
        lower=lower,
        upper=upper,
        row_lower=np.minimum(program.row_lower, values[n:]),
        row_upper=np.maximum(program.row_upper, values[n:]),
    )
    return wider, room / (1.0 + np.abs(values))
