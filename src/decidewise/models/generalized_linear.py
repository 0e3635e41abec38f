"""A linear model of many outputs, fitted exactly in one pass over the rows."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from decidewise.checks import FloatArray, as_sample_weight, check_same_rows
from decidewise.models.blocks import Blocks, RowBlocks
from decidewise.models.moments import Moments


class GeneralizedLinear(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Linear model with all outputs fitted at once.

    Minimises, for each output, half the weighted mean of the deviance plus a ridge:
    `1/(2 Σw) Σ_i w_i (y_i - x_i·b - a)² + alpha/2 ‖b‖²`. The mean, not the sum, is what `alpha` is weighed against (as
    in scikit-learn's generalized linear models): it keeps its meaning when rows or weights are added. `Ridge(alpha)`
    is this model with `alpha / Σw`.

    The fit is exact: sums of products over blocks of rows, then one small symmetric system. It never copies the data,
    reads large tables with all threads, and gives the answer of least norm where the features do not have full rank
    (directions of the features a million times weaker than the strongest count as absent).

    Parameters
    ----------
    deviance : {"squared"}
        The deviance to minimise.
    link : {None, "identity"}
        How the linear predictor becomes the prediction; None is the deviance's own.
    alpha : float
        The ridge; it does not act on the intercept.
    fit_intercept : bool
        Whether there is an intercept.

    Attributes
    ----------
    coef_ : ndarray of shape (n_outputs, n_features), or (n_features,) for a one-dimensional target
    intercept_ : ndarray of shape (n_outputs,), or float
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where the features came with names

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> model = GeneralizedLinear().fit(X, np.hstack([2 * X + 1, -X]))
    >>> model.predict([[3.0]]).round(12)
    array([[ 7., -3.]])
    """

    def __init__(
        self,
        deviance: Literal["squared"] = "squared",
        *,
        link: Literal["identity"] | None = None,
        alpha: float = 0.0,
        fit_intercept: bool = True,
    ) -> None:
        self.deviance = deviance
        self.link = link
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, p)
        y : array-like of shape (n, d) or (n,)
        sample_weight : array-like of shape (n,), optional
            Not negative; 2 is the same as having the row twice.
        """
        blocks, n_dimensions = self._read(X, y, sample_weight, reset=True)
        return self._start(blocks)._finish(n_dimensions)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take more rows into account: the answer is that of one `fit` on all rows seen since the last `fit`."""
        first = not hasattr(self, "moments_")
        blocks, n_dimensions = self._read(X, y, sample_weight, reset=first)
        return (self._start(blocks) if first else self._add(blocks))._finish(n_dimensions)

    def fit_blocks(self, blocks: Blocks) -> Self:
        """Fit on blocks of rows that need not be in memory at once; see `decidewise.models.blocks`."""
        return self._start(blocks)._finish(n_dimensions=2)

    def predict(self, X: Any) -> FloatArray:
        """Return predictions of the shape of the targets: (n, d) or (n,)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return X @ self.coef_.T + self.intercept_

    def _read(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[RowBlocks, int]:
        # Finiteness is checked block by block while the rows are in cache, with the row and column in the message.
        numbers = {"dtype": [np.float64, np.float32], "ensure_all_finite": False}
        X, y = validate_data(self, X, y, reset=reset, validate_separately=(numbers, {**numbers, "ensure_2d": False}))
        check_same_rows(X=X, y=y)
        weights = None if sample_weight is None else as_sample_weight(sample_weight, len(X))
        return RowBlocks(X, y.reshape(len(y), -1), weights), y.ndim

    def _start(self, blocks: Blocks) -> Self:
        self._check_parameters()
        first = blocks[0]
        shift = first.X.mean(axis=0) if self.fit_intercept else np.zeros(first.X.shape[1])
        self.moments_ = Moments.zeros(shift, first.targets.shape[1])
        return self._add(blocks)

    def _add(self, blocks: Blocks) -> Self:
        self.moments_.add(blocks)
        return self

    def _finish(self, n_dimensions: int) -> Self:
        if self.moments_.total_weight <= 0:
            raise ValueError(
                "every row weighs zero (all costs or all sample weights are zero), so there is nothing to fit. "
                "Pass at least one row with a non-zero cost and weight."
            )
        coefficients, intercepts = self.moments_.solve(self.alpha, self.fit_intercept)
        if not np.isfinite(coefficients).all():
            raise ValueError("the products of features and targets overflow float64. Scale the features or the costs.")
        self.coef_ = coefficients.T if n_dimensions == 2 else coefficients[:, 0]
        self.intercept_ = intercepts if n_dimensions == 2 else float(intercepts[0])
        return self

    def _check_parameters(self) -> None:
        if self.deviance != "squared":
            raise ValueError(f'deviance must be "squared"; got {self.deviance!r}.')
        if self.link not in (None, "identity"):
            raise ValueError(f'link must be None or "identity" for the squared deviance; got {self.link!r}.')
        if not (np.isfinite(self.alpha) and self.alpha >= 0):
            raise ValueError(f"alpha must be a finite number that is not negative; got {self.alpha!r}.")
