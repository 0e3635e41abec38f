"""Buy ahead for a known demand, at prices that are predicted, with limited storage.

Ties: period by period, the smallest purchase with which an optimal plan can continue.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray, as_vector
from decidewise.kit.kernels import kernel
from decidewise.problems.by_row import (
    as_amounts,
    as_levels,
    as_numbers,
    check_not_negative,
    kernel_in_parts,
    spread,
)
from decidewise.problems.contract import Problem, Sense, as_n_costs
from decidewise.problems.rounding import EPS, safe_unit
from decidewise.problems.stock.marginal_values import length_above, merge_offers
from decidewise.solvers import Polyhedron


class Inventory(Problem):
    """Buy for the demand `d` of several periods, some of it ahead of time.

    The costs are the prices `p`. A decision has the purchases `w_t` of each period, from 0 to `limit`; the stock at the
    end of a period is carried into the next one:

        s_t = s_{t-1} + w_t - d_t,   0 <= s_t <= capacity,   s_T >= final,   s_0 = initial.

    The cost `p·w + h·s` has a known part, the cost `h` of holding stock. Since the stock is what has been bought less
    what was needed, `h·s = k·w + constant` with `k_t = h_t + ... + h_T`: holding costs raise the price of buying early.

    The solver is exact. Marginal values of the stock are computed backwards in time
    (`decidewise.problems.stock.marginal_values`): with less stock, a unit more must be bought at the price of the
    period, or is missing later. A pass forwards buys while a unit in stock is worth more than it costs. The total cost
    from a period on is a convex function of the stock at its start, as the least value of a linear program is of its
    right-hand side, so that no other plan is better. This takes O(T²) steps for T periods.

    Parameters
    ----------
    demand : array-like of shape (n_costs,) or (n_rows, n_costs)
        What is needed in each period, not negative: the same for all rows of costs, or one row per sample.
    capacity : float
        The largest stock at the end of a period.
    limit : float, optional
        The largest purchase in a period; by default there is no limit.
    holding : float or array-like of shape (n_costs,)
        The cost of a unit in stock at the end of each period; it belongs to the minimisation, whatever the sense.
    initial, final : float
        The stock before the first period, at most `capacity`; the lowest stock allowed after the last. Like `capacity`
        and `limit` they may be given by row, as arrays of shape (n_rows,).
    sense : {"min", "max"}

    Attributes
    ----------
    n_costs : int
        One per period.
    n_rows : int or None
        The number of rows, if any of these numbers is given by row; then all of them are arrays with one row each.
    has_known : bool
        Whether any holding cost is not zero.
    B_S : float
        A bound on the norm of decisions: that of the largest possible purchases.

    Examples
    --------
    >>> from decidewise.problems import Inventory
    >>> Inventory(demand=[1.0, 1.0, 2.0], capacity=2.0).solve([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    array([[3., 1., 0.],
           [1., 1., 2.]])
    >>> Inventory(demand=[1.0, 1.0, 2.0], capacity=2.0, holding=0.8).solve([1.0, 2.0, 2.5])
    array([2., 0., 2.])
    >>> Inventory(demand=[[1.0, 2.0], [3.0, 1.0]], capacity=1.0).solve([[1.0, 2.0], [1.0, 2.0]])
    array([[2., 1.],
           [4., 0.]])
    """

    faces = "flat"
    in_time = True
    _by_row = ("demand", "capacity", "limit", "initial", "final", "_most", "_lowest", "_constant")

    def __init__(
        self,
        demand: Any,
        capacity: Any,
        *,
        limit: Any = None,
        holding: Any = 0.0,
        initial: Any = 0.0,
        final: Any = 0.0,
        sense: Sense = "min",
    ) -> None:
        super().__init__(sense=sense)
        demand = as_amounts(demand, name="demand")
        self.n_costs = as_n_costs(demand.shape[-1])
        if self.n_costs == 0:
            raise ValueError("demand is empty; pass what is needed in each period.")
        check_not_negative(demand, name="demand", owner="period")
        capacity = as_numbers(capacity, name="capacity", at_least=0)
        self.holding = as_vector(
            np.full(self.n_costs, holding) if np.ndim(holding) == 0 else holding, name="holding", length=self.n_costs
        )
        self.n_rows, (self.demand, self.capacity, self.limit, self.initial, self.final) = spread(
            demand=(demand, 1),
            capacity=(capacity, 0),
            limit=(np.inf if limit is None else as_numbers(limit, name="limit", at_least=0), 0),
            initial=(as_levels(initial, name="initial", at_most=capacity), 0),
            final=(as_levels(final, name="final", at_most=capacity), 0),
        )
        self.has_known = bool(self.holding.any())
        self._find_limits()
        self._tails = np.ascontiguousarray(np.cumsum(self.holding[::-1])[::-1])
        self._constant = (np.expand_dims(self.initial, -1) - np.cumsum(self.demand, axis=-1)) @ self.holding
        self.B_S = float(np.linalg.norm(self._most, axis=-1).max())

    def _find_limits(self) -> None:
        """Find the most that can be bought in a period, and the stock that each period must start with."""
        self._most = np.minimum(np.expand_dims(self.limit, -1), np.expand_dims(self.capacity, -1) + self.demand)
        self._lowest = np.empty((*self.demand.shape[:-1], self.n_costs + 1))
        self._lowest[..., -1] = self.final
        rounding = EPS * self.demand.sum(axis=-1)
        for period in reversed(range(self.n_costs)):
            needed = self._lowest[..., period + 1] + self.demand[..., period] - self._most[..., period]
            self._lowest[..., period] = np.maximum(needed, 0.0)
            stock = self.capacity if period else self.initial
            lacks = np.flatnonzero(needed > stock * (1 + EPS) + rounding)
            if len(lacks):
                row = int(lacks[0])
                raise ValueError(
                    f"{'' if self.n_rows is None else f'row {row}: '}demand cannot be met from period {period} on: "
                    f"that needs a stock of {np.ravel(needed)[row]:g} at its start, and there can be "
                    f"{np.ravel(stock)[row]:g}. Raise limit, capacity or initial."
                )

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the purchases that cost least, holding costs included; ties go to later purchases."""
        return self._buy(costs + self._tails)

    def minimize_lifted(self, costs: FloatArray) -> FloatArray:
        """Return purchases and their holding cost, for prices and a weight of the holding cost: (n, n_costs + 1)."""
        purchases = self._buy(costs[:, :-1] + costs[:, -1:] * self._tails)
        return np.column_stack([purchases, purchases @ self._tails + self._constant])

    def _buy(self, prices: FloatArray) -> FloatArray:
        return kernel_in_parts(
            _stock_up, self, prices, self.demand, self._most, self._lowest, self.capacity, self.initial
        )

    def solution(self, costs: Any) -> dict[str, FloatArray]:
        """Return what is bought, and the stock at the end of each period, both of the shape of costs."""
        bought = self.solve(costs)
        stock = np.expand_dims(self.initial, -1) + np.cumsum(bought - self.demand, axis=-1)
        stock = np.clip(stock, 0.0, np.expand_dims(self.capacity, -1))
        return {"bought": bought, "stock": stock.reshape(bought.shape)}

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The purchases up to each period lie between what is needed by then, and what can be stored in addition.

        None if demand or store differ by row.
        """
        if self.n_rows is not None:
            return None
        needed = np.cumsum(self.demand) - self.initial
        needed[-1] += self.final
        room = np.cumsum(self.demand) - self.initial + self.capacity
        sums = np.tri(self.n_costs)
        limits = np.vstack([-sums, sums]), np.concatenate([-needed, room])
        return Polyhedron.within(np.zeros(self.n_costs), self._most, ub=limits)


@kernel
def _stock_up(
    costs: FloatArray,
    decisions: FloatArray,
    demands: FloatArray,
    mosts: FloatArray,
    lowests: FloatArray,
    capacities: FloatArray,
    initials: FloatArray,
) -> None:
    """Set the purchases of each row, with one store for all rows or one for each; prices include holding costs."""
    n_periods = costs.shape[1]
    slopes = np.empty((n_periods + 1, n_periods + 1))
    lengths = np.empty_like(slopes)
    counts = np.empty(n_periods + 1, np.int64)
    price = np.empty(n_periods)
    offers, amounts = np.empty(1), np.empty(1)
    for row in range(len(costs)):
        store = min(row, len(demands) - 1)
        demand, most, lowest, capacity = demands[store], mosts[store], lowests[store], capacities[store]
        tiny = 8 * EPS * (n_periods + 1) * (capacity + demand.max())
        slopes[n_periods, 0], lengths[n_periods, 0] = 0.0, capacity - lowest[n_periods]
        counts[n_periods] = 1
        largest = 0.0
        for period in range(n_periods):
            largest = max(largest, abs(costs[row, period]))
        unit = safe_unit(largest)
        for period in range(n_periods):
            price[period] = costs[row, period] * unit
        for period in range(n_periods - 1, 0, -1):
            offers[0], amounts[0] = price[period], most[period]
            skip = lowest[period] - (lowest[period + 1] + demand[period] - most[period])
            merge_offers(slopes, lengths, counts, period, offers, amounts, skip, capacity - lowest[period], tiny)
        stock = initials[store]
        for period in range(n_periods):
            ahead = period + 1
            worth_having = length_above(slopes[ahead], lengths[ahead], counts[ahead], price[period], False)
            stock -= demand[period]
            wanted = lowest[ahead] + worth_having - stock
            if wanted > tiny:
                decisions[row, period] = most[period] if wanted >= most[period] - tiny else wanted
                stock += decisions[row, period]
            stock = min(max(stock, 0.0), capacity)
