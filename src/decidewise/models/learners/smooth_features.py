"""Random smooth features, which make a linear model nonlinear."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from decidewise.kit.checks import FloatArray, as_integer, as_positive
from decidewise.kit.kept import are_floats, need
from decidewise.models.estimator.base import as_generator, read_features

_N_PAIRS = 2000


class SmoothFeatures(TransformerMixin, BaseEstimator):
    """Add random Fourier features: `cos(w·x)` and `sin(w·x)` for random `w`, beside `x` itself.

    A linear model of them approximates a Gaussian kernel (Rahimi and Recht, NeurIPS 2007). The bandwidth of the kernel
    is the median distance between rows, times `bandwidth`. Standardise the features before, and the result after.

    Parameters
    ----------
    n_components : int
        The number of features to add.
    bandwidth : float
        In units of the median distance; less is more wiggly.
    random_state : int, RandomState instance or None

    Examples
    --------
    >>> SmoothFeatures(10).fit_transform(np.eye(3)).shape
    (3, 13)
    """

    def __init__(self, n_components: int = 60, *, bandwidth: float = 1.0, random_state: Any = 0) -> None:
        self.n_components = n_components
        self.bandwidth = bandwidth
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Measure the median distance and draw the directions (p, k/2)."""
        n_pairs = (as_integer(self.n_components, name="n_components") + 1) // 2
        as_positive(self.bandwidth, name="bandwidth")
        X = read_features(self, X, reset=True, dtype=np.float64)
        rng = as_generator(self.random_state)
        first, second = rng.integers(len(X), size=(2, _N_PAIRS))
        distances = np.linalg.norm(X[first] - X[second], axis=1)
        distances = distances[distances > 0]
        median = float(np.median(distances)) if len(distances) else 1.0
        self.directions_ = rng.normal(size=(X.shape[1], n_pairs)) / (self.bandwidth * median)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the features with the smooth ones beside them: (n, p) -> (n, p + k)."""
        check_is_fitted(self)
        X = read_features(self, X, reset=False, dtype=np.float64)
        phases = X @ self.directions_
        return np.hstack([X, np.cos(phases), np.sin(phases)])[:, : X.shape[1] + self.n_components]

    def _check_kept(self) -> None:
        as_integer(self.n_components, name="n_components")
        if hasattr(self, "directions_"):
            need(are_floats(self.directions_) and np.ndim(self.directions_) == 2, "directions_ must be a matrix")
            need(len(self.directions_) == self.n_features_in_, "directions_ must have one row per feature")
