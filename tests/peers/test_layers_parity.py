"""Values and gradients of implicit differentiation equal those of qpth and cvxpylayers (which calls diffcp)."""

import numpy as np
import pytest

from decidewise.losses import Implicit, Qptl
from decidewise.problems import (
    Ball,
    ConicProgram,
    Ellipsoid,
    Knapsack,
    Portfolio,
    Quadratic,
    SecondOrder,
    Semidefinite,
    TopK,
)
from decidewise.solvers import conic

torch = pytest.importorskip("torch")
N = 6
COVARIANCE = np.array([[1.0, 0.2, 0.1], [0.2, 0.8, 0.3], [0.1, 0.3, 1.5]])


def draw(n_costs):
    rng = np.random.default_rng(0)
    return rng.normal(0.5, 1, size=(N, n_costs)), rng.uniform(0.5, 2, size=(N, n_costs))


def check(loss, problem, decide):
    """Compare with a layer from costs to be minimised, a tensor (n, d), to decisions."""
    prediction, costs = draw(problem.n_costs)
    target = loss.prepare(problem, costs)
    values, gradient = loss.value_and_grad(prediction, target, np.random.default_rng(0))
    sign = -1.0 if problem.sense == "max" else 1.0
    theirs = torch.tensor(prediction, requires_grad=True)
    regret = (sign * torch.tensor(costs) * decide(sign * theirs)).sum(dim=1) - torch.tensor(target.values)
    regret.sum().backward()
    np.testing.assert_allclose(values, regret.detach(), atol=1e-5)
    np.testing.assert_allclose(gradient, theirs.grad, atol=1e-5)
    assert np.abs(gradient).max() > 0.1


@pytest.mark.filterwarnings("ignore")  # of the peers
@pytest.mark.parametrize("problem", [TopK(4, 2, sense="min"), Knapsack([[3.0, 4.0, 5.0]], [7.0])])
def test_qptl_is_qpth(problem):
    pytest.importorskip("qpth")
    from qpth.qp import QPFunction  # noqa: PLC0415

    region, d = problem.polyhedron, problem.n_costs
    G = torch.tensor(np.vstack([region.A_ub.toarray(), -np.eye(d), np.eye(d)]))
    h = torch.tensor(np.concatenate([region.b_ub, -region.lower, region.upper]))
    A, b = torch.tensor(region.A_eq.toarray()), torch.tensor(region.b_eq)
    if len(b) == 0:
        A = b = torch.empty(0, dtype=torch.float64)
    layer = QPFunction(verbose=-1, eps=1e-14, maxIter=60)
    check(Qptl(lambd=2.0), problem, lambda p: layer(2.0 * torch.eye(d, dtype=torch.float64), p, G, h, A, b))


@pytest.mark.filterwarnings("ignore")  # of the peers
@pytest.mark.parametrize(
    "problem",
    [Ball(3, radius=2.0), Ellipsoid(COVARIANCE), Portfolio(COVARIANCE, 0.3), Portfolio(COVARIANCE, 0.3, budget=9.0)],
    ids=["ball", "ellipsoid", "portfolio", "portfolio without a budget"],
)
def test_implicit_is_that_of_cvxpylayers(problem):
    cp = pytest.importorskip("cvxpy")
    pytest.importorskip("diffcp")
    pytest.importorskip("cvxpylayers")
    from cvxpylayers.torch import CvxpyLayer  # noqa: PLC0415

    w, p = cp.Variable(3), cp.Parameter(3)
    if isinstance(problem, Portfolio):
        root = np.linalg.cholesky(problem.covariance)
        constraints = [w >= 0, cp.sum(w) <= float(problem.budget), cp.norm(root.T @ w) <= float(problem.risk) ** 0.5]
    else:
        root = np.linalg.cholesky(problem.matrix) if isinstance(problem, Ellipsoid) else np.eye(3)
        constraints = [cp.norm(root.T @ w) <= problem.radius]
    layer = CvxpyLayer(cp.Problem(cp.Minimize(p @ w), constraints), parameters=[p], variables=[w])
    exact = {"solve_method": "Clarabel", "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    check(Implicit(), problem, lambda costs: layer(costs, solver_args=exact)[0])


@pytest.mark.filterwarnings("ignore")  # of the peers
def test_implicit_on_a_conic_program_is_that_of_cvxpylayers():
    cp = pytest.importorskip("cvxpy")
    pytest.importorskip("diffcp")
    pytest.importorskip("cvxpylayers")
    from cvxpylayers.torch import CvxpyLayer  # noqa: PLC0415

    problem = ConicProgram(
        [[1.0, 2.0, 1.0]], [1.5], lower=-1.0,
        cones=[Quadratic(COVARIANCE, q=[0.1, 0.0, -0.1], r=0.8), SecondOrder(np.eye(3), b=[0.3, 0.0, 0.0], d=0.9)],
    )  # fmt: skip
    w, p = cp.Variable(3), cp.Parameter(3)
    constraints = [
        w >= -1,
        w @ np.array([1.0, 2.0, 1.0]) <= 1.5,
        cp.quad_form(w, COVARIANCE) + np.array([0.1, 0.0, -0.1]) @ w <= 0.8,
        cp.norm(w + np.array([0.3, 0.0, 0.0])) <= 0.9,
    ]
    layer = CvxpyLayer(cp.Problem(cp.Minimize(p @ w), constraints), parameters=[p], variables=[w])
    exact = {"solve_method": "Clarabel", "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    check(Implicit(), problem, lambda costs: layer(costs, solver_args=exact)[0])


@pytest.mark.filterwarnings("ignore")  # of the peers
@pytest.mark.parametrize("seed", range(5))
def test_implicit_on_a_semidefinite_cone_is_that_of_cvxpylayers(seed, monkeypatch):
    """Both sides aim at a gap of 1e-12: a solver that closes a gap of ε knows a curved decision to √ε only.

    With our own aim, 1e-10, values differ by up to 1e-5 (seed 1), and gradients, which Newton's method polishes, by
    2e-6, as here.
    """
    monkeypatch.setattr(conic, "_ATTEMPTS", ((1e-12, 1e-9, 0.99), *conic._ATTEMPTS[1:]))
    cp = pytest.importorskip("cvxpy")
    pytest.importorskip("diffcp")
    pytest.importorskip("cvxpylayers")
    from cvxpylayers.torch import CvxpyLayer  # noqa: PLC0415

    matrices = np.random.default_rng(seed).normal(size=(3, 3, 4))
    matrices += matrices.transpose(1, 0, 2)
    problem = ConicProgram([np.ones(4)], [0.3], lower=-1.0, upper=1.0, cones=[Semidefinite(matrices, b=np.eye(3))])
    w, p = cp.Variable(4), cp.Parameter(4)
    matrix = np.eye(3) + sum(w[j] * matrices[:, :, j] for j in range(4))
    constraints = [w >= -1, w <= 1, cp.sum(w) <= 0.3, matrix >> 0]
    layer = CvxpyLayer(cp.Problem(cp.Minimize(p @ w), constraints), parameters=[p], variables=[w])
    exact = {"solve_method": "Clarabel", "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    check(Implicit(), problem, lambda costs: layer(costs, solver_args=exact)[0])
