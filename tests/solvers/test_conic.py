"""Conic programs in batch: the duals certify every row, also of regions that are small, flat, or have no interior."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from decidewise.kit.scaling import unit_rows
from decidewise.problems import ConicProgram, Exponential, Quadratic, SecondOrder, Semidefinite
from decidewise.problems.conic_program.cones import ConeRows
from decidewise.solvers.conic import matrices, n_rows_of

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(4, 4))
PLACES = [[0, 1, 3], [1, 2, 4], [3, 4, 5]]


def softplus(n):
    """`log(1 + exp(w_i)) <= t_i` by two exponential cones each, with `sum t <= n`: variables w, t, a, b."""
    A, b = np.zeros((6 * n, 4 * n)), np.zeros(6 * n)
    for i in range(n):
        A[6 * i, i], A[6 * i, n + i] = 1.0, -1.0  # exp(w - t) <= a
        A[6 * i + 2, 2 * n + i] = 1.0
        A[6 * i + 3, n + i] = -1.0  # exp(-t) <= b
        A[6 * i + 5, 3 * n + i] = 1.0
        b[6 * i + 1] = b[6 * i + 4] = 1.0
    sums = np.zeros((n + 1, 4 * n))
    sums[0, n : 2 * n] = 1.0
    sums[1 + np.arange(n), 2 * n + np.arange(n)] = sums[1 + np.arange(n), 3 * n + np.arange(n)] = 1.0
    return ConicProgram(
        sums, [n, *np.ones(n)], lower=np.repeat([-5.0, -np.inf], [n, 3 * n]), cones=Exponential(A, b), costs=range(n)
    )


PROGRAMS = {
    "ellipsoid": lambda: ConicProgram(cones=Quadratic(ROOT @ ROOT.T, r=2.0), lower=-np.inf),
    "small": lambda: ConicProgram(cones=SecondOrder(np.eye(4), d=1e-7), lower=-np.inf),
    "far": lambda: ConicProgram(cones=SecondOrder(np.eye(4), b=np.full(4, -1e4), d=3.0), lower=-np.inf),
    "two balls": lambda: ConicProgram(
        cones=[SecondOrder(np.eye(4), d=1.0), SecondOrder(np.eye(4), b=[-1, 0, 0, 0], d=1.0)], lower=-np.inf
    ),
    "equations": lambda: ConicProgram(
        A_eq=[[1, 1, 1, 1], [1, 2, 3, 4], [2, 3, 4, 5]], b_eq=[1, 2, 3], cones=SecondOrder(ROOT, d=5.0), lower=-9,
        upper=9,
    ),
    "exponential and second-order": lambda: ConicProgram(
        cones=[
            Exponential([[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]], b=[0, 1, 0]),
            SecondOrder(ROOT, c=[0, 0, 0, 1], d=4.0),
        ],
        lower=-3, upper=3,
    ),
    "softplus": lambda: softplus(3),
    "semidefinite": lambda: ConicProgram(  # of trace 1
        A_eq=[[1, 0, 1, 0, 0, 1]], b_eq=[1], cones=Semidefinite.of_variables(PLACES, 6), lower=-np.inf
    ),
    "semidefinite and second-order": lambda: ConicProgram(
        cones=[
            SecondOrder(np.eye(6), d=1.5),
            Semidefinite.of_variables(PLACES, 6),
            Semidefinite.of_variables([[0, 5], [5, 2]], 6),
        ],
        lower=-1, upper=1,
    ),
    "linear": lambda: ConicProgram(RNG.uniform(size=(3, 5)), np.ones(3), upper=1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_duals_certify_every_row(name):
    problem = PROGRAMS[name]()
    solver = problem._solver
    region, costs = solver.region, np.random.default_rng(1).normal(size=(60, problem.n_costs))
    costs[:10] = costs[:10].round()  # with ties
    costs = costs[costs.any(axis=1)]

    found = solver.solutions(problem._objective(costs, 1.0))

    values, size = (found.units * found.points).sum(axis=1), np.abs(found.points).max()
    accuracy = 1e-7 if name == "exponential and second-order" else 1e-9  # where Clarabel gets stuck; as documented
    sides, sizes = np.tile(region.b, (len(costs), 1)), (np.abs(region.b).max(), size, np.abs(found.slacks).max())
    assert_allclose(found.points @ region.A.T + found.slacks, sides, rtol=0, atol=accuracy * sum(sizes))
    assert_allclose(found.units + found.duals @ region.A, 0, atol=accuracy)
    gaps = np.maximum(np.abs(values), min(1, size)) * 2 * accuracy
    assert (np.abs(values + found.duals @ region.b) <= gaps + accuracy * size).all()
    for rows in (found.slacks, found.duals):
        assert_inside(region.cones, rows, dual=rows is found.duals)
    if name == "small":  # a gap of 1e-10 would be a thousandth of these values
        assert_allclose(values, -1e-7, rtol=1e-8)


def assert_inside(cones, rows, dual):
    start = 0
    for kind, *size in cones:
        part = rows[:, start : start + n_rows_of(kind, *size)].T
        start += len(part)
        if kind == "NonnegativeConeT":
            assert (part >= 0).all()
        elif kind == "SecondOrderConeT":
            assert (part[0] >= np.linalg.norm(part[1:], axis=0) * (1 - 1e-12)).all()
        elif kind == "ExponentialConeT":
            x, y, w = (part[0] - part[1], -part[0], part[2]) if dual else part
            assert (y * np.log(w / y) >= x - 1e-12).all()
        elif kind == "PSDTriangleConeT":
            assert (np.linalg.eigvalsh(matrices(part.T)) >= -1e-14).all()


def test_a_ball_has_its_closed_form_and_zero_costs_the_centre():
    solver = ConicProgram(cones=SecondOrder(np.eye(3), b=[-1, -2, -3], d=2.0), lower=-np.inf)._solver
    costs = unit_rows(np.random.default_rng(2).normal(size=(100, 3)))
    assert_allclose(solver.minimize(costs), [1, 2, 3] - 2 * costs, atol=1e-5)
    assert_allclose(solver.minimize(np.zeros((1, 3))), [[1, 2, 3]], atol=1e-9)


@pytest.mark.parametrize(
    "problem",
    [
        lambda: ConicProgram(cones=ConeRows(csr_array(-np.eye(3)), np.zeros(3), (("PowerConeT", 0.5),)), upper=1),
        lambda: ConicProgram(cones=SecondOrder([[1.0, 0.0]], c=[0.0, 1.0])),  # unbounded to one side
        lambda: ConicProgram(cones=SecondOrder(np.eye(2), b=[-1.0, 0.0], d=1.0), upper=[0.0, 1.0]),  # one point
        lambda: ConicProgram(A_eq=np.eye(2), b_eq=[0.5, 0.5], cones=SecondOrder(np.eye(2), d=1.0)),  # no freedom
        lambda: ConicProgram(cones=SecondOrder(np.eye(60), d=1.0), lower=-1),  # many variables
    ],
)
def test_power_cones_and_regions_that_are_flat_unbounded_or_large(problem):
    problem = problem()
    assert np.isfinite(problem.solve(np.ones(problem.n_costs))).all()


def test_rows_on_which_clarabel_gets_stuck_have_answers():
    """At the first attempt a quarter of these rows makes no progress, and at the last of three one in thousands."""
    problem = PROGRAMS["exponential and second-order"]()
    costs = np.random.default_rng(1).normal(size=(2000, problem.n_costs))[1000:1200]  # row 1096 among them
    assert np.isfinite(problem.solve(costs)).all()
