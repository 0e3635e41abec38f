"""Where the training of a linear predictor starts: parameters `(p + 1, d)`, the intercepts in the first row."""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.checks import FloatArray
from decidewise.measure import norms
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.training import Link
from decidewise.models.wise_regressor import WiseRegressor

NAMES = ("wise", "mse", "torch", "zeros")


def start(
    init: Any, X: FloatArray, costs: FloatArray, *, link: Link, directions: bool, rng: np.random.Generator
) -> FloatArray:
    """Return the starting parameters, a new array of shape (p + 1, d).

    Parameters
    ----------
    init : {"wise", "mse", "torch", "zeros"}, array of shape (p + 1, d), or fitted linear model
        "wise" and "mse" are exact fits (with a log link: of the logarithms of the costs), "torch" is uniform in
        `±1/sqrt(p)` as in `torch.nn.Linear`.
    directions : bool
        Whether predictions are directions; otherwise a WISE start is scaled to the size of the costs, on which most
        losses depend.
    """
    shape = (X.shape[1] + 1, costs.shape[1])
    if isinstance(init, str):
        if init not in NAMES:
            raise ValueError(
                f"init must be one of {', '.join(NAMES)}, an array or a fitted linear model; got {init!r}."
            )
        if init == "zeros":
            return np.zeros(shape)
        if init == "torch":
            return rng.uniform(-1, 1, size=shape) / np.sqrt(X.shape[1])
        return _log_fit(init, X, costs) if link == "log" else _fit(init, X, costs, directions)
    parameters = _parameters(init) if hasattr(init, "coef_") else np.array(init, dtype=np.float64)
    if parameters.shape != shape:
        raise ValueError(
            f"init must have shape (n_features + 1, n_costs) = {shape}, the intercepts in the first row; "
            f"got {parameters.shape}."
        )
    return parameters


def _fit(init: str, X: FloatArray, costs: FloatArray, directions: bool) -> FloatArray:
    if init == "mse":
        return _parameters(GeneralizedLinear().fit(X, costs))
    parameters = _parameters(WiseRegressor().fit(X, costs).estimator_)
    return parameters if directions else parameters * norms(costs).mean()


def _log_fit(init: str, X: FloatArray, costs: FloatArray) -> FloatArray:
    weights = norms(costs) if init == "wise" else None
    return _parameters(GeneralizedLinear().fit(X, np.log(costs), sample_weight=weights))


def _parameters(model: Any) -> FloatArray:
    return np.vstack([np.atleast_1d(model.intercept_), np.atleast_2d(model.coef_).T])
