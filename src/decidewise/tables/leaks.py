"""Features that all but equal a cost of the same row, which is most likely not known when deciding."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from decidewise.checks import FloatArray, listed
from decidewise.scaling import unit_largest
from decidewise.tables.comparison import TableComparison

#: Correlations from which on a feature is a cost: of values, and of ranks, which a few extreme values do not make.
_SAME, _SAME_RANKS = 0.9999, 0.99


def leaks(result: TableComparison) -> list[str]:
    """Return the features that all but equal a cost on the rows that the model was chosen on."""
    samples, rows = result.samples, result.splits[0][0]
    assert samples.costs is not None
    X, costs = samples.features(result.choice.prepared)[rows], samples.costs[rows]
    targets = costs.reshape(-1, 1) if samples.per_item else costs
    left, right = unit_largest(X.reshape(len(targets), -1).T), unit_largest(targets.T)
    names = result.choice.prepared.feature_names_
    found = [
        names[i]
        for i, j in np.argwhere(_correlations(left, right) > _SAME)
        if _correlations(rankdata(left[i])[np.newaxis], rankdata(right[j])[np.newaxis])[0, 0] > _SAME_RANKS
    ]
    return list(dict.fromkeys(found))


def doubt(result: TableComparison) -> str:
    """Return the beginning of a headline that may not hold, because a feature is a cost; nothing without any."""
    found = leaks(result)
    if not found:
        return ""
    return (
        f"Leak? {listed(found)} all but equal{'s' * (len(found) == 1)} a cost of the same row. Unless known when "
        "deciding, leave it out (--features), for this does not hold: "
    )


def _correlations(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the sizes of the correlations (p, d) of rows of (p, n) and (d, n); zero for constant ones."""
    left, right = (side - side.mean(axis=1, keepdims=True) for side in (left, right))
    sizes = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    found: FloatArray = np.abs(left @ right.T) / np.where(sizes > 0, sizes, np.inf)
    return found
