"""The targets that losses compare predictions with: costs, and what a loss computes from them once.

`Loss.label` makes a target of all rows, and training takes the rows of a batch from it. A target also solves: a loss
calls `target.minimize`, which knows the problem of its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from decidewise.kit.checks import FloatArray, IndexArray, check_range
from decidewise.kit.errors import SolverError, at_rows, doubt
from decidewise.kit.progress import tracked
from decidewise.problems.contract import Problem
from decidewise.problems.views import is_lifted

#: The values (b,) of a loss, and its gradient (b, d) in the prediction.
ValueAndGrad: TypeAlias = tuple[FloatArray, FloatArray]
#: Marks a field of a target that all rows share: `pool: Pool = field(metadata=SHARED)`.
SHARED: Mapping[str, bool] = MappingProxyType({"decidewise.shared": True})
# Labels are solved in parts this small, so that the progress bar moves even if the solver is slow.
_ROWS_PER_PART = 128
#: What is too large where a number that a loss computes is not finite.
TOO_LARGE = "its prediction or its costs"


@dataclass(frozen=True)
class Target:
    """The data that predictions are compared with; subclasses add the fields that their loss needs.

    Every field is an array with one row per sample, unless it is declared as `field(metadata=SHARED)`. Indexing by rows
    returns the target of a batch: those rows of the arrays, and the shared fields unchanged.

    Parameters
    ----------
    problem : Problem
        Solve it by `target.minimize`, whatever its sense. If its regions differ by row, it has the rows of the target.
    costs : ndarray of shape (n, d)
        To be minimised: if the problem maximises, these are minus its costs.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> @dataclass(frozen=True)
    ... class WeightedTarget(Target):
    ...     weights: FloatArray  # (n,)
    ...     scale: FloatArray = field(metadata=SHARED)  # (d,)
    >>> target = WeightedTarget(TopK(3, 1), np.ones((4, 3)), np.arange(4.0), np.ones(3))
    >>> batch = target[[2, 0]]
    >>> batch.costs.shape, batch.weights, batch.scale
    ((2, 3), array([2., 0.]), array([1., 1., 1.]))
    """

    problem: Problem = field(metadata=SHARED)
    costs: FloatArray

    #: Whether labels and solves are those of the linear relaxation, at one of its vertices.
    relaxed: ClassVar[bool] = False

    @classmethod
    def of(cls, problem: Problem, costs: FloatArray) -> Self:
        """Return the target of costs (n, d) to be minimised; this class stores only the costs."""
        return cls(problem, costs)

    def __post_init__(self) -> None:
        for name in self._fields()[0]:
            value = getattr(self, name)
            if not (isinstance(value, np.ndarray) and value.shape[:1] == self.costs.shape[:1]):
                came = f"of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
                raise ValueError(
                    f"{type(self).__name__}.{name} must be an array with one row for each of the {len(self.costs)} "
                    f"samples; it is {came}. If all samples share it, declare it as {name}: ... = "
                    "field(metadata=SHARED)."
                )

    def __len__(self) -> int:
        return len(self.costs)

    def __getitem__(self, rows: Any) -> Self:
        # Writing to `__dict__` skips the check in `__post_init__` and takes half the time of `replace`, in every step.
        batch = object.__new__(type(self))
        whole, part, (by_row, shared) = self.__dict__, batch.__dict__, self._fields()
        for name in by_row:
            part[name] = whole[name][rows]
        for name in shared:
            part[name] = whole[name]
        if self.problem.n_rows is not None:
            part["problem"] = self.problem.take(rows)
        return batch

    @classmethod
    @cache
    def _fields(cls) -> tuple[list[str], list[str]]:
        """Return the names of the fields with one row per sample, and the names of the shared fields."""
        shared = {field.name: field.metadata.keys() >= SHARED.keys() for field in fields(cls)}
        return [name for name in shared if not shared[name]], [name for name in shared if shared[name]]

    def minimize(self, costs: FloatArray, rows: IndexArray | None = None) -> FloatArray:
        """Return an optimal decision for each row of costs to be minimised, all in one batch: (..., b, d) -> same.

        Call it in `evaluate`: errors name the row of the target, whatever the leading axes. `rows` (b,) are the rows of
        the target that the costs belong to; by default all of them.
        """
        batch = np.ascontiguousarray(costs).reshape(-1, costs.shape[-1])
        problem = self.problem
        if problem.n_rows is not None and (rows is not None or costs.ndim > 2):
            rows = np.arange(len(self)) if rows is None else rows
            problem = problem.take(np.tile(rows, len(batch) // len(rows)))
        try:
            return (problem.minimize_relaxation if self.relaxed else problem.minimize)(batch).reshape(costs.shape)
        except SolverError as error:
            row = error.row % costs.shape[-2]
            raise error.at(row if rows is None else int(rows[row])) from error
        except ValueError:
            check_range(costs, "the costs that the loss solves for", TOO_LARGE)
            raise

    def predicted_only(self, noise: FloatArray) -> FloatArray:
        """Set noise (..., b, d) for predictions to zero in the cost of the known part, if there is one, in place."""
        if is_lifted(self.problem):
            noise[..., -1] = 0.0
        return noise


@dataclass(frozen=True)
class DecisionTarget(Target):
    """Costs with their optimal decisions `(n, d)` and optimal values `(n,)`.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> target = DecisionTarget.of(TopK(3, 1, sense="min"), np.array([[3.0, 2.0, 4.0]]))
    >>> target.decisions, target.values
    (array([[0., 1., 0.]]), array([2.]))
    """

    decisions: FloatArray
    values: FloatArray

    @classmethod
    def of(cls, problem: Problem, costs: FloatArray, *more: Any) -> Self:
        """Label every row of costs with its optimal decision; `more` are the fields of a subclass."""
        decisions = solve_labels(problem, costs, relaxed=cls.relaxed)
        values = row_dot(costs, decisions)
        _warn_if_not_optimal(problem, costs, decisions, values)
        return cls(problem, costs, decisions, values, *more)


@dataclass(frozen=True)
class RelaxedTarget(DecisionTarget):
    """Costs with optimal vertices of the linear relaxation and their values."""

    relaxed = True


def solve_labels(problem: Problem, costs: FloatArray, *, relaxed: bool = False) -> FloatArray:
    """Return optimal decisions for costs to be minimised, (n, d) -> (n, d), with a progress bar if it takes long.

    They are those of `problem.minimize` or, if `relaxed`, of `problem.minimize_relaxation`.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> solve_labels(TopK(3, 1, sense="min"), np.array([[1.0, 2.0, 4.0]]))
    array([[1., 0., 0.]])
    """
    decisions = np.empty_like(costs)
    for first in tracked(range(0, len(costs), _ROWS_PER_PART), "Solving for the labels"):
        rows = slice(first, first + _ROWS_PER_PART)
        part = problem.take(rows)
        with at_rows(range(first, len(costs))):
            decisions[rows] = (part.minimize_relaxation if relaxed else part.minimize)(costs[rows])
    return decisions


def _warn_if_not_optimal(problem: Problem, costs: FloatArray, decisions: FloatArray, values: FloatArray) -> None:
    """Warn if the decisions of other rows are better on average, as they are if a solver maximises by mistake."""
    if problem.n_rows is not None:
        return  # a decision of another row need not be feasible
    with np.errstate(over="ignore", invalid="ignore"):
        others = row_dot(costs, np.roll(decisions, 1, axis=0)).sum()
        is_worse = others < values.sum() - 1e-3 * np.abs(values).sum()
    if is_worse:
        wrong = "minimise" if problem.sense == "max" else "maximise"
        doubt(
            "on average, the decision for another row is better than the optimal one, so the problem does not return "
            f"optimal decisions, and no loss can learn from them. Does it {wrong} although its sense is "
            f"{problem.sense!r}? decidewise.testing.check_problem shows a row on which it fails.",
            stacklevel=2,
        )


def row_dot(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the inner product of each row of `a` with the same row of `b`: (n, d), (n, d) -> (n,).

    Examples
    --------
    >>> row_dot(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 1.0], [0.0, 2.0]]))
    array([3., 8.])
    """
    return np.vecdot(a, b)
