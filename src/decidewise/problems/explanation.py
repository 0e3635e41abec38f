"""Why a decision, and how far: for each cost the range on which the decision stays optimal, and what comes beyond.

The least value `V(t) = min (c + t e)·w` along one cost is concave and made of lines, one for each decision. The line of
the decision at `t = 0` leaves `V` where the range ends: Newton's method finds that from outside, by solving where the
line of another decision crosses, until no decision is better there. So a range needs the solver of the problem alone,
and is exact wherever that is, also in whole numbers and at degenerate vertices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from decidewise.kit.checks import FloatArray, IntArray, as_array, as_matrix
from decidewise.kit.errors import SolverError
from decidewise.kit.progress import RowBar

if TYPE_CHECKING:
    from decidewise.problems.contract import Problem

#: Two values are the same if they differ by this part of what is added up.
_SAME = 1e-9
#: How many ends of ranges are sought together, in entries of their costs.
_ENTRIES = 2**22
_MOST_ROUNDS = 100
_MOST_SHOWN = 12


@dataclass(frozen=True)
class Explanation:
    """What `problem.explain` returns: how far each cost may move before the decision changes, the others held.

    Attributes
    ----------
    names : list of str
        Those of the costs.
    costs, decisions : ndarray of shape (n, n_costs)
    lower, upper : ndarray of shape (n, n_costs)
        The range of each cost on which the decision stays optimal; infinite where it does for ever, NaN where the
        problem has no solution far outside.
    below, above : ndarray of shape (n, n_costs)
        The entry of the decision that takes over beyond the range.
    duals : dict of str to ndarray of shape (n,)
        By constraint, what one unit more of its right-hand side adds to the objective. They hold near the decision, and
        at a degenerate one they are one choice of several.
    reduced_costs : dict of str to ndarray of shape (n,)
        By variable, what one unit more of it adds to the objective.
    why_no_duals : str
        Why there are neither, or "".
    """

    names: list[str]
    costs: FloatArray
    decisions: FloatArray
    lower: FloatArray
    upper: FloatArray
    below: FloatArray
    above: FloatArray
    duals: dict[str, FloatArray] = field(default_factory=dict)
    reduced_costs: dict[str, FloatArray] = field(default_factory=dict)
    why_no_duals: str = ""

    def __repr__(self) -> str:
        lines = [line for row in range(len(self.costs)) for line in self._lines(row)]
        return "\n".join(lines)

    def _lines(self, row: int) -> Iterable[str]:
        if len(self.costs) > 1:
            yield f"row {row}"
        with np.errstate(invalid="ignore"):
            room = np.fmin(self.costs[row] - self.lower[row], self.upper[row] - self.costs[row])
        nearest = np.sort(np.argsort(room, kind="stable")[:_MOST_SHOWN])
        for j in nearest.tolist():
            sides = ("below", self.below, self.lower), ("above", self.above, self.upper)
            ends = [
                f"{_number(entry[row, j])} {word} {_number(end[row, j])}"
                for word, entry, end in sides
                if np.isfinite(end[row, j])
            ]
            told = "; ".join(ends) or "at any cost"
            yield f"{self.names[j]}: {_number(self.decisions[row, j])} at {_number(self.costs[row, j])}; {told}"
        if len(room) > _MOST_SHOWN:
            yield f"and {len(room) - _MOST_SHOWN} costs with wider ranges"
        for name, values in self.duals.items():
            if values[row]:
                yield f"{name}: one unit more adds {_number(values[row])}"

    def to_frame(self) -> Any:
        """Return a pandas frame with a line for each row and cost."""
        from pandas import DataFrame  # noqa: PLC0415  (slow to import)

        n, d = self.costs.shape
        columns = {"row": np.repeat(np.arange(n), d), "name": self.names * n, "cost": self.costs.ravel()}
        named = {"decision": self.decisions, "lower": self.lower, "upper": self.upper}
        return DataFrame(
            columns | {k: v.ravel() for k, v in (named | {"below": self.below, "above": self.above}).items()}
        )


def explained(problem: Problem, costs: Any, names: Sequence[str] | None) -> Explanation:
    """Return the explanation of the decisions for some rows of costs (n, n_costs); see `Problem.explain`."""
    from decidewise.problems.contract import check_rows, sign_of  # noqa: PLC0415  (it imports this file)
    from decidewise.problems.views import lift  # noqa: PLC0415

    if problem.faces == "curved":
        raise ValueError(
            f"{type(problem).__name__} cannot explain a decision by ranges: its decisions move with every cost. Solve "
            "for other costs, or see problem.derivative for how fast."
        )
    batch = as_matrix(np.atleast_2d(as_array(costs, name="costs")), n_columns=problem.n_costs)
    check_rows(problem, len(batch))
    found = list(_names(costs, problem) if names is None else names)
    if len(found) != problem.n_costs:
        raise ValueError(f"names must have one entry for each of the {problem.n_costs} costs; got {len(found)}.")
    lifted, sign = problem.lifted, sign_of(problem)
    full = sign * lift(lifted, batch)
    decisions = lifted.minimize(full)
    n, d = batch.shape
    ends, beyond = np.empty((2, n * d)), np.empty((2, n * d))  # of costs to be minimised: above, then below
    places = np.arange(n * d)
    size = max(1, _ENTRIES // full.shape[1])
    with RowBar("Explaining", 2 * n * d) as bar:
        for side, direction in enumerate((1.0, -1.0)):
            for start in range(0, n * d, size):
                part = slice(start, start + size)
                rows, columns = np.divmod(places[part], d)
                reach, beyond[side, part] = _reach(lifted, rows, columns, direction, full, decisions)
                ends[side, part] = batch.ravel()[part] + sign * direction * reach
                bar.advance(len(rows))
    order = [1, 0] if sign > 0 else [0, 1]
    (lower, upper), (below, above) = (values[order].reshape(2, n, d) for values in (ends, beyond))
    duals = problem._duals(batch)
    return Explanation(found, batch, decisions[:, :d], lower, upper, below, above, *duals)


def _reach(
    problem: Problem, rows: IntArray, columns: IntArray, direction: float, costs: FloatArray, decisions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return how far one cost of each row may move in a direction, (p,), and the entry of the decision beyond, (p,)."""
    place = np.arange(len(rows)), columns
    costs, decisions = costs[rows], decisions[rows]
    entries = decisions[place]
    units = np.zeros(costs.shape)
    units[place] = direction
    reach, beyond = np.full(len(rows), np.inf), entries.copy()
    others = _solved(problem, rows, units)  # where this cost is all that counts
    reach[np.isnan(others[:, 0])] = np.nan
    moving = np.ones(len(rows), dtype=bool)
    with np.errstate(invalid="ignore"):
        for _ in range(_MOST_ROUNDS):
            falls = direction * (entries - others[place])
            left = np.flatnonzero(moving & (falls > _SAME * (1.0 + np.abs(entries))))
            moving[:] = False
            if not len(left):
                break
            rises = (costs[left] * (others[left] - decisions[left])).sum(axis=1)
            reach[left], beyond[left] = np.maximum(rises, 0.0) / falls[left], others[place][left]
            trial = costs[left] + reach[left, np.newaxis] * units[left]
            found = _solved(problem, rows[left], trial)
            gains = (trial * (decisions[left] - found)).sum(axis=1)
            moving[left] = gains > _SAME * (np.abs(trial * decisions[left]) + np.abs(trial * found)).sum(axis=1)
            others[left] = found
    return reach, beyond


def _solved(problem: Problem, rows: IntArray, costs: FloatArray) -> FloatArray:
    """Return a decision for each of some rows; NaN where there is none."""
    try:
        return problem.take(rows).minimize(costs)
    except SolverError:
        if len(rows) == 1:
            return np.full(costs.shape, np.nan)
    return np.vstack([_solved(problem, rows[k : k + 1], costs[k : k + 1]) for k in range(len(rows))])


def _names(costs: Any, problem: Problem) -> Sequence[str]:
    labels = getattr(costs, "columns", getattr(costs, "index", None))
    if labels is not None and not callable(labels):
        return [str(label) for label in labels]
    return problem._cost_names


def _number(value: float) -> str:
    return f"{value + 0.0:.6g}"
