"""Each thing that `check_loss` promises to find, found in a loss that is broken in just that way."""

import re
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from decidewise.losses import SHARED, DecisionTarget, Loss, Mse, SpoPlus, Target, row_dot
from decidewise.problems import Ball, TopK
from decidewise.testing import check_loss

PROBLEM = TopK(5, 2)  # a maximisation


@dataclass(frozen=True)
class Regret(Loss):
    """The regret, with a gradient that is not its own."""

    gradient = "surrogate"

    def evaluate(self, prediction, target, rng):
        return row_dot(target.costs, target.minimize(prediction)) - target.values, -target.costs


class Undeclared(Regret):
    gradient = "good"


class OneRow(Regret):
    refresh_every = 0


class Averages(Regret):
    def evaluate(self, prediction, target, rng):
        values, gradient = super().evaluate(prediction, target, rng)
        return values.mean(keepdims=True), gradient


class ValuesOnly(Regret):
    def evaluate(self, prediction, target, rng):
        return super().evaluate(prediction, target, rng)[0]


class NotFinite(Regret):
    def evaluate(self, prediction, target, rng):
        values, gradient = super().evaluate(prediction, target, rng)
        return np.full_like(values, np.inf), gradient


class WritesToCosts(Regret):
    def evaluate(self, prediction, target, rng):
        target.costs[0] = 0.0
        return super().evaluate(prediction, target, rng)


class WritesToPrediction(SpoPlus):
    def evaluate(self, prediction, target, rng):
        prediction += 1.0
        return super().evaluate(prediction, target, rng)


class Draws(Regret):
    def evaluate(self, prediction, target, rng):
        return super().evaluate(prediction + 1e-9 * rng.normal(size=prediction.shape), target, rng)


class DrawsNothing(Regret):
    random = True


class DrawsElsewhere(Regret):
    random = True

    def evaluate(self, prediction, target, rng):
        rng.random()
        noise = np.random.default_rng().normal(size=len(prediction))
        values, gradient = super().evaluate(prediction, target, rng)
        return values + noise, gradient


class SolverFree(Regret):
    solves = False


class SolvesNothing(Mse):
    solves = True
    native = None


class MeanOfBatch(Regret):
    def evaluate(self, prediction, target, rng):
        values, gradient = super().evaluate(prediction, target, rng)
        return values - values.mean(), gradient


class SolvesInItsSense(Regret):
    def evaluate(self, prediction, target, rng):
        return row_dot(target.costs, target.problem.solve(prediction)) - target.values, -target.costs


class NoPickle(Regret):
    def __getstate__(self):
        raise TypeError("an open solver")


@dataclass(frozen=True)
class ForgetsItsParameter(Regret):
    shift: float = 0.0

    def __reduce__(self):
        return ForgetsItsParameter, (1.0,)

    def evaluate(self, prediction, target, rng):
        values, gradient = super().evaluate(prediction, target, rng)
        return values + self.shift, gradient


class WrongGradient(SpoPlus):
    def evaluate(self, prediction, target, rng):
        values, gradient = super().evaluate(prediction, target, rng)
        return values, gradient / 2


class RefreshesInPlace(Regret):
    refresh_every = 1

    def refresh(self, prediction, target, rng):
        target.values[:] += 1
        return target


class RefreshesToAnother(Regret):
    refresh_every = 1

    def refresh(self, prediction, target, rng):
        return Target(target.problem, target.costs)


class LosesRows(Regret):
    refresh_every = 1

    def refresh(self, prediction, target, rng):
        return target[:3]


class OtherNative(Mse):
    def evaluate(self, prediction, target, rng):
        values, gradient = super().evaluate(prediction, target, rng)
        return 2 * values, 2 * gradient


class NativeMean(Mse):
    @staticmethod
    def native(prediction, costs):
        return ((prediction - costs) ** 2).mean()


@dataclass(frozen=True)
class PoolTarget(DecisionTarget):
    pool: np.ndarray  # not declared as shared


class UndeclaredPool(Regret):
    target_type = PoolTarget

    def label(self, problem, costs, X, rng):
        solved = DecisionTarget.of(problem, costs)
        return PoolTarget(problem, costs, solved.decisions, solved.values, solved.decisions[:3])


class AnotherTarget(Regret):
    def label(self, problem, costs, X, rng):
        return Target(problem, costs)


BROKEN = {
    "a loss must be an object of a class derived from decidewise.losses.Loss; got a str.": "spo+",
    'Undeclared must declare its gradient as "exact", "subgradient" or "surrogate"; it is \'good\'.': Undeclared(),
    "OneRow.refresh_every must be a number of epochs, at least 1, or None; it is 0.": OneRow(),
    "Averages.evaluate must return values of shape (12,) and float64; it returned an array of shape (1,)": Averages(),
    "ValuesOnly.evaluate must return the values and the gradient; it returned an array of shape (12,)": ValuesOnly(),
    "NotFinite.evaluate returned values with numbers that are not finite.": NotFinite(),
    "WritesToPrediction writes to the prediction that it is given. Copy first.": WritesToPrediction(),
    "WritesToCosts writes to the costs of the target that it is given. Copy first.": WritesToCosts(),
    "Draws declares random = False, but its evaluate draws random numbers from rng. Set random = True.": Draws(),
    "DrawsNothing declares random = True, but its evaluate draws no random numbers from rng.": DrawsNothing(),
    "DrawsElsewhere gives other numbers for the same seed. Draw only from the rng that is passed": DrawsElsewhere(),
    "SolverFree declares solves = False, but its evaluate took 12 solver calls. Set solves = True.": SolverFree(),
    "SolvesNothing declares solves = True, but its evaluate took 0 solver calls. Set solves = False.": SolvesNothing(),
    "MeanOfBatch gives a row another value or gradient in another batch. Compute each row by itself": MeanOfBatch(),
    "SolvesInItsSense differs between a maximisation and the same problem as a minimisation": SolvesInItsSense(),
    "NoPickle cannot be pickled with its target. Define its class in a module, and hold plain data: TypeError: an open":
        NoPickle(),
    "ForgetsItsParameter gives other numbers after it is pickled. Keep its parameters in": ForgetsItsParameter(),
    "row 0: the gradient of WrongGradient is [": WrongGradient(),
    "RefreshesInPlace.refresh changes the target that it is given. Return a new one": RefreshesInPlace(),
    "RefreshesToAnother cannot refresh its target: TypeError: RefreshesToAnother.refresh must return a DecisionTarget, "
    "the target_type of RefreshesToAnother, of 12 rows; it returned Target.": RefreshesToAnother(),
    "LosesRows.refresh must return a DecisionTarget, the target_type of LosesRows, of 12 rows; it returned one of 3 "
    "rows.": LosesRows(),
    "row 0: OtherNative.native and OtherNative.evaluate give different values.": OtherNative(),
    "NativeMean.native must return one value per row, of shape (12,); it returned ().": NativeMean(),
    "UndeclaredPool cannot prepare its labels: ValueError: PoolTarget.pool must be an array with one row for each of "
    "the 12 samples; it is of shape (3, 5). If all samples share it, declare it as pool: ... = field(metadata=SHARED).":
        UndeclaredPool(),
    "AnotherTarget.label must return a DecisionTarget": AnotherTarget(),
}  # fmt: skip


@pytest.mark.parametrize(
    ("sentence", "loss"), BROKEN.items(), ids=[type(broken).__name__ for broken in BROKEN.values()]
)
def test_what_is_broken_is_named(sentence, loss):
    with pytest.raises(AssertionError, match=re.escape(sentence)):
        check_loss(loss, PROBLEM)


def test_a_problem_that_the_loss_does_not_accept_is_named():
    class Needy(Regret):
        requires = frozenset({"polyhedron"})

    with pytest.raises(AssertionError, match="Needy does not accept the problem: ValueError: Needy needs linear"):
        check_loss(Needy(), Ball(3))


@dataclass(frozen=True)
class WeightedTarget(DecisionTarget):
    """Every sample has a weight, and all share a scale for each item."""

    weights: np.ndarray
    scale: np.ndarray = field(metadata=SHARED)


@dataclass(frozen=True)
class Weighted(Loss):
    """The weighted squared error, relative to the spread of each cost, with weights from the features."""

    gradient = "exact"
    target_type = WeightedTarget
    solves = False
    requires = frozenset({"features"})
    refresh_every = 2

    def label(self, problem, costs, X, rng):
        solved = DecisionTarget.of(problem, costs)
        return WeightedTarget(problem, costs, solved.decisions, solved.values, np.exp(X[:, 0]), costs.std(axis=0))

    def evaluate(self, prediction, target, rng):
        residual = (prediction - target.costs) / target.scale
        return target.weights * row_dot(residual, residual), 2 * target.weights[:, None] * residual / target.scale

    def refresh(self, prediction, target, rng):
        return replace(target, scale=np.abs(prediction - target.costs).mean(axis=0))


@pytest.mark.parametrize("problem", [PROBLEM, TopK(5, 2, sense="min"), Ball(3)])
@pytest.mark.parametrize("loss", [Regret(), Weighted()])
def test_what_is_right_passes(loss, problem):
    check_loss(loss, problem)
    rng = np.random.default_rng(3)
    check_loss(loss, problem, costs=rng.uniform(1, 2, size=(7, problem.n_costs)), X=rng.normal(size=(7, 2)), seed=5)
