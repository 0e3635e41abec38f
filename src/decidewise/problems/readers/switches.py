"""Semi-continuous variables, indicator constraints and special ordered sets, by binary variables and bounds.

A binary variable says whether something else may differ from zero or must hold. How far that goes at most, its "big M",
follows from the bounds of the variables: without bounds there is no translation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from decidewise.kit.checks import FloatArray, IntArray


class Indicator(NamedTuple):
    """`lower <= a·w <= upper` where the variable `switch` is `value`, 0 or 1; `row` is its place in `A`, if any."""

    switch: int
    value: int
    factors: FloatArray  # (n,)
    lower: float
    upper: float
    row: int | None = None


class OrderedSet(NamedTuple):
    """Of the variables, in this order, one at most is not zero; with `kind` 2 two at most, and they are neighbours."""

    kind: int
    places: IntArray


class Parts(NamedTuple):
    """A program: constraints with their sides, bounds, kinds and names of variables, and names of constraints."""

    A: csr_array
    rows: tuple[FloatArray, FloatArray]
    columns: tuple[FloatArray, FloatArray]
    kinds: Any
    names: list[str]


@dataclass
class Switches:
    """Binary variables that are added to those of a program, and constraints on both.

    Parameters
    ----------
    columns : tuple of ndarray of shape (n,)
        Bounds of the variables, at least those that are switched.
    names : list of str
    """

    columns: tuple[FloatArray, FloatArray]
    names: list[str]
    added: list[str] = field(default_factory=list)
    entries: list[tuple[int, int, float]] = field(default_factory=list)
    sides: list[tuple[float, float]] = field(default_factory=list)

    def may_be_zero(self, place: int, least: float, most: float) -> int:
        """Let a variable be zero or between these, and return the binary variable that says so."""
        self._check_bounded(place, least, most)
        switch = self._binary(f"{self.names[place]} on")
        self._row({place: 1.0, switch: -most}, upper=0.0)
        self._row({place: 1.0, switch: -least}, lower=0.0)
        return switch

    def hold_if(self, indicator: Indicator) -> None:
        """Let a constraint hold where a binary variable has a value."""
        places = np.flatnonzero(indicator.factors)
        factors = indicator.factors[places]
        lower, upper = (bound[places] for bound in self.columns)
        ends = np.where(factors > 0, [lower, upper], [upper, lower]) * factors
        least, most = ends.sum(axis=1)
        for place, low, high in zip(places, lower, upper, strict=True):
            self._check_bounded(int(place), low, high)
        by_place = dict(zip(places.tolist(), factors.tolist(), strict=True))
        for side, extreme, word in ((indicator.upper, most, "upper"), (indicator.lower, least, "lower")):
            if not np.isfinite(side) or (extreme - side) * (1 if word == "upper" else -1) <= 0:
                continue  # it always holds
            # Where the value is the other one, the side moves to the extreme.
            step = (extreme - side) * (1.0 if indicator.value else -1.0)
            row = dict(by_place)
            row[indicator.switch] = row.get(indicator.switch, 0.0) + step
            self._row(row, **{word: side + step if indicator.value else side})

    def order(self, found: OrderedSet) -> None:
        """Let one of some variables, or two neighbours, differ from zero."""
        switches = []
        for place in found.places.tolist():
            least, most = (float(bound[place]) for bound in self.columns)
            switches.append(self.may_be_zero(place, min(least, 0.0), max(most, 0.0)))
        self._row(dict.fromkeys(switches, 1.0), upper=float(found.kind))
        if found.kind == 2:
            for k, switch in enumerate(switches[:-2]):
                self._row({switch: 2.0} | dict.fromkeys(switches[k + 2 :], 1.0), upper=2.0)

    def add_to(self, parts: Parts) -> Parts:
        """Return the program with these variables and constraints."""
        k, n = len(self.added), len(self.names)
        (lower, upper), (below, above) = parts.columns, parts.rows
        rows, columns, values = zip(*self.entries, strict=True) if self.entries else ((), (), ())
        own = csr_array((values, (rows, columns)), shape=(len(self.sides), n + k))
        wide = csr_array(hstack([parts.A, csr_array((parts.A.shape[0], k))]))
        sides = np.array(self.sides).reshape(-1, 2)
        return Parts(
            csr_array(vstack([wide, own])),
            (np.append(below, sides[:, 0]), np.append(above, sides[:, 1])),
            (np.append(lower, np.zeros(k)), np.append(upper, np.ones(k))),
            np.append(parts.kinds, ["B"] * k),
            [*parts.names, *self.added],
        )

    def _binary(self, name: str) -> int:
        taken = {*self.names, *self.added}
        self.added.append(next(own for k in range(len(taken) + 1) if (own := name + "'" * k) not in taken))
        return len(self.names) + len(self.added) - 1

    def _row(self, entries: dict[int, float], *, lower: float = -np.inf, upper: float = np.inf) -> None:
        self.entries += [(len(self.sides), place, factor) for place, factor in entries.items()]
        self.sides.append((lower, upper))

    def _check_bounded(self, place: int, least: float, most: float) -> None:
        if not (np.isfinite(least) and np.isfinite(most)):
            raise ValueError(
                f"variable {self.names[place]!r} is semi-continuous, in a special ordered set or in an indicator "
                "constraint, which is translated by its bounds, and it has none on one side. Give it a lower and an "
                "upper bound."
            )


def switched(parts: Parts, indicators: Sequence[Indicator], sets: Sequence[OrderedSet]) -> Parts:
    """Return the program with these parts and with semi-continuous variables, of the kinds "S" and, whole, "N"."""
    kinds = np.asarray(parts.kinds)
    is_semi = np.isin(kinds, ["S", "N"])
    if not (is_semi.any() or indicators or sets):
        return parts
    lower, upper = (np.array(bound, dtype=float) for bound in parts.columns)
    kinds = np.where(kinds == "S", "C", np.where(kinds == "N", "I", kinds))
    lower, upper = (
        np.where(kinds == "B", np.maximum(lower, 0), lower),
        np.where(kinds == "B", np.minimum(upper, 1), upper),
    )
    wide = np.where(is_semi, np.minimum(lower, 0), lower), np.where(is_semi, np.maximum(upper, 0), upper)
    below, above = (np.array(side, dtype=float) for side in parts.rows)
    sometimes = [indicator.row for indicator in indicators if indicator.row is not None]
    below[sometimes], above[sometimes] = -np.inf, np.inf
    parts = parts._replace(rows=(below, above), columns=wide, kinds=kinds)
    switches = Switches(_implied(parts), parts.names)
    for place in np.flatnonzero(is_semi).tolist():
        switches.may_be_zero(place, float(lower[place]), float(upper[place]))
    for indicator in indicators:
        switches.hold_if(indicator)
    for found in sets:
        switches.order(found)
    return switches.add_to(parts)


def _implied(parts: Parts) -> tuple[FloatArray, FloatArray]:
    """Return the bounds; where there is none, what one constraint implies with the bounds of its other variables."""
    columns = parts.columns
    lower, upper = (bound.copy() for bound in columns)
    A = parts.A.tocoo()
    for sign, side in ((1.0, parts.rows[1]), (-1.0, -np.asarray(parts.rows[0]))):
        factors = sign * A.data
        least = factors * np.where(factors > 0, columns[0][A.col], columns[1][A.col])  # sign·A w <= side
        is_open = ~np.isfinite(least)
        totals, opens = (
            np.bincount(A.row, weights=values, minlength=A.shape[0])
            for values in (np.where(is_open, 0, least), is_open)
        )
        known = np.isfinite(side[A.row]) & (opens[A.row] - is_open == 0)
        row, place, factor, own = (values[known] for values in (A.row, A.col, factors, np.where(is_open, 0, least)))
        bound = (np.asarray(side)[row] - (totals[row] - own)) / factor
        for end, applies, towards in ((upper, factor > 0, np.minimum), (lower, factor < 0, np.maximum)):
            some = applies & ~np.isfinite(end[place])
            towards.at(end, place[some], bound[some])
    return lower, upper
