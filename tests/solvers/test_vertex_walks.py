"""Walks over the vertices of random small programs, against SciPy: equalities, ties, degenerate vertices."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array, random_array

from decidewise.solvers import Polyhedron
from decidewise.solvers.highs import Solver
from decidewise.solvers.program import Highs, Program
from decidewise.solvers.vertex_walks import VertexWalks


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


@pytest.mark.parametrize("decades", [4, 8, 12])
@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("is_large", [False, True])
def test_costs_many_decades_apart_have_the_same_vertex_from_everywhere(monkeypatch, decades, by_row, is_large):
    """Fixed charges on flows through a few nodes: steps are long, and tiny reduced costs decide."""
    if is_large:  # as if it had more than 400 constraints
        fits = VertexWalks.fits
        monkeypatch.setattr(VertexWalks, "fits", staticmethod(lambda program, most=9: fits(program, most)))
    rng = np.random.default_rng(decades)
    n, nodes = 40, 8
    node = rng.integers(0, nodes, size=n)
    flows, charges = np.eye(n), np.diag(-rng.uniform(20, 200, size=n))
    A_eq = np.zeros((nodes, 2 * n))
    A_eq[node, np.arange(n)] = 1.0
    supply = np.bincount(node, rng.uniform(0, 20, size=n), minlength=nodes)
    upper = np.concatenate([np.full(n, 500.0), np.ones(n)])
    region = Polyhedron(
        csr_array(np.hstack([flows, charges])), np.zeros(n), csr_array(A_eq), supply, np.zeros(2 * n), upper
    )
    costs = rng.normal(size=(30, 2 * n)) * 10.0 ** rng.uniform(-decades, 0, size=(30, 2 * n))
    program = Program.of(region)
    names = ("row_lower", "row_upper", "lower", "upper")
    bounds = replace(program, **{name: np.tile(getattr(program, name), (30, 1)) for name in names}) if by_row else None

    vertices = Solver(program, by_row=by_row).minimize(costs, bounds)

    again = Solver(program)
    again.minimize(costs[::-1])
    others = [
        again.minimize(costs),  # from the best of all vertices
        np.vstack([Solver(program).minimize(row[None]) for row in costs]),
        Solver(program).minimize(3.7 * costs[::-1])[::-1],
    ]
    for other in others:
        np.testing.assert_allclose(other, vertices, rtol=0, atol=1e-9 if is_large else 0)
    for row, vertex in zip(costs, vertices, strict=True):  # every unit of flow is paid alone: the cheapest arc takes it
        value = 0.0
        for k in range(nodes):
            arcs = np.flatnonzero(node == k)
            value += least_of_node(row[arcs], row[n + arcs], -np.diag(charges)[arcs], supply[k])
        assert row @ vertex == pytest.approx(value, rel=1e-11)


def least_of_node(flow_costs, charge_costs, sizes, supply):
    """The least cost of a supply through arcs `0 <= x <= size * y`, `0 <= y <= 1`."""
    value = np.minimum(charge_costs, 0.0).sum()  # what is paid for opening costs nothing more
    slopes = flow_costs + np.maximum(charge_costs, 0.0) / sizes
    for arc in np.argsort(slopes):
        sent = min(supply, sizes[arc])
        value, supply = value + sent * slopes[arc], supply - sent
    return value


def test_a_program_of_hundreds_of_rows_is_walked_to_the_same_bits():
    rng = np.random.default_rng(0)
    A = csr_array(random_array((110, 220), density=0.05, rng=rng, data_sampler=lambda size: rng.uniform(0.5, 2, size)))
    b = np.asarray(A.sum(axis=1)).ravel() * 0.3
    region = Polyhedron(A, b, csr_array((0, 220)), np.zeros(0), np.zeros(220), np.ones(220))
    costs = -(10 + rng.normal(size=(60, 5)) @ rng.normal(size=(5, 220)))
    program = Program.of(region)
    assert VertexWalks.fits(program)

    vertices = Solver(program).minimize(costs)

    for row, vertex in zip(costs[::6], vertices[::6], strict=True):
        assert row @ vertex == pytest.approx(linprog(row, A, b, bounds=(0, 1)).fun, rel=1e-10)
    np.testing.assert_array_equal(Solver(program).minimize(7.3 * costs[::-1])[::-1], vertices)


def test_most_rows_need_no_other_solver(monkeypatch):
    """What a walk cannot certify is left to HiGHS; if that were most rows, the walks would be for nothing."""
    rng = np.random.default_rng(1)
    program = Program.of(random_polyhedron(rng))
    solver = Solver(program)
    solver.minimize(rng.normal(size=(1, len(program.lower))))
    calls = []
    run = Highs.run
    monkeypatch.setattr(Highs, "run", lambda self, costs: calls.append(1) or run(self, costs))
    solver.minimize(rng.normal(size=(100, len(program.lower))))
    assert len(calls) <= 5


def test_what_is_too_large_is_left_to_the_solver():
    assert VertexWalks.fits(Program.of(random_polyhedron(np.random.default_rng(0))))
    tall = Polyhedron(
        csr_array(np.ones((500, 9))), np.ones(500), csr_array((0, 9)), np.ones(0), np.zeros(9), np.ones(9)
    )
    assert not VertexWalks.fits(Program.of(tall))
