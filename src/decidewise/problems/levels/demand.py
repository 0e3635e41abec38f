"""What each level would have cost: the table of costs that a demand makes of the levels of each item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray, all_finite, as_array, as_vector, check_finite, nearest_names, shown
from decidewise.problems.by_row import check_not_negative

#: `cost(level, demand)`: levels (items,) and demand (..., items) in, costs (..., items) out.
CostOfLevel = Callable[[FloatArray, FloatArray], Any]


@dataclass(frozen=True)
class DemandCost:
    """What a level costs for a demand: `each·level + over·(level - demand)+ + under·(demand - level)+ + base·demand`.

    Each is a number, or a list with one for each item.

    Examples
    --------
    >>> newsvendor(over=1.0, under=4.0)(5.0, np.array([3.0, 5.0, 6.0]))
    array([2., 0., 4.])
    """

    each: Any = 0.0
    over: Any = 0.0
    under: Any = 0.0
    base: Any = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            values = as_array(value, name=name)
            if values.ndim > 1 or not all_finite(values):
                raise ValueError(f"{name} must be a finite number, or one for each item; got {shown(value)}.")

    def __call__(self, level: Any, demand: Any) -> Any:
        """Return the costs of levels for demands, each with the items in the last axis."""
        each, over, under, base = map(np.asarray, (self.each, self.over, self.under, self.base))
        return (
            each * level + over * np.maximum(level - demand, 0) + under * np.maximum(demand - level, 0) + base * demand
        )


def newsvendor(over: Any, under: Any) -> DemandCost:
    """Return the cost of each unit above the demand, `over`, and of each below it, `under`.

    The best single level is the quantile `under / (over + under)` of the demand. Each is a number, or one per item.

    >>> demand = np.random.default_rng(0).gamma(2.0, 10.0, size=(10_000, 1))
    >>> levels = np.arange(0.0, 100.0)
    >>> table = level_costs(demand, [levels], newsvendor(over=1, under=3))
    >>> float(levels[table.mean(axis=0).argmin()]), float(np.quantile(demand, 0.75).round(1))
    (27.0, 27.3)
    """
    return DemandCost(over=over, under=under)


def service_level(share: Any) -> DemandCost:
    """Return the cost whose best level meets this share of the demands: the `share` quantile.

    >>> service_level(0.95)
    DemandCost(each=0.0, over=0.05, under=0.95, base=0.0)
    """
    values = as_array(share, name="share")
    if not ((values > 0) & (values < 1)).all():
        raise ValueError(f"share must be between 0 and 1; got {shown(share)}.")
    over = np.round(1.0 - values, 15)
    return DemandCost(over=over.tolist(), under=share)


def lost_sales(price: Any, cost: Any, salvage: Any = 0.0) -> DemandCost:
    """Return minus the profit of buying a level at `cost`, selling at `price`, and the rest at `salvage`.

    >>> lost_sales(price=5.0, cost=2.0, salvage=1.0)(10.0, np.array([8.0, 12.0]))  # 20 - 40 - 2, and 20 - 50
    array([-22., -30.])
    """
    price, salvage = as_array(price, name="price"), as_array(salvage, name="salvage")
    return DemandCost(each=cost, over=(-salvage).tolist(), under=price.tolist(), base=(-price).tolist())


def overtime(regular: Any, extra: Any) -> DemandCost:
    """Return the cost of a regular capacity, used or not, and of the demand beyond it at the price of overtime.

    >>> overtime(regular=20.0, extra=30.0)(8.0, np.array([7.0, 10.0]))
    array([160., 220.])
    """
    return DemandCost(each=regular, under=extra)


_NAMED: dict[str, Callable[..., DemandCost]] = {
    "newsvendor": newsvendor,
    "service_level": service_level,
    "lost_sales": lost_sales,
    "overtime": overtime,
}


def as_demand_cost(cost: Any) -> CostOfLevel:
    """Return a function of level and demand: one as it is, or that of a name and its parameters.

    >>> as_demand_cost({"name": "newsvendor", "over": 1.0, "under": 4.0})
    DemandCost(each=0.0, over=1.0, under=4.0, base=0.0)
    """
    if callable(cost):
        return cost
    if not isinstance(cost, Mapping) or "name" not in cost:
        raise ValueError(
            "cost must be a function of level and demand, or a name with its parameters, such as "
            f'{{"name": "newsvendor", "over": 1, "under": 4}}; got {shown(cost)}.'
        )
    parameters = dict(cost)
    name = parameters.pop("name")
    if name not in _NAMED:
        raise ValueError(f"there is no cost {name!r}{nearest_names(str(name), _NAMED)}")
    try:
        return _NAMED[name](**parameters)
    except TypeError as reason:
        raise ValueError(f"cost: {reason}") from reason


def level_costs(demand: Any, levels: Any, cost: Any) -> FloatArray:
    """Return what each level of each item would have cost: the table of costs that `Levels` decides on.

    It is not linear in the demand, but its mean is what a decision pays in the mean: predict the table, and the best
    levels for the prediction are the best decision.

    Parameters
    ----------
    demand : array-like or frame of shape (n, items), or (n, q) if the function takes it so
        Not negative.
    levels : list of lists of float, or array-like of shape (items, levels)
        As for `Levels`.
    cost : DemandCost, mapping or function
        As for `Levels`: `newsvendor`, `service_level`, `lost_sales`, `overtime`, or `cost(level, demand)` of levels
        (items,), one for each item, and all demand, which returns costs (n, items). For one item it may return (n,).
        A problem in two stages is one item, whose levels are the numbers of a list of first decisions: the function
        solves the second stage of one of them for all rows.

    Returns
    -------
    costs : ndarray of shape (n, number of levels of all items)

    Examples
    --------
    >>> level_costs([[3.0, 0.0], [1.0, 7.0]], [[0, 2, 4], [0, 5]], newsvendor(over=1, under=4))
    array([[12.,  4.,  1.,  0.,  5.],
           [ 4.,  1.,  3., 28.,  8.]])

    Two products; if one is sold out, half of its buyers take the other.

    >>> plans = np.array([[2.0, 2.0], [4.0, 0.0]])
    >>> def second_stage(plan, demand):
    ...     stock = plans[int(plan[0])]
    ...     unmet = np.maximum(demand - stock, 0)
    ...     return stock.sum() - 3 * np.minimum(stock, demand + unmet[:, ::-1] / 2).sum(axis=1)
    >>> level_costs([[1.0, 5.0], [4.0, 1.0]], [[0, 1]], second_stage)
    array([[-8. , -6.5],
           [-8. , -8. ]])
    """
    demand = as_array(demand, name="demand")
    if demand.ndim == 1:
        demand = demand[:, np.newaxis]
    check_finite(demand, name="demand")
    check_not_negative(demand, name="demand", owner="item")
    own = as_levels(levels)
    starts = np.concatenate([[0], np.cumsum([len(of_item) for of_item in own])])
    return table_of(demand, padded(np.concatenate(own), starts), as_demand_cost(cost))


def padded(flat: FloatArray, starts: Any) -> FloatArray:
    """Return levels (items, most), the missing ones of an item as NaN.

    >>> padded(np.array([0.0, 1.0, 4.0]), np.array([0, 2, 3]))
    array([[ 0.,  1.],
           [ 4., nan]])
    """
    sizes = np.diff(starts)
    levels = np.full((len(sizes), sizes.max()), np.nan)
    levels[np.arange(sizes.max()) < sizes[:, np.newaxis]] = flat
    return levels


def table_of(demand: FloatArray, levels: FloatArray, cost: CostOfLevel, *, over_scenarios: bool = False) -> FloatArray:
    """Return the costs (..., number of levels) of demand (..., items), or their mean over scenarios, the axis before.

    Each level is a call: memory is that of the demand, not times the number of levels.
    """
    there = ~np.isnan(levels)
    leading = demand.shape[:-2] if over_scenarios else demand.shape[:-1]
    costs = np.empty((*leading, *levels.shape))
    for k in range(levels.shape[1]):
        own = np.where(there[:, k], levels[:, k], levels[:, 0])
        found = as_array(cost(own, demand), name="what cost returns")
        if len(levels) == 1 and found.shape == demand.shape[:-1]:
            found = found[..., np.newaxis]
        if found.shape != (*demand.shape[:-1], len(levels)):
            raise ValueError(
                f"cost must return a number for each row and item, of shape {(*demand.shape[:-1], len(levels))}; it "
                f"returned shape {found.shape} for levels of shape {own.shape} and demand of shape {demand.shape}."
            )
        costs[..., k] = found.mean(axis=-2) if over_scenarios else found
    table = costs[..., there]
    check_finite(table.reshape(-1, table.shape[-1]), name="what cost returns")
    return table


def as_levels(levels: Any) -> list[FloatArray]:
    """Return the levels of each item; raise if one has none, or if they are not finite or not increasing.

    >>> as_levels([[0, 2], [3, 1]])
    Traceback (most recent call last):
    ValueError: the levels of item 1 must increase; got 3 and then 1. Sort them.
    """
    is_nested = np.iterable(levels) and not isinstance(levels, str | Mapping)
    own = [list(of_item) if np.iterable(of_item) else [] for of_item in levels] if is_nested else []
    if not own or not all(own):
        raise ValueError(
            f"levels must be a list of levels for each item, such as [[0, 1, 2], [0, 5]]; got {shown(levels)}."
        )
    found = [as_vector(of_item, name=f"levels[{item}]") for item, of_item in enumerate(own)]
    for item, of_item in enumerate(found):
        falls = np.flatnonzero(np.diff(of_item) <= 0)
        if len(falls):
            first, second = of_item[falls[0] : falls[0] + 2]
            raise ValueError(f"the levels of item {item} must increase; got {first:g} and then {second:g}. Sort them.")
    return found
