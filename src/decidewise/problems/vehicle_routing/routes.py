"""The cheapest route of each set of customers, and the best choice of routes: every customer in exactly one.

*Routes* come from Held and Karp's recursion ("A dynamic programming approach to sequencing problems", 1962): the
cheapest way from the depot through a set of customers to one of them comes from the cheapest way through the set
without that one.

*The choice.* The linear relaxation, by HiGHS with columns that are priced in as needed, gives a dual price for each
customer and for each vehicle. Whatever their values, the cost of a choice of routes is the sum of these prices and of
the reduced costs of its routes, so that only routes with small reduced costs can be part of a better choice than one
that is known: a search lists all choices within a gap, which is doubled until there is one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel

#: The largest number of sets of customers: the tables then take a few hundred megabytes.
MAX_SETS = 500_000
#: Customers are bits of an integer of 64 bits.
MAX_CUSTOMERS = 60
#: A vehicle may carry this much more: decimal numbers do not add up exactly.
ROOM = 1.0 + 1e-9
#: In place of the set without a customer, where the customer is not in the set.
ABSENT = -2
#: The number of columns to price in at a time.
COLUMNS = 200
#: Only routes with a reduced cost below minus this, in units of the largest cost, are priced in.
NEGATIVE = 1e-9
#: The first gap, as a fraction of the bound.
GAP = 0.01
#: The largest number of steps of a search: about a second.
MAX_STEPS = 100_000_000


def sets_that_fit(demands: FloatArray, capacity: float) -> IntArray | None:
    """Return all sets of customers whose demand fits, as bit masks in increasing order, without the empty set.

    None if they are too many to list.

    >>> sets_that_fit(np.array([1.0, 2.0, 2.0]), 3.0)
    array([1, 2, 3, 4, 5])
    """
    masks, loads = np.zeros(1, np.int64), np.zeros(1)
    if len(demands) > MAX_CUSTOMERS:
        return None
    for customer, demand in enumerate(demands):
        fits = loads + demand <= capacity * ROOM
        masks = np.concatenate([masks, masks[fits] | np.int64(1) << customer])
        loads = np.concatenate([loads, loads[fits] + demand])
        if len(masks) > MAX_SETS:
            return None
    return masks[1:]


def smaller_sets(masks: IntArray, n_customers: int) -> IntArray:
    """Return the place of each set without each customer: -1 for the empty set, ABSENT if the customer is not in it."""
    places = np.empty((len(masks), n_customers), np.int64)
    for customer in range(n_customers):
        bit = np.int64(1) << customer
        without = masks & ~bit
        places[:, customer] = np.where(without == 0, -1, np.searchsorted(masks, without))
        places[(masks & bit) == 0, customer] = ABSENT
    return places


@kernel
def cheapest_ways(matrix: FloatArray, smaller: IntArray, ways: FloatArray) -> None:
    """Set the cost of the cheapest way from the depot through each set to each of its customers: (n_sets, n).

    The depot is node 0 of the cost matrix, and customer `j` is node `j + 1`.
    """
    n_sets, n = smaller.shape
    for row in range(n_sets):
        for last in range(n):
            before = smaller[row, last]
            ways[row, last] = np.inf
            if before == -1:
                ways[row, last] = matrix[0, last + 1]
            elif before >= 0:
                for i in range(n):
                    ways[row, last] = min(ways[row, last], ways[before, i] + matrix[i + 1, last + 1])


class Prices(NamedTuple):
    """The dual prices of the customers, and that of a vehicle, which is not positive."""

    customers: FloatArray
    vehicle: float


def dual_prices(costs: FloatArray, members: FloatArray, n_vehicles: int) -> Prices | None:
    """Return optimal dual prices of the linear relaxation, for routes (m,) with members (m, n), if it is feasible."""
    import highspy  # noqa: PLC0415  (HiGHS is loaded only where it is needed)

    n = members.shape[1]
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("solver", "simplex"), ("presolve", "off"), ("threads", 1)):
        solver.setOptionValue(option, value)
    for bound in (*[(1.0, 1.0)] * n, (0.0, float(n_vehicles))):
        solver.addRow(*bound, 0, np.empty(0, np.int32), np.empty(0))
    # A customer can be left out at a cost above that of any route.
    penalty = 2.0 * float(np.abs(costs).max()) * (n + 1) + 1.0
    for customer in range(n):
        solver.addCol(penalty, 0.0, np.inf, 1, np.array([customer], np.int32), np.ones(1))
    prices, left_out, is_in = Prices(np.full(n, penalty), 0.0), np.ones(n), np.zeros(len(costs), np.bool_)
    while True:
        check_time()
        reduced = costs - members @ prices.customers - prices.vehicle
        reduced[is_in] = 0.0  # where HiGHS has left a negative one, it is within its tolerance
        new = np.argpartition(reduced, min(COLUMNS, len(reduced) - 1))[:COLUMNS]
        new = new[reduced[new] < -NEGATIVE]
        is_in[new] = True
        if len(new) == 0:
            return prices if left_out.sum() < 1e-6 else None
        # Every column has a 1 for each of its customers, and one for its vehicle.
        columns = csr_array(np.column_stack([members[new], np.ones(len(new))]))
        none, unlimited = np.zeros(len(new)), np.full(len(new), np.inf)
        entries = columns.indptr[:-1].astype(np.int32), columns.indices.astype(np.int32), columns.data
        solver.addCols(len(new), costs[new], none, unlimited, columns.nnz, *entries)
        solver.run()
        left_out = np.array(solver.getSolution().col_value[:n])
        duals = np.array(solver.getSolution().row_dual)
        prices = Prices(duals[:n], min(float(duals[n]), 0.0))


def best_choices(
    costs: FloatArray, masks: IntArray, members: FloatArray, n_vehicles: int, tolerance: float, max_choices: int
) -> IntArray | None:
    """Return all choices of routes whose cost is within the tolerance of the best: (n_choices, n_vehicles).

    A choice lists its routes, and ends with -1 for vehicles that stay. There are no rows if customers cannot all be
    served; the result is None if there are more than `max_choices`, or too many steps to take.

    Parameters
    ----------
    costs, masks, members : ndarray of shape (m,), (m,) and (m, n)
        The cost of each route, and its customers as a bit mask and as zeros and ones.
    """
    prices = dual_prices(costs, members, n_vehicles)
    if prices is None:
        return np.empty((0, n_vehicles), np.int64)
    reduced = costs - members @ prices.customers - prices.vehicle
    bound = float(prices.customers.sum()) + n_vehicles * prices.vehicle
    everything = n_vehicles * (float(reduced.max()) - prices.vehicle)
    refund = max(0.0, -float(reduced.min())) * n_vehicles  # what further routes can take back of the reduced costs
    gap = GAP * abs(bound) + tolerance + 1e-6
    steps = np.array([MAX_STEPS])
    while True:
        near = np.flatnonzero(reduced <= gap + tolerance + refund)
        first = np.argmax(members[near] > 0, axis=1)
        order = np.lexsort((reduced[near], first))
        starts = np.searchsorted(first[order], np.arange(members.shape[1] + 1))
        choices = np.full((max_choices, n_vehicles), -1)
        count = _search(masks, reduced, near[order], starts, -prices.vehicle, refund, gap, tolerance, choices, steps)
        if count < 0:
            return None
        if count > 0 or gap > everything:
            return choices[:count]
        gap *= 2.0
        check_time()


@kernel
def _search(
    masks: IntArray,
    reduced: FloatArray,
    routes: IntArray,
    starts: IntArray,
    spare: float,
    refund: float,
    gap: float,
    tolerance: float,
    choices: IntArray,
    steps: IntArray,
) -> int:
    """Set all choices of reduced costs within the gap, and within the tolerance of the least; return their number.

    Routes whose first customer is `i` are `routes[starts[i]:starts[i + 1]]`, the least reduced cost first. A vehicle
    that stays costs `spare`; the routes that follow can reduce what is spent by `refund` at most. Return -1 if there
    are too many choices, or steps to take.

    Next: a route of the first customer left.
    Cut: above the limit, or overlapping.
    Descend: until everyone is served.
    Keep: all within tolerance of the best.
    """
    n, n_vehicles = len(starts) - 1, choices.shape[1]
    everyone = (1 << n) - 1
    place, customer = np.empty(n_vehicles + 1, np.int64), np.empty(n_vehicles + 1, np.int64)
    covered, spent = np.empty(n_vehicles + 1, np.int64), np.empty(n_vehicles + 1)
    chosen, totals = np.empty(n_vehicles, np.int64), np.empty(len(choices))
    best, count = np.inf, 0
    limit = gap + tolerance  # so that no tie of a choice within the gap is missed
    depth = 0
    place[0], customer[0], covered[0], spent[0] = starts[0], 0, 0, 0.0
    while depth >= 0:
        i = place[depth]
        place[depth] += 1
        if depth == n_vehicles or i == starts[customer[depth] + 1]:
            depth -= 1
            continue
        steps[0] -= 1
        if steps[0] < 0:
            return -1
        route = routes[i]
        cost = spent[depth] + reduced[route]
        if cost > limit + refund:
            depth -= 1
            continue
        if masks[route] & covered[depth]:
            continue
        chosen[depth] = route
        mask = covered[depth] | masks[route]
        if mask != everyone:
            following = customer[depth]
            while (mask >> following) & 1:
                following += 1
            depth += 1
            covered[depth], spent[depth] = mask, cost
            customer[depth], place[depth] = following, starts[following]
            continue
        cost += (n_vehicles - depth - 1) * spare
        if cost > limit:
            continue
        if cost < best:
            best, limit = cost, min(limit, cost + tolerance)
            count = _keep(limit, totals, choices, count)
        if count == len(choices):
            return -1
        for k in range(n_vehicles):
            choices[count, k] = chosen[k] if k <= depth else -1
        totals[count] = cost
        count += 1
    return count if best <= gap else 0


@kernel(inner=True)
def _keep(limit: float, totals: FloatArray, choices: IntArray, count: int) -> int:
    """Move the choices within the limit to the front; return their number."""
    kept = 0
    for row in range(count):
        if totals[row] <= limit:
            totals[kept] = totals[row]
            for k in range(choices.shape[1]):
                choices[kept, k] = choices[row, k]
            kept += 1
    return kept
