"""What new rows have that no training row had: names, and numbers far out of range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.raw_values import as_numbers, as_texts
from decidewise.kit.checks import listed

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
