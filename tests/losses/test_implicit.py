import numpy as np
import pytest
from scipy.sparse import csr_array

from decidewise import DecisionRegressor, WiseRegressor, normalized_regret
from decidewise.losses import Implicit
from decidewise.problems import (
    Ball,
    ConicProgram,
    CountedProblem,
    Ellipsoid,
    Exponential,
    KnownCosts,
    Portfolio,
    Quadratic,
    SecondOrder,
    Semidefinite,
    ShortestPath,
)
from decidewise.problems.conic_program.cones import ConeRows
from decidewise.testing import check_loss

RNG = np.random.default_rng(0)
FACTORS = RNG.normal(size=(6, 6))
COVARIANCE = FACTORS @ FACTORS.T / 6 + np.diag(RNG.uniform(0.1, 1, size=6))


def slopes(problem, costs, vectors, step=1e-6):
    """`J v` by central differences of the decisions."""
    return (problem.minimize(costs + step * vectors) - problem.minimize(costs - step * vectors)) / (2 * step)


@pytest.mark.parametrize(
    "problem",
    [
        Ball(6, radius=3.0),
        Ellipsoid(COVARIANCE, radius=2.0),
        Portfolio(COVARIANCE, 0.2),
        Portfolio(COVARIANCE, 0.5, budget=9.0),
        Portfolio(1e-4 * COVARIANCE, 1e-5, budget=0.5, sense="min"),
        Portfolio([k * COVARIANCE for k in np.linspace(0.5, 2, 40)], np.linspace(0.1, 0.4, 40)),
    ],
)
def test_the_derivative_is_that_of_the_decisions(problem):
    rng = np.random.default_rng(1)
    costs, vectors = rng.normal(-0.3, 1, size=(2, 40, 6))
    decisions = problem.minimize(costs)
    found = problem.derivative(costs, decisions, vectors)
    scale = np.abs(decisions).max()
    np.testing.assert_allclose(found, slopes(problem, costs, vectors), rtol=1e-5, atol=1e-5 * scale)
    assert (np.abs(found).max(axis=1) > 1e-3 * scale).mean() > 0.5


def test_the_portfolios_of_these_tests_meet_all_bounds():
    """Of the derivatives above, some are on the budget and the risk, some on the risk alone, some hold few assets."""
    costs = np.random.default_rng(1).normal(-0.3, 1, size=(2, 40, 6))[0]
    small, large = (Portfolio(COVARIANCE, *bounds).minimize(costs) for bounds in ((0.2,), (0.5, 9.0)))
    assert (small.sum(axis=1) > 1 - 1e-9).any()
    assert (large.sum(axis=1) < 9 - 1e-9).all()
    assert ((small == 0).sum(axis=1) > 2).any()


def test_the_ball_has_a_closed_form():
    problem, rng = Ball(3, radius=2.0), np.random.default_rng(2)
    prediction, costs = rng.normal(size=(2, 10, 3))
    values, gradient = Implicit().value_and_grad(prediction, Implicit().prepare(problem, costs), rng)
    size = np.linalg.norm(prediction, axis=1, keepdims=True)
    unit = prediction / size
    np.testing.assert_allclose(values, 2 * np.linalg.norm(costs, axis=1) - 2 * (costs * unit).sum(axis=1))
    np.testing.assert_allclose(gradient, -2 / size * (costs - unit * (unit * costs).sum(axis=1, keepdims=True)))
    zero = problem.derivative(np.zeros((1, 3)), np.zeros((1, 3)), np.ones((1, 3)))
    np.testing.assert_array_equal(zero, np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("problem", "program"),
    [
        (Ball(6, radius=3.0), ConicProgram(lower=-np.inf, cones=[SecondOrder(np.eye(6), d=3.0)])),
        (Ellipsoid(COVARIANCE, radius=2.0), ConicProgram(lower=-np.inf, cones=[Quadratic(COVARIANCE, r=4.0)])),
        (
            Portfolio(COVARIANCE, 0.2),
            ConicProgram(np.ones((1, 6)), [1.0], cones=[Quadratic(COVARIANCE, r=0.2)], sense="max"),
        ),
        (
            Portfolio(COVARIANCE, 0.5, budget=9.0),
            ConicProgram(np.ones((1, 6)), [9.0], cones=[Quadratic(COVARIANCE, r=0.5)], sense="max"),
        ),
    ],
    ids=["ball", "ellipsoid", "portfolio", "portfolio without a budget"],
)
def test_conic_programs_have_the_derivative_of_the_same_region(problem, program):
    costs, vectors = np.random.default_rng(1).normal(-0.3, 1, size=(2, 40, 6))
    expected = problem.derivative(costs, problem.minimize(costs), vectors)
    found = program.derivative(costs, program.minimize(costs), vectors)
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())
    prediction, true = np.abs(costs), np.abs(vectors)
    for ours, theirs in zip(
        *(Implicit().value_and_grad(prediction, Implicit().prepare(one, true), RNG) for one in (program, problem)),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, atol=2e-4)


def test_the_derivative_of_an_exponential_cone_has_a_closed_form():
    """Least `a x + b y` with `exp(x) <= y`, for `a < 0 < b`: `x = log(-a/b)`, `y = -a/b`."""
    program = ConicProgram(
        lower=[-9.0, 0.0], upper=9.0, cones=[Exponential([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]], b=[0.0, 1.0, 0.0])]
    )
    rng = np.random.default_rng(0)
    a, b = -rng.uniform(0.5, 2, size=10), rng.uniform(0.5, 2, size=10)
    costs, vectors = np.stack([a, b], axis=1), rng.normal(size=(10, 2))
    relative = vectors[:, 0] / a - vectors[:, 1] / b
    expected = np.stack([relative, -a / b * relative], axis=1)
    np.testing.assert_allclose(program.derivative(costs, program.minimize(costs), vectors), expected, atol=1e-8)


def test_the_derivative_of_a_semidefinite_cone_is_that_of_an_eigenvector():
    """The matrix of trace 1 with the least `<C, X>` is `uuᵀ`, where `u` is the eigenvector of the least eigenvalue."""
    upper = np.triu_indices(4)
    places = np.zeros((4, 4), dtype=int)
    places[upper] = places.T[upper] = np.arange(10)
    trace = np.isin(np.arange(10), np.diag(places)).astype(float)
    program = ConicProgram(A_eq=[trace], b_eq=[1.0], lower=-np.inf, cones=[Semidefinite.of_variables(places, n=10)])
    costs, vectors = np.random.default_rng(0).normal(size=(2, 8, 10))

    def expected(cost, vector):
        C, change = np.where(np.eye(4), cost[places], cost[places] / 2), np.where(np.eye(4), 1, 0.5) * vector[places]
        values, axes = np.linalg.eigh(C)
        least = axes[:, 0]
        moved = sum(
            (u @ change @ least) / (values[0] - value) * u for value, u in zip(values[1:], axes.T[1:], strict=True)
        )
        return (np.outer(moved, least) + np.outer(least, moved))[upper]

    found = program.derivative(costs, program.minimize(costs), vectors)
    np.testing.assert_allclose(found, [expected(*row) for row in zip(costs, vectors, strict=True)], atol=1e-9)


@pytest.mark.parametrize(("size", "n"), [(3, 4), (5, 7)])
def test_semidefinite_cones_beside_other_constraints(size, n):
    """Matrices of several ranks, an inequality and bounds; by differences of decisions."""
    rng = np.random.default_rng(0)
    matrices = rng.normal(size=(size, size, n))
    cone = Semidefinite(matrices + matrices.transpose(1, 0, 2), b=np.eye(size))
    program = ConicProgram(np.ones((1, n)), [0.3], lower=-1.0, upper=1.0, cones=[cone])
    costs, vectors = rng.normal(size=(2, 12, n))
    found = program.derivative(costs, program.minimize(costs), vectors)
    apart = np.abs(found - slopes(program, costs, vectors, step=1e-3)).max(axis=1)
    assert np.median(apart) < 1e-3
    assert (np.abs(found).max(axis=1) > 0.03).sum() > 3  # the other decisions are at corners
    np.testing.assert_allclose(program.derivative(costs, costs, costs), 0, atol=1e-9)
    jacobian = np.stack([program.derivative(costs, costs, np.tile(unit, (12, 1))) for unit in np.eye(n)], axis=2)
    np.testing.assert_allclose(jacobian, jacobian.transpose(0, 2, 1), atol=1e-9)
    assert np.linalg.eigvalsh(jacobian).max() < 1e-9


def test_conic_programs_of_several_constraints_and_fewer_costs_than_variables():
    """Two cones, an inequality, an equation, bounds, and costs on sums of variables; by differences of decisions."""
    rng = np.random.default_rng(2)
    matrix = rng.normal(size=(4, 5))
    program = ConicProgram(
        rng.uniform(size=(1, 5)), [1.0], np.ones((1, 5)), [0.7], lower=-1.0, upper=0.6, costs=matrix,
        cones=[SecondOrder(np.eye(5), d=1.0), Quadratic(np.diag([1.0, 2.0, 3.0, 4.0, 5.0]), q=0.1 * np.ones(5), r=1.2)],
    )  # fmt: skip
    costs, vectors = rng.normal(size=(2, 12, 4))
    found = program.derivative(costs, program.minimize(costs), vectors)
    differences = slopes(program, costs, vectors, step=1e-2)
    apart = np.abs(found - differences).max(axis=1) / np.abs(found).max(axis=1)
    assert np.median(apart) < 1e-2  # steps so long cross a kink now and then
    assert (apart < 0.1).mean() > 0.7
    # At a kink no longer: the Jacobian is symmetric, negative semidefinite, and the costs themselves move nothing.
    jacobian = np.stack([program.derivative(costs, costs, np.tile(unit, (12, 1))) for unit in np.eye(4)], axis=2)
    np.testing.assert_allclose(jacobian, jacobian.transpose(0, 2, 1), atol=1e-7 * np.abs(jacobian).max())
    assert np.linalg.eigvalsh(jacobian).max() < 1e-7
    np.testing.assert_allclose(program.derivative(costs, costs, costs), 0, atol=1e-7)


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("by_row", [False, True])
def test_conic_programs_with_known_costs(sense, by_row):
    """The regret of the whole objective, and its gradient in the predicted costs: on a ball both have a closed form."""
    rng = np.random.default_rng(3)
    matrix, known = rng.normal(size=(3, 4)), rng.normal(size=(10, 4) if by_row else 4)
    program = ConicProgram(
        lower=-np.inf, cones=[SecondOrder(np.eye(4), d=2.0)], costs=matrix, known=known, offset=1.0, sense=sense
    )
    prediction, costs = rng.normal(size=(2, 10, 3))
    loss = Implicit()
    values, gradient = loss.value_and_grad(prediction, loss.prepare(program, costs), rng)
    ball, sign = Ball(4, radius=2.0), -1.0 if sense == "max" else 1.0
    predicted, true = (sign * (part @ matrix + known) for part in (prediction, costs))
    decided = ball.minimize(predicted)
    np.testing.assert_allclose(values, (true * (decided - ball.minimize(true))).sum(axis=1), atol=1e-6)
    expected = sign * ball.derivative(predicted, decided, true) @ matrix.T
    np.testing.assert_allclose(gradient, expected, atol=1e-8 * np.abs(expected).max())


def test_after_solving_the_derivative_solves_nothing_anew(monkeypatch):
    program = ConicProgram(lower=-np.inf, cones=[SecondOrder(np.eye(3), d=1.0)])
    costs = np.random.default_rng(0).normal(size=(4, 3))
    fresh = program.derivative(costs, costs, np.ones((4, 3)))
    decisions = program.minimize(costs)
    monkeypatch.setattr(program._solver, "_solve", lambda _: pytest.fail("solved"))
    np.testing.assert_array_equal(program.derivative(costs, decisions, np.ones((4, 3))), fresh)


def test_the_contract_on_portfolios_by_row():
    check_loss(Implicit(), Portfolio([(1 + k) * COVARIANCE for k in range(12)], 0.3))


def test_it_trains_where_a_linear_model_cannot_be_right():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 2))
    costs = np.exp(X @ rng.normal(size=(2, 4)))
    problem = Ball(4)
    start = WiseRegressor().fit(X[:300], costs[:300])
    model = DecisionRegressor(problem, "implicit", epochs=30, random_state=0).fit(X[:300], costs[:300])
    regrets = [normalized_regret(problem, m.predict(X[:300]), costs[:300]) for m in (model, start)]
    assert regrets[0] < regrets[1]


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (ShortestPath(3, 3), r"on the polytope of ShortestPath that is constant almost everywhere.*Choose Qptl"),
        (KnownCosts(Ball(2), [1.0, 0.0]), r"KnownCosts with known costs has none.*such as SpoPlus or Pfy"),
        (ConicProgram(upper=[1.0, 1.0]), r"ConicProgram has none: all its constraints are linear.*such as SpoPlus"),
        (CountedProblem(ConicProgram(upper=[1.0, 1.0])), r"CountedProblem has none: all its constraints are linear"),
        (
            ConicProgram(cones=[ConeRows(-csr_array(np.eye(3)), np.zeros(3), (("PowerConeT", 0.3),))], upper=1.0),
            r"ConicProgram has none: that of a power cone is not written.*such as SpoPlus",
        ),
    ],
)
def test_other_regions_are_refused(problem, sentence):
    with pytest.raises(ValueError, match=sentence):
        Implicit().prepare(problem, np.ones((2, problem.n_costs)))


def test_a_problem_without_a_derivative_says_so():
    with pytest.raises(ValueError, match="ShortestPath has no derivative"):
        ShortestPath(2, 2).derivative(*np.ones((3, 1, 4)))
