"""Features that are almost identical to a cost of the same row, which is most likely not known when deciding."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.samples import TableSamples
from decidewise.kit.checks import FloatArray
from decidewise.kit.scaling import unit_largest

#: Correlations from which on a feature is a cost: of values, and of ranks, which a few extreme values do not make.
_SAME, _SAME_RANKS = 0.9999, 0.99


def leaks(samples: TableSamples, prepared: TableFeatures) -> list[str]:
    """Return the prepared features of samples with costs that are almost identical to a cost."""
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
