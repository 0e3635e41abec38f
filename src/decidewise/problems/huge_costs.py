"""Rows with some huge costs, which forbid or demand items: keep the precision of the ordinary costs.

Let every decision choose exactly `k` items. Costs that are larger in size than all ordinary costs by some factor are
replaced by `±cap`, with a cap above any sum of ordinary costs. The best decision for the capped costs minimises the
number of chosen items capped at `+cap` minus the number capped at `-cap`, and among all such decisions the ordinary
costs. It is certified as the best for the true costs if no choice of capped items with the same difference is cheaper:
for instance if it chooses none, if all of them have the same cost, or if it chooses exactly those capped at `-cap`.
Otherwise the row is solved again with a higher cap, and at last without one. In the end, costs too large for any
decision as good as the one found are capped; if the largest cost is then much smaller than before, the row is solved
once more.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum

import numpy as np

from decidewise.kit.checks import FloatArray, IndexArray
from decidewise.kit.errors import at_rows
from decidewise.kit.gaps import note_gaps, noted_gaps


def minimize_capped(minimize: Callable[[FloatArray], FloatArray], costs: FloatArray, n_chosen: int) -> FloatArray:
    """Return `minimize(costs)`, (n, d) -> (n, d), with rows that have some huge costs solved as exactly as other rows.

    Parameters
    ----------
    minimize : callable
        Returns decisions with `n_chosen` ones per row; its tolerance for ties grows with the largest cost of a row.

    Examples
    --------
    Choose one of three items, with a solver whose tolerance is a billionth of the largest cost:

    >>> def careless(costs):
    ...     tied = costs <= costs.min(axis=1, keepdims=True) + 1e-9 * np.abs(costs).max(axis=1, keepdims=True)
    ...     return np.eye(3)[tied.argmax(axis=1)]
    >>> costs = np.array([[1.5, 1.0, 1e15]])
    >>> careless(costs), minimize_capped(careless, costs, 1)
    (array([[1., 0., 0.]]), array([[0., 1., 0.]]))
    """
    sizes = np.sort(np.abs(costs), axis=1)
    if (sizes > 1e300).any():  # whose sums may overflow
        factors = np.where(sizes[:, -1:] > 1e300, 2.0**-60, 1.0)
        with noted_gaps() as noted:
            decisions = minimize_capped(minimize, factors * costs, n_chosen)
        left, stopped = noted.by_row(len(costs))
        note_gaps(left / factors[:, 0], stopped)
        return decisions
    # The ordinary costs are those below a gap that no sum of them can bridge; if they are fewer than a decision needs,
    # the gap must be wider.
    bridge = np.where(np.arange(1, costs.shape[1]) < n_chosen, 1e6, 3.0 * n_chosen)
    gaps = (sizes[:, 1:] / bridge > sizes[:, :-1]) & ((bridge < 1e6) | (sizes[:, :-1] > 0))
    plain = ~gaps.any(axis=1)
    if plain.all():
        return minimize(costs)
    decisions, gaps_left, stopped = np.empty_like(costs), np.zeros(len(costs)), np.zeros(len(costs), dtype=bool)

    def solve(rows: IndexArray, row_costs: FloatArray) -> None:
        with at_rows(rows), noted_gaps() as noted:
            decisions[rows] = minimize(row_costs)
        found, (left, stopped[rows]) = decisions[rows], noted.by_row(len(rows))
        # The costs that another decision pays beyond the capped ones are at least those of all capped at `-cap`.
        beyond = costs[rows] - row_costs
        unsaid = np.where(beyond > 0, beyond * found, beyond * (found - 1)).sum(axis=1)
        gaps_left[rows] = np.where(left > 0, left + unsaid, 0.0)

    if plain.any():
        solve(np.flatnonzero(plain), costs[plain])
    waiting = np.flatnonzero(~plain)
    scale = np.zeros(len(costs))  # the largest cost with which each row was solved
    while len(waiting):
        # The ordinary costs of a row end at its lowest gap that has not been tried.
        ends = gaps[waiting].argmax(axis=1)
        largest = np.where(gaps[waiting].any(axis=1), sizes[waiting, ends], np.inf)[:, None]
        capped = np.where(np.abs(costs[waiting]) > largest, np.sign(costs[waiting]), 0.0)
        # The cap is above all sums of ordinary costs, but not above any cost that it replaces.
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
    reduced = _cap_unusable(costs[huge], decisions[huge], n_chosen)
    smaller = np.abs(reduced).max(axis=1) < scale[huge] / 10
    if smaller.any():
        solve(huge[smaller], reduced[smaller])
    note_gaps(gaps_left, stopped)
    return decisions


def _cap_unusable(costs: FloatArray, decisions: FloatArray, n_chosen: int) -> FloatArray:
    """Return costs (n, d) in which the costs of unusable items, those in no better decision than the given, are capped.

    An item is unusable if it costs more than the decision even together with the cheapest `n_chosen - 1` items.
    """
    values = (costs * decisions).sum(axis=1, keepdims=True)
    others = np.partition(costs, n_chosen - 2, axis=1)[:, : n_chosen - 1].sum(axis=1, keepdims=True)
    limit = values - others + 1e-3 * (np.abs(values) + np.abs(others))  # beyond any rounding
    usable = np.where(costs <= limit, np.abs(costs), 0.0).max(axis=1, keepdims=True)
    unusable = np.where(costs > limit, costs, np.inf).min(axis=1, keepdims=True)
    return np.minimum(costs, np.maximum(limit + usable, unusable))


def _is_best(costs: FloatArray, signs: FloatArray, chosen: FloatArray) -> bool:
    """Return whether no choice of capped items with the same sum of signs costs less than the one chosen."""
    taken = chosen > 0.5
    spent = fsum(costs[taken & (signs != 0)])
    positive, negative = np.sort(costs[signs > 0]), np.sort(costs[signs < 0])
    surplus = int(signs[taken].sum())
    # The cheapest choice of j items of negative cost and j + surplus of positive cost, for the best j.
    least = min(
        fsum([*positive[: j + surplus], *negative[:j]])
        for j in range(len(negative) + 1)
        if 0 <= j + surplus <= len(positive)
    )
    return bool(spent <= least)
