"""The check of a loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray, all_finite, as_matrix
from decidewise.losses import Loss, Target
from decidewise.problems.contract import Problem, sign_of
from decidewise.problems.views import lift
from decidewise.problems.wrappers import CountedProblem
from decidewise.testing.problems import mirrored
from decidewise.testing.requirements import (
    ROUNDING,
    described,
    pickled,
    require,
    require_no_error,
    require_rows,
    require_same,
    shown_row,
)

_STEP = 1e-6


def check_loss(loss: Loss, problem: Problem, *, costs: Any = None, X: Any = None, seed: int = 0) -> None:
    """Check on a problem that a loss keeps the contract of `Loss`.

    It checks shapes and types; gradients by finite differences, unless they are declared as surrogates; the sense; that
    no row depends on the other rows of its batch; that random numbers and solver calls are used exactly if declared;
    that inputs and targets are not changed; slicing and pickling; and `refresh` and `native` if the loss has them. The
    problem may have known costs or differ by row.

    Parameters
    ----------
    loss : Loss
    problem : Problem
    costs : array-like of shape (n, n_costs), optional
        At least four rows, in the problem's own sense; by default 12 rows of numbers between 0.5 and 2. A problem that
        differs by row needs as many rows as it has, and gets as many by default.
    X : array-like of shape (n, p), optional
        Features, for a loss that needs them; by default four columns of normal numbers.
    seed : int
        The seed of the default costs and features, of the predictions, and of the noise of the loss.

    Examples
    --------
    >>> from decidewise.losses import SpoPlus
    >>> from decidewise.problems import TopK
    >>> check_loss(SpoPlus(), TopK(5, 2))
    """
    require(
        isinstance(loss, Loss),
        f"a loss must be an object of a class derived from decidewise.losses.Loss; got {described(loss)}.",
    )
    with require_no_error(loss, "does not accept the problem"):
        loss.check(problem)
    trial = _Trial(loss, problem, costs, X, seed)
    trial.check_declarations()
    trial.check_shapes()
    trial.check_inputs()
    trial.check_random()
    trial.check_solves()
    trial.check_rows()
    trial.check_mirrored()
    trial.check_copies()
    trial.check_gradient()
    trial.check_refresh()
    trial.check_native()


class _Trial:
    """A loss on a problem, with costs (n, d), features (n, p) and a prediction (n, d)."""

    def __init__(self, loss: Loss, problem: Problem, costs: Any, X: Any, seed: int) -> None:
        rng = np.random.default_rng(seed + 1)  # another seed than that of the noise, which must be independent
        self.loss, self.problem, self.seed, self.name = loss, problem, seed, type(loss).__name__
        costs = rng.uniform(0.5, 2.0, size=(problem.n_rows or 12, problem.n_costs)) if costs is None else costs
        self.costs = as_matrix(costs, n_columns=problem.n_costs)
        self.prediction = rng.normal(scale=0.3, size=self.costs.shape)
        self.X = rng.normal(size=(len(self.costs), 4)) if X is None else as_matrix(X, name="X")

    def prepare(self, problem: Problem | None = None, costs: FloatArray | None = None) -> Target:
        problem, costs = self.problem if problem is None else problem, self.costs if costs is None else costs
        with require_no_error(self.loss, "cannot prepare its labels"):
            return self.loss.prepare(problem, costs, X=self.X, rng=np.random.default_rng(self.seed))

    def evaluate(
        self, prediction: FloatArray, target: Target, rng: np.random.Generator | None = None
    ) -> tuple[FloatArray, FloatArray]:
        rng = np.random.default_rng(self.seed) if rng is None else rng
        with require_no_error(self.loss, "cannot be evaluated"):
            return self.loss.value_and_grad(prediction, target, rng)

    def check_declarations(self) -> None:
        declared, every = getattr(self.loss, "gradient", None), self.loss.refresh_every
        require(
            declared in ("exact", "subgradient", "surrogate"),
            f'{self.name} must declare its gradient as "exact", "subgradient" or "surrogate"; it is {declared!r}.',
        )
        require(
            every is None or (isinstance(every, int) and every >= 1),
            f"{self.name}.refresh_every must be a number of epochs, at least 1, or None; it is {every!r}.",
        )

    def as_seen(self, target: Target) -> FloatArray:
        """Return a copy of the prediction as `evaluate` sees it: to be minimised, and lifted beside known costs."""
        sign = sign_of(self.problem)
        return sign * lift(target.problem, self.prediction)

    def check_shapes(self) -> None:
        target = self.prepare()
        with require_no_error(self.loss, "cannot be evaluated"):
            found = self.loss.evaluate(self.as_seen(target), target, np.random.default_rng(self.seed))
        require(
            isinstance(found, tuple) and len(found) == 2,
            f"{self.name}.evaluate must return the values and the gradient; it returned {described(found)}.",
        )
        for what, array, shape in (
            ("values", found[0], target.costs.shape[:1]),
            ("a gradient", found[1], target.costs.shape),
        ):
            require(
                isinstance(array, np.ndarray) and array.shape == shape and array.dtype == np.float64,
                f"{self.name}.evaluate must return {what} of shape {shape} and float64; it returned "
                f"{described(array)}. A loss takes no mean over the batch.",
            )
            require(all_finite(array), f"{self.name}.evaluate returned {what} with numbers that are not finite.")

    def check_inputs(self) -> None:
        costs, X = self.costs.copy(), self.X.copy()
        with require_no_error(self.loss, "cannot prepare its labels"):
            target = self.loss.prepare(self.problem, costs, X=X, rng=np.random.default_rng(self.seed))
        labelled, prediction = target.costs.copy(), self.as_seen(target)
        with require_no_error(self.loss, "cannot be evaluated"):
            self.loss.evaluate(prediction, target, np.random.default_rng(self.seed))
        for what, given, before in (
            ("prediction", prediction, self.as_seen(target)),
            ("costs", costs, self.costs),
            ("features", X, self.X),
            ("costs of the target", target.costs, labelled),
        ):
            require(np.array_equal(given, before), f"{self.name} writes to the {what} that it is given. Copy first.")

    def check_random(self) -> None:
        rng = np.random.default_rng(self.seed)
        values, gradient = self.evaluate(self.prediction, self.prepare(), rng)
        drew = rng.bit_generator.state != np.random.default_rng(self.seed).bit_generator.state
        require(
            drew == self.loss.random,
            f"{self.name} declares random = {self.loss.random}, but its evaluate "
            f"{'draws' if drew else 'draws no'} random numbers from rng. Set random = {drew}.",
        )
        again, gradient_again = self.evaluate(self.prediction, self.prepare())
        require(
            np.array_equal(values, again) and np.array_equal(gradient, gradient_again),
            f"{self.name} gives other numbers for the same seed. Draw only from the rng that is passed.",
        )

    def check_solves(self) -> None:
        counted = CountedProblem(self.problem)
        target = self.prepare(counted)
        n_labels = counted.n_solves
        self.evaluate(self.prediction, target)
        solved = counted.n_solves > n_labels
        require(
            solved == self.loss.solves,
            f"{self.name} declares solves = {self.loss.solves}, but its evaluate took {counted.n_solves - n_labels} "
            f"solver calls. Set solves = {solved}.",
        )

    def check_rows(self) -> None:
        target, rows = self.prepare(), np.array([3, 0, 2])
        batch = target[rows]
        require(len(batch) == len(rows), f"{len(rows)} rows of a {type(target).__name__} have length {len(batch)}.")
        batch_values, batch_gradient = self.evaluate(self.prediction[rows], batch)
        if self.loss.random:  # a batch has other noise than all rows together
            return
        values, gradient = self.evaluate(self.prediction, target)
        sentence = (
            f"{self.name} gives a row another value or gradient in another batch. Compute each row by itself; compute "
            "data that all rows share in label, and keep them in a field(metadata=SHARED) of the target."
        )
        require_same(batch_values, values[rows], ROUNDING, sentence)
        require_same(batch_gradient, gradient[rows], ROUNDING, sentence)

    def check_mirrored(self) -> None:
        values, gradient = self.evaluate(self.prediction, self.prepare())
        target = self.prepare(mirrored(self.problem), -self.costs)
        mirrored_values, mirrored_gradient = self.evaluate(-self.prediction, target)
        sentence = (
            f"{self.name} differs between a maximisation and the same problem as a minimisation. label, evaluate and "
            "refresh always see a minimisation: call target.minimize or problem.minimize in them, not problem.solve."
        )
        require_same(mirrored_values, values, ROUNDING, sentence)
        require_same(-mirrored_gradient, gradient, ROUNDING, sentence)

    def check_copies(self) -> None:
        target = self.prepare()
        with require_no_error(
            self.loss, "cannot be pickled with its target. Define its class in a module, and hold plain data"
        ):
            loss, twin = pickled((self.loss, target))
        values, gradient = self.evaluate(self.prediction, target)
        again, gradient_again = loss.value_and_grad(self.prediction, twin, np.random.default_rng(self.seed))
        require(
            np.array_equal(values, again) and np.array_equal(gradient, gradient_again),
            f"{self.name} gives other numbers after it is pickled. Keep its parameters in the fields of a dataclass.",
        )

    def check_gradient(self) -> None:
        if self.loss.gradient == "surrogate":
            return
        target = self.prepare()
        _, gradient = self.evaluate(self.prediction, target)
        slopes = np.empty_like(gradient)
        for column, step in enumerate(_STEP * np.eye(self.costs.shape[1])):
            ahead, behind = (self.evaluate(self.prediction + shift, target)[0] for shift in (step, -step))
            slopes[:, column] = (ahead - behind) / (2 * _STEP)
        require_rows(
            np.abs(gradient - slopes) <= 1e-6 + 1e-5 * np.abs(slopes),
            lambda row: (
                f"the gradient of {self.name} is {shown_row(gradient, row)}, but {shown_row(slopes, row)} by finite "
                'differences. Correct it, or set gradient = "surrogate" if it is intentionally another direction.'
            ),
        )

    def check_refresh(self) -> None:
        if self.loss.refresh_every is None:
            return
        target = self.prepare()
        with require_no_error(self.loss, "cannot refresh its target"):
            refreshed = self.loss.refreshed(self.prediction, target, np.random.default_rng(self.seed))
        self.evaluate(self.prediction, refreshed)
        before, _ = self.evaluate(self.prediction, self.prepare())
        after, _ = self.evaluate(self.prediction, target)
        require(
            np.array_equal(before, after),
            f"{self.name}.refresh changes the target that it is given. Return a new one; see dataclasses.replace.",
        )

    def check_native(self) -> None:
        if self.loss.native is None:
            return
        values, _ = self.evaluate(self.prediction, self.prepare())
        with require_no_error(self.loss, "has a native form that fails on NumPy arrays"):
            native = np.asarray(self.loss.native(self.prediction, self.costs))
        require(
            native.shape == values.shape,
            f"{self.name}.native must return one value per row, of shape {values.shape}; it returned {native.shape}.",
        )
        sentence = (
            f"{self.name}.native and {self.name}.evaluate give different values. Correct one, or set native = None."
        )
        require_same(native, values, ROUNDING, sentence)
