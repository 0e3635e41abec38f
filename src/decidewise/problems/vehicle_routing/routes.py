"""The cheapest route of each set of customers that fits into one vehicle.

Held and Karp's recursion ("A dynamic programming approach to sequencing problems", 1962): the cheapest way from the
depot through a set of customers to one of them comes from the cheapest way through the set without that one.
"""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel

#: The largest number of sets of customers: the tables then take a few hundred megabytes.
MAX_SETS = 500_000
#: In place of the set without a customer, where the customer is not in the set.
ABSENT = -2


def sets_that_fit(demands: FloatArray, capacity: float) -> IntArray:
    """Return all sets of customers whose demand fits, as bit masks in increasing order, without the empty set.

    >>> sets_that_fit(np.array([1.0, 2.0, 2.0]), 3.0)
    array([1, 2, 3, 4, 5])
    """
    masks, loads = np.zeros(1, np.int64), np.zeros(1)
    for customer, demand in enumerate(demands):
        fits = loads + demand <= capacity * (1 + 1e-12)
        masks = np.concatenate([masks, masks[fits] | np.int64(1) << customer])
        loads = np.concatenate([loads, loads[fits] + demand])
        if len(masks) > MAX_SETS:
            raise ValueError(
                f"more than {MAX_SETS:,} sets of customers fit into one vehicle, too many to list. Lower the capacity, "
                "or use fewer customers."
            )
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
