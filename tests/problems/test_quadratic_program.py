"""Quadratic programs: against other solvers, their known part, their derivative, and what is refused."""

from itertools import combinations

import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from decidewise import DecisionRegressor, WiseRegressor, WiseRegressorCV
from decidewise.evaluate import normalized_regret
from decidewise.kit.errors import SolverError
from decidewise.losses import Implicit, registry
from decidewise.problems import KnownCosts, LinearProgram, QuadraticProgram
from decidewise.problems.views import in_unit, lift
from decidewise.solvers import quadratic
from decidewise.testing import check_problem

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(6, 6))
RISK = ROOT @ ROOT.T / 6 + 0.1 * np.eye(6)
PORTFOLIO = QuadraticProgram(-2 * RISK, A_eq=np.ones((1, 6)), b_eq=[1.0], upper=0.5, sense="max")


def random_program(rng, rank):
    """A feasible region with equations, inequalities and bounds, and a form of this rank."""
    root, inside = rng.normal(size=(6, rank)), rng.uniform(0.2, 0.8, 6)
    A, A_eq = rng.normal(size=(3, 6)), rng.normal(size=(1, 6))
    return {
        "quadratic": root @ root.T, "A_ub": A, "b_ub": A @ inside + rng.uniform(0, 0.5, 3), "A_eq": A_eq,
        "b_eq": A_eq @ inside, "upper": np.ones(6),
    }  # fmt: skip


def by_clarabel(program, costs):
    """Return the least value."""
    A = np.vstack([program["A_eq"], program["A_ub"], np.eye(6), -np.eye(6)])
    b = np.concatenate([program["b_eq"], program["b_ub"], program["upper"], np.zeros(6)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    form, cones = (
        sparse.csc_matrix(np.triu(program["quadratic"])),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(15)],
    )
    return clarabel.DefaultSolver(form, costs, sparse.csc_matrix(A), b, cones, settings).solve().obj_val


def value(program, costs, decisions):
    return (costs * decisions).sum(axis=1) + ((decisions @ program["quadratic"]) * decisions).sum(axis=1) / 2


@pytest.mark.parametrize("rank", [1, 3, 6])
@pytest.mark.parametrize("most_variables", [200, 0], ids=["DAQP", "Clarabel"])
def test_values_are_those_of_clarabel(rank, most_variables, monkeypatch):
    monkeypatch.setattr(quadratic, "_MOST_VARIABLES", most_variables)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        program, costs = random_program(rng, rank), rng.normal(size=(5, 6)) * [[0.01], [0.1], [1], [10], [100]]
        problem = QuadraticProgram(**program)
        assert (problem._curved_solver._curved is None) == (most_variables == 0)
        found = value(program, costs, problem.solve(costs))
        np.testing.assert_allclose(found, [by_clarabel(program, row) for row in costs], rtol=1e-6, atol=1e-6)


def test_values_are_those_of_slsqp():
    program, costs = random_program(RNG, 6), RNG.normal(size=(5, 6))
    for row, found in zip(costs, value(program, costs, QuadraticProgram(**program).solve(costs)), strict=True):
        limits = [
            {"type": "eq", "fun": lambda w: program["A_eq"] @ w - program["b_eq"]},
            {"type": "ineq", "fun": lambda w: program["b_ub"] - program["A_ub"] @ w},
        ]
        other = minimize(
            lambda w, row=row: row @ w + w @ program["quadratic"] @ w / 2, np.full(6, 0.5), bounds=[(0, 1)] * 6,
            constraints=limits, method="SLSQP", options={"ftol": 1e-12, "maxiter": 500},
        )  # fmt: skip
        assert found == pytest.approx(other.fun, abs=1e-7)


def test_the_best_of_all_active_sets():
    """On a simplex: solve for each set of assets that are held, and take the best that is feasible."""
    costs = RNG.normal(size=(20, 6))
    simplex = QuadraticProgram(RISK, A_eq=np.ones((1, 6)), b_eq=[1.0])
    for row, decision in zip(costs, simplex.solve(costs), strict=True):
        best, least = None, np.inf
        for held in (list(held) for k in range(1, 7) for held in combinations(range(6), k)):
            k = len(held)
            system = np.block([[RISK[np.ix_(held, held)], np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
            part = np.linalg.solve(system, np.append(-row[held], 1.0))[:k]
            w = np.zeros(6)
            w[held] = part
            if part.min() >= 0 and row @ w + w @ RISK @ w / 2 < least:
                best, least = w, row @ w + w @ RISK @ w / 2
        np.testing.assert_allclose(decision, best, atol=1e-10)


def test_the_contract_by_row_and_without_curvature():
    rng = np.random.default_rng(0)
    check_problem(PORTFOLIO.by_row(upper=rng.uniform(0.3, 1, (20, 6)), known=rng.normal(size=(20, 6))))
    for most_variables, tolerance in ((200, 1e-6), (0, 1e-4)):
        flat = QuadraticProgram(np.diag([1.0, 2.0, 0.0, 0.0]), np.ones((1, 4)), [2.0], upper=1)
        quadratic._MOST_VARIABLES, most = most_variables, quadratic._MOST_VARIABLES
        try:
            check_problem(flat, tolerance=tolerance)
            check_problem(flat.by_row(upper=rng.uniform(0.5, 1, (10, 4))), tolerance=tolerance)
        finally:
            quadratic._MOST_VARIABLES = most


def test_a_batch_equals_a_loop_to_the_bit():
    costs = RNG.normal(size=(50, 6))
    for problem in (PORTFOLIO, QuadraticProgram(np.diag([1.0, 0, 0, 1, 0, 0]), upper=1, sense="min")):
        together = problem.solve(costs)
        np.testing.assert_array_equal(together, [problem.solve(row) for row in costs])
        np.testing.assert_array_equal(together[::-1], problem.solve(costs[::-1]))


class TestKnownPart:
    def test_it_has_the_quadratic_term_known_costs_and_the_offset(self):
        known = RNG.normal(size=6)
        problem = QuadraticProgram(-RISK, A_eq=np.ones((1, 6)), b_eq=[1.0], known=known, offset=3.0, sense="max")
        costs = RNG.normal(size=(4, 6))
        decisions = problem.lifted.solve(lift(problem.lifted, costs))
        w = decisions[:, :-1]
        np.testing.assert_allclose(decisions[:, -1], -(w @ known - ((w @ RISK) * w).sum(axis=1) / 2 + 3.0))
        np.testing.assert_array_equal(problem.solve(costs), w)
        np.testing.assert_allclose(KnownCosts(problem, known).solve(costs), problem.solve(costs + known), atol=1e-12)

    def test_its_cost_scales_it(self):
        costs = RNG.normal(size=(5, 6))
        half = QuadraticProgram(-RISK, A_eq=np.ones((1, 6)), b_eq=[1.0], upper=0.5, sense="max")
        found = PORTFOLIO.lifted.minimize(np.column_stack([-costs, np.full(5, 0.5)]))
        np.testing.assert_allclose(found[:, :-1], half.solve(costs), atol=1e-12)

    def test_without_it_the_program_is_linear(self):
        costs, weights = RNG.normal(size=(6, 6)), np.array([0.0, 1.0, 0.0, 2.0, 0.0, 1e-320])
        linear = LinearProgram(A_eq=np.ones((1, 6)), b_eq=[1.0], upper=0.5)
        found = PORTFOLIO.lifted.minimize(np.column_stack([costs, weights]))[:, :-1]
        flat = [0, 2, 4, 5]
        np.testing.assert_array_equal(found[flat], linear.solve(costs[flat]))
        np.testing.assert_array_equal(found[1], PORTFOLIO.solve(-costs[1]))
        zero = QuadraticProgram(np.zeros((6, 6)), A_eq=np.ones((1, 6)), b_eq=[1.0], upper=0.5)
        np.testing.assert_array_equal(zero.solve(costs), linear.solve(costs))

    def test_below_zero_it_is_refused(self):
        with pytest.raises(ValueError, match=r"row 1: the cost of the known part is -0\.5, and QuadraticProgram"):
            PORTFOLIO.lifted.minimize(np.column_stack([np.ones((2, 6)), [1.0, -0.5]]))


class TestDerivative:
    @pytest.mark.parametrize("rank", [2, 6])
    def test_against_differences(self, rank):
        rng = np.random.default_rng(3)
        problem = QuadraticProgram(**random_program(rng, rank), known=rng.normal(size=6)).lifted
        costs = np.column_stack([rng.normal(size=(20, 6)), rng.uniform(0.5, 2, 20)])
        vectors, step = rng.normal(size=(20, 7)), 1e-6
        ahead, behind = problem.minimize(costs + step * vectors), problem.minimize(costs - step * vectors)
        found = problem.derivative(costs, problem.minimize(costs), vectors)
        np.testing.assert_allclose(found, (ahead - behind) / (2 * step), atol=1e-5)
        others = rng.normal(size=(20, 7))  # the Jacobian is symmetric
        mirrored = problem.derivative(costs, problem.minimize(costs), others)
        np.testing.assert_allclose((found * others).sum(axis=1), (mirrored * vectors).sum(axis=1), atol=1e-9)

    def test_in_another_unit(self):
        rng = np.random.default_rng(3)
        costs = np.column_stack([rng.normal(size=(20, 6)), rng.uniform(0.5, 2, 20)])
        vectors, step, problem = rng.normal(size=(20, 7)), 1e-6, in_unit(PORTFOLIO, 100.0).lifted
        ahead, behind = problem.minimize(costs + step * vectors), problem.minimize(costs - step * vectors)
        found = problem.derivative(costs, problem.minimize(costs), vectors)
        np.testing.assert_allclose(found, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-5)

    def test_by_row_with_expressions_and_without_known_part(self):
        problem = QuadraticProgram(np.eye(3), upper=5, lower=-5, costs=[[1.0, 1.0, 0.0]]).by_row(
            upper={"w0": [5.0, -2.0]}
        )
        costs, ones = np.array([[1.0], [1.0]]), np.ones((2, 1))
        np.testing.assert_allclose(problem.derivative(costs, problem.minimize(costs), ones), [[-2.0], [-1.0]])
        lifted = np.array([[1.0, 1.0], [1.0, 0.0]])
        flat = problem.lifted.derivative(lifted, problem.lifted.minimize(lifted), np.ones((2, 2)))[1]
        np.testing.assert_array_equal(flat, [0.0, 0.0])

    def test_clarabel_finds_what_binds(self, monkeypatch):
        costs, vectors = RNG.normal(size=(2, 10, 6))
        expected = PORTFOLIO.derivative(costs, PORTFOLIO.minimize(costs), vectors)
        monkeypatch.setattr(quadratic, "_MOST_VARIABLES", 0)
        twin = PORTFOLIO.by_row()
        np.testing.assert_allclose(twin.derivative(costs, twin.minimize(costs), vectors), expected, atol=1e-9)


class TestTraining:
    X = RNG.normal(size=(120, 3))
    COSTS = X @ RNG.normal(size=(3, 6)) + RNG.normal(size=(120, 6))

    @pytest.mark.parametrize("name", ["spo+", "implicit", *sorted({"cmap", "pfy", "dbb", "cost_blind"} & {*registry})])
    def test_losses_improve_on_nothing(self, name):
        model = DecisionRegressor(PORTFOLIO, name, epochs=5, random_state=0).fit(self.X, self.COSTS)
        blind = np.tile(self.COSTS.mean(axis=0), (120, 1))
        assert normalized_regret(PORTFOLIO, model.predict(self.X), self.COSTS) < normalized_regret(
            PORTFOLIO, blind, self.COSTS
        )

    def test_every_loss_trains_or_says_what_it_lacks(self):
        lacks = ("quadratic term", "polyhedron", "directions", "flat", "zeros and ones")
        costs, X, refused = self.COSTS[:10], self.X[:10], {}
        for name, cls in registry.items():
            loss, rng = cls(), np.random.default_rng(0)
            try:
                target = loss.prepare(PORTFOLIO, costs, X=X)
            except ValueError as reason:
                refused[name] = str(reason)
                continue
            values, gradient = loss.value_and_grad(costs + 0.1, target, rng)
            assert np.isfinite(values).all(), name
            assert gradient.shape == (10, 6), name
        assert {name for name, reason in refused.items() if not any(why in reason for why in lacks)} == set()

    def test_wise_and_the_choice(self):
        wise = WiseRegressor(lifted=True).fit(self.X, self.COSTS)
        chosen = WiseRegressorCV(PORTFOLIO, cv=3).fit(self.X, self.COSTS)
        blind = normalized_regret(PORTFOLIO, np.tile(self.COSTS.mean(axis=0), (120, 1)), self.COSTS)
        for model in (wise, chosen):
            assert normalized_regret(PORTFOLIO, model.predict(self.X), self.COSTS) < blind

    def test_the_gradient_of_implicit(self):
        prediction, loss = RNG.normal(size=(5, 6)), Implicit()
        target = loss.prepare(PORTFOLIO, self.COSTS[:5])
        _, gradient = loss.value_and_grad(prediction, target, RNG)
        for j in range(6):
            step = 1e-6 * np.eye(6)[j]
            ahead, behind = (loss.value_and_grad(prediction + sign * step, target, RNG)[0] for sign in (1, -1))
            np.testing.assert_allclose(gradient[:, j], (ahead - behind) / 2e-6, atol=1e-6)


class TestRefused:
    @pytest.mark.parametrize(
        ("quadratic", "options", "message"),
        [
            ([[1.0, 2.0], [2.0, 1.0]], {}, "positive semidefinite, .* its smallest eigenvalue is -1"),
            ([[1.0, 0.0], [0.0, 1.0]], {"sense": "max"}, 'negative semidefinite for sense="max".*eigenvalue is 1'),
            ([[1.0, 2.0]], {}, "quadratic must be square"),
            ([[1.0, 0.0], [1.0, 1.0]], {}, r"quadratic must be symmetric; entry \(0, 1\) is 0 and entry \(1, 0\) 1"),
            ([[np.nan, 0.0], [0.0, 1.0]], {}, "quadratic"),
            (np.eye(3), {"A_ub": [[1.0, 1.0]], "b_ub": [1.0]}, r"each of the 2 variables; got a shape of \(3, 3\)"),
            (np.eye(3), {"names": ["a", "b"]}, r"each of the 2 variables; got a shape of \(3, 3\)"),
            (np.eye(2), {"A_ub": [[1.0, 1.0]], "b_ub": [-1.0]}, "the region is empty"),
        ],
    )
    def test_bad_terms(self, quadratic, options, message):
        with pytest.raises(ValueError, match=message):
            QuadraticProgram(quadratic, **options)

    def test_a_large_term_that_is_not_convex(self):
        indices = np.arange(1_999)
        chain = sparse.coo_array((np.ones(1_999), (indices, indices + 1)), shape=(2_000, 2_000))
        with pytest.raises(ValueError, match="smallest eigenvalue is -2"):
            QuadraticProgram(chain + chain.T)

    def test_a_large_term_with_eigenvalues_near_zero_is_convex(self):
        change = sparse.diags_array([1.0, -1.0], offsets=[0, 1], shape=(1_999, 2_000))
        smooth = QuadraticProgram(
            change.T @ change, A_eq=sparse.csr_array(np.ones((1, 2_000))), b_eq=[500.0], upper=1.0
        )
        schedule = smooth.solve(np.linspace(-1, 1, 2_000))
        assert schedule.sum() == pytest.approx(500.0)
        assert np.all(np.diff(schedule) <= 1e-6)

    def test_a_cost_that_falls_without_end(self):
        flat = QuadraticProgram(np.diag([1.0, 0.0]))
        np.testing.assert_allclose(flat.solve([-1.0, 1.0]), [1.0, 0.0], atol=1e-9)
        with pytest.raises(SolverError, match="unbounded"):
            flat.solve([[1.0, 1.0], [1.0, -1.0]])
        patient = QuadraticProgram(np.diag([1.0, 0.0]), on_error="nan")
        np.testing.assert_array_equal(np.isnan(patient.solve([[1.0, 1.0], [1.0, -1.0]])), [[False] * 2, [True] * 2])

    def test_an_empty_row(self):
        by_row = QuadraticProgram(np.eye(2), [[1.0, 1.0]], [1.0]).by_row(b_ub=[[1.0], [-1.0]])
        with pytest.raises(SolverError, match=r"row 1: .*No decision keeps all constraints"):
            by_row.solve(np.ones((2, 2)))
