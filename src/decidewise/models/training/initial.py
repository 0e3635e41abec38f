"""The starting parameters `(p + 1, d)` of a linear predictor, with the intercepts in the first row."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from decidewise.kit.checks import FloatArray, check_finite
from decidewise.measure import norms
from decidewise.models.estimator.items import LiftedItems
from decidewise.models.estimator.traits import as_regressor
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.linear.link import Link, multiplied
from decidewise.models.linear.units import Units
from decidewise.models.wise_regressor import WiseRegressor

#: Starts that do not look at the data.
NO_FITS = ("torch", "zeros")
NAMES = ("wise", "mse", *NO_FITS)


def start(
    init: Any,
    X: FloatArray,
    costs: FloatArray,
    *,
    units: Units,
    link: Link,
    directions: bool,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the starting parameters in the units of training, a new array of shape (p + 1, d).

    With features per item, (n, d, q), these are the parameters (q + 1, d) of each item: the same for all items, unless
    an array or a model given as `init` has others.

    Parameters
    ----------
    init : {"wise", "mse", "torch", "zeros"}, array of shape (p + 1, d), or linear model
        "wise" is the fit under the change of measure (of the gamma deviance, if the link is "log"), "mse" is least
        squares with either link, and "torch" is uniform in `±1/sqrt(p)`, as in `torch.nn.Linear`; these are in the
        units of training. A model or an array is in the units of the caller. A model that is not fitted yet is fitted
        on the given rows.
    X, costs : ndarrays of shapes (n, p) or (n, d, q), and (n, d)
        In the units of the caller.
    directions : bool
        Whether predictions are directions. If not, a WISE start is scaled to the size of the costs, because most losses
        depend on it.
    """
    shape = (X.shape[-1] + 1, costs.shape[1])
    per_item = X.ndim == 3
    if isinstance(init, str):
        if init not in NAMES:
            raise ValueError(f"init must be one of {', '.join(NAMES)}, an array or a linear model; got {init!r}.")
        if init == "zeros":
            return np.zeros(shape)
        if init == "torch":
            drawn = rng.uniform(-1, 1, size=(shape[0], 1) if per_item else shape) / np.sqrt(X.shape[-1])
            return drawn.repeat(shape[1], axis=1) if per_item else drawn
        features, costs = units.features(X) * units.varies, costs / units.cost
        model = _named_model(init, link).fit(features, costs)
        parameters = _parameters(model, link)
        parameters = parameters.repeat(shape[1], axis=1) if per_item else parameters
        return multiplied(link, parameters, _factor(model, costs, 1.0, directions))
    if hasattr(init, "predict") or hasattr(init, "fit"):
        model = _fitted(init, X, costs)
        parameters, factor = _parameters(model, link), _factor(model, costs, units.cost, directions)
    else:
        parameters, factor = _as_array(init), 1 / units.prediction
    if per_item and parameters.shape in ((shape[0],), (shape[0], 1)):
        parameters = parameters.reshape(-1, 1).repeat(shape[1], axis=1)
    if parameters.shape != shape:
        alternative = f", or {shape[:1]} for all items" if per_item else ""
        raise ValueError(
            f"init must have shape (n_features + 1, n_costs) = {shape}, the intercepts in the first row{alternative}; "
            f"got {parameters.shape}."
        )
    return multiplied(link, units.enter(parameters), factor)


def _named_model(init: str, link: Link) -> Any:
    if init == "mse":
        return GeneralizedLinear("squared", link=link)
    return WiseRegressor(GeneralizedLinear("gamma" if link == "log" else "squared"), scale="unit")


def _as_array(init: Any) -> FloatArray:
    try:
        parameters = np.asarray(init, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"init must be one of {', '.join(NAMES)}, an array of numbers or a linear model; got an object of type "
            f"{type(init).__name__}."
        ) from None
    if parameters.ndim == 2:
        check_finite(parameters, name="init")
    return parameters


def _fitted(model: Any, X: FloatArray, costs: FloatArray) -> Any:
    """Return the model, or a fitted clone if it is not fitted; for a search, return its best estimator."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        model = clone(as_regressor(model, name="init")).fit(X, costs)
    return getattr(model, "best_estimator_", model)


def _parameters(model: Any, link: Link) -> FloatArray:
    """Return the parameters (p + 1, d) of a fitted model; for a `WiseRegressor`, those of its learner.

    If it is lifted, those of the cost that is always 1 are left out, since the predictor is linear.
    """
    if isinstance(model, WiseRegressor):
        learner = model.estimator_.items if isinstance(model.estimator_, LiftedItems) else model.estimator_
        return _parameters(learner, link)[:, : model.n_outputs_]
    if not hasattr(model, "coef_"):
        raise ValueError(
            f"init must be linear in the features, with coef_ and intercept_; got {type(model).__name__}. Transform "
            "the features first and pass the linear model alone, or start at another model."
        )
    if isinstance(model, GeneralizedLinear):
        own_link = model.effective_link
        if own_link != link:
            raise ValueError(f'init has the {own_link} link and the regressor the {link} link; set link="{own_link}".')
    intercepts, coefficients = np.atleast_1d(model.intercept_), np.atleast_2d(model.coef_).T
    if coefficients.shape[1] == 1:  # shared by all items, each of which may have an intercept of its own
        coefficients = coefficients.repeat(len(intercepts), axis=1)
    return np.vstack([intercepts, coefficients])


def _factor(model: Any, costs: FloatArray, unit: float, directions: bool) -> float:
    """Return the factor that converts a model's predictions to the units of training, in which costs are in `unit`.

    Under the change of measure with the scale "unit", a model predicts costs divided by their expected size to the
    power of its exponent. With other scales, it predicts costs.
    """
    exponent, sizes = 0.0, norms(costs / unit)
    if isinstance(model, WiseRegressor):
        exponent = model.exponent if model.scale == "unit" else 0.0
        unit = unit / model.unit_
    factor = (sizes**exponent).mean() * np.float64(unit) ** (exponent - 1)
    return float(factor / (sizes.mean() or 1.0)) if directions else float(factor)
