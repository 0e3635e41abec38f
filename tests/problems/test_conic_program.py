"""Conic programs against closed forms and against CVXPY; the answer of a row alone, failures, and what is refused."""

import _thread
import threading
from time import perf_counter

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.sparse import csc_array
from sklearn.base import clone

from decidewise import DecisionRegressor, SolverError
from decidewise.kit.batches import time_limit
from decidewise.kit.errors import TimeLimitReached
from decidewise.problems import (
    Ball,
    ConicProgram,
    Ellipsoid,
    Exponential,
    LinearProgram,
    ParallelProblem,
    Portfolio,
    Quadratic,
    SecondOrder,
    Semidefinite,
)
from decidewise.solvers.conic import ConicRegion
from decidewise.testing import check_problem
from decidewise.testing.requirements import pickled

FREE = {"lower": -np.inf}
ROOT = np.random.default_rng(1).normal(size=(6, 6))
MATRIX = ROOT @ ROOT.T + 0.1 * np.eye(6)


def costs(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def triangle(k):
    """Where the variables of a symmetric matrix stand, and how often each counts in the product of two matrices."""
    places, (rows, columns) = np.zeros((k, k), dtype=int), np.tril_indices(k)
    places[rows, columns] = places[columns, rows] = np.arange(len(rows))
    return places, np.where(rows == columns, 1.0, 2.0)


def states(k, **options):
    """Semidefinite matrices of trace 1, as their triangles."""
    places, twice = triangle(k)
    cone = Semidefinite.of_variables(places, len(twice))
    return ConicProgram(A_eq=[np.where(twice == 1, 1.0, 0.0)], b_eq=[1.0], **FREE, cones=cone, **options)


def shares(n, entropy, **options):
    """Shares `w` that add up to 1, with an entropy of at least so much: `t_i <= -w_i log(w_i)`."""
    A, b = np.zeros((3 * n, 2 * n)), np.tile([0.0, 0.0, 1.0], n)
    A[np.arange(n) * 3, n + np.arange(n)] = A[np.arange(n) * 3 + 1, np.arange(n)] = 1.0
    sums = np.repeat(np.eye(2), n, axis=1)
    return ConicProgram(
        -sums[1:], [-entropy], sums[:1], [1.0], lower=np.repeat([0.0, -np.inf], n), cones=[Exponential(A, b)],
        costs=range(n), **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cone", "closed"),
    [
        (SecondOrder(np.eye(6), d=2.0), Ball(6, 2.0)),
        (Quadratic(np.eye(6), r=4.0), Ball(6, 2.0)),
        (Quadratic(MATRIX, r=9.0), Ellipsoid(MATRIX, 3.0)),
    ],
)
def test_balls_and_ellipsoids(cone, closed):
    problem = ConicProgram(cones=[cone], **FREE)
    np.testing.assert_allclose(problem.solve(costs(50, 6)), closed.solve(costs(50, 6)), atol=1e-7)
    check_problem(problem, tolerance=1e-6)


def test_a_quadratic_constraint_with_a_centre():
    """`(w - a)ᵀ M (w - a) <= 9`, written out, and the same as the norm of a root that is moved."""
    centre, factor = np.arange(6.0) - 2, np.linalg.cholesky(MATRIX).T
    written = Quadratic(MATRIX, q=-2 * MATRIX @ centre, r=9 - centre @ MATRIX @ centre)
    moved = SecondOrder(factor, b=-factor @ centre, c=np.zeros(6), d=3.0)
    expected = Ellipsoid(MATRIX, 3.0).solve(costs(30, 6)) + centre
    for cone in (written, moved):
        np.testing.assert_allclose(ConicProgram(cones=cone, **FREE).solve(costs(30, 6)), expected, atol=1e-6)


def test_a_quadratic_constraint_of_some_variables_and_of_none():
    """A parabola `w0² <= w1`, and `w0² <= 0`, which fixes `w0`."""
    first = np.diag([1.0, 0.0])
    parabola = ConicProgram(cones=Quadratic(first, q=[0.0, -1.0]), **FREE)
    slopes = np.array([-3.0, 0.5, 2.0])
    found = parabola.solve(np.column_stack([slopes, np.ones(3)]))
    np.testing.assert_allclose(found, np.column_stack([-slopes / 2, slopes**2 / 4]), atol=1e-4)
    values = slopes * found[:, 0] + found[:, 1]
    np.testing.assert_allclose(values, -(slopes**2) / 4, atol=1e-8)
    np.testing.assert_allclose(
        ConicProgram(cones=Quadratic(first), lower=-1, upper=1).solve([1.0, 1.0]), [0, -1], atol=1e-8
    )


def test_portfolios():
    covariance, returns = MATRIX / 10, costs(40, 6, seed=3) + 0.3
    problem = ConicProgram(np.ones((1, 6)), [1.0], cones=[Quadratic(covariance, r=0.05)], sense="max")
    own = Portfolio(covariance, 0.05)
    np.testing.assert_allclose(
        (returns * problem.solve(returns)).sum(axis=1), (returns * own.solve(returns)).sum(axis=1), atol=1e-8
    )
    some = returns.max(axis=1) > 0.1  # nothing is invested where all returns are losses
    np.testing.assert_allclose(problem.solve(returns)[some], own.solve(returns)[some], atol=1e-4)


def test_the_smallest_eigenvalue():
    places, twice = triangle(5)
    rows = costs(30, 15)
    problem = states(5)

    found = problem.solve(rows * twice)  # <C, X> counts what is off the diagonal twice

    eigenvalues, axes = np.linalg.eigh(rows[:, places])
    np.testing.assert_allclose((rows * twice * found).sum(axis=1), eigenvalues[:, 0], atol=1e-8)
    np.testing.assert_allclose(found[:, places], axes[:, :, 0, None] * axes[:, None, :, 0], atol=1e-6)
    inequality = ConicProgram(  # t I - C <= 0 of a matrix inequality: the largest t is the smallest eigenvalue
        cones=Semidefinite(-np.eye(5)[:, :, None], rows[0][places]), sense="max", **FREE
    )
    np.testing.assert_allclose(inequality.solve([1.0]), eigenvalues[0, :1], atol=1e-8)


def test_a_matrix_of_no_full_rank():
    """Without an interior: `X e = 0` beside a trace of 1, so that the best is the smallest eigenvalue across `e`."""
    places, (rows, columns) = np.zeros((4, 4), dtype=int), np.triu_indices(4)
    places[rows, columns] = places[columns, rows] = np.arange(10)
    twice, sums = np.where(rows == columns, 1.0, 2.0), np.zeros((4, 10))
    for row in range(4):
        sums[row, places[row]] += 1
    region = {"A_eq": np.vstack([sums, twice == 1]), "b_eq": [0, 0, 0, 0, 1.0]}
    problem = ConicProgram(**region, cones=Semidefinite.of_variables(places, 10), **FREE)
    rows = costs(10, 10, seed=2)
    across = np.linalg.qr(np.column_stack([np.ones(4), np.eye(4)[:, :3]]))[0][:, 1:]
    expected = np.linalg.eigvalsh(across.T @ rows[:, places] @ across)[:, 0]
    np.testing.assert_allclose((rows * twice * problem.solve(rows * twice)).sum(axis=1), expected, atol=1e-7)


def test_an_answer_keeps_its_constraints_or_there_is_none():
    """Of ellipsoids with axes from 1 to 1e9, in which a solver measures what breaks by the largest variables."""
    rng = np.random.default_rng(1)
    axes, rows = np.linalg.qr(rng.normal(size=(5, 5)))[0], rng.normal(size=(40, 5))
    ellipsoid = {"cones": SecondOrder(axes @ np.diag(np.logspace(0, -9, 5)) @ axes.T, d=1.0), **FREE}
    found = ConicProgram(**ellipsoid, on_error="nan").solve(rows)
    kept = ~np.isnan(found).any(axis=1)
    assert 5 < kept.sum() < 40
    assert np.linalg.norm(found[kept] @ ellipsoid["cones"].A.T, axis=1).max() <= 1 + 2e-6
    with pytest.raises(SolverError, match=rf"row {np.flatnonzero(~kept)[0]}: Clarabel"):
        ConicProgram(**ellipsoid).solve(rows)


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [
        (("ZeroConeT", 2), [0.0, 1e-7], [0.0, 1e-5]),
        (("NonnegativeConeT", 2), [0.0, -1e-7], [1.0, -1e-5]),
        (("SecondOrderConeT", 3), [5.0, 3.0, 4.0], [4.9999, 3.0, 4.0]),
        (("PSDTriangleConeT", 2), [1.0, np.sqrt(2), 1.0], [1.0, np.sqrt(2), 0.9999]),
        (("ExponentialConeT",), [0.0, 1.0, 1.0], [1e-4, 1.0, 1.0]),
        (("PowerConeT", 0.5), [4.0, 1.0, -2.0], [4.0, 1.0, 2.0001]),
        (("GenPowerConeT", [0.5, 0.5], 1), [4.0, 1.0, -2.0], [-1e-4, 1.0, 0.0]),
    ],
)
def test_which_points_lie_in_a_cone(kind, inside, outside):
    m = len(inside)
    region = ConicRegion(csc_array(-np.eye(m)), np.ones(m), (kind,))  # of slacks 1 + w
    assert region.holds(np.array([inside, outside, np.full(m, np.nan)]) - 1).tolist() == [True, False, False]


def test_entropy():
    """The best shares are `exp(-c / T)`, normalised, at the temperature `T` at which the entropy is as required."""
    rows, entropy = costs(20, 5, seed=4), 1.0
    found = shares(5, entropy).solve(rows)
    for row, share in zip(rows, found, strict=True):
        weights = lambda heat, row=row: np.exp(-(row - row.min()) / np.exp(heat))  # noqa: E731

        def excess(heat, weights=weights):
            p = weights(heat) / weights(heat).sum()
            return -(p * np.log(np.maximum(p, 1e-300))).sum() - entropy

        expected = weights(brentq(excess, -6, 6))
        assert row @ share == pytest.approx(row @ expected / expected.sum(), abs=1e-8)
        np.testing.assert_allclose(share, expected / expected.sum(), atol=1e-4)


def test_log_sum_exp():
    """Of `log(sum exp(w_i)) <= 0`, largest `c·w` for shares `c`: `w = log(c)`."""
    A, b = np.zeros((9, 6)), np.tile([0.0, 1.0, 0.0], 3)
    A[[0, 3, 6], [0, 1, 2]] = A[[2, 5, 8], [3, 4, 5]] = 1.0
    problem = ConicProgram([[0, 0, 0, 1, 1, 1]], [1.0], cones=Exponential(A, b), costs=[0, 1, 2], sense="max", **FREE)
    c = np.random.default_rng(5).dirichlet(np.ones(3), size=8)
    np.testing.assert_allclose(problem.solve(c), np.log(c), atol=1e-3)
    np.testing.assert_allclose((c * problem.solve(c)).sum(axis=1), (c * np.log(c)).sum(axis=1), atol=1e-8)


def test_without_cones_it_is_worth_what_a_linear_program_is():
    rng = np.random.default_rng(6)
    arguments = {"A_ub": rng.uniform(size=(5, 8)), "b_ub": np.full(5, 2.0), "A_eq": np.ones((1, 8)), "b_eq": [3.0]}
    arguments |= {"upper": 1.0, "known": rng.normal(size=8), "offset": 2.0, "costs": rng.normal(size=(3, 8))}
    rows = np.column_stack([costs(20, 3), np.ones(20)])
    values = [
        (rows * kind(**arguments).minimize_lifted(rows)).sum(axis=1) for kind in (ConicProgram, LinearProgram)
    ]  # fmt: skip
    np.testing.assert_allclose(*values, atol=1e-7)


def test_maps_names_and_known_costs():
    names = ["charge[0]", "charge[1]", "loss"]
    arguments = {"cones": SecondOrder([[2.0, 0, 0], [0, 1.0, 0]], c=[0, 0, 1.0]), "upper": [9.0, 9.0, 2.0]}
    problem = ConicProgram(**arguments, costs="charge*", known=[0.0, 0.0, -1.5], offset=4.0, names=names, sense="max")
    rows = np.abs(costs(10, 2)) + 0.1

    solution, lifted = problem.solution(rows), problem.minimize_lifted(np.column_stack([-rows, np.ones(10)]))

    slope = np.sqrt((rows / [2.0, 1.0]) ** 2 @ [1.0, 1.0])  # what a unit of loss earns
    assert list(solution) == names
    np.testing.assert_allclose(solution["loss"], np.where(slope > 1.5, 2.0, 0.0), atol=1e-6)
    np.testing.assert_allclose((rows * lifted[:, :-1]).sum(axis=1) - lifted[:, -1], np.maximum(slope - 1.5, 0) * 2 + 4)
    np.testing.assert_array_equal(lifted[:, 0], solution["charge[0]"])
    assert isinstance(problem.solution(rows[0])["loss"], float)
    assert problem.polyhedron is None
    check_problem(problem, costs=rows, tolerance=1e-6)
    mapped = ConicProgram(cones=SecondOrder(np.eye(3), d=1.0), costs=[[1.0, -1.0, 0.0]], **FREE)
    np.testing.assert_allclose(mapped.solve([[2.0], [-1.0]]), [[-np.sqrt(2)], [np.sqrt(2)]], atol=1e-8)


def test_ties_go_inside_the_optimal_face():
    """Where the first entry decides, the others stay near the centre of what is left, and never at a corner."""
    cube = ConicProgram(upper=[1.0, 1.0, 1.0], cones=SecondOrder(np.eye(3), d=5.0))
    np.testing.assert_allclose(cube.solve([[1.0, 0.0, 0.0]]), [[0.0, 0.5, 0.5]], atol=0.1)
    np.testing.assert_allclose(cube.solve([0.0, 0.0, 0.0]), 0.5, atol=0.1)


@pytest.mark.parametrize("build", [lambda: states(4), lambda: shares(5, 1.0)], ids=["semidefinite", "exponential"])
def test_a_row_alone_in_any_order_and_at_any_scale(build):
    """To the last bit, also after rows that the solver found hard, and in threads, processes and copies."""
    problem, rng = build(), np.random.default_rng(7)
    rows = np.vstack([costs(30, problem.n_costs), rng.integers(-2, 3, size=(30, problem.n_costs))])
    expected = problem.solve(rows)

    np.testing.assert_array_equal([build().solve(row) for row in rows[::7]], expected[::7])
    np.testing.assert_array_equal(problem.solve(rows[::-1])[::-1], expected)
    for scale in (2.0**-20, 2.0**11):
        np.testing.assert_array_equal(problem.solve(scale * rows), expected)
    scaled = problem.solve(7.7 * rows)
    assert np.mean((scaled == expected).all(axis=1)) > 0.9
    np.testing.assert_allclose((scaled * rows).sum(axis=1), (expected * rows).sum(axis=1), atol=1e-7)
    np.testing.assert_array_equal(pickled(problem).solve(rows), expected)
    found = [None] * 4

    def work(k):
        found[k] = problem.solve(rows[:: -1 if k % 2 else 1])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        np.testing.assert_array_equal(found[k][:: -1 if k % 2 else 1], expected)
    np.testing.assert_array_equal(ParallelProblem(problem, n_jobs=2, rows_per_job=20).solve(rows), expected)


def test_a_model_trains_on_it():
    problem, X = states(3), np.random.default_rng(8).normal(size=(40, 2))
    rows = X @ costs(2, 6) + 0.1 * costs(40, 6, seed=9)
    model = DecisionRegressor(problem, "spo+", epochs=2, learning_rate=1e-3, random_state=0)
    np.testing.assert_array_equal(clone(model).fit(X, rows).predict(X), model.fit(X, rows).predict(X))


def test_a_row_that_fails_is_named_and_does_not_lose_the_others():
    rows = [[1.0, 1.0], [1.0, -1.0], [2.0, 1.0]]
    open_ended = {"cones": SecondOrder([[1.0, 0.0]], c=[0.0, 1.0]), "A_ub": [[-1.0, -1.0]], "b_ub": [-1.0]}
    with pytest.raises(SolverError, match=r"row 1: Clarabel ended with status 'DualInfeasible'. The region is unbound"):
        ConicProgram(**open_ended).solve(rows)
    going = ConicProgram(**open_ended, on_error="nan")
    expected = going.solve(rows[::2])
    np.testing.assert_allclose(expected, [[0.5, 0.5], [0.0, 1.0]], atol=0.5)
    np.testing.assert_array_equal(going.solve(rows), [expected[0], [np.nan, np.nan], expected[1]])


@pytest.fixture(scope="module")
def slow():
    """A matrix so large that a row takes seconds."""
    return states(45)


def test_time_limits_and_interrupts_act_within_a_row(slow):
    row = costs(1, slow.n_costs)
    hurried = pickled(slow)
    hurried._solver.time_limit = 1e-3
    with pytest.raises(
        SolverError, match=r"row 0: .*'CallbackTerminated'. The time limit was reached: raise time_limit"
    ):
        hurried.solve(row)
    with time_limit(perf_counter() + 0.1), pytest.raises(TimeLimitReached):
        slow.solve(row)
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        slow.solve(np.tile(row, (100, 1)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs to know how many variables"),
        ({"cones": SecondOrder(np.eye(2), d=1), "A_ub": [[1.0]], "b_ub": [1.0]}, "A_ub must have one column for each"),
        ({"cones": [SecondOrder(np.eye(2), d=1), Quadratic(np.eye(3))]}, r"cones\[0\] has 2, and cones\[1\] has 3"),
        ({"cones": SecondOrder(np.eye(2), d=1), "costs": [[1.0, 2.0, 3.0]]}, "one column for each of the 2 variables"),
        ({"cones": SecondOrder(np.eye(2), b=[3.0, 0.0], d=-1.0)}, "the region is empty: no decision keeps all"),
        ({"cones": SecondOrder(np.eye(2), b=[9.0, 0.0], d=1.0)}, "the region is empty: no decision keeps all"),
        ({"cones": SecondOrder([[1.0, 0.0, 0.0]], d=1.0), "lower": -np.inf}, "unbounded: it contains a line along wh"),
        ({"lower": [-np.inf, -np.inf]}, "the region is unbounded: it contains a line along which 'w0' has any value"),
        ({"cones": SecondOrder([[1.0, 1.0]], d=1.0), "lower": -np.inf}, "the region is unbounded: it contains a line"),
        ({"cones": SecondOrder(np.eye(2), d=1), "lower": [np.nan, 0]}, "lower has NaN"),
        ({"cones": SecondOrder(np.eye(2), d=1), "time_limit": 0}, "time_limit must be a number above 0"),
        ({"cones": SecondOrder(np.eye(2), d=1), "on_error": "skip"}, "on_error must be one of 'raise', 'nan'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        ConicProgram(**arguments)
    with pytest.raises(TypeError, match=r"cones must be SecondOrder, .*; got 'ball'"):
        ConicProgram(cones=["ball"])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: SecondOrder([[1.0, np.nan]]), "A of SecondOrder must be finite; row 0, column 1 has nan"),
        (lambda: SecondOrder(np.eye(2), b=[1.0]), "b of SecondOrder must have one entry for each of the 2 rows of A"),
        (lambda: SecondOrder(np.eye(2), c=[1.0]), "c of SecondOrder must have one entry for each of the 2 columns"),
        (lambda: SecondOrder(np.eye(2), d="far"), "d of SecondOrder must be a finite number"),
        (lambda: Quadratic([[1.0, 0.0]]), "Q of Quadratic must be square"),
        (lambda: Quadratic([[1.0, 2.0], [0.0, 1.0]]), r"must be symmetric; entry \(0, 1\) is 2 and entry \(1, 0\) 0"),
        (lambda: Quadratic([[1.0, 2.0], [2.0, 1.0]], r=1), "positive semidefinite.*its smallest eigenvalue is -1"),
        (lambda: Quadratic(np.eye(2), q=[1.0]), "q of Quadratic must be a vector of length 2"),
        (lambda: Quadratic(np.eye(2), r=-1).rows(), r"the region is empty: the least value of .* is 0, above r=-1"),
        (lambda: Quadratic(np.eye(1), [2.0], r=-2).rows(), "the region is empty: the least value .* is -1, above r=-2"),
        (lambda: Quadratic(np.full((2, 2), np.nan)), "Q of Quadratic must be finite"),
        (lambda: Exponential(np.eye(2)), "must have three rows, x, y and z"),
        (lambda: Exponential(np.eye(3), b=[1.0]), "b of Exponential must have one entry for each of the 3 rows"),
        (lambda: Semidefinite(np.eye(3)), r"must have the shape \(k, k, n\) or \(k², n\)"),
        (lambda: Semidefinite(np.eye(4)), r"for variable 1 entry \(0, 1\) is 1 and entry \(1, 0\) is 0"),
        (lambda: Semidefinite(np.eye(2)[:, :, None], b=np.eye(3)), "b of Semidefinite must have one entry for each"),
        (lambda: Semidefinite(np.eye(2)[:, :, None], b=[[0, 1], [0, 0]]), "b of Semidefinite must be symmetric"),
        (lambda: Semidefinite.of_variables([[0, 1], [2, 3]], 4), "places must be a symmetric matrix of indices"),
        (lambda: Semidefinite.of_variables([[0, 1], [1, 3]], 3), "places must be indices from 0 to 2; got 0 to 3"),
    ],
)
def test_bad_cones(build, message):
    with pytest.raises(ValueError, match=message):
        build()
