import numpy as np
import pytest
from scipy.optimize import minimize as minimize_one

from decidewise.models.linear import newton
from decidewise.models.linear.newton import Derivatives
from decidewise.rows.passes import in_memory


def minimize(evaluate, *arguments, **options):
    """Minimise functions that need no pass over rows."""

    def passes(*place):
        yield from ()
        return evaluate(*place)

    return in_memory(newton.minimize(passes, *arguments, **options))


class Recorder:
    """Wraps a function of many problems and keeps what was asked and answered."""

    def __init__(self, function):
        self.function, self.calls = function, []

    def __call__(self, parameters, problems):
        derivatives = self.function(parameters, problems)
        self.calls.append((parameters.copy(), problems.copy(), derivatives.values.copy()))
        return derivatives


def exponentials(targets):
    """Return `Σ exp(x) - target·x`: one target a column, one parameter a row."""

    def evaluate(x, problems):
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.exp(x)
            hessians = mean.T[:, :, None] * np.eye(len(x))
            return Derivatives((mean - targets[:, problems] * x).sum(axis=0), mean - targets[:, problems], hessians)

    return evaluate


def test_every_problem_reaches_its_own_minimum():
    targets = np.random.default_rng(0).gamma(1, size=(3, 50)) + 0.01
    minimum = minimize(exponentials(targets), np.zeros((3, 50)), max_iter=50, tol=1e-12)
    assert minimum.converged.all()
    np.testing.assert_allclose(minimum.parameters, np.log(targets), atol=1e-6)


def test_no_accepted_step_increases_its_function_and_problems_that_are_done_drop_out():
    # From 0 the full step for a target of 4 is 3, where exp(x) - 4x is higher; it has to be halved.
    targets = np.array([[1.0, 50.0, 4.0, 0.2]])
    evaluate = Recorder(exponentials(targets))
    minimum = minimize(evaluate, np.zeros((1, 4)), max_iter=60, tol=1e-12)
    np.testing.assert_allclose(minimum.parameters, np.log(targets), rtol=1e-6, atol=1e-9)
    for problem in range(4):
        asked = [problem in problems for _, problems, _ in evaluate.calls]
        assert sum(asked) == minimum.n_iter[problem]
        assert asked == sorted(asked, reverse=True)
    values = [values[problems == 2][0] for _, problems, values in evaluate.calls if 2 in problems]
    assert values[1] > values[0] > values[2]
    assert values[-1] == min(values)


def test_steps_into_infinity_are_taken_back():
    def evaluate(x, problems):
        with np.errstate(invalid="ignore", divide="ignore"):
            return Derivatives(x[0] - np.log(x[0]), 1 - 1 / x, (1 / x[0] ** 2)[:, None, None])

    minimum = minimize(evaluate, np.array([[3.0, 0.1]]), max_iter=60, tol=1e-12)
    assert minimum.converged.all()
    np.testing.assert_allclose(minimum.parameters, 1.0, rtol=1e-6)


def test_an_indefinite_hessian_leads_down_not_to_the_saddle():
    def evaluate(x, problems):
        a, b = x
        hessians = np.zeros((x.shape[1], 2, 2))
        hessians[:, 0, 0], hessians[:, 1, 1] = 2.0, 12 * b**2 - 4
        return Derivatives(a**2 + b**4 - 2 * b**2, np.array([2 * a, 4 * b**3 - 4 * b]), hessians)

    minimum = minimize(evaluate, np.array([[1.0, -2.0, 0.5], [0.1, -0.3, 3.0]]), max_iter=60, tol=1e-12)
    assert minimum.converged.all()
    np.testing.assert_allclose(minimum.parameters, [[0, 0, 0], [1, -1, 1]], atol=1e-6)


def test_a_direction_in_which_nothing_changes_is_left_alone():
    def evaluate(x, problems):
        hessians = np.zeros((x.shape[1], 2, 2))
        hessians[:, 0, 0] = 1.0
        return Derivatives((x[0] - 1) ** 2 / 2, np.array([x[0] - 1, 0 * x[0]]), hessians)

    minimum = minimize(evaluate, np.array([[5.0], [7.0]]), max_iter=10, tol=1e-12)
    np.testing.assert_allclose(minimum.parameters, [[1.0], [7.0]], atol=1e-12)


def test_a_hard_function_agrees_with_a_general_minimiser():
    def value(x, scale):
        return (1 - x[0]) ** 2 + scale * (x[1] - x[0] ** 2) ** 2

    scales = np.array([1.0, 10.0, 100.0])

    def evaluate(x, problems):
        a, b, scale = *x, scales[problems]
        gradients = np.array([2 * (a - 1) - 4 * scale * a * (b - a**2), 2 * scale * (b - a**2)])
        hessians = np.empty((len(problems), 2, 2))
        hessians[:, 0, 0], hessians[:, 1, 1] = 2 + 12 * scale * a**2 - 4 * scale * b, 2 * scale
        hessians[:, 0, 1] = hessians[:, 1, 0] = -4 * scale * a
        return Derivatives(value(x, scale), gradients, hessians)

    start = np.array([[-1.2], [1.0]])
    minimum = minimize(evaluate, np.tile(start, 3), max_iter=100, tol=1e-14)
    assert minimum.converged.all()
    for scale, found in zip(scales, minimum.parameters.T, strict=True):
        assert value(found, scale) <= minimize_one(value, start[:, 0], args=(scale,)).fun + 1e-9


@pytest.mark.parametrize("max_iter", [1, 3])
def test_what_is_not_reached_in_time_is_reported(max_iter):
    evaluate = Recorder(exponentials(np.array([[1.0, 300.0]])))
    minimum = minimize(evaluate, np.zeros((1, 2)), max_iter=max_iter, tol=1e-12)
    assert minimum.converged.tolist() == [True, False]
    assert minimum.n_iter.tolist() == [1, max_iter]
    assert len(evaluate.calls) == max_iter
