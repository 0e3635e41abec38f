"""Vertices of a relaxation against SciPy, and the promises that a batch makes."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

from decidewise import SolverError
from decidewise.losses.parts.cones import NormalCones
from decidewise.solvers import Polyhedron, one_by_one, vertices
from decidewise.solvers.highs import Solver
from decidewise.solvers.program import Program


def relaxed_vertices(region, costs):
    return Solver(Program.of(region)).minimize(costs)


def polyhedron(upper=1.0):
    rng = np.random.default_rng(0)
    return Polyhedron(
        A_ub=csr_array(rng.uniform(3.0, 8.0, size=(2, 8))),
        b_ub=np.array([20.0, 18.0]),
        A_eq=csr_array(np.ones((1, 8))),
        b_eq=np.array([3.5]),
        lower=np.zeros(8),
        upper=np.full(8, upper),
    )


def test_values_are_optimal_and_decisions_are_vertices():
    costs = np.random.default_rng(1).normal(size=(40, 8))
    region = polyhedron()

    vertices = relaxed_vertices(region, costs)

    bounds = list(zip(region.lower, region.upper, strict=True))
    for row, vertex in zip(costs, vertices, strict=True):
        expected = linprog(row, region.A_ub, region.b_ub, region.A_eq, region.b_eq, bounds)
        assert row @ vertex == pytest.approx(expected.fun, abs=1e-9)
    cones = NormalCones(region, tolerance=1e-7)
    for how in cones.binding(vertices):
        assert np.linalg.matrix_rank(cones.normals.toarray()[how != 0]) == 8


def test_ties_depend_neither_on_other_rows_nor_on_scale():
    costs = np.random.default_rng(1).integers(-1, 2, size=(40, 8)).astype(float)
    region = polyhedron()

    together = relaxed_vertices(region, costs)

    np.testing.assert_allclose(relaxed_vertices(region, 1e4 * costs[::-1])[::-1], together, atol=1e-12)


def test_what_proves_answers_is_kept_for_one_block_only(monkeypatch):
    checked = []

    def unproved(self, units, values, proofs, program):
        checked.append(len(proofs))
        return np.zeros(len(units), dtype=bool)

    monkeypatch.setattr(vertices.VertexWalks, "fits", staticmethod(lambda program, most_rows=0: False))
    monkeypatch.setattr(vertices.Vertices, "unproved", unproved)
    relaxed_vertices(polyhedron(), np.random.default_rng(4).normal(size=(200, 8)))
    assert sum(checked) == 200
    assert max(checked) == one_by_one._BLOCK


def test_ties_along_a_variable_without_bounds_do_not_depend_on_other_rows():
    """Levels of a reservoir, releases, and what the last level is worth: without a cost, any number up to the worth."""
    rng, T = np.random.default_rng(1), 16
    n, t, slopes = 2 * T + 2, np.arange(T), np.linspace(0.0, 1.0, 8)
    flow, worth = np.zeros((T, n)), np.zeros((8, n))
    flow[t, t], flow[t, t + 1], flow[t, T + 1 + t] = -1.0, 1.0, rng.integers(2, 9, size=T)
    worth[:, T], worth[:, -1] = -slopes, 1.0
    lower, upper = np.zeros(n), np.full(n, 10.0)
    lower[0], upper[0], upper[T + 1 : -1], lower[-1], upper[-1] = 9.0, 9.0, 0.5, -np.inf, np.inf
    inflow = rng.uniform(size=T)
    region = Polyhedron(csr_array(worth), 5.0 - 4.0 * slopes + slopes**2, csr_array(flow), inflow, lower, upper)
    costs = rng.normal(size=(40, n)) * (rng.random((40, n)) < 0.1)
    costs[:, -1] = 0.0

    together = relaxed_vertices(region, costs)

    np.testing.assert_array_equal(relaxed_vertices(region, 1e4 * costs[::-1])[::-1], together)
    np.testing.assert_array_equal(np.vstack([relaxed_vertices(region, row[np.newaxis]) for row in costs]), together)


def test_an_empty_region_is_a_solver_error_with_its_row():
    with pytest.raises(SolverError, match=r"row 0: HiGHS ended with status 'Infeasible'. No decision keeps all"):
        relaxed_vertices(polyhedron(upper=0.1), np.ones((2, 8)))


def test_a_warm_start_that_fails_is_tried_cold(monkeypatch):
    """A run from a remembered basis that ends without an optimum costs time, and neither an answer nor an error."""
    costs = np.random.default_rng(2).normal(size=(12, 8))
    expected = relaxed_vertices(polyhedron(), costs)
    fails = []

    class Stubborn(one_by_one.Highs):
        def run(self, costs):
            is_warm = self.solver.getBasis().valid
            fails.append(is_warm)
            return not is_warm and super().run(costs)

    monkeypatch.setattr(one_by_one, "Highs", Stubborn)
    monkeypatch.setattr(vertices.VertexWalks, "fits", staticmethod(lambda program, most_rows=0: False))

    np.testing.assert_allclose(relaxed_vertices(polyhedron(), costs), expected, atol=1e-12)
    assert sum(fails) == 11  # all rows but the first start warm


def test_the_strategy_with_fewer_pivots_goes_on_and_changes_no_answer(monkeypatch):
    rng = np.random.default_rng(6)
    region = Polyhedron.within(np.zeros(30), np.ones(30), ub=(rng.uniform(0.5, 2, size=(15, 30)), np.full(15, 9.0)))
    costs = -10 - rng.normal(size=(60, 30))
    expected = relaxed_vertices(region, costs)
    used = []

    class Watched(one_by_one.Highs):
        def run(self, costs):
            is_warm = self.solver.getBasis().valid
            is_optimal = super().run(costs)
            pivots = self.solver.getInfo().simplex_iteration_count
            used.extend([(self.solver.getOptionValue("simplex_strategy")[1], pivots)] * is_warm)
            return is_optimal

    monkeypatch.setattr(one_by_one, "Highs", Watched)
    monkeypatch.setattr(vertices.VertexWalks, "fits", staticmethod(lambda program, most_rows=0: False))

    np.testing.assert_allclose(relaxed_vertices(region, costs), expected, atol=1e-9)
    taken = {way: np.array([pivots for used_way, pivots in used if used_way == way]) for way in (1, 4)}
    assert len(used) == 59  # none is tied
    fewer, more = sorted(taken.values(), key=np.mean)
    assert len(fewer) > len(more) > 1


def test_constraints_without_entries():
    """HiGHS needs no basis there, and used to crash when asked for one."""
    region = Polyhedron(
        A_ub=csr_array((0, 3)),
        b_ub=np.zeros(0),
        A_eq=csr_array((2, 3)),
        b_eq=np.zeros(2),
        lower=np.zeros(3),
        upper=np.array([1.0, 2.0, 0.0]),
    )
    costs = np.array([[1.0, -1.0, -1.0], [-1.0, 1.0, 0.0], [-1.0, -2.0, 3.0]])
    np.testing.assert_allclose(relaxed_vertices(region, costs), [[0, 2, 0], [1, 0, 0], [1, 2, 0]], atol=1e-12)
