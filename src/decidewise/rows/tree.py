"""The sum of many blocks in a fixed binary tree: the same digits for any number of workers.

Rounding errors grow with its depth.

The tree pairs neighbours on every level; the last of an odd number goes up unpaired. A stream builds it with one
partial sum per level in memory, a cluster level by level.

>>> parts = [(np.array([float(i)]),) for i in range(11)]
>>> tree = PairwiseTree()
>>> for part in parts:
...     tree.add(part)
>>> tree.total(), combine_all(parts)
((array([55.]),), (array([55.]),))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from decidewise.kit.checks import FloatArray

Sums: TypeAlias = tuple[FloatArray, ...]
Combine: TypeAlias = Callable[[Sums, Sums], Sums]


def add(left: Sums, right: Sums) -> Sums:
    """Return the sums of two sets of arrays."""
    return tuple(a + b for a, b in zip(left, right, strict=True))


def combine_all(parts: Sequence[Sums], combine: Combine = add) -> Sums:
    """Return all parts combined in the tree."""
    level = list(parts)
    while len(level) > 1:
        pairs = [combine(*level[place : place + 2]) for place in range(0, len(level) - 1, 2)]
        level = pairs + level[len(level) - len(level) % 2 :]
    return level[0]


class PairwiseTree:
    """The tree for parts that come one after another; it keeps one partial result per level.

    Attributes
    ----------
    levels : list of int
        The level of each partial result, from the highest down: it stands for `2**level` parts.
    partial : list of tuples of ndarrays
    """

    def __init__(self, combine: Combine = add) -> None:
        self.combine = combine
        self.levels: list[int] = []
        self.partial: list[Sums] = []

    def add(self, part: Sums) -> None:
        """Add the next part."""
        self.levels.append(0)
        self.partial.append(tuple(np.asarray(array) for array in part))
        while len(self.levels) > 1 and self.levels[-1] == self.levels[-2]:
            right, left = self.partial.pop(), self.partial.pop()
            self.partial.append(self.combine(left, right))
            self.levels.pop()
            self.levels[-1] += 1

    def total(self) -> Sums:
        """Return all parts combined; raise if there are none."""
        if not self.partial:
            raise ValueError("there are no rows at all. Pass at least one file or partition with rows.")
        total = self.partial[-1]
        for part in reversed(self.partial[:-1]):
            total = self.combine(part, total)
        return total
