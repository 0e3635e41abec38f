"""Regrets of rows in the order of time, in bounded memory, for intervals by a bootstrap of blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from decidewise.app.tables.raw_values import Raw
from decidewise.evaluate import Comparison, compare_sums
from decidewise.evaluate.intervals import Blocks
from decidewise.kit.checks import FloatArray

#: The most rows that are kept one by one: with two models, 20 MB.
_MOST = 2**19


@dataclass
class OrderedRegrets:
    """Regrets by the time of their rows; from `most` rows on, neighbours are added up, so that memory stays bounded.

    The bootstrap draws blocks of consecutive rows and needs no more than their sums. Rows that do not come in the order
    of time are sorted at the end, which takes all of them: there may be no more than `most`.

    Attributes
    ----------
    most : int
    blocks : None, "auto" or int
        As for `decidewise.evaluate.regret_interval`.
    each : int
        The number of consecutive rows that are added up.
    in_order : bool
        Whether all rows came in the order of time so far.

    Examples
    --------
    >>> regrets = OrderedRegrets(most=4)
    >>> for first in (0, 3, 6):
    ...     times = np.arange(first, first + 3)
    ...     regrets.add(times, np.full(3, 2.0), {"model": np.ones(3)})
    >>> regrets.each, regrets.compared().n_samples
    (4, 9)
    >>> regrets.add(np.array([0]), np.ones(1), {"model": np.ones(1)})  # an early row comes late
    >>> regrets.compared() is None
    True
    """

    most: int = _MOST
    blocks: Blocks = "auto"
    each: int = 1
    in_order: bool = True
    n_rows: int = 0
    _names: tuple[str, ...] | None = None
    _last: float = -np.inf
    #: One line per unit: its first time, its rows, the sum of absolute optimal values, and the sums of regrets.
    _sums: list[FloatArray] = field(default_factory=list)
    _n_units: int = 0

    def add(self, times: Raw, best: FloatArray, regrets: dict[str, FloatArray]) -> None:
        """Add rows: times in order, optimal values, regrets (b,) by name; a model that some rows lack is left out."""
        if not len(times):
            return
        self._keep_names(regrets)
        assert self._names is not None
        when = times.astype("datetime64[us]").astype(np.float64) if times.dtype.kind == "M" else times.astype(float)
        self.in_order = self.in_order and bool(when[0] >= self._last)
        self._last = max(self._last, float(when[-1]))
        rows = np.column_stack([when, np.ones(len(when)), np.abs(best), *(regrets[name] for name in self._names)])
        units = self._units(rows, self.n_rows)
        if len(units):
            self._sums.append(units)
        self._n_units += len(units)
        self.n_rows += len(rows)
        while self._n_units > self.most and self.in_order:
            self.each *= 2
            self._join(2)
        if not self.in_order and self.n_rows > self.most:
            self._sums, self._n_units = [], 0

    def compared(self) -> Comparison | None:
        """Return the comparison; None if more rows than can be sorted did not come in the order of time."""
        if not self._sums or self._names is None:
            return None
        self._join(1)
        [sums] = self._sums
        if not self.in_order:
            sums = sums[np.argsort(sums[:, 0], kind="stable")]
        regrets = dict(zip(self._names, sums[:, 3:].T, strict=True))
        return compare_sums(regrets, sums[:, 2], sums[:, 1], rows_each=self.each, blocks=self.blocks)

    def _keep_names(self, regrets: dict[str, FloatArray]) -> None:
        """Leave out the models that these rows do not have, such as a forecast with a gap."""
        before = tuple(regrets) if self._names is None else self._names
        self._names = tuple(name for name in before if name in regrets)
        if len(self._names) < len(before):
            kept = [0, 1, 2, *(3 + place for place, name in enumerate(before) if name in regrets)]
            self._sums = [sums[:, kept] for sums in self._sums]

    def _units(self, rows: FloatArray, first: int) -> FloatArray:
        """Return the sums over the rows of each unit; the last unit so far goes on if it is not complete."""
        if self.each == 1:
            return rows
        unit = (first + np.arange(len(rows))) // self.each
        begins = np.flatnonzero(np.append(True, unit[1:] != unit[:-1]))
        units = np.add.reduceat(rows, begins, axis=0)
        units[:, 0] = rows[begins, 0]
        if first % self.each == 0:
            return units
        if self._sums:
            self._sums[-1][-1, 1:] += units[0, 1:]
        return units[1:]

    def _join(self, n: int) -> None:
        """Make one array of all units, with n of them added up to one."""
        sums = np.concatenate(self._sums)
        if n > 1:
            begins = np.arange(0, len(sums), n)
            times, sums = sums[begins, 0], np.add.reduceat(sums, begins, axis=0)
            sums[:, 0] = times
        self._sums, self._n_units = [sums], len(sums)
