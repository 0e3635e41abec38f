"""The contract of a loss: call `prepare` once, then `value_and_grad` on every batch.

A new loss is one file with one class. Its methods see a minimisation, whatever the sense of the problem:

- `evaluate(prediction, target, rng)` returns the value of each row and its gradient in the prediction;
- `label(problem, costs, X, rng)` computes, once, the target that `evaluate` needs: by default the optimal decisions;
- `refresh(prediction, target, rng)` replaces the target during training, if the loss sets `refresh_every`.

If the problem has known costs, these methods see its lifted view: one more cost, which is 1, in costs and predictions,
and one more entry, the known part, in decisions. The gradient in that cost is cut off. So a loss need not know of
them. It solves by `target.minimize`, which also knows which rows of the problem a batch has.

A loss has no optimiser, no cache, no reduction over the batch and no random state. Its class attributes declare what it
needs and what kind of gradient it returns. `decidewise.testing.check_loss` checks that a loss keeps this contract.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field, fields
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from array_api_compat import array_namespace

from decidewise.kit.checks import (
    FloatArray,
    as_choice,
    as_integer,
    as_matrix,
    as_number,
    as_positive,
    as_rng,
    check_range,
    check_same_rows,
)
from decidewise.losses.parts.target import TOO_LARGE, DecisionTarget, Target, ValueAndGrad
from decidewise.problems.contract import Problem, as_problem, check_rows, sign_of
from decidewise.problems.views import in_variables, lift, n_predicted, relaxation, unlift

#: "polyhedron": linear constraints; "relaxation": the same, also where only some variables are in whole numbers;
#: "polytope": flat faces (see `Problem.faces`); "derivative": a curved region whose derivative is known;
#: "common region": decisions of one row are feasible in every other row, because the loss compares them;
#: "features": `label` uses the features.
Requirement = Literal["polyhedron", "relaxation", "polytope", "derivative", "common region", "features"]


def parameter(default: Any, check: Callable[..., Any], *, kw_only: bool = False) -> Any:
    """Return the field of a parameter: `sigma: float = parameter(1.0, as_positive)`.

    When the loss is made, `check` is called with the value and the name, and raises if the value is bad; None is not
    checked where it is the default.
    """
    return field(default=default, kw_only=kw_only, metadata={"check": check})


def count(default: int | None, minimum: int = 1) -> Any:
    """Return the field of a whole number."""
    return parameter(default, partial(as_integer, minimum=minimum))


def positive(default: float) -> Any:
    """Return the field of a positive number."""
    return parameter(default, as_positive)


def not_negative(default: float) -> Any:
    """Return the field of a number that is at least zero."""
    return parameter(default, partial(as_number, at_least=0))


def choice(default: Any, *others: Any, kw_only: bool = False) -> Any:
    """Return the field of one of some values, of which the first is the default."""
    return parameter(default, partial(as_choice, choices=(default, *others)), kw_only=kw_only)


class Loss(ABC):
    """A function of a predicted cost vector that training minimises, with its gradient.

    Examples
    --------
    A loss of your own is one class. It sees a minimisation, whatever the sense of the problem:

    >>> from decidewise.losses import row_dot
    >>> from decidewise.problems import TopK
    >>> class Perceptron(Loss):
    ...     '''How much worse the optimal decision `w` is under the prediction than the decision for it.'''
    ...
    ...     gradient = "subgradient"
    ...
    ...     def evaluate(self, prediction, target, rng):
    ...         gap = target.decisions - target.minimize(prediction)
    ...         return row_dot(prediction, gap), gap
    >>> target = Perceptron().prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> Perceptron().value_and_grad([[2.0, 1.0, 4.0]], target, np.random.default_rng(0))
    (array([1.]), array([[ 1., -1.,  0.]]))
    """

    #: What `evaluate` returns as the gradient: "exact" (the gradient of the value), "subgradient" (the gradient where
    #: the value has one) or "surrogate" (a useful direction that is not the gradient of the value).
    gradient: ClassVar[Literal["exact", "subgradient", "surrogate"]]
    #: The type of the target that `label` returns and `evaluate` takes.
    target_type: ClassVar[type[Target]] = DecisionTarget
    #: Whether `evaluate` calls the solver.
    solves: ClassVar[bool] = True
    #: Whether `evaluate` draws random numbers.
    random: ClassVar[bool] = False
    #: What the loss needs, of the problem or of the fit: `requires = frozenset({"polyhedron"})`. One that derives from
    #: another adds to what that one requires: `Cmap.requires | {"features"}`.
    requires: ClassVar[frozenset[Requirement]] = frozenset()
    #: Whether the best predictions are directions, of length at most one, rather than of the size of the costs.
    directions: ClassVar[bool] = False
    #: Training calls `refresh` every so many epochs; None means never.
    refresh_every: int | None = None
    #: The loss as a function `(prediction, costs) -> values`, (b, d), (b, d) -> (b,), of arrays of NumPy, torch or jax;
    #: torch and jax differentiate it themselves. Both arguments are in the problem's own sense, so only a loss that
    #: depends neither on the problem nor on its sense can have a native form.
    native: Callable[[Any, Any], Any] | None = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        _check_declaration(cls.__name__, cls.requires)

    def __post_init__(self) -> None:
        """Check the parameters that say how; see `parameter`."""
        for each in fields(self):  # type: ignore[arg-type]  # every loss with parameters is a dataclass
            value = getattr(self, each.name)
            if "check" in each.metadata and not (value is None and each.default is None):
                each.metadata["check"](value, name=each.name)

    def prepare(self, problem: Problem, costs: Any, *, X: Any = None, rng: np.random.Generator | None = None) -> Target:
        """Return the target that all later calls need; call this once.

        Parameters
        ----------
        problem : Problem
        costs : array-like of shape (n, d)
            In the problem's own sense.
        X : array-like of shape (n, p), optional
            The features; needed by a loss that requires "features", ignored by all others.
        rng : numpy.random.Generator, optional
            For labels that are random; by default `default_rng(0)`.

        Returns
        -------
        target : Target of n rows
        """
        self.check(problem)
        costs = as_matrix(costs, n_columns=problem.n_costs, owner=type(problem).__name__)
        features = None
        if "features" in self.requires:
            if X is None:
                raise ValueError(f"{type(self).__name__} computes its labels from the features; pass them as X.")
            features = as_matrix(X, name="X")
            check_same_rows(X=features, costs=costs)
        rng = np.random.default_rng(0) if rng is None else as_rng(rng)
        check_rows(problem, len(costs))
        problem = self._seen(problem)
        target = self.label(problem, sign_of(problem) * lift(problem, costs), features, rng)
        return self._checked_target(target, len(costs), "label")

    def value_and_grad(self, prediction: Any, target: Target, rng: np.random.Generator) -> ValueAndGrad:
        """Return the values (b,) and the gradient (b, d) with respect to the prediction (b, d).

        Both the prediction and the gradient are in the problem's own sense.
        """
        prediction = self._checked_prediction(prediction, target)
        if self.random:
            as_rng(rng)
        values, gradient = self.value_and_grad_unchecked(prediction, target, rng)
        check_range(values[:, np.newaxis], "the value of the loss", TOO_LARGE)
        check_range(gradient, "the gradient of the loss", TOO_LARGE)
        return values, gradient

    def value_and_grad_unchecked(
        self, prediction: FloatArray, target: Target, rng: np.random.Generator
    ) -> ValueAndGrad:
        """Return the same as `value_and_grad`, without checks: the prediction must be finite and of the right shape."""
        problem = target.problem
        prediction = lift(problem, prediction)
        values, gradient = self.evaluate(-prediction if problem.sense == "max" else prediction, target, rng)
        gradient = unlift(problem, gradient)
        return values, -gradient if problem.sense == "max" else gradient

    def refreshed(self, prediction: Any, target: Target, rng: np.random.Generator) -> Target:
        """Call `refresh` with a prediction (n, d) in the problem's own sense, and check the target that it returns."""
        prediction = self._checked_prediction(prediction, target)
        refreshed = self.refresh(sign_of(target.problem) * lift(target.problem, prediction), target, as_rng(rng))
        return self._checked_target(refreshed, len(target), "refresh")

    def check(self, problem: Problem) -> None:
        """Raise an error that says what to do if this loss does not work on this problem."""
        _check_requirements(self, as_problem(problem), self._seen(problem))

    def _seen(self, problem: Problem) -> Problem:
        """Return the problem as the loss sees it: lifted, unless the loss is a function of predictions and costs.

        If the loss needs constraints, it sees those variables that have them.
        """
        if self.native is not None:
            return problem
        return in_variables(problem) if self.requires & {"polyhedron", "relaxation"} else problem.lifted

    def label(self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator) -> Target:
        """Return the target of the costs: by default `target_type.of(problem, costs)`.

        Parameters
        ----------
        problem : Problem
        costs : ndarray of shape (n, d)
            To be minimised, whatever the sense of the problem.
        X : ndarray of shape (n, p), or None unless the loss requires "features"
            `DecisionRegressor` passes the features it trains on: standardised, unless `protocol="paper"`.
        rng : numpy.random.Generator
        """
        return self.target_type.of(problem, costs)

    @abstractmethod
    def evaluate(self, prediction: FloatArray, target: Any, rng: np.random.Generator) -> ValueAndGrad:
        """Return values (b,) and gradient (b, d) for a minimisation."""

    def refresh(self, prediction: FloatArray, target: Any, rng: np.random.Generator) -> Target:
        """Return the target for the next epochs, given the present predictions (n, d) of all rows, for a minimisation.

        Training calls it every `refresh_every` epochs; the rows it solves count as solver calls.
        """
        return target

    def _checked_target(self, target: Target, n_rows: int, method: str) -> Target:
        if not isinstance(target, self.target_type) or len(target) != n_rows:
            name = type(self).__name__
            came = f"one of {len(target)} rows" if isinstance(target, self.target_type) else type(target).__name__
            raise TypeError(
                f"{name}.{method} must return a {self.target_type.__name__}, the target_type of {name}, of {n_rows} "
                f"rows; it returned {came}."
            )
        return target

    def _checked_prediction(self, prediction: Any, target: Target) -> FloatArray:
        if not isinstance(target, self.target_type):
            raise TypeError(
                f"target must be what {type(self).__name__}().prepare(problem, costs) returns; got an object of type "
                f"{type(target).__name__}."
            )
        n_columns = n_predicted(target.problem)
        prediction = as_matrix(prediction, name="prediction", n_columns=n_columns, owner="the target")
        if len(prediction) != len(target):
            raise ValueError(
                f"prediction has {len(prediction)} rows and the target {len(target)}; take the same rows of both."
            )
        return prediction


def _check_declaration(name: str, requires: object) -> None:
    """Raise unless what a class of losses declares is a set of requirements."""
    if not isinstance(requires, frozenset) or not requires <= frozenset(get_args(Requirement)):
        raise TypeError(
            f"{name}.requires must be a frozenset of some of {', '.join(map(repr, get_args(Requirement)))}; got "
            f"{requires!r}."
        )


def _check_requirements(loss: Loss, problem: Problem, seen: Problem) -> None:
    """Raise an error that says what to do if a problem lacks what a loss requires.

    Parameters
    ----------
    loss : Loss
    problem : Problem
    seen : Problem
        The view of the problem that the loss works on.
    """
    name, its, requires = type(loss).__name__, type(problem).__name__, loss.requires
    if loss.directions and problem.has_known:
        raise ValueError(
            f"{name} predicts directions, which cannot be added to the known costs of {its}. Choose a loss whose "
            "predictions are costs, such as SpoPlus or Mse, or fit WiseRegressor(lifted=True)."
        )
    if "common region" in requires and problem.n_rows is not None:
        raise ValueError(
            f"{name} compares each row with decisions of other rows, and {its} differs by row, so there they may "
            "not be feasible, or not cost the same. Choose a loss that solves each row by itself, such as SpoPlus "
            "or Pfy."
        )
    is_flat = problem.faces == "flat" or problem.is_integer or problem.polyhedron is not None
    if "polytope" in requires and not is_flat:
        raise ValueError(
            f"{name} needs a region with flat faces, and {its} is not known to be one. If it is, set faces = "
            "'flat' in its class; otherwise choose a loss that works on any region, such as Rfy, SpoPlus or Pfy."
        )
    lacks = (
        "polyhedron" in requires and seen.polyhedron is None,
        "relaxation" in requires and relaxation(seen) is None,
    )
    if any(lacks):
        raise ValueError(
            f"{name} needs linear constraints, and {its} {_without_polyhedron(problem, seen)}. Choose a loss that "
            f"works on any region, such as {'' if problem.has_known else 'Wise, '}SpoPlus or Pfy."
        )
    if "derivative" in requires and seen.faces != "curved":
        if is_flat:
            raise ValueError(
                f"{name} differentiates the decision itself, and on the polytope of {its} that is constant almost "
                "everywhere, so its gradient would be zero. Choose Qptl (or Rfwo), which adds a quadratic term."
            )
        its += " with known costs" if problem.has_known else ""
        why = problem.missing.get("derivative", "it does not set faces = 'curved'")
        raise ValueError(
            f"{name} needs a curved region whose derivative is known, and {its} has none: {why}. Write its "
            "derivative, or choose a loss that works on any region, such as SpoPlus or Pfy."
        )


def _without_polyhedron(problem: Problem, seen: Problem) -> str:
    """Say what a problem has instead of linear constraints."""
    why = seen.missing.get("polyhedron") or problem.missing.get("polyhedron")
    if why is not None:
        return f"has no polyhedron ({why})"
    if problem.n_rows is not None:
        return "differs by row, so there is no polyhedron for all rows"
    if problem.has_known and problem.polyhedron is not None:
        return "has one only for its decisions, without the known part of its costs"
    return "has no polyhedron"


def namespace_of(prediction: Any, costs: Any) -> Any:
    """Return the array functions of the library, NumPy, torch or jax, that both arrays belong to."""
    try:
        return array_namespace(prediction, costs)
    except TypeError as reason:
        raise TypeError(
            "prediction and costs must be arrays of the same library, NumPy, torch or jax; got "
            f"{type(prediction).__name__} and {type(costs).__name__}."
        ) from reason
