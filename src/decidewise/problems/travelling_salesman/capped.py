"""Costs that forbid or demand: huge numbers that must not blur what the ordinary ones decide.

Let every decision choose exactly `k` of the items. Costs larger in size than all ordinary ones by a factor are replaced
by `±cap`, with a cap beyond what ordinary costs can add up to. The best decision for these capped costs chooses the
fewest capped items that cost, less those that reward, and among all such decisions the best by the ordinary costs. It
is certified to be best for the true costs if no decision of as many capped items could save more on them: if it chooses
none, for instance, or if all of them have the same cost, or if it chooses all that reward. Otherwise the row is solved
again with a higher cap, in the end with none. Last, a row is solved once more, with those costs capped that no decision
as good as the one found can use, if that leaves much smaller costs than the cap did.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray
from decidewise.errors import SolverError


def minimize_capped(minimize: Callable[[FloatArray], FloatArray], costs: FloatArray, n_chosen: int) -> FloatArray:
    """Return `minimize(costs)`, (n, d) -> (n, d), as exact for rows with some huge costs as for ordinary rows.

    Parameters
    ----------
    minimize : callable
        Returns decisions with `n_chosen` ones a row; its tolerance for ties grows with the largest cost of a row.

    Examples
    --------
    One of three items is to be chosen, by a solver that takes anything within a billionth of the largest cost:

    >>> def careless(costs):
    ...     tied = costs <= costs.min(axis=1, keepdims=True) + 1e-9 * np.abs(costs).max(axis=1, keepdims=True)
    ...     return np.eye(3)[tied.argmax(axis=1)]
    >>> costs = np.array([[1.5, 1.0, 1e15]])
    >>> careless(costs), minimize_capped(careless, costs, 1)
    (array([[1., 0., 0.]]), array([[0., 1., 0.]]))
    """
    sizes = np.sort(np.abs(costs), axis=1)
    # Ordinary costs end before a gap that no sum of them can bridge: a wider one where they are too few for a decision.
    bridge = np.where(np.arange(1, costs.shape[1]) < n_chosen, 1e6, 3.0 * n_chosen)
    gaps = (sizes[:, 1:] / bridge > sizes[:, :-1]) & ((bridge < 1e6) | (sizes[:, :-1] > 0))
    plain = ~gaps.any(axis=1)
    if plain.all():
        return minimize(costs)
    decisions = np.empty_like(costs)

    def solve(rows: npt.NDArray[np.intp], row_costs: FloatArray) -> None:
        try:
            decisions[rows] = minimize(row_costs)
        except SolverError as error:
            raise error.at(int(rows[error.row])) from error

    if plain.any():
        solve(np.flatnonzero(plain), costs[plain])
    waiting = np.flatnonzero(~plain)
    scale = np.zeros(len(costs))  # the largest cost with which each row was solved
    while len(waiting):
        # The lowest gap of each row that has not been tried, at which its ordinary costs end.
        ends = gaps[waiting].argmax(axis=1)
        largest = np.where(gaps[waiting].any(axis=1), sizes[waiting, ends], np.inf)[:, None]
        capped = np.where(np.abs(costs[waiting]) > largest, np.sign(costs[waiting]), 0.0)
        # Beyond all sums of ordinary costs, and not beyond any cost that it replaces.
        smallest = np.where(capped == 0, np.inf, np.abs(costs[waiting])).min(axis=1, keepdims=True)
        cap = np.where(largest > 0, np.minimum(2.5 * n_chosen * largest, smallest), smallest)
        tame = np.where(capped == 0, costs[waiting], np.where(capped > 0, cap, -cap))
        scale[waiting] = np.abs(tame).max(axis=1)
        solve(waiting, tame)
        certified = [
            _is_best(row, signs, chosen)
            for row, signs, chosen in zip(costs[waiting], capped, decisions[waiting], strict=True)
        ]
        gaps[waiting, ends] = False
        waiting = waiting[~np.array(certified)]
    huge = np.flatnonzero(~plain)
    reachable = _without_the_hopeless(costs[huge], decisions[huge], n_chosen)
    smaller = np.abs(reachable).max(axis=1) < scale[huge] / 10
    if smaller.any():
        solve(huge[smaller], reachable[smaller])
    return decisions


def _without_the_hopeless(costs: FloatArray, decisions: FloatArray, n_chosen: int) -> FloatArray:
    """Return costs (n, d) in which those of items that no better decision than the given one can have are cut.

    An item is out of reach if it costs more than the decision, even together with the cheapest `n_chosen - 1` items.
    """
    values = (costs * decisions).sum(axis=1, keepdims=True)
    others = np.partition(costs, n_chosen - 2, axis=1)[:, : n_chosen - 1].sum(axis=1, keepdims=True)
    limit = values - others + 1e-3 * (np.abs(values) + np.abs(others))  # beyond any rounding
    reachable = np.where(costs <= limit, np.abs(costs), 0.0).max(axis=1, keepdims=True)
    hopeless = np.where(costs > limit, costs, np.inf).min(axis=1, keepdims=True)
    return np.minimum(costs, np.maximum(limit + reachable, hopeless))


def _is_best(costs: FloatArray, signs: FloatArray, chosen: FloatArray) -> bool:
    """Whether no decision with as many capped items, those that reward taken off, costs less for them."""
    taken = chosen > 0.5
    spent = fsum(costs[taken & (signs != 0)])
    dear, welcome = np.sort(costs[signs > 0]), np.sort(costs[signs < 0])
    surplus = int(signs[taken].sum())
    # With j items that reward and j + surplus that cost, the cheapest of each.
    least = min(
        fsum([*dear[: j + surplus], *welcome[:j]]) for j in range(len(welcome) + 1) if 0 <= j + surplus <= len(dear)
    )
    return bool(spent <= least)
