"""The regret of decisions, row by row and in percent of the optimal value."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from decidewise.kit.checks import (
    FloatArray,
    all_finite,
    as_flag,
    check_same_names,
    check_same_rows,
    column_names,
)
from decidewise.kit.errors import doubt
from decidewise.kit.gaps import noted_gaps
from decidewise.kit.scaling import norms, unit_largest
from decidewise.problems.contract import Problem, as_problem, check_rows
from decidewise.problems.details import caution_of
from decidewise.problems.views import lift

#: Decisions count as tied if their predicted values differ by less than this, relative to the largest entries.
TIE_TOLERANCE = 1e-6
#: A regret below minus this, relative to the values compared, comes neither from rounding nor from the gap of 1e-4 at
#: which solvers of integer programs stop by default.
OPTIMALITY_TOLERANCE = 1e-4
#: What a conic solver leaves of a decision to do nothing, which has no value to compare with: relative to the costs.
NOTHING = 1e-9


def decision_regret(problem: Problem, prediction: Any, costs: Any, *, unambiguous: bool = False) -> FloatArray:
    """Return the regret of each row: `c·w(ĉ) - c·w(c)` for a minimisation, `c·w(c) - c·w(ĉ)` for a maximisation.

    If the problem has known costs, regret counts the whole objective, with the known part. Predictions must then be in
    the units of the costs.

    Parameters
    ----------
    problem : Problem
        The problem that both the predictions and the costs are solved with. If it differs by row, it has n rows.
    prediction, costs : array-like of shape (n, d)
        Predicted and realised costs. A prediction may be scenarios (n, samples, d): their mean decides. `Levels` with a
        cost of demand takes demand (n, items) for both, and scenarios of it.
    unambiguous : bool
        Whether to break ties in the worst way: among the decisions that are optimal for the prediction, take the worst
        for the costs. It is the optimum for `ĉ/‖ĉ‖∞ - 1e-6 · c/‖c‖∞`, so predicted values closer than that count as
        tied, and a prediction of zeros ties all decisions. The result is never below the plain regret.

    Returns
    -------
    ndarray of shape (n,)
        Non-negative up to rounding, for either sense.

    Warns
    -----
    OptimalityWarning
        If the best decisions are not proven to be the best, because the problem stopped at a limit; regrets may then be
        higher by as much. Also if a regret is negative by more than 1e-4 of the values compared, which means that the
        problem does not return optimal decisions. A problem of your own may maximise by mistake. Training with a cache
        or a heuristic is fine, but evaluate with an exact problem.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> costs, prediction = [[1.0, 2.0, 3.0], [5.0, 1.0, 4.0]], [[1.0, 3.0, 2.0], [5.0, 1.0, 4.0]]
    >>> decision_regret(TopK(3, 1, sense="max"), prediction, costs)
    array([1., 0.])
    """
    return Hindsight.of(problem, costs).regret(prediction, unambiguous=unambiguous)


def normalized_regret(problem: Problem, prediction: Any, costs: Any, *, unambiguous: bool = False) -> float:
    """Return the regret in percent of the optimal value: `100 · Σ regret / Σ |c·w(c)|`.

    The parameters are those of `decision_regret`.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> costs, prediction = [[1.0, 2.0, 3.0], [5.0, 1.0, 4.0]], [[1.0, 3.0, 2.0], [5.0, 1.0, 4.0]]
    >>> normalized_regret(TopK(3, 1, sense="max"), prediction, costs)
    12.5
    """
    return Hindsight.of(problem, costs).normalized_regret(prediction, unambiguous=unambiguous)


@dataclass(frozen=True)
class Hindsight:
    """Realised costs and the values of their optimal decisions, solved once to score any number of predictions.

    Attributes
    ----------
    problem : Problem
    costs : ndarray of shape (n, d)
        If the problem has known costs, the costs of its lifted view.
    best : ndarray of shape (n,)
        The optimal values.
    cost_names : tuple of str, optional
        The column names of the costs; predictions with names must have the same, in the same order.
    gaps : ndarray of shape (n,), optional
        By how much a decision may be better than the best that a limit let the problem find.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> truth = Hindsight.of(TopK(3, 1, sense="max"), [[1.0, 2.0, 3.0], [5.0, 1.0, 4.0]])
    >>> truth.best, truth.normalized_regret([[1.0, 3.0, 2.0], [5.0, 1.0, 4.0]])
    (array([3., 5.]), 12.5)
    """

    problem: Problem
    costs: FloatArray
    best: FloatArray
    cost_names: tuple[str, ...] | None = None
    gaps: FloatArray | None = None

    @classmethod
    def of(cls, problem: Problem, costs: Any) -> Hindsight:
        """Solve for the optimal decisions of realised costs (n, d)."""
        names = column_names(costs)
        costs = as_problem(problem).as_costs(costs, realised=True)
        if names is not None and len(names) != problem.n_costs:  # they are those of demand
            names = None
        check_rows(problem, len(costs))
        lifted = problem.lifted
        costs = lift(lifted, costs)
        with noted_gaps() as noted:
            best = _values(costs, lifted.solve(costs))
        gaps, _ = noted.by_row(len(costs))
        truth = cls(problem, costs, best, names, gaps if gaps.any() else None)
        if truth.caution:
            doubt(truth.caution, stacklevel=3)
        return truth

    def take(self, rows: Any) -> Hindsight:
        """Return the hindsight of the given rows, a slice or an array of row numbers, which may repeat."""
        gaps = None if self.gaps is None else self.gaps[rows]
        return Hindsight(self.problem.take(rows), self.costs[rows], self.best[rows], self.cost_names, gaps)

    @property
    def caution(self) -> str:
        """A sentence if the best decisions are not proven to be the best; otherwise ""."""
        sentence = "" if self.gaps is None else caution_of(self.gaps, self.best)
        return sentence and f"In hindsight {sentence} Regrets may be higher by as much."

    def regret(self, prediction: Any, *, name: str = "prediction", unambiguous: bool = False) -> FloatArray:
        """Return the regret of each row of a prediction (n, d); see `decision_regret`."""
        lifted, costs = self.problem.lifted, self.costs
        unambiguous = as_flag(unambiguous, name="unambiguous")
        prediction = lift(lifted, self.check(prediction, name=name))
        regret = self.regret_of(lifted.solve(prediction))
        if unambiguous:
            # After subtracting the costs, the worst of the tied decisions is the optimum, for either sense.
            adverse = lifted.solve(unit_largest(prediction) - TIE_TOLERANCE * unit_largest(costs))
            regret = np.maximum(regret, self.regret_of(adverse))
        return regret

    def check(self, prediction: Any, *, name: str = "prediction") -> FloatArray:
        """Return a prediction as costs (n, d); raise unless it has the rows and the names of the costs.

        It may be scenarios, or demand, as far as the problem understands it (`Problem.as_costs`).
        """
        check_same_names(self.cost_names, column_names(prediction), of=name, expected="costs")
        prediction = self.problem.as_costs(prediction, name=name)
        check_same_rows(**{name: prediction, "costs": self.costs})
        return prediction

    def normalized_regret(self, prediction: Any, *, unambiguous: bool = False) -> float:
        """Return the regret of a prediction (n, d) in percent of the optimal value."""
        return float(100 * self.regret(prediction, unambiguous=unambiguous).sum() / self.scale)

    def regret_of(self, decisions: FloatArray) -> FloatArray:
        """Return the regret of each decision; if the problem has known costs, of each decision of its lifted view."""
        values = _values(self.costs, decisions)
        excess = self.best - values if self.problem.sense == "max" else values - self.best
        self._warn_if_not_optimal(decisions, excess)
        return excess

    def _warn_if_not_optimal(self, decisions: FloatArray, excess: FloatArray) -> None:
        below = np.flatnonzero(excess < 0)
        sizes = np.maximum(np.abs(self.costs[below] * decisions[below]).sum(axis=1), np.abs(self.best[below]))
        mean = (np.abs(self.best) / len(self.best)).sum()  # whose sum alone might overflow
        nothing = NOTHING * (norms(self.costs[below]) + mean)
        if self.gaps is not None:
            nothing += self.gaps[below]  # which `caution` has said
        better = below[excess[below] < -OPTIMALITY_TOLERANCE * sizes - nothing]
        if len(better):
            # The message does not name the prediction, so that Python shows it once per row.
            wrong = "minimise" if self.problem.sense == "max" else "maximise"
            doubt(
                f"row {better[0]}: the decision for the prediction is better than the optimal one, so "
                f"{type(self.problem).__name__} does not return optimal decisions, and regrets mean little. Does it "
                f"{wrong} although its sense is {self.problem.sense!r}? If it is a cache or a heuristic, evaluate with "
                "an exact problem.",
                stacklevel=4,
            )

    @property
    def scale(self) -> float:
        """The sum of the absolute optimal values, of which regrets are a percentage."""
        return scale_of(self.best)


def scale_of(best: FloatArray) -> float:
    """Return the sum of absolute optimal values; raise if regrets cannot be a percentage of it."""
    with np.errstate(over="ignore"):
        total = float(np.abs(best).sum())
    if not isfinite(100 * total):
        raise ValueError(
            "the optimal values add up to more than float64 can hold. Divide all costs by the same number."
        )
    if total == 0:
        raise ValueError(
            "the optimal value of every row is 0, so regrets cannot be a percentage of it. "
            "Check that the costs are not all zero, or use decision_regret."
        )
    return total


def _values(costs: FloatArray, decisions: FloatArray) -> FloatArray:
    values = np.einsum("ij,ij->i", costs, decisions)
    if not all_finite(values):
        row = int(np.isfinite(values).argmin())
        if np.isnan(decisions[row]).any():
            raise ValueError(
                f'row {row} has no decision, since it could not be solved and on_error="nan" says to go on. Leave it '
                'out where regret is measured, or see why by on_error="raise".'
            )
        raise ValueError(f"row {row}: its costs add up to more than float64 can hold. Divide all by the same number.")
    return values
