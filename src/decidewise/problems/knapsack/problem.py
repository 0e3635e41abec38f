"""The 0/1 knapsack in any number of dimensions."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from decidewise.kit.batches import in_parts
from decidewise.kit.checks import BoolArray, FloatArray, IntArray, as_array, as_matrix, as_vector
from decidewise.kit.errors import SolverError
from decidewise.problems.contract import Problem, Sense
from decidewise.problems.hard_rows import limits_of, search_or_hand_over, steps_before
from decidewise.problems.knapsack.enumeration import ROOM, choose_packs, maximal_packs
from decidewise.problems.knapsack.search import search_packs
from decidewise.problems.linear_program import LinearProgram
from decidewise.solvers import Polyhedron

MAX_PACKS = 4096
#: The steps of a second; an ordinary row of 60 items takes a few thousand.
STEPS_PER_SECOND = 50_000_000
#: About a fifth of a second of search.
STEPS = 10_000_000


class Knapsack(Problem, marks_ones=True):
    """Choose items of the largest total value whose weights stay within every capacity.

    `S = {w in {0, 1}^m : weights w <= capacities}`. The answer is exact. If there are at most 4,096 maximal packs, as
    in a knapsack of 16 items, they are listed when the problem is built, and solving a row is one pass over the list.
    Otherwise a row is solved by branch and bound on the linear relaxation, which takes a fraction of a millisecond for
    60 items in two dimensions. A row that takes longer than about a second, as with a thousand items whose values are
    correlated with their weights, goes to HiGHS, and a tie to the pack that it finds first.

    Items that add nothing to the objective are never packed. Ties: among the best packs of the other items, the
    lexicographically largest is chosen, which prefers items of lower index. Two packs are tied if their values differ
    by less than 1e-12 of the sum of the values in which they differ, so an item of huge value that is in both packs
    does not affect the choice among the other items. A pack may exceed a capacity by a fraction of 1e-9, since decimal
    weights do not add up exactly in binary.

    Parameters
    ----------
    weights : array-like of shape (k, m) or (m,)
        The weight of each of `m` items in each of `k` dimensions, not negative.
    capacities : array-like of shape (k,), or float if k is 1, or array-like of shape (n_rows, k)
        The same for all rows of values, or one row per sample; then every row is solved by branch and bound.
    sense : {"max", "min"}
        With "min", only items of negative cost are packed.
    time_limit, gap, on_limit, on_error
        As of `Problem`, for hard rows. Without a `time_limit` such a row may take a minute.

    Attributes
    ----------
    n_costs : int
        `m`, one per item.
    n_rows : int or None
        The number of rows, if capacities have one row per sample.
    B_S : float or None
        The square root of the largest number of items that fit, or None if counting them takes too long. With
        capacities by row it is an upper bound: that of the items that fit into the largest of all.

    Raises
    ------
    SolverError
        By `solve`, if a row reaches the time limit; with `on_limit="best"` it has the best pack found so far.

    Examples
    --------
    >>> problem = Knapsack([[3.0, 4.0, 5.0], [2.0, 2.0, 2.0]], [7.0, 4.0])
    >>> problem.solve([[1.0, 1.0, 3.0], [2.0, 2.0, 3.0]])
    array([[0., 0., 1.],
           [1., 1., 0.]])
    >>> round(problem.B_S, 3)  # at most two items fit
    1.414
    >>> Knapsack([3.0, 4.0, 5.0], [[7.0], [5.0]]).solve([[2.0, 2.0, 3.0], [2.0, 2.0, 3.0]])
    array([[1., 1., 0.],
           [0., 0., 1.]])
    """

    is_integer = True
    _by_row = ("capacities", "_rooms")
    B_S: float | None = None
    _most_steps: int | None = None

    def __init__(
        self,
        weights: Any,
        capacities: Any,
        *,
        sense: Sense = "max",
        time_limit: float | None = None,
        gap: float = 0.0,
        on_limit: Literal["raise", "best"] = "raise",
        on_error: Literal["raise", "nan"] = "raise",
    ) -> None:
        super().__init__(sense=sense, time_limit=time_limit, gap=gap, on_limit=on_limit, on_error=on_error)
        weights = as_array(weights, name="weights")
        if weights.ndim > 2:
            raise ValueError(
                f"weights must have one row per dimension and one column per item; got weights.shape={weights.shape}."
            )
        self.weights = as_matrix(np.atleast_2d(weights), name="weights")
        k, self.n_costs = self.weights.shape
        capacities = np.atleast_1d(as_array(capacities, name="capacities"))
        _check_not_negative(self.weights, "weights")
        if capacities.ndim == 2 or (k == 1 and len(capacities) > 1):
            self._set_capacities_by_row(capacities)
            return
        self.capacities = as_vector(capacities, name="capacities", length=k)
        _check_not_negative(self.capacities, "capacities")

        loads = np.zeros((self.n_costs, k))
        with np.errstate(over="ignore"):
            np.divide(self.weights.T, self.capacities, out=loads, where=self.capacities > 0)
        # An item that does not fit gets a load above 1 explicitly: a capacity of zero gives no load.
        loads[ROOM * self.capacities < self.weights.T] = 2.0
        self._loads = loads
        self._fits = (loads <= ROOM).all(axis=1)
        self._packs = maximal_packs(self._loads, MAX_PACKS)
        if self._packs.size:
            self.B_S = float(np.sqrt(self._packs.sum(axis=0).max()))
        else:
            self._count_items()

    def _count_items(self) -> None:
        """Add a dimension that bounds the number of items: rows of nearly equal values need this bound to be fast."""
        largest, stuck = search_packs(np.where(self._fits, 1.0, 0.0).reshape(1, -1), self._loads, np.array([2 * STEPS]))
        if stuck < 0:
            self.B_S = float(np.sqrt(largest.sum()))
            self._loads = np.column_stack([self._loads, np.full(self.n_costs, 1 / max(1.0, largest.sum()))])

    def _set_capacities_by_row(self, capacities: FloatArray) -> None:
        k = len(self.weights)
        if capacities.ndim != 2 or capacities.shape[1] != k:
            raise ValueError(
                f"capacities must have one entry for each of the {k} rows of weights, or one such row per sample; got "
                f"capacities.shape={capacities.shape}. Pass capacities.reshape(-1, 1) for one number per sample."
            )
        self.capacities = as_matrix(capacities, name="capacities")
        _check_not_negative(self.capacities, "capacities")
        self.n_rows = len(self.capacities)
        # Loads are in units of the largest capacity, rounded up to a power of two, by which no division rounds.
        most = self.capacities.max(axis=0)
        unit = np.ldexp(1.0, np.frexp(most)[1])
        loads = np.where(ROOM * most < self.weights.T, 2.0, self.weights.T / unit)
        counts = self._count_items_by_row(loads, ROOM * self.capacities / unit)
        self.B_S = float(np.sqrt(counts.max()))
        # As in `_count_items`, one more dimension.
        largest = max(1.0, counts.max())
        self._loads = np.column_stack([loads, np.full(self.n_costs, 1 / largest)])
        self._rooms = ROOM * np.column_stack([self.capacities / unit, counts / largest])

    def _count_items_by_row(self, loads: FloatArray, rooms: FloatArray) -> FloatArray:
        """Return the largest number of items that fit (n_rows,), or an upper bound where counting takes too long."""
        distinct, which = np.unique(rooms, axis=0, return_inverse=True)
        sums = np.cumsum(np.sort(loads.T, axis=1), axis=1) * (1 - 1e-12)  # below any rounding
        most = [np.searchsorted(row, room, side="right") for row, room in zip(sums, distinct.T, strict=True)]
        counts = np.min(most, axis=0).astype(float)  # the lightest items of each dimension
        if loads.shape[1] > 1:
            ones = np.ones((len(distinct), self.n_costs))
            largest, stuck = search_packs(ones, loads, np.array([5 * STEPS]), distinct)
            solved = slice(None if stuck < 0 else stuck)
            counts[solved] = largest[solved].sum(axis=1)
        return counts[which.ravel()]

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the pack of least cost for each row; it has only items of negative cost."""
        if self.n_rows is not None:
            return self._search(-costs, self._rooms)
        values = np.where(self._fits, -costs, 0.0)
        if self._packs.size:
            return in_parts(lambda rows, decisions: choose_packs(rows, decisions, self._packs), values)
        return self._search(values)

    def _with_present(self, present: BoolArray) -> Self:
        """Return the problem itself: it packs no item of value zero."""
        return self

    def _search(self, values: FloatArray, *rooms: FloatArray) -> FloatArray:
        def search(rows: FloatArray, steps: IntArray, *own: FloatArray) -> tuple[FloatArray, int]:
            return search_packs(rows, self._loads, steps, *own)

        def hand_over(rows: IntArray) -> FloatArray:
            if self._most_steps is not None:
                raise SolverError(f"no optimal pack was proved within {self._most_steps:,} steps.", row=0)
            # Like our own search, leave out what has no value.
            return self._program.take(rows).minimize(-values[rows]) * (values[rows] > 0)

        most = self._most_steps or steps_before(self, STEPS_PER_SECOND)
        return search_or_hand_over(search, values, *rooms, steps=STEPS, max_steps=most, hand_over=hand_over)

    @cached_property
    def _program(self) -> LinearProgram:
        """The same problem for HiGHS."""
        whole: dict[str, Any] = {"upper": 1.0, "integrality": np.ones(self.n_costs)}
        return LinearProgram(self.weights, self.capacities, **whole, solver="highs", **limits_of(self))

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The linear relaxation, which allows fractions of items; None if capacities differ by row."""
        if self.n_rows is not None:
            return None
        m = self.n_costs
        return Polyhedron.within(np.zeros(m), np.ones(m), ub=(self.weights, self.capacities))


def _check_not_negative(values: FloatArray, name: str) -> None:
    negative = np.argwhere(values < 0)
    if len(negative):
        where = ", ".join(str(index) for index in negative[0])
        raise ValueError(
            f"{name} must not be negative; {name}[{where}] is {values[tuple(negative[0])]:g}. "
            "Leave out dimensions that do not bind, and give items that need no room a weight of 0."
        )
