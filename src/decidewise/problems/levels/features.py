"""Features of each level of each item, so that one model of the items serves all of their levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray, as_array
from decidewise.kit.kept import need
from decidewise.problems.levels.demand import CostOfLevel, as_levels, padded, table_of


def level_features(X: Any, levels: Any) -> FloatArray:
    """Return features of each level (n, n_costs, q') from those of each item (n, items, q).

    Each feature, and a constant, is there once for each place in the list of levels, and is zero at all others: a
    linear model then has coefficients of its own for the first levels of all items, for the second ones, and so on. A
    list that is shorter than the longest has the places between: half of the way is half of the way.

    Examples
    --------
    >>> level_features([[[7.0]]], [[0, 10, 20]])[0]
    array([[7., 0., 0., 0., 0.],
           [0., 7., 0., 1., 0.],
           [0., 0., 7., 0., 1.]])
    """
    own = as_levels(levels)
    features = as_array(X, name="X")
    if features.ndim != 3 or features.shape[1] != len(own):
        raise ValueError(
            f"X must have features of each of the {len(own)} items, (n, {len(own)}, q); got X.shape={features.shape}."
        )
    most = max(map(len, own))
    places = np.concatenate([np.linspace(0, most - 1, len(of_item)) for of_item in own])
    near = np.maximum(0.0, 1.0 - np.abs(places[:, np.newaxis] - np.arange(most)))  # (n_costs, most)
    items = np.repeat(np.arange(len(own)), [len(of_item) for of_item in own])
    spread = features[:, items, np.newaxis, :] * near[:, :, np.newaxis]  # (n, n_costs, most, q)
    constant = np.broadcast_to(near[:, 1:], (len(features), len(items), most - 1))
    return np.concatenate([spread.reshape(len(features), len(items), -1), constant], axis=2)


def item_features(X: FloatArray, levels: Any) -> FloatArray:
    """Return the features of each item (n, items, q) in those of its levels, which `level_features` made.

    >>> item_features(level_features([[[7.0, 8.0]]], [[0, 10, 20]]), [[0, 10, 20]])
    array([[[7., 8.]]])
    """
    sizes = [len(of_item) for of_item in levels]
    firsts = np.cumsum([0, *sizes[:-1]])
    n_features = (X.shape[2] + 1) // max(sizes) - 1
    return X[:, firsts, :n_features]


@dataclass(frozen=True)
class DemandTable:
    """What models must know of levels with a cost of demand: the costs and the features of each level.

    >>> from decidewise.problems import newsvendor
    >>> DemandTable([[0.0, 5.0]], newsvendor(over=1, under=4)).costs(np.array([[3.0]]))
    array([[12.,  2.]])
    """

    levels: list[list[float]]
    cost: CostOfLevel

    def costs(self, demand: FloatArray) -> FloatArray:
        """Return the costs of predicted demand (n, items), or the mean of those of scenarios (n, samples, items)."""
        sizes = [len(of_item) for of_item in self.levels]
        levels = padded(np.concatenate(self.levels), np.concatenate([[0], np.cumsum(sizes)]))
        return table_of(np.maximum(demand, 0.0), levels, self.cost, over_scenarios=demand.ndim == 3)

    def features(self, X: Any) -> Any:
        """Return features of each level, if X has those of each item; anything else as it is."""
        is_of_items = np.ndim(X) == 3 and np.shape(X)[1] == len(self.levels) != sum(map(len, self.levels))
        return level_features(X, self.levels) if is_of_items else X

    def item_features(self, X: Any) -> Any:
        """Return the features of each item, if X has those of each level."""
        return item_features(np.asarray(X), self.levels) if np.ndim(X) == 3 else X

    def _check_kept(self) -> None:
        as_levels(self.levels)
        need(callable(self.cost), "the cost of a DemandTable must be a function of level and demand")
