"""What is checked around every `minimize`, whoever wrote it and whoever calls it."""

import numpy as np
import pytest

from decidewise import SolverError
from decidewise.losses import Pfy, SpoPlus
from decidewise.problems import Assignment, CachedProblem, CountedProblem, Problem, TopK, TravellingSalesman


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
