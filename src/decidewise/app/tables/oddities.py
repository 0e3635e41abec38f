"""Numbers of a table that are most likely something else, and what new rows have that no training row had.

The former are marks of gaps, another unit, and costs among features; the latter new names and numbers
far out of range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import rankdata

from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.raw_values import as_numbers, as_texts
from decidewise.app.tables.samples import TableSamples
from decidewise.kit.checks import FloatArray, listed
from decidewise.kit.scaling import unit_largest

#: A column with fewer different values is a count, or a code, of which nothing is said.
_FEWEST_VALUES = 10
#: The fewest rows on either side of a change of unit, and the smallest factor, as a power of ten.
_FEWEST_ROWS, _SMALLEST = 5, 2.0
#: The share of the rows of one unit that may look as if they had the other.
_OVERLAP = 0.05
#: Correlations from which on a feature is a cost: of values, and of ranks, which a few extreme values do not make.
_SAME, _SAME_RANKS = 0.9999, 0.99


def oddities(samples: TableSamples) -> Iterator[str]:
    """Yield a sentence for each column, the costs last, that has marks of gaps, or changes its unit."""
    if not len(samples):  # a part of a table in which no row has costs
        return
    columns = {repr(name): column for name, column in samples.lines.items() if column.dtype.kind in "iuf"}
    if samples.costs is not None:
        columns["the costs"] = samples.costs
    for name, column in columns.items():
        by_row = np.asarray(column, dtype=np.float64).reshape(len(samples), -1)
        for value, n in marks(by_row.ravel()):
            yield (
                f"{name}: {value:.6g} occurs {n:,} times, far from all other values. If it marks a gap, leave these "
                "cells empty."
            )
        if change := change_of_unit(by_row):
            row, before, after = change
            yield (
                f"{name}: about {before:.3g} before {samples.title} {samples.keys[row]} and {after:.3g} from there on. "
                "If the unit changed, convert all rows to one unit."
            )


def marks(values: FloatArray) -> Iterator[tuple[float, int]]:
    """Yield values that are repeated, at an end of the range, and further from it than all others are apart.

    Zero is none: it is what columns such as discounts have on most days.

    >>> list(marks(np.array([*np.arange(50.0), -9999.0, -9999.0, 80.0])))
    [(-9999.0, 2)]
    """
    known = values[np.isfinite(values)]
    for end in (known, -known):  # a mark is the lowest of these
        mark = end.min(initial=np.inf)
        rest = end[end > mark]
        n = len(end) - len(rest)
        if mark and n > 1 and len(rest) > 1:
            width = rest[rest < rest.max()].max(initial=rest.min()) - rest.min()  # without a mark at the other end
            if rest.min() - mark > width and len(np.unique(rest)) >= _FEWEST_VALUES:
                yield float(mark if end is known else -mark), n


def change_of_unit(by_row: FloatArray) -> tuple[int, float, float] | None:
    """Return the row from which on numbers (n, k) have another size for good, and their sizes before and after.

    >>> change_of_unit(np.concatenate([np.arange(1.0, 9.0), 1000 * np.arange(1.0, 9.0)])[:, np.newaxis])
    (8, 4.5, 4500.0)
    """
    sizes = np.nansum(np.abs(by_row) / by_row.shape[1], axis=1)
    rows = np.flatnonzero((sizes > 0) & np.isfinite(sizes))
    n = len(rows)
    if n < 2 * _FEWEST_ROWS:
        return None
    logs = np.log10(sizes[rows])
    counts = np.arange(_FEWEST_ROWS, n - _FEWEST_ROWS + 1)
    sums = np.cumsum(logs)[counts - 1]
    apart = np.abs(sums / counts - (logs.sum() - sums) / (n - counts)) * np.sqrt(counts * (n - counts))
    place = int(counts[apart.argmax()])
    before, after = logs[:place], logs[place:]
    low, high = sorted((before, after), key=np.median)
    if np.median(high) - np.median(low) < _SMALLEST or np.quantile(low, 1 - _OVERLAP) > np.quantile(high, _OVERLAP):
        return None
    return int(rows[place]), float(np.median(sizes[rows[:place]])), float(np.median(sizes[rows[place:]]))


def leaks(samples: TableSamples, prepared: TableFeatures) -> list[str]:
    """Return the prepared features that are almost identical to a cost of the same row.

    They are most likely not known when deciding.
    """
    assert samples.costs is not None
    X, costs = samples.features(prepared), samples.costs
    targets = costs.reshape(-1, 1) if samples.per_item else costs
    left, right = unit_largest(X.reshape(len(targets), -1).T), unit_largest(targets.T)
    names = prepared.feature_names_
    found = [
        names[i]
        for i, j in np.argwhere(_correlations(left, right) > _SAME)
        if _correlations(rankdata(left[i])[np.newaxis], rankdata(right[j])[np.newaxis])[0, 0] > _SAME_RANKS
    ]
    return list(dict.fromkeys(found))


def _correlations(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the sizes of the correlations (p, d) of rows of (p, n) and (d, n); zero for constant ones."""
    left, right = (side - side.mean(axis=1, keepdims=True) for side in (left, right))
    sizes = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    found: FloatArray = np.abs(left @ right.T) / np.where(sizes > 0, sizes, np.inf)
    return found


#: The most new names of a column that are kept to be said.
_MOST_NAMES = 1000


@dataclass
class Unfamiliar:
    """What some new rows have that no training row had.

    Attributes
    ----------
    names : dict of str to set of str
        New names, by column.
    numbers : dict of str to (int, float, float)
        How many values are out of the range of training by more than its width, the lowest and the highest, by column.

    Examples
    --------
    >>> features = TableFeatures(["load"]).fit({"load": [0.0, 4.1, 12.4]})
    >>> print(*Unfamiliar.of(features, {"load": np.array([13.0, 12400.0])}).sentences(features))
    'load': 1 value far out of the range of training (0 to 12.4): 12400. Is the unit the same?
    """

    names: dict[str, set[str]] = field(default_factory=dict)
    numbers: dict[str, tuple[int, float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, features: TableFeatures, lines: Mapping[str, Any]) -> Unfamiliar:
        """Return what is new in the columns of some rows."""
        found = cls()
        for plan in features.columns_:
            name = plan["name"]
            if plan["kind"] == "names":
                texts, gaps = as_texts(np.asarray(lines[name]))
                if new := set(texts[~gaps].tolist()) - set(plan["known"]):
                    found.names[name] = new
            elif plan["kind"] == "numbers":
                values, low, high = as_numbers(np.asarray(lines[name]), name), plan["low"], plan["high"]
                width = high - low or abs(high) or 1.0
                far = values[(values < low - width) | (values > high + width)]
                if len(far):
                    found.numbers[name] = len(far), float(far.min()), float(far.max())
        return found

    def add(self, other: Unfamiliar) -> None:
        """Add what is new in other rows; of names as long as they are few."""
        for column, names in other.names.items():
            have = self.names.setdefault(column, set())
            if len(have) < _MOST_NAMES:
                have |= names
        for column, (n, low, high) in other.numbers.items():
            before, lowest, highest = self.numbers.get(column, (0, low, high))
            self.numbers[column] = before + n, min(lowest, low), max(highest, high)

    def sentences(self, features: TableFeatures) -> list[str]:
        """Return a sentence for each column with something new."""
        said = []
        for plan in features.columns_:
            name = plan["name"]
            if name in self.names:
                new = listed(sorted(self.names[name]))
                said.append(f"{name!r}: {new} not seen in training, treated as {plan['base']!r}.")
            if name in self.numbers:
                n, *found = self.numbers[name]
                said.append(
                    f"{name!r}: {n:,} value{'s' * (n > 1)} far out of the range of training "
                    f"({_range(plan['low'], plan['high'])}): {_range(*found)}. Is the unit the same?"
                )
        return said


def _range(low: float, high: float) -> str:
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
