"""Where the training of a linear predictor starts: parameters `(p + 1, d)`, the intercepts in the first row."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from decidewise.checks import FloatArray
from decidewise.measure import norms
from decidewise.models.deviances import Deviance
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
    init : {"wise", "mse", "torch", "zeros"}, array of shape (p + 1, d), or linear model
        "wise" is the fit under the change of measure (with a log link, of the gamma deviance), "mse" is least squares
        with either link, "torch" is uniform in `±1/sqrt(p)` as in `torch.nn.Linear`. A model is fitted on the given
        rows unless it is fitted already.
    directions : bool
        Whether predictions are directions; otherwise a WISE start is scaled to the size of the costs, on which most
        losses depend.
    """
    shape = (X.shape[1] + 1, costs.shape[1])
    if isinstance(init, str):
        if init not in NAMES:
            raise ValueError(f"init must be one of {', '.join(NAMES)}, an array or a linear model; got {init!r}.")
        if init == "zeros":
            return np.zeros(shape)
        if init == "torch":
            return rng.uniform(-1, 1, size=shape) / np.sqrt(X.shape[1])
        init = _named(init, link)
    if hasattr(init, "predict"):
        parameters = _of_model(init, X, costs, link, directions)
    else:
        parameters = np.array(init, dtype=np.float64)
    if parameters.shape != shape:
        raise ValueError(
            f"init must have shape (n_features + 1, n_costs) = {shape}, the intercepts in the first row; "
            f"got {parameters.shape}."
        )
    return parameters


def _named(init: str, link: Link) -> Any:
    if init == "mse":
        return GeneralizedLinear("squared", link=link)
    return WiseRegressor(GeneralizedLinear("gamma" if link == "log" else "squared"))


def link_of(model: GeneralizedLinear) -> str:
    """Return the link of a generalized linear model, the deviance's own where none was chosen."""
    return model.link or Deviance.of(model.deviance, model.power).link


def _of_model(model: Any, X: FloatArray, costs: FloatArray, link: Link, directions: bool) -> FloatArray:
    try:
        check_is_fitted(model)
    except NotFittedError:
        model = clone(model).fit(X, costs)
    model = getattr(model, "best_estimator_", model)  # of a search, what it has chosen
    exponent = 0.0
    if isinstance(model, WiseRegressor):
        model, exponent = model.estimator_, model.exponent
    if not hasattr(model, "coef_"):
        raise ValueError(
            f"init must be linear in the features, with coef_ and intercept_; got {type(model).__name__}. Transform "
            "the features first and pass the linear model alone, or start at a model without that step."
        )
    if isinstance(model, GeneralizedLinear):
        own_link = link_of(model)
        if own_link != link:
            raise ValueError(f'init has the {own_link} link and the regressor the {link} link; set link="{own_link}".')
    parameters = _parameters(model)
    # Under the change of measure a model predicts costs divided by their expected size.
    size = 1.0 if directions else (norms(costs) ** exponent).mean()
    if link == "log":
        parameters[0] += np.log(size)
        return parameters
    return parameters * size


def _parameters(model: Any) -> FloatArray:
    return np.vstack([np.atleast_1d(model.intercept_), np.atleast_2d(model.coef_).T])
