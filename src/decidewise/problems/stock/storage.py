"""A battery, or any other store, that buys at low prices and sells at high ones.

Ties: period by period, the trade that is closest to zero of all trades with which an optimal plan can continue.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray, as_integer
from decidewise.kit.kernels import kernel
from decidewise.problems.by_row import as_levels, as_numbers, kernel_in_parts, spread
from decidewise.problems.contract import Problem, Sense, as_n_costs
from decidewise.problems.drawing import draw_trades
from decidewise.problems.rounding import EPS, safe_unit
from decidewise.problems.stock.marginal_values import length_above, merge_offers
from decidewise.solvers import Polyhedron


class Storage(Problem):
    """Trade with a battery: buy, store and sell energy over several periods, at one price per period.

    The costs are the prices. A decision has one entry per period, the net sales `w_t`: energy sold if positive, energy
    bought if negative, at most `power` of either. Of the energy bought, the fraction `efficiency` is stored; what is
    stored can be sold in full. With `g(w) = -w` for sales and `g(w) = -efficiency · w` for purchases, the levels

        s_0 = initial,   s_{t+1} = min(s_t + g(w_t), energy),   s_t >= 0,   s_T >= final

    say which decisions are feasible. Energy that does not fit is lost, as it is in a battery that charges and
    discharges at once; at prices that are not negative this never pays.

    The solver is exact. Marginal values of the stored energy are computed backwards in time
    (`decidewise.problems.stock.marginal_values`): in each period one unit can be bought into the store for
    `price / efficiency`, or sold out of it for `price`. A pass forwards buys while a stored unit is worth more than it
    costs, and sells while it is worth less than the price. All this takes O(T²) steps for T periods.

    Parameters
    ----------
    periods : int
        The number of periods `T`.
    power : float
        The largest amount of energy that can be bought, and that can be sold, in one period.
    energy : float
        The capacity: the largest amount that can be stored.
    efficiency : float
        The fraction of a purchase that can be sold again, above 0 and at most 1 (the round trip).
    initial : float
        The level before the first period, from 0 to `energy`.
    final : float
        The lowest level allowed after the last period. Like `power`, `energy`, `efficiency` and `initial` it may be
        given by row, as an array of shape (n_rows,): one store per sample, or the same one on different days.
    sense : {"max", "min"}
        "max" for prices.

    Attributes
    ----------
    n_costs : int
        `periods`.
    n_rows : int or None
        The number of rows, if any of these numbers is given by row; then all of them are arrays.
    B_S : float
        A bound on the norm of decisions, `power · sqrt(periods)`.

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
    """

    faces = "flat"
    in_time = True
    _by_row = ("power", "energy", "efficiency", "initial", "final")

    def __init__(
        self,
        periods: int,
        power: Any,
        energy: Any,
        *,
        efficiency: Any = 0.9,
        initial: Any = 0.0,
        final: Any = 0.0,
        sense: Sense = "max",
    ) -> None:
        super().__init__(sense=sense)
        self.periods = self.n_costs = as_n_costs(as_integer(periods, name="periods"))
        power, energy = as_numbers(power, name="power", above=0), as_numbers(energy, name="energy", above=0)
        self.n_rows, (self.power, self.energy, self.efficiency, self.initial, self.final) = spread(
            power=(power, 0),
            energy=(energy, 0),
            efficiency=(as_numbers(efficiency, name="efficiency", above=0, at_most=1), 0),
            initial=(as_levels(initial, name="initial", at_most=energy), 0),
            final=(as_levels(final, name="final", at_most=energy), 0),
        )
        reached = self.initial + self.n_costs * self.efficiency * self.power
        short = np.flatnonzero(self.final > reached * (1 + EPS))
        if len(short):
            row = int(short[0])
            final, initial, most = (np.ravel(value)[row] for value in (self.final, self.initial, reached))
            raise ValueError(
                f"{'' if self.n_rows is None else f'row {row}: '}final={final:g} cannot be reached: charging in all "
                f"{self.n_costs} periods leads from initial={initial:g} to {most:g}. Lower final, or raise power."
            )
        self.B_S = float(np.max(self.power)) * float(np.sqrt(self.n_costs))

    def _draw(self, decision: FloatArray, costs: FloatArray | None, names: list[str] | None, ax: Any) -> Any:
        return draw_trades(decision, costs, names, ax)

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the net sales that cost least, so at prices `-costs`; ties go to the trade closest to zero."""
        return kernel_in_parts(_trade, self, costs, self.power, self.energy, self.efficiency, self.initial, self.final)

    def solution(self, costs: Any) -> dict[str, FloatArray]:
        """Return what is sold, what is bought, and the level at the end of each period, all of the shape of costs."""
        sales = self.solve(costs)
        sold, bought = np.maximum(sales, 0.0), np.maximum(-sales, 0.0)
        level, levels = self.initial, np.empty_like(sales)
        for period in range(self.n_costs):
            level = level + self.efficiency * bought[..., period] - sold[..., period]
            levels[..., period] = level = np.clip(level, 0.0, self.energy)
        return {"sold": sold, "bought": bought, "level": levels}

    @property
    def polyhedron(self) -> Polyhedron | None:
        """For an efficiency of 1: over any run of periods, the net sales are at most what the store can release.

        None if the store differs by row, and for a lower efficiency: whether a period buys or sells then changes its
        coefficient, so that a run of `k` periods needs a row for each of its `2^k` cases.
        """
        if self.missing:
            return None
        periods = np.arange(self.n_costs)
        first, last = np.triu_indices(self.n_costs)
        releases = np.where(first == 0, self.initial, self.energy) - np.where(last == periods[-1], self.final, 0.0)
        runs = ((first[:, None] <= periods) & (periods <= last[:, None])).astype(float)
        most = np.full(self.n_costs, self.power)
        return Polyhedron.within(-most, most, ub=(runs, releases))

    @property
    def missing(self) -> dict[str, str]:
        """Why there is no polyhedron, where there is none."""
        if self.n_rows is not None:
            return {"polyhedron": "the store differs by row"}
        return {"polyhedron": "with an efficiency below 1 it has too many rows"} if self.efficiency < 1.0 else {}


@kernel
def _trade(
    costs: FloatArray,
    decisions: FloatArray,
    powers: FloatArray,
    energies: FloatArray,
    efficiencies: FloatArray,
    initials: FloatArray,
    finals: FloatArray,
) -> None:
    """Set the net sales of each row, with one store for all rows or one for each.

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
        power, energy, efficiency = powers[store], energies[store], efficiencies[store]
        tiny = 8 * EPS * (n_periods + 1) * energy
        fill, drain = min(efficiency * power, energy), min(power, energy)  # the most that a period adds, and takes out
        amounts[0], amounts[1] = fill, drain
        slopes[n_periods, 0], lengths[n_periods, 0] = 0.0, energy - finals[store]
        counts[n_periods], lowest[n_periods] = 1, finals[store]
        for period in range(n_periods - 1, -1, -1):
            lowest[period] = max(lowest[period + 1] - fill, 0.0)
        largest = 0.0
        for period in range(n_periods):
            largest = max(largest, abs(costs[row, period]))
        unit = safe_unit(largest)
        for period in range(n_periods):
            price[period] = -costs[row, period] * unit
        for period in range(n_periods - 1, 0, -1):
            offers[1] = max(price[period], 0.0)  # no one sells below zero: energy can be lost for free
            offers[0] = offers[1] / efficiency
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
            high = lowest[ahead] + length_above(*values, price[period], True)
            if level - high > tiny:
                sold = level - high
                if sold >= power - tiny:
                    sold = power
                decisions[row, period] = sold
                level = high if sold < power else level - power
