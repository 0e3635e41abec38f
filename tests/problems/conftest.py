"""What the tests of several problems compare with: enumeration, and HiGHS on the polyhedron."""

import numpy as np
import pytest
from scipy.optimize import linprog


@pytest.fixture(scope="session")
def first_best():
    """The first candidate of least cost in each row; exact for integer costs, so that it decides ties."""

    def choose(candidates, costs):
        candidates = np.asarray(candidates, dtype=float)
        return candidates[np.argmin(costs @ candidates.T, axis=1)]

    return choose


@pytest.fixture(scope="session")
def highs_minimum():
    """The least value of each row of costs over a polyhedron, by HiGHS."""

    def minimum(polyhedron, costs):
        region = {
            "A_ub": polyhedron.A_ub,
            "b_ub": polyhedron.b_ub,
            "A_eq": polyhedron.A_eq,
            "b_eq": polyhedron.b_eq,
            "bounds": np.column_stack([polyhedron.lower, polyhedron.upper]),
        }
        return np.array([linprog(row, **region, method="highs").fun for row in costs])

    return minimum
