"""What a loss is: `prepare` once, then `value_and_grad` on every batch.

A new loss is one file with one class of two methods, both written for a minimisation, whatever the problem's sense:

- `label(problem, costs)` computes once what the loss needs (optimal decisions, cones, neighbours, or nothing);
- `evaluate(prediction, target, rng)` returns the value of each row and its gradient in the prediction.

There is no optimiser, cache, pool, reduction or random state in a loss. What it needs, and what its gradient is worth,
stands in its class attributes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np

from decidewise.checks import FloatArray, all_finite, as_matrix, as_problem, as_rng
from decidewise.errors import SolverError
from decidewise.polyhedra.highs import relaxed_vertices
from decidewise.progress import tracked

# Small enough that the progress bar moves while a slow solver works on the labels.
_ROWS_A_PART = 128


class Solvable(Protocol):
    """The part of a problem that losses use."""

    n_costs: int
    sense: Literal["min", "max"]
    is_integer: bool

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return a minimiser of `costs[i]·w` for each row, whatever the sense."""
        ...

    @property
    def polyhedron(self) -> Any:
        """The region as linear rows and bounds, or None."""
        ...

    def polyhedron_at(self, costs: FloatArray, decisions: FloatArray) -> Any:
        """Return the polyhedron, with any further rows that bind at the optimal decisions of costs to be minimised."""
        ...


@dataclass(frozen=True)
class Minimization:
    """A problem seen as a minimisation: the one place where losses meet its sense."""

    problem: Solvable

    @property
    def sign(self) -> float:
        """Minus one for a maximisation: what costs, predictions and gradients are multiplied by at the edge."""
        return -1.0 if self.problem.sense == "max" else 1.0

    @property
    def polyhedron(self) -> Any:
        """The problem's polyhedron; it does not depend on the sense."""
        return self.problem.polyhedron

    def polyhedron_at(self, costs: FloatArray, decisions: FloatArray) -> Any:
        """Return the polyhedron, with any further rows that the problem knows to bind at its optimal decisions."""
        return self.problem.polyhedron_at(costs, decisions)

    @property
    def is_integer(self) -> bool:
        """Whether the polyhedron is only the relaxation of a problem in integers."""
        return self.problem.is_integer

    def solve(self, costs: FloatArray) -> FloatArray:
        """Return a minimiser of `costs[i]·w` for each row, in one batch: finite (..., d) float64 in, (..., d) out."""
        rows = np.ascontiguousarray(costs).reshape(-1, costs.shape[-1])
        try:
            return self.problem.minimize(rows).reshape(costs.shape)
        except SolverError as error:
            raise error.at(error.row % costs.shape[-2]) from error
        except ValueError:
            _check_range(costs, "the costs that the loss solves for")
            raise

    def solve_relaxation(self, costs: FloatArray) -> FloatArray:
        """Return an optimal vertex of the polyhedron for each row, (n, d) -> (n, d), counted as solver calls."""
        if hasattr(self.problem, "count"):
            self.problem.count(len(costs))
        return relaxed_vertices(self.polyhedron, costs)


@dataclass(frozen=True)
class Target:
    """What a prediction is compared with, one row a sample; subclasses add what their loss needs.

    Indexing by rows gives the target of a batch. Arrays are taken row by row; everything else (the problem, a shared
    pool of decisions held in an object) goes along unchanged.
    """

    problem: Minimization
    costs: FloatArray

    def __len__(self) -> int:
        return len(self.costs)

    def __getitem__(self, rows: Any) -> Self:
        # Into the dictionary, past the frozen class: half the time of `replace`, in every step.
        batch = object.__new__(type(self))
        batch.__dict__.update({k: v[rows] if isinstance(v, np.ndarray) else v for k, v in self.__dict__.items()})
        return batch


@dataclass(frozen=True)
class DecisionTarget(Target):
    """Costs with their optimal decisions `(n, d)` and optimal values `(n,)`."""

    decisions: FloatArray
    values: FloatArray

    @classmethod
    def solve(cls, problem: Minimization, costs: FloatArray) -> Self:
        """Label every row of costs with its optimal decision, with a progress bar if that takes long."""
        decisions = np.empty_like(costs)
        for first in tracked(range(0, len(costs), _ROWS_A_PART), "Solving for the labels"):
            rows = slice(first, first + _ROWS_A_PART)
            try:
                decisions[rows] = problem.solve(costs[rows])
            except SolverError as error:
                raise error.at(first + error.row) from error
        return cls(problem, costs, decisions, row_dot(costs, decisions))


class Loss(ABC):
    """A measure of how bad a predicted cost vector is, with its gradient."""

    #: "exact" (the gradient of the value), "subgradient" (the same where it exists) or "surrogate" (a useful direction
    #: that is not the value's gradient).
    gradient: ClassVar[Literal["exact", "subgradient", "surrogate"]]
    #: What `label` returns and `evaluate` needs.
    target_type: ClassVar[type[Target]] = Target
    #: Whether `evaluate` calls the solver, so that training needs it in the loop.
    solves: ClassVar[bool] = True
    #: Whether `evaluate` draws random numbers.
    draws: ClassVar[bool] = False
    #: Whether the loss works only where `problem.polyhedron` exists.
    needs_polyhedron: ClassVar[bool] = False
    #: Whether the loss is lowest at predictions of length one or less, rather than at the size of the costs.
    directions: ClassVar[bool] = False

    def prepare(self, problem: Solvable, costs: Any) -> Target:
        """Compute, once, what every later call needs: shape (n, d) costs in, a target of n rows out."""
        self.check(problem)
        costs = as_matrix(costs, n_columns=problem.n_costs, owner=type(problem).__name__)
        view = Minimization(problem)
        return self.label(view, view.sign * costs)

    def value_and_grad(
        self, prediction: Any, target: Target, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return the values (b,) and the gradient (b, d) with respect to the prediction (b, d).

        Both the prediction and the gradient are in the problem's own sense.
        """
        if not isinstance(target, self.target_type):
            raise TypeError(
                f"target must be what {type(self).__name__}().prepare(problem, costs) returns; got an object of type "
                f"{type(target).__name__}."
            )
        prediction = as_matrix(prediction, name="prediction", n_columns=target.costs.shape[1], owner="the target")
        if len(prediction) != len(target):
            raise ValueError(
                f"prediction has {len(prediction)} rows and the target {len(target)}; take the same rows of both."
            )
        if self.draws:
            as_rng(rng)
        values, gradient = self.value_and_grad_unchecked(prediction, target, rng)
        _check_range(values[:, np.newaxis], "the value of the loss")
        _check_range(gradient, "the gradient of the loss")
        return values, gradient

    def value_and_grad_unchecked(
        self, prediction: FloatArray, target: Target, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return what `value_and_grad` returns, for a prediction that is known to be finite and of the right shape."""
        if target.problem.sign > 0:
            return self.evaluate(prediction, target, rng)
        values, gradient = self.evaluate(-prediction, target, rng)
        return values, -gradient

    def check(self, problem: Solvable) -> None:
        """Raise, with a sentence that says what to do, if this loss cannot work on this problem."""
        as_problem(problem)
        if self.needs_polyhedron and problem.polyhedron is None:
            raise ValueError(
                f"{type(self).__name__} needs linear constraints, and {type(problem).__name__} has no polyhedron. "
                "Choose a loss that works on any region, such as Wise, SpoPlus or Pfy."
            )

    @abstractmethod
    def label(self, problem: Minimization, costs: FloatArray) -> Target:
        """Compute what `evaluate` needs; everything is a minimisation here."""

    @abstractmethod
    def evaluate(self, prediction: FloatArray, target: Any, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return values (b,) and gradient (b, d) for a minimisation."""


def _check_range(numbers: FloatArray, what: str) -> None:
    """Raise if numbers (..., b, d) that were computed from a finite prediction and finite costs are not finite."""
    if not all_finite(numbers):
        row = np.argwhere(~np.isfinite(numbers))[0][-2]
        raise ValueError(
            f"row {row}: {what} left the range of float64, since its prediction or its costs are too large. Divide "
            "both by the same number, which changes no decision."
        )


def row_dot(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the inner product of each row of `a` with the same row of `b`: (n, d), (n, d) -> (n,)."""
    return np.einsum("ij,ij->i", a, b)
