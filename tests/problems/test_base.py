"""What is checked around every `minimize`, whoever wrote it and whoever calls it."""

from contextlib import suppress

import joblib
import numpy as np
import pytest
from matplotlib.figure import Figure

from decidewise import DecisionRegressor, SolverError
from decidewise.evaluate import normalized_regret
from decidewise.losses import Pfy, SpoPlus
from decidewise.problems import (
    Assignment,
    Ball,
    CachedProblem,
    CountedProblem,
    Knapsack,
    ParallelProblem,
    Problem,
    ShortestPath,
    TopK,
    TravellingSalesman,
)
from decidewise.problems.views import View


class Own(Problem):
    """A problem of a user's own, of which only the answer matters."""

    n_costs = 3

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def minimize(self, costs):
        return self.answer(costs)


def spoilt(costs):
    decisions = np.zeros_like(costs)
    decisions[costs[:, 0] > 1] = np.nan
    return decisions


COSTS = np.ones((300, 3))
COSTS[200, 0] = 2.0
CALLS = {
    "solve": lambda problem: problem.solve(COSTS),
    "minimize": lambda problem: problem.minimize(COSTS),
    "of a wrapper": lambda problem: CountedProblem(problem).solve(COSTS),
    "of a cache": lambda problem: CachedProblem(problem, 1.0, 0).solve(COSTS),
    "labels of a loss": lambda problem: SpoPlus().prepare(problem, COSTS),
}
calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


@calls
def test_a_decision_that_is_not_finite_is_named_with_its_row(call):
    with pytest.raises(SolverError, match=r"row 200: Own returned \[nan nan nan\], which is not finite"):
        call(Own(spoilt))


@calls
@pytest.mark.parametrize(
    "answer",
    [
        lambda costs: costs[0],
        lambda costs: costs[:, :2],
        lambda costs: costs.T,
        lambda costs: 1.0,
        lambda costs: costs[:1],
    ],
    ids=["one row", "a column less", "transposed", "a number", "to be broadcast"],
)
def test_decisions_of_another_shape_are_refused(call, answer):
    with pytest.raises(ValueError, match=r"Own\.minimize must return one decision for each row of costs, of shape"):
        call(Own(answer))


@calls
@pytest.mark.parametrize("answer", [lambda costs: None, lambda costs: "left", lambda costs: [[1], [2, 3]]])
def test_what_is_no_array_is_refused(call, answer):
    with pytest.raises(ValueError, match="what minimize returns must be an array of real numbers"):
        call(Own(answer))


def test_whole_numbers_and_lists_become_floats():
    for answer in (lambda costs: np.ones(costs.shape, dtype=int), lambda costs: [[True] * 3] * len(costs)):
        decisions = Own(answer).solve(COSTS)
        assert decisions.dtype == np.float64
        assert decisions.all()


@pytest.mark.parametrize("problem", [Assignment(2), TravellingSalesman(4), TopK(4, 2)], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_no_number_that_is_not_finite_reaches_a_solver(problem, bad):
    costs = np.ones((3, problem.n_costs))
    costs[1, 2] = bad
    for minimize in (problem.minimize, CountedProblem(problem).minimize):
        with pytest.raises(ValueError, match="costs must be finite; row 1, column 2"):
            minimize(costs)


def test_a_row_that_fails_in_a_loss_is_named_as_in_the_batch():
    problem = TopK(3, 1, sense="min")
    loss = Pfy(n_samples=4, sigma=1e-3)
    target = loss.prepare(problem, np.eye(3))
    problem.minimize = Own(spoilt).minimize  # from here on, the row whose first cost is above 1 fails
    with pytest.raises(SolverError, match="row 2: Own returned"):
        loss.value_and_grad([[0.0, 0, 1], [0, 1, 0], [2, 0, 0]], target, np.random.default_rng(0))


def test_what_a_class_of_ones_own_forgot_is_shown():
    class Forgetful(Problem):
        def minimize(self, costs):
            return costs

    assert repr(Forgetful()) == "Forgetful(n_costs=None, sense='min')"


class Wholes(Own):
    """In integers."""

    is_integer = True


class TestRelaxation:
    def test_of_a_problem_that_is_not_in_integers_is_the_problem(self):
        for problem in (Ball(3), ShortestPath(3, 3), TopK(5, 2)):
            costs = np.random.default_rng(0).normal(size=(9, problem.n_costs))
            np.testing.assert_array_equal(problem.minimize_relaxation(costs), problem.minimize(costs))

    def test_in_integers_is_that_of_the_polyhedron_whatever_the_sense(self):
        costs = np.array([[-1.0, -3.0], [-3.0, -1.0], [-1.0, 1.0]])
        for sense in ("min", "max"):
            relaxed = Knapsack([[2.0, 3.0]], [4.0], sense=sense).minimize_relaxation(costs)
            np.testing.assert_allclose(relaxed, [[0.5, 1], [1, 2 / 3], [1, 0]], atol=1e-12)

    def test_without_a_polyhedron_there_is_none(self):
        with pytest.raises(
            ValueError, match="Wholes is an integer problem without a polyhedron, so its relaxation is unknown"
        ):
            Wholes(np.sign).minimize_relaxation(COSTS)

    def test_one_of_a_class_of_ones_own_is_checked_as_minimize_is(self):
        class Fast(Wholes):
            def minimize_relaxation(self, costs):
                return self.answer(costs)

        with pytest.raises(SolverError, match=r"row 200: Fast returned \[nan nan nan\], which is not finite"):
            Fast(spoilt).minimize_relaxation(COSTS)
        with pytest.raises(ValueError, match=r"Fast\.minimize_relaxation must return one decision for each row"):
            Fast(lambda costs: costs[0]).minimize_relaxation(COSTS)
        with pytest.raises(ValueError, match="costs must be finite; row 0, column 0"):
            Fast(np.sign).minimize_relaxation(np.full((1, 3), np.nan))

    def test_wrappers_delegate_it(self):
        inner = Knapsack([[2.0, 3.0]], [4.0])
        costs = np.random.default_rng(0).normal(size=(40, 2))
        expected = inner.minimize_relaxation(costs)
        counted = CountedProblem(inner)
        with joblib.parallel_config(backend="threading"):
            for problem in (counted, CachedProblem(counted, 0.0, 0), ParallelProblem(inner, n_jobs=2)):
                np.testing.assert_array_equal(problem.minimize_relaxation(costs), expected)
        assert counted.n_solves == 80
        assert counted.seconds > 0


def test_what_is_around_a_problem_that_keeps_state_keeps_it_too():
    class Plain(View):
        def minimize(self, costs):
            return self.problem.minimize(costs)

    assert not Plain(TopK(3, 1)).keeps_state
    assert Plain(CountedProblem(TopK(3, 1))).keeps_state
    with pytest.raises(ValueError, match="Plain keeps state, which workers would lose"):
        ParallelProblem(Plain(CountedProblem(TopK(3, 1))))


def test_a_problem_needs_no_more_than_its_costs_and_minimize():
    """Also around wrappers, in losses, in training and in scoring."""
    problem = Own(lambda costs: np.eye(3)[costs.argmin(axis=1)])
    X, costs = np.random.default_rng(0).normal(size=(2, 20, 3))
    model = DecisionRegressor(CountedProblem(problem), epochs=1, learning_rate=1e-9, random_state=0).fit(X, costs)
    assert normalized_regret(problem, model.predict(X), costs) >= 0


def test_a_view_forwards_every_member_of_the_contract():
    asked = []

    class Inside(Problem):
        n_costs = 2

        def minimize(self, costs):
            return np.zeros_like(costs)

        def __getattribute__(self, name):
            asked.append(name)
            return super().__getattribute__(name)

    view = View(Inside())
    rows = np.ones((1, 2))
    arguments = {
        "solve": (rows,), "solve_details": (rows,), "explain": (rows,), "as_costs": (rows,), "solution": (rows,),
        "minimize": (rows,), "minimize_relaxation": (rows,),
        "plot": (rows[0], None, Figure().add_subplot()),
        "polyhedron_at": (rows, rows), "derivative": (rows, rows, rows), "minimize_lifted": (np.ones((1, 3)),),
    }  # fmt: skip
    members = {name for name in {*vars(Problem), *Problem.__annotations__} if not name.startswith("_")}
    for name in members - {"take", "lifted"}:  # without rows and known costs, the view itself
        with suppress(ValueError):
            value = getattr(view, name)
            if callable(value):
                value(*arguments[name])
        assert {"solve": "minimize", "solve_details": "minimize", "explain": "minimize"}.get(name, name) in asked
