"""One level for each item, under budgets or with a fixed total."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, Self, TypeGuard

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.checks import BoolArray, FloatArray, IntArray, as_array, as_matrix, check_finite
from decidewise.kit.errors import SolverError, at_rows
from decidewise.kit.gaps import note_gaps, noted_gaps
from decidewise.problems.by_row import as_amounts, as_numbers, spread
from decidewise.problems.contract import Problem, Sense, as_n_costs
from decidewise.problems.hard_rows import limits_of, search_or_hand_over, steps_before
from decidewise.problems.levels.demand import DemandCost, as_demand_cost, as_levels, level_costs
from decidewise.problems.levels.features import DemandTable
from decidewise.problems.levels.search import ROOM, search_levels
from decidewise.problems.linear_program import LinearProgram
from decidewise.solvers import Polyhedron

#: Partial solutions in a second; an ordinary row of 45 items with 11 levels takes some thousands.
STEPS_PER_SECOND = 100_000_000
#: About a tenth of a second of search.
STEPS = 10_000_000


def of_demand(problem: Problem | None) -> TypeGuard[Levels]:
    """Whether a problem knows what a level costs for a demand, so that a table may have demand in place of costs."""
    return isinstance(problem, Levels) and problem.cost is not None


class Levels(Problem, marks_ones=True):
    """Choose one level for each item: how much to stock, how many to employ, how much to bid.

    There is one cost for each item and level, in this order; a decision is 1 for the levels that are chosen. What is
    not linear in a demand becomes linear in such a table of costs, which `level_costs` makes from what was demanded.

    The answer is exact. Under one budget, or with a fixed total, a row is solved by dynamic programming on what a
    Lagrangian bound leaves, in a fraction of a millisecond; under several by HiGHS, as is a row that takes longer than
    about a second or more than some 300 MB, as with costs in proportion to a consumption in fractions.

    Ties: of the best decisions, the one with the lowest level of the first item, then of the second, and so on. Two
    decisions are tied if their costs differ by less than 1e-12 of the costs of the items in which they may differ.
    Under several budgets the rule is that of `LinearProgram`. A budget may be exceeded by a fraction of 1e-9, since
    decimal numbers do not add up exactly.

    Parameters
    ----------
    levels : list of lists of float, or array-like of shape (items, levels)
        The levels of each item, increasing.
    consumption : array-like of shape (n_costs,) or (k, n_costs), optional
        What each level of each item consumes of each budget; by default the level itself.
    budget : float, or array-like of shape (k,) or (n_rows, k), optional
        The largest consumption: the same for all rows of costs, or one row per sample.
    total : float, or array-like of shape (n_rows,), optional
        What the levels of all items must sum to.
    cost : DemandCost, mapping or function, optional
        What a level costs for a demand, such as `newsvendor(over=1, under=4)`; or its name and parameters,
        `{"name": "newsvendor", "over": 1, "under": 4}`. With it, demand and scenarios of it are understood where costs
        are expected (`as_costs`), and a table may have columns of demand in place of costs.
    sense : {"min", "max"}
    time_limit, gap, on_limit, on_error
        As of `Problem`, for hard rows. Without a `time_limit` such a row may take a minute.

    Attributes
    ----------
    n_costs : int
        The number of levels of all items together.
    n_items : int
    n_rows : int or None
        The number of rows, if budgets or the total differ by row.
    B_S : float
        The norm of every decision, the root of the number of items.

    Raises
    ------
    SolverError
        By `solve`, if no levels sum to the total of a row, or if a row reaches the time limit.

    Examples
    --------
    >>> from decidewise.problems import Levels
    >>> shops = Levels([[0, 1, 2], [0, 5]], budget=6)
    >>> costs = [9.0, 4.0, 1.0, 8.0, 0.0]  # of 0, 1 and 2 in the first shop, and of 0 and 5 in the second
    >>> shops.solve(costs)
    array([0., 1., 0., 0., 1.])
    >>> shops.levels_of(shops.solve(costs))
    array([1., 5.])
    """

    faces = "flat"
    _by_row = ("budget", "total", "_present", "demand_of_rows")
    #: What the levels cost for a demand, if there is a `cost`, and the demand of the rows, given by `with_demand`.
    demand_table: Any = None
    demand_of_rows: FloatArray | None = None
    _present: BoolArray | None = None
    _most_steps: int | None = None

    def __init__(
        self,
        levels: Any,
        *,
        consumption: Any = None,
        budget: Any = None,
        total: Any = None,
        cost: Any = None,
        sense: Sense = "min",
        time_limit: float | None = None,
        gap: float = 0.0,
        on_limit: Literal["raise", "best"] = "raise",
        on_error: Literal["raise", "nan"] = "raise",
    ) -> None:
        super().__init__(sense=sense, time_limit=time_limit, gap=gap, on_limit=on_limit, on_error=on_error)
        own = as_levels(levels)
        sizes = [len(of_item) for of_item in own]
        self.n_items, self.n_costs = len(own), as_n_costs(sum(sizes))
        self.levels: Any = np.array(own) if len(set(sizes)) == 1 else [of_item.tolist() for of_item in own]
        self.cost = None if cost is None else as_demand_cost(cost)
        if self.cost is not None:
            self.demand_table = DemandTable([of_item.tolist() for of_item in own], self.cost)
        self._flat = np.concatenate(own)
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        self.consumption = None if consumption is None else self._as_consumption(consumption, budget)
        self._uses = np.atleast_2d(self._flat if self.consumption is None else self.consumption)
        limits: dict[str, tuple[Any, int]] = {}
        if budget is not None:
            limits["budget"] = self._as_budget(budget), 1
        if total is not None:
            limits["total"] = as_numbers(total, name="total"), 0
        self.n_rows, values = spread(**limits)
        named = dict(zip(limits, values, strict=True))
        self.budget, self.total = named.get("budget"), named.get("total")
        self.is_integer = self.budget is not None or self.total is not None
        self.B_S = float(np.sqrt(self.n_items))
        self._check_budget()
        self._check_total()

    def _as_consumption(self, consumption: Any, budget: Any) -> FloatArray:
        if budget is None:
            raise ValueError("consumption is that of a budget: pass budget too.")
        consumption = as_amounts(consumption, name="consumption")
        if consumption.shape[-1] != self.n_costs:
            raise ValueError(
                f"consumption must have one entry for each of the {self.n_costs} levels of all items; got "
                f"consumption.shape={consumption.shape}."
            )
        return consumption

    def _as_budget(self, budget: Any) -> FloatArray:
        if np.ndim(budget) == 0:
            budget = [budget]
        budget = as_amounts(budget, name="budget")
        k = len(self._uses)
        if budget.shape[-1] != k:
            by_row = " Pass budget.reshape(-1, 1) for one budget per row." if k == 1 and budget.ndim == 1 else ""
            raise ValueError(
                f"budget must have one entry for each of the {k} rows of consumption, or one such row per sample; got "
                f"budget.shape={budget.shape}.{by_row}"
            )
        return budget

    def _check_budget(self) -> None:
        """Raise if even the levels that consume least exceed a budget; name the item that consumes most."""
        if self.budget is None:
            return
        least = np.minimum.reduceat(self._uses, self._starts[:-1], axis=1)  # (k, items)
        needed = least.sum(axis=1)
        room = ROOM * np.maximum(np.abs(self.budget), np.abs(self._uses).max(axis=1))
        short = np.argwhere(np.atleast_2d(needed > self.budget + room))
        if len(short):
            row, place = short[0]
            item = int(least[place].argmax())
            where = "" if self.n_rows is None else f" of row {row}"
            raise ValueError(
                f"no levels meet budget {place}{where}, {np.atleast_2d(self.budget)[row, place]:g}: those that consume "
                f"least take {needed[place]:g}, of which item {item} alone takes {least[place, item]:g}. Give item "
                f"{item} a lower level, or raise the budget."
            )

    def _check_total(self) -> None:
        if self.total is None:
            return
        least = float(self._flat[self._starts[:-1]].sum())
        most = float(self._flat[self._starts[1:] - 1].sum())
        totals = np.atleast_1d(self.total)
        outside = (totals < least - ROOM * abs(least)) | (totals > most + ROOM * abs(most))
        if outside.any():
            row = int(outside.argmax())
            where = "" if self.n_rows is None else f" of row {row}"
            raise ValueError(
                f"no levels sum to the total{where}, {totals[row]:g}: the lowest sum to {least:g}, and the highest to "
                f"{most:g}."
            )

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the levels of least cost for each row."""
        if self._present is not None:
            return self._minimize_present(costs)
        if self._is_program:
            return self._program.minimize(costs)
        fixed = self.budget is None and self.total is not None
        limit = self.total if fixed else self.budget
        limits = np.zeros(1) if limit is None else np.asarray(limit, dtype=np.float64)
        budgets = np.broadcast_to(limits.reshape(-1, 1), (len(costs), 1)).copy()
        weights = np.zeros(self.n_costs) if limit is None else self._flat if fixed else self._uses[0]

        def search(rows: FloatArray, steps: IntArray, own: FloatArray) -> tuple[FloatArray, int]:
            return search_levels(rows, steps, own, self._starts, weights, fixed)

        def hand_over(rows: IntArray) -> FloatArray:
            if self._most_steps is not None:
                raise SolverError(f"no optimal levels were proved within {self._most_steps:,} steps and 300 MB.", row=0)
            return self._program.take(rows).minimize(costs[rows])

        most = self._most_steps or steps_before(self, STEPS_PER_SECOND)
        decisions = search_or_hand_over(search, costs, budgets, steps=STEPS, max_steps=most, hand_over=hand_over)
        empty = ~decisions.any(axis=1)
        if self.on_error == "nan":
            decisions[empty] = np.nan
        elif empty.any():
            row = int(empty.argmax())
            raise SolverError(f"no levels sum to the total of this row, {budgets[row, 0]:g}.", row=row)
        return decisions

    def _with_present(self, present: BoolArray) -> Self:
        """Return the problem in which only levels that are present, (n, n_costs), are chosen."""
        part = copy(self)
        part.n_rows, part._present = len(present), present
        if self.budget is not None:
            part.budget = np.broadcast_to(self.budget, (len(present), self.budget.shape[-1]))
        if self.total is not None:
            part.total = np.broadcast_to(self.total, len(present))
        return part

    def _minimize_present(self, costs: FloatArray) -> FloatArray:
        """Solve each row as the problem of its levels alone, which has fewer items."""
        assert self._present is not None
        decisions, gaps, stopped = np.zeros(costs.shape), np.zeros(len(costs)), np.zeros(len(costs), dtype=bool)
        for row, present in enumerate(self._present):
            own = [self._flat[start:stop][present[start:stop]] for start, stop in pairwise(self._starts)]
            try:
                alone = Levels(
                    [levels for levels in own if len(levels)],
                    consumption=None if self.budget is None else self._uses[:, present],
                    budget=None if self.budget is None else self.budget[row],
                    total=None if self.total is None else float(self.total[row]),
                    **limits_of(self),
                )
            except ValueError as error:  # of a budget or a total that these levels do not meet
                if self.on_error == "nan":
                    decisions[row] = np.nan
                    continue
                raise SolverError(f"{error} Items are numbered among those that are present.", row=row) from error
            with at_rows([row]), noted_gaps() as noted:
                decisions[row, present] = alone.minimize(costs[row : row + 1, present])[0]
            [gaps[row]], [stopped[row]] = noted.by_row(1)
        note_gaps(gaps, stopped)
        return decisions

    @property
    def _is_program(self) -> bool:
        n_budgets = 0 if self.budget is None else self.budget.shape[-1]
        return n_budgets + (self.total is not None) > 1

    @cached_property
    def _program(self) -> LinearProgram:
        """The same problem for HiGHS."""
        A_eq: Any = self._one_level_each
        b_eq = np.ones(self.n_items)
        if self.total is not None:
            A_eq = np.vstack([A_eq.toarray(), self._flat])
            ones = np.ones((*np.shape(self.total), self.n_items))
            b_eq = np.concatenate([ones, np.asarray(self.total, dtype=np.float64)[..., np.newaxis]], axis=-1)
        A_ub = None if self.budget is None else self._uses
        whole: dict[str, Any] = {"upper": 1.0, "integrality": np.ones(self.n_costs)}
        return LinearProgram(A_ub, self.budget, A_eq, b_eq, **whole, solver="highs", **limits_of(self))

    @property
    def _one_level_each(self) -> csr_array:
        entries = np.ones(self.n_costs), np.arange(self.n_costs), self._starts
        return csr_array(entries, shape=(self.n_items, self.n_costs))

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The linear relaxation, which allows fractions of levels; None if budgets or totals differ by row."""
        if self.n_rows is not None:
            return None
        A_eq, b_eq = self._one_level_each.toarray(), np.ones(self.n_items)
        if self.total is not None:
            A_eq, b_eq = np.vstack([A_eq, self._flat]), np.append(b_eq, self.total)
        ub = None if self.budget is None else (self._uses, self.budget)
        return Polyhedron.within(np.zeros(self.n_costs), np.ones(self.n_costs), ub=ub, eq=(A_eq, b_eq))

    def as_costs(self, values: Any, *, name: str = "costs", realised: bool = False) -> FloatArray:
        """Return costs (n, n_costs) of demand (n, n_items) or scenarios of it (n, samples, n_items), if `cost` is set.

        Costs and scenarios of costs are understood too, as by every problem. A forecast of demand may be below zero,
        and counts as zero; what was realised may not.
        """
        found, cost = as_array(values, name=name), self.cost
        if cost is None or not self._is_demand(found):
            return super().as_costs(values, name=name, realised=realised)
        if realised:
            return level_costs(as_matrix(values, name=name), self.levels, cost)
        check_finite(found, name=name)
        costs: FloatArray = self.demand_table.costs(found)
        return costs

    def _is_demand(self, values: FloatArray) -> bool:
        """Whether values are demand, one for each item; a function may take any number of them for a single item."""
        if values.ndim == 0 or values.shape[-1] == self.n_costs:
            return False
        return values.shape[-1] == self.n_items or (self.n_items == 1 and not isinstance(self.cost, DemandCost))

    def with_demand(self, demand: Any) -> Levels:
        """Return this problem for rows with this demand, (n, items), from which `DemandRegressor` learns."""
        demand = as_matrix(demand, name="demand")
        budget = None if self.budget is None else (self.budget, 1)
        total = None if self.total is None else (self.total, 0)
        given = {name: value for name, value in (("budget", budget), ("total", total)) if value is not None}
        part = copy(self)
        part.__dict__.pop("_program", None)
        part.n_rows, [*values, part.demand_of_rows] = spread(**given, demand=(demand, 1))
        for name, value in zip(given, values, strict=True):
            setattr(part, name, value)
        return part

    def levels_of(self, decisions: Any) -> FloatArray:
        """Return the level of each item: (n, n_costs) -> (n, n_items), or of one decision (n_costs,) -> (n_items,)."""
        decisions = as_array(decisions, name="decisions")
        if decisions.shape[-1:] != (self.n_costs,):
            raise ValueError(f"decisions must have {self.n_costs} entries; got decisions.shape={decisions.shape}.")
        return self.by_item(decisions * self._flat)

    def by_item(self, values: FloatArray) -> FloatArray:
        """Return the sum of values (..., n_costs) over the levels of each item: (..., n_items)."""
        sums: FloatArray = np.add.reduceat(values, self._starts[:-1], axis=-1)
        return sums

    def solution(self, costs: Any) -> dict[str, Any]:
        """Return the decision, and the level of each item."""
        decision = self.solve(costs)
        return {"decision": decision, "levels": self.levels_of(decision)}
