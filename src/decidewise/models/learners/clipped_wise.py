"""The change of measure with clipped weights."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from decidewise.kit.checks import as_matrix, as_number, as_sample_weight, check_same_rows
from decidewise.kit.scaling import norms
from decidewise.models.wise_regressor import WiseRegressor


class ClippedWise(WiseRegressor):
    """WISE whose weights are clipped: `min(‖y‖, limit)` for the direction `y/‖y‖`.

    With `clip=0` the limit is the smallest norm, so all directions have the same weight. This estimates the mean
    direction `E[y/‖y‖ | x]`, not the direction of the mean. They agree if size and direction are independent given
    `x`, and then it is far less noisy: a few large rows do not outweigh all others. If they do not agree, decisions
    are biased, so use it only if it decides better on held-out rows.

    Parameters
    ----------
    estimator, exponent, scale, lifted, random_state
        As for `WiseRegressor`.
    clip : float
        The quantile of the positive norms, from 0 to 1, that is the limit. 1 is `WiseRegressor`.

    Examples
    --------
    >>> costs = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 98.0]])
    >>> ClippedWise(clip=0.0, scale="unit").fit(np.zeros((3, 1)), costs).predict([[0.0]]).round(3)
    array([[0.333, 0.667]])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        clip: float = 0.5,
        exponent: float = 1.0,
        scale: Any = "mean",
        lifted: bool = False,
        random_state: Any = 0,
    ) -> None:
        super().__init__(estimator, exponent=exponent, scale=scale, lifted=lifted, random_state=random_state)
        self.clip = clip

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the learner as `WiseRegressor.fit`, with clipped weights."""
        as_number(self.clip, name="clip", at_least=0, at_most=1)
        if y is None:
            return super().fit(X, y)  # which says what to pass
        costs = as_matrix(y)
        check_same_rows(X=X, costs=costs)
        sizes, weights = norms(costs), as_sample_weight(sample_weight, len(costs))
        counted = (sizes > 0) & (weights > 0)
        if counted.any():
            limit = np.quantile(sizes[counted], self.clip, weights=weights[counted], method="inverted_cdf")
            weights = weights * np.minimum(1.0, limit / np.where(sizes > 0, sizes, limit)) ** self.exponent
        return super().fit(X, costs, weights)

    @property
    def partial_fit(self) -> Any:
        """Not available: the limit is a quantile of all rows."""
        raise AttributeError("the weights are clipped at a quantile of all rows, so ClippedWise has no partial_fit.")
