"""A battery, or any other store, that buys at low prices and sells at high ones.

Ties: period by period, the trade that is closest to zero of all trades with which an optimal plan can continue. Where a
limit on cycles binds, a mix of two plans of that kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.kit.batches import in_parts
from decidewise.kit.checks import FloatArray, IntArray, as_integer
from decidewise.kit.kernels import kernel
from decidewise.problems.by_row import as_levels, as_numbers, spread
from decidewise.problems.contract import Problem, Sense, as_n_costs
from decidewise.problems.drawing import draw_trades
from decidewise.problems.rounding import EPS, safe_unit
from decidewise.problems.stock.marginal_values import length_above, merge_offers
from decidewise.solvers import Polyhedron


class Storage(Problem):
    """Trade with a battery: buy, store and sell energy over several periods, at one price per period.

    The costs are the prices. A decision has one entry per period, the net sales `w_t`: energy sold if positive, energy
    bought if negative, at most `power` of either. Of the energy bought, the fraction `efficiency` is stored; of what is
    taken out, the fraction `discharge_efficiency` is sold. With `g(w) = -w / discharge_efficiency` for sales and
    `g(w) = -efficiency · w` for purchases, the levels

        s_0 = initial,   s_{t+1} = min(s_t + g(w_t), energy),   s_t >= 0,   s_T >= final

    say which decisions are feasible. Energy that does not fit is lost, as it is in a battery that charges and
    discharges at once; at prices that are not negative this never pays.

    The solver is exact. Marginal values of the stored energy are computed backwards in time
    (`decidewise.problems.stock.marginal_values`): in each period one unit can be bought into the store for
    `price / efficiency`, or sold out of it for `(price - wear) · discharge_efficiency`. A pass forwards buys while a
    stored unit is worth more than it costs, and sells while it is worth less than the price. All this takes O(T²) steps
    for T periods. Where `cycles` bind, a cycle has a price, which counts as wear: it is raised until a mix of two plans
    that are optimal at this price takes out what is allowed, in a few passes.

    Parameters
    ----------
    periods : int
        The number of periods `T`.
    power : float
        The largest amount of energy that can be bought, and that can be sold, in one period.
    energy : float
        The capacity: the largest amount that can be stored.
    efficiency : float
        The fraction of a purchase that is stored, above 0 and at most 1; by default that of the round trip.
    initial : float
        The level before the first period, from 0 to `energy`. What rounding took beyond an end is at that end.
    final : float
        The lowest level allowed after the last period.
    discharge_power : float, optional
        The largest amount that can be sold, if another than can be bought.
    discharge_efficiency : float
        The fraction of what is taken out of the store that is sold, above 0 and at most 1.
    wear : float
        What the sale of a unit costs beside: a known cost, in units of the prices. A battery for 1,000,000 that sells
        20,000 in its life has a wear of 50.
    cycles : float, optional
        How often at most the whole `energy` can be taken out, in all periods together. Like all numbers but `periods`
        it may be given by row, as an array of shape (n_rows,): one store per sample, or the same one on different days.
    sense : {"max", "min"}
        "max" for prices.

    Attributes
    ----------
    n_costs : int
        `periods`.
    n_rows : int or None
        The number of rows, if any of these numbers is given by row; then all of them are arrays.
    has_known : bool
        Whether there is wear.
    B_S : float
        A bound on the norm of decisions, `power · sqrt(periods)` with the larger power.

    Examples
    --------
    >>> from decidewise.problems import Storage
    >>> battery = Storage(4, power=1.0, energy=2.0, efficiency=0.8)
    >>> battery.solve([[10.0, 30.0, 10.0, 40.0], [10.0, 12.0, 10.0, 10.0]])
    array([[-1. ,  0.6, -1. ,  1. ],
           [ 0. ,  0. ,  0. ,  0. ]])
    >>> by_day = Storage(2, power=1.0, energy=2.0, initial=[0.0, 1.5])  # it starts empty, then almost full
    >>> by_day.solve([[10.0, 30.0], [10.0, 30.0]])
    array([[-1. ,  0.9],
           [ 0.5,  1. ]])
    >>> once = Storage(4, power=1.0, energy=1.0, efficiency=1.0, wear=5.0, cycles=1)
    >>> once.solve([10.0, 30.0, 10.0, 40.0])  # both trips would earn more than the wear, but only one may be made
    array([ 0.,  0., -1.,  1.])
    """

    faces = "flat"
    in_time = True
    _by_row = (
        "power", "energy", "efficiency", "initial", "final", "discharge_power", "discharge_efficiency", "wear",
        "cycles", "_most_sold",
    )  # fmt: skip

    def __init__(
        self,
        periods: int,
        power: Any,
        energy: Any,
        *,
        efficiency: Any = 0.9,
        initial: Any = 0.0,
        final: Any = 0.0,
        discharge_power: Any = None,
        discharge_efficiency: Any = 1.0,
        wear: Any = 0.0,
        cycles: Any = None,
        sense: Sense = "max",
    ) -> None:
        super().__init__(sense=sense)
        self.periods = self.n_costs = as_n_costs(as_integer(periods, name="periods"))
        power, energy = as_numbers(power, name="power", above=0), as_numbers(energy, name="energy", above=0)
        given: dict[str, tuple[Any, int]] = {
            "power": (power, 0),
            "energy": (energy, 0),
            "efficiency": (as_numbers(efficiency, name="efficiency", above=0, at_most=1), 0),
            "initial": (as_levels(initial, name="initial", at_most=energy), 0),
            "final": (as_levels(final, name="final", at_most=energy), 0),
            "discharge_efficiency": (
                as_numbers(discharge_efficiency, name="discharge_efficiency", above=0, at_most=1), 0,
            ),
            "wear": (as_numbers(wear, name="wear", at_least=0), 0),
        }  # fmt: skip
        if discharge_power is not None:
            given["discharge_power"] = as_numbers(discharge_power, name="discharge_power", above=0), 0
        if cycles is not None:
            given["cycles"] = as_numbers(cycles, name="cycles", at_least=0), 0
        self.n_rows, numbers = spread(**given)
        found = dict(zip(given, numbers, strict=True))
        self.power, self.energy, self.efficiency = found["power"], found["energy"], found["efficiency"]
        self.initial, self.final, self.wear = found["initial"], found["final"], found["wear"]
        self.discharge_power, self.cycles = found.get("discharge_power"), found.get("cycles")
        self.discharge_efficiency = found["discharge_efficiency"]
        self._most_sold = self.power if self.discharge_power is None else self.discharge_power
        self.has_known = bool(np.any(self.wear))
        reached = self.initial + self.n_costs * self.efficiency * self.power
        short = np.flatnonzero(self.final > reached * (1 + EPS))
        if len(short):
            row = int(short[0])
            final, initial, most = (np.ravel(value)[row] for value in (self.final, self.initial, reached))
            raise ValueError(
                f"{'' if self.n_rows is None else f'row {row}: '}final={final:g} cannot be reached: charging in all "
                f"{self.n_costs} periods leads from initial={initial:g} to {most:g}. Lower final, or raise power."
            )
        self.B_S = float(np.max(np.maximum(self.power, self._most_sold))) * float(np.sqrt(self.n_costs))

    def _draw(self, decision: FloatArray, costs: FloatArray | None, names: list[str] | None, ax: Any) -> Any:
        return draw_trades(decision, costs, names, ax)

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the net sales that cost least, so at prices `-costs`; ties go to the trade closest to zero."""
        return self._trades(costs, np.zeros(len(costs)) + self.wear)

    def minimize_lifted(self, costs: FloatArray) -> FloatArray:
        """Return net sales and their wear, for prices and a weight of the wear: (n, n_costs + 1)."""
        weights = costs[:, -1]
        if (weights < 0).any():
            row = int((weights < 0).argmax())
            raise ValueError(
                f"row {row}: the cost of the known part is {weights[row]:g}, and the wear of Storage is convex only if "
                "it counts with a cost of at least 0. The cost of the known part is 1, or what a lifted model predicts "
                "for it: keep it positive."
            )
        sales = self._trades(costs[:, :-1], weights * self.wear)
        return np.column_stack([sales, self.wear * _sold(sales)])

    def _trades(self, costs: FloatArray, wears: FloatArray) -> FloatArray:
        sales = self._passes(costs, wears)
        if self.cycles is None:
            return sales
        limits = np.zeros(len(costs)) + self.cycles * self.energy * self.discharge_efficiency
        rows = np.flatnonzero(_sold(sales) > limits * (1 + EPS))
        if len(rows):
            # Powers of two, by which no product rounds, so that sums do not overflow.
            units = np.ldexp(1.0, -np.frexp(np.maximum(np.abs(costs[rows]).max(axis=1), wears[rows]))[1])
            wears, costs = wears[rows] * units, costs[rows] * units[:, np.newaxis]
            sales[rows] = self._within(costs, wears, limits[rows], sales[rows], rows)
        return sales

    def _within(
        self, costs: FloatArray, wears: FloatArray, limits: FloatArray, more: FloatArray, rows: IntArray
    ) -> FloatArray:
        """Return the best sales of at most `limits` (n,), where `more` are the best without them.

        What a row costs, with a price `q` for what is sold above the limit, is concave in `q` and piecewise linear. Its
        largest value is the least cost within the limit. It is found where the lines of two plans cross, one that sells
        more and one that sells less, once no other plan is below that point; both are then optimal.
        """
        less = self._passes(costs, wears - costs.min(axis=1).clip(max=0.0), rows)  # at this price nothing is sold
        left = np.arange(len(costs))
        while len(left):
            own, wear = costs[left], wears[left]
            most, least = _sold(more[left]), _sold(less[left])
            prices = (_value(own, wear, less[left]) - _value(own, wear, more[left])) / (most - least)
            plans = self._passes(own, wear + prices, rows[left])
            sold = _sold(plans)
            line = _value(own, wear + prices, more[left])
            size = np.abs(own * plans).sum(axis=1) + (wear + prices) * most
            is_below = _value(own, wear + prices, plans) < line - 1e-13 * size
            is_below &= (least < sold) & (sold < most)
            is_more = sold > limits[left]
            more[left[is_below & is_more]] = plans[is_below & is_more]
            less[left[is_below & ~is_more]] = plans[is_below & ~is_more]
            left = left[is_below]
        most, least = _sold(more), _sold(less)
        part = ((limits - least) / (most - least))[:, np.newaxis]
        mix = part * more + (1 - part) * less
        power, most_sold = (np.reshape(self._of(rows, number), (-1, 1)) for number in (self.power, self._most_sold))
        return np.clip(mix, -power, most_sold)

    def _passes(self, costs: FloatArray, wears: FloatArray, rows: Any = slice(None)) -> FloatArray:
        """Return the best net sales of some rows, with a wear for each, without a limit on cycles."""
        numbers = [
            np.ascontiguousarray(self._of(rows, number))
            for number in (
                self.power, self._most_sold, self.energy, self.efficiency, self.discharge_efficiency, self.initial,
                self.final,
            )
        ]  # fmt: skip
        if self.n_rows is not None:
            return in_parts(_trade, costs, wears, *numbers)
        return in_parts(lambda part, decisions, own: _trade(part, decisions, own, *numbers), costs, wears)

    def _of(self, rows: Any, number: Any) -> Any:
        """Return a number of the store for some rows, or for all in one."""
        return np.reshape(number, 1) if self.n_rows is None else number[rows]

    def solution(self, costs: Any) -> dict[str, FloatArray]:
        """Return what is sold, what is bought, and the level at the end of each period, all of the shape of costs."""
        sales = self.solve(costs)
        sold, bought = np.maximum(sales, 0.0), np.maximum(-sales, 0.0)
        level, levels = self.initial, np.empty_like(sales)
        for period in range(self.n_costs):
            taken = sold[..., period] / self.discharge_efficiency
            level = level + self.efficiency * bought[..., period] - taken
            levels[..., period] = level = np.clip(level, 0.0, self.energy)
        return {"sold": sold, "bought": bought, "level": levels}

    @property
    def polyhedron(self) -> Polyhedron | None:
        """For an efficiency of 1: over any run of periods, the net sales are at most what the store can release.

        None if the store differs by row, and for a lower efficiency, wear or a limit on cycles: whether a period buys
        or sells then changes its coefficient, so that a run of `k` periods needs a row for each of its `2^k` cases.
        """
        if self.missing:
            return None
        periods = np.arange(self.n_costs)
        first, last = np.triu_indices(self.n_costs)
        releases = np.where(first == 0, self.initial, self.energy) - np.where(last == periods[-1], self.final, 0.0)
        runs = ((first[:, None] <= periods) & (periods <= last[:, None])).astype(float)
        most = np.ones(self.n_costs)
        return Polyhedron.within(-self.power * most, self._most_sold * most, ub=(runs, releases))

    @property
    def missing(self) -> dict[str, str]:
        """Why there is no polyhedron, where there is none."""
        if self.n_rows is not None:
            return {"polyhedron": "the store differs by row"}
        for why, is_so in (
            ("an efficiency below 1", min(self.efficiency, self.discharge_efficiency) < 1.0),
            ("wear", self.has_known),
            ("a limit on cycles", self.cycles is not None),
        ):
            if is_so:
                return {"polyhedron": f"with {why} it has too many rows"}
        return {}


def _sold(sales: FloatArray) -> FloatArray:
    total: FloatArray = np.maximum(sales, 0.0).sum(axis=1)
    return total


def _value(costs: FloatArray, wears: FloatArray, sales: FloatArray) -> FloatArray:
    total: FloatArray = np.einsum("ij,ij->i", costs, sales) + wears * _sold(sales)
    return total


@kernel
def _trade(
    costs: FloatArray,
    decisions: FloatArray,
    wears: FloatArray,
    powers: FloatArray,
    most_sold: FloatArray,
    energies: FloatArray,
    efficiencies: FloatArray,
    discharge_efficiencies: FloatArray,
    initials: FloatArray,
    finals: FloatArray,
) -> None:
    """Set the net sales of each row, of a wear, with one store for all rows or one for each.

    Levels: lowest from which `final` is reached.
    Backwards: merge each period's offers into marginal values.
    Forwards: give away, buy, or sell.
    """
    n_periods = costs.shape[1]
    slopes = np.empty((n_periods + 1, 2 * n_periods + 1))
    lengths = np.empty_like(slopes)
    counts = np.empty(n_periods + 1, np.int64)
    lowest = np.empty(n_periods + 1)  # the level from which the final one can still be reached
    price = np.empty(n_periods)
    offers, amounts = np.empty(2), np.empty(2)
    for row in range(len(costs)):
        store = min(row, len(powers) - 1)
        power, most, energy = powers[store], most_sold[store], energies[store]
        efficiency, discharged = efficiencies[store], discharge_efficiencies[store]
        tiny = 8 * EPS * (n_periods + 1) * energy
        # The most that a period adds, and takes out.
        fill, drain = min(efficiency * power, energy), min(most / discharged, energy)
        amounts[0], amounts[1] = fill, drain
        slopes[n_periods, 0], lengths[n_periods, 0] = 0.0, energy - finals[store]
        counts[n_periods], lowest[n_periods] = 1, finals[store]
        for period in range(n_periods - 1, -1, -1):
            lowest[period] = max(lowest[period + 1] - fill, 0.0)
        largest = wears[row]
        for period in range(n_periods):
            largest = max(largest, abs(costs[row, period]))
        unit = safe_unit(largest)
        for period in range(n_periods):
            price[period] = -costs[row, period] * unit
        wear = wears[row] * unit
        for period in range(n_periods - 1, 0, -1):
            # No one sells below zero: energy can be lost for free.
            offers[1] = max((price[period] - wear) * discharged, 0.0)
            offers[0] = max(price[period], 0.0) / efficiency
            skip = fill - (lowest[period + 1] - lowest[period])
            merge_offers(slopes, lengths, counts, period, offers, amounts, skip, energy - lowest[period], tiny)
        level = initials[store]
        for period in range(n_periods):
            if price[period] < 0.0:
                decisions[row, period] = -power
                level = min(level + fill, energy)
                continue
            ahead = period + 1
            values = slopes[ahead], lengths[ahead], counts[ahead]
            low = lowest[ahead] + length_above(*values, price[period] / efficiency, False)
            if low - level > tiny:
                bought = min((low - level) / efficiency, power)
                if power - bought <= tiny:
                    bought = power
                decisions[row, period] = -bought
                level = low if bought < power else level + fill
                continue
            high = lowest[ahead] + length_above(*values, (price[period] - wear) * discharged, True)
            if level - high > tiny:
                sold = (level - high) * discharged
                if sold >= most - tiny:
                    sold = most
                decisions[row, period] = sold
                level = high if sold < most else level - most / discharged
