"""Walks over the vertices of random small programs, against SciPy: equalities, ties, degenerate vertices."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

from decidewise.polyhedra import Polyhedron
from decidewise.polyhedra.highs import Solver
from decidewise.polyhedra.program import Program
from decidewise.polyhedra.vertex_walks import VertexWalks


def random_polyhedron(rng):
    """Small integers, so that many constraints meet in one vertex; a point inside is known."""
    m, k, n = rng.integers(1, 6), rng.integers(0, 3), rng.integers(3, 9)
    A_ub, A_eq = rng.integers(-2, 3, size=(m, n)).astype(float), rng.integers(-1, 2, size=(k, n)).astype(float)
    inside = rng.integers(0, 3, size=n).astype(float)
    lower = np.where(rng.random(n) < 0.2, -4.0, 0.0)
    upper = np.where(rng.random(n) < 0.2, inside, 5.0)  # some touch it, some are fixed
    return Polyhedron(
        csr_array(A_ub), A_ub @ inside + rng.integers(0, 3, size=m), csr_array(A_eq), A_eq @ inside, lower, upper
    )


@pytest.mark.parametrize("seed", range(25))
def test_every_vertex_is_optimal_and_the_same_from_everywhere(seed):
    rng = np.random.default_rng(seed)
    region = random_polyhedron(rng)
    costs = rng.integers(-2, 3, size=(40, len(region.lower))).astype(float)
    solver = Solver(Program.of(region))

    vertices = solver.minimize(costs)

    bounds = np.column_stack([region.lower, region.upper])
    for row, vertex in zip(costs[:12], vertices, strict=False):
        expected = linprog(row, region.A_ub, region.b_ub, region.A_eq, region.b_eq, bounds)
        assert row @ vertex == pytest.approx(expected.fun, abs=1e-8)
    assert np.all(vertices @ region.A_ub.T <= region.b_ub + 1e-9)
    np.testing.assert_allclose(vertices @ region.A_eq.T, np.tile(region.b_eq, (40, 1)), atol=1e-9)
    np.testing.assert_array_equal(solver.minimize(3.7 * costs[::-1])[::-1], vertices)
    np.testing.assert_array_equal(
        [Solver(Program.of(region)).minimize(row[None])[0] for row in costs[:5]], vertices[:5]
    )


def test_what_is_too_large_is_left_to_the_solver():
    region = random_polyhedron(np.random.default_rng(0))
    assert VertexWalks.fits(Program.of(region))
    wide = Polyhedron(
        csr_array(np.ones((200, 400))), np.ones(200), csr_array((0, 400)), np.ones(0), np.zeros(400), np.ones(400)
    )
    assert not VertexWalks.fits(Program.of(wide))
