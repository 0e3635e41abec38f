"""Earlier costs as predictions: what deciding by yesterday's costs would have led to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from decidewise.kit.checks import FloatArray, as_integer
from decidewise.models.selection.folds import Splits


def lagged(costs: FloatArray, lags: Sequence[int], splits: Splits) -> dict[str, FloatArray]:
    """Return the costs of earlier rows as predictions (n, d), by name; the first rows get the mean of all.

    Parameters
    ----------
    lags : sequence of int
        By how many rows the costs precede those that they predict.
    splits : list of (training rows, held-out rows)
        Raise if a fold trains on nothing as recent as a lag: there the costs of the lag were not known yet.

    Examples
    --------
    >>> lagged(np.array([[1.0], [2.0], [6.0]]), [1], [(np.array([0, 1]), np.array([2]))])
    {'costs 1 row before': array([[3.],
           [1.],
           [2.]])}
    """
    found = {}
    for lag in lags:
        as_integer(lag, name="a lag", maximum=len(costs) - 1)
        for fold, (train, test) in enumerate(splits):
            gap = test.min() - train.max()
            if train.max() < test.min() and lag < gap:
                raise ValueError(
                    f"the costs of {lag} rows before are not known when fold {fold} is decided: its training rows end "
                    f"{gap} rows before. Use lags of at least {gap}, or a shorter gap."
                )
        before = np.vstack([np.broadcast_to(costs.mean(axis=0), (lag, costs.shape[1])), costs[:-lag]])
        found[f"costs {lag} row{'s' if lag > 1 else ''} before"] = before
    return found
