"""Small conic programs from the centre of their region: certificates, Clarabel's values, and who has no centre."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csc_array, csr_array

from decidewise.polyhedra.centred_region import CentredRegion, n_rows_of
from decidewise.polyhedra.semidefinite_cone import matrices
from decidewise.problems import ConicProgram, Exponential, Quadratic, SecondOrder, Semidefinite
from decidewise.problems.conic_program.cones import ConeRows
from decidewise.scaling import unit_rows

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
def test_duals_certify_every_row_and_values_are_those_of_clarabel(name):
    problem = PROGRAMS[name]()
    solver = problem._solver
    region, costs = solver.region, np.random.default_rng(1).normal(size=(60, problem.n_costs))
    costs[:10] = costs[:10].round()  # with ties
    costs = costs[costs.any(axis=1)]
    units = solver.solutions(problem._objective(costs, 1.0)).units

    solved, points, slacks, duals = solver._centred.solve(units, 1e-10, 1e-9)

    assert solved.mean() > 0.9
    units, points, slacks, duals = (rows[solved] for rows in (units, points, slacks, duals))
    values, size = (units * points).sum(axis=1), np.abs(points).max()
    assert_allclose(points @ region.A.T + slacks, np.tile(region.b, (len(units), 1)), atol=1e-12 * (1 + size))
    assert_allclose(units + duals @ region.A, 0, atol=1e-9)
    gaps = np.maximum(np.abs(values), min(1, size)) * 2e-9
    assert (np.abs(values + duals @ region.b) <= gaps + 1e-9 * size).all()
    for rows in (slacks, duals):
        assert_inside(region.cones, rows, dual=rows is duals)
    if name == "small":  # Clarabel stops at a gap of 1e-10, a thousandth of these values: the closed form tells
        assert_allclose(values, -1e-7, rtol=1e-8)
        return
    solver.__dict__["_centred"] = None
    solver._last = None
    assert_allclose(values, (units * solver.minimize(units)).sum(axis=1), atol=3e-9 * max(1, size))


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
    assert solver._centred.solve(costs, 1e-10, 1e-10)[0].all()
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
def test_what_has_no_centre_or_is_large_is_left_to_clarabel(problem):
    problem = problem()
    assert problem._solver._centred is None
    assert np.isfinite(problem.solve(np.ones(problem.n_costs))).all()


def test_a_hard_row_is_left_to_clarabel():
    """An aim below rounding is never reached: then every row is Clarabel's, in its place among the others."""
    solver = ConicProgram(cones=SecondOrder(np.eye(3), d=1.0), lower=-np.inf)._solver
    costs = unit_rows(np.random.default_rng(3).normal(size=(40, 3)))
    centred = solver._centred

    class Fussy(CentredRegion):
        def solve(self, costs, aim, accepted):
            solved, points, *rest = super().solve(costs, aim, accepted)
            solved[::3] = False
            points[::3] = 9.0
            return (solved, points, *rest)

    solver.__dict__["_centred"] = Fussy(**{name: getattr(centred, name) for name in CentredRegion.__dataclass_fields__})
    assert_allclose(solver.minimize(costs), -costs, atol=1e-5)


def test_equations_that_contradict_each_other_have_no_centre():
    A, b = np.vstack([np.ones((2, 2)), -np.eye(2)]), np.array([1.0, 2.0, 0.0, 0.0])
    cones = (("ZeroConeT", 2), ("NonnegativeConeT", 2))
    assert CentredRegion.of(csc_array(A), b, cones, np.array([0.5, 0.5])) is None
