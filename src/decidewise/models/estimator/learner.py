"""Any scikit-learn regressor as a learner: what it can do, and its fit to many outputs or to one row per item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray, is_per_item
from decidewise.kit.kept import need_model

# Losses that the mean does not minimise, by their names in scikit-learn, LightGBM and XGBoost.
_NOT_THE_MEAN = {
    "absolute_error", "epsilon_insensitive", "fair", "huber", "l1", "lad", "mae", "mape", "quantile", "regression_l1",
    "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror", "squared_epsilon_insensitive",
}  # fmt: skip
_NEVER_THE_MEAN = {
    "HuberRegressor", "LinearSVR", "NuSVR", "QuantileRegressor", "RANSACRegressor", "SVR", "TheilSenRegressor",
}  # fmt: skip

# Deviances by the power of their variance function; all other losses of means count as the square.
_POWERS = {
    "poisson": 1.0, "count:poisson": 1.0, "PoissonRegressor": 1.0, "gamma": 2.0, "reg:gamma": 2.0,
    "GammaRegressor": 2.0,
}  # fmt: skip
# Learners of many outputs whose tags do not say so.
_MANY_OUTPUTS = {"MLPRegressor"}

# The square of this, summed over many rows, is still in the range of float64.
_LARGEST_FEATURE = 1e150


def as_regressor(learner: Any, *, name: str) -> Any:
    """Return `learner`; raise unless it is a regressor, that is, has `fit` and `predict` and is not a classifier.

    >>> as_regressor("ridge", name="estimator")
    Traceback (most recent call last):
    TypeError: estimator must be a regressor with fit and predict, such as Ridge(); got an object of type str.
    """
    expected = f"{name} must be a regressor with fit and predict, such as Ridge()"
    if isinstance(learner, type):
        raise TypeError(f"{expected}; got the class {learner.__name__} itself. Pass {learner.__name__}().")
    if not (callable(getattr(learner, "fit", None)) and callable(getattr(learner, "predict", None))):
        raise TypeError(f"{expected}; got an object of type {type(learner).__name__}.")
    if isinstance(learner, ClassifierMixin):
        raise TypeError(f"{expected}; {type(learner).__name__} is a classifier.")
    return learner


def check_features(X: Any) -> None:
    """Raise if features are so large or so small that their squares, which a learner computes, leave float64."""
    if issparse(X):
        return
    numbers = np.asarray(X)
    if numbers.ndim != 2 or numbers.dtype.kind != "f":
        return
    largest = np.fmax.reduce(np.abs(numbers), axis=0).astype(np.float64)
    beyond = np.flatnonzero((largest > _LARGEST_FEATURE) | ((largest > 0) & (largest < 1 / _LARGEST_FEATURE)))
    if len(beyond):
        raise ValueError(
            f"column {beyond[0]} of the features has entries of up to {largest[beyond[0]]:.0e}, whose squares are "
            "beyond float64. Pass this column in another unit, or use GeneralizedLinear, which takes any unit."
        )


def weight_keyword(learner: Any) -> str | None:
    """Return the keyword by which `learner.fit` takes sample weights, or None if it takes none.

    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> weight_keyword(make_pipeline(Ridge()))
    'ridge__sample_weight'
    """
    if isinstance(learner, Pipeline):
        name, last = learner.steps[-1]
        keyword = weight_keyword(last)
        return keyword and f"{name}__{keyword}"
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in signature(learner.fit).parameters.values())
    if not (takes_any or has_fit_parameter(learner, "sample_weight")):
        return None
    # A search or a wrapper passes weights on, so it takes them only if its inner learner does.
    inner = _inner(learner)
    return "sample_weight" if inner is None or weight_keyword(inner) == "sample_weight" else None


def fitted(learner: Any, X: Any, targets: Any, weights: Mapping[str, Any]) -> Any:
    """Fit a learner with weights by keyword, and return it; LightGBM stops between two trees at a time limit."""
    inner = learner.estimator if isinstance(learner, MultiOutputRegressor) else learner
    is_lightgbm = type(inner).__module__.startswith("lightgbm.")
    in_time = {"callbacks": [lambda _: check_time()]} if is_lightgbm else {}
    # With metadata routing, wrappers would refuse arguments that their learners do not request by themselves.
    with config_context(enable_metadata_routing=False):
        return learner.fit(X, targets, **weights, **in_time)


def multi_output(learner: Any) -> Any:
    """Return the learner, wrapped to fit one copy per output unless it handles many outputs itself."""
    # A search handles many outputs if the learner that it tunes does, whatever its own tag says.
    tuned = learner.estimator if isinstance(learner, GridSearchCV | RandomizedSearchCV) else learner
    last = tuned.steps[-1][1] if isinstance(tuned, Pipeline) else tuned
    named = {base.__name__ for base in type(last).__mro__}
    if get_tags(tuned).target_tags.multi_output or named & _MANY_OUTPUTS:
        return learner
    if isinstance(learner, Pipeline):
        # Wrap only the last step: the transformers are fitted once, and the weights still reach the last step.
        name, last = learner.steps[-1]
        return clone(learner).set_params(**{name: MultiOutputRegressor(last)})
    return MultiOutputRegressor(learner)


def loss_without_mean(learner: Any) -> str | None:
    """Return the name of the learner's loss if the conditional mean does not minimise it, otherwise None."""
    inner = _inner(learner)
    if inner is not None:
        return loss_without_mean(inner)
    if type(learner).__name__ in _NEVER_THE_MEAN:
        return type(learner).__name__
    return next((name for name in _names(learner, "loss", "criterion", "objective") if name in _NOT_THE_MEAN), None)


def deviance_power(learner: Any) -> float:
    """Return the power of the deviance that the learner minimises: 0 for the square, 1 for Poisson, 2 for gamma.

    >>> from sklearn.linear_model import GammaRegressor, Ridge
    >>> deviance_power(Ridge()), deviance_power(GammaRegressor())
    (0.0, 2.0)
    """
    inner = _inner(learner)
    if inner is not None:
        return deviance_power(inner)
    named = [type(learner).__name__, *_names(learner, "deviance", "loss", "criterion", "objective")]
    if "tweedie" in named or "TweedieRegressor" in named:
        parameters = learner.get_params(deep=False)
        return float(parameters.get("power", parameters.get("tweedie_variance_power", 1.5)))
    return max(_POWERS.get(name, 0.0) for name in named)


def _names(learner: Any, *keys: str) -> list[str]:
    """Return those of some parameters that are text."""
    parameters = learner.get_params(deep=False)
    return [parameters[key] for key in keys if isinstance(parameters.get(key), str)]


def _inner(learner: Any) -> Any:
    """Return the learner inside a pipeline or a meta-estimator, or None if there is none."""
    if isinstance(learner, Pipeline):
        return learner.steps[-1][1]
    parameters = learner.get_params(deep=False)
    given = (parameters.get(key) for key in ("estimator", "regressor"))
    return next((inner for inner in given if hasattr(inner, "fit")), None)


def found(model: Any, name: str) -> Any:
    """Return an attribute that a fit sets, of a model or of the first model inside that has it, or None."""
    members = getattr(model, "estimators_", None)
    inner = [getattr(model, "estimator_", None), getattr(model, "best_estimator_", None)]
    inner += members[:1] if isinstance(members, list) else []
    if isinstance(model, Pipeline):
        inner.append(model.steps[-1][1] if name == "cost_names_in_" else model.steps[0][1])
    values = (getattr(model, name, None), *(found(part, name) for part in inner if part is not None))
    return next((value for value in values if value is not None), None)


def names_of(model: Any, name: str) -> list[str] | None:
    """Return the names in such an attribute as text, or None if the model does not know them."""
    names = found(model, name)
    return None if names is None else [str(each) for each in names]


@dataclass(frozen=True)
class LiftedItems:
    """A model of all items, and one of the cost that is always 1, from the means of the features over the items."""

    items: Any
    always_one: Any

    def _check_kept(self) -> None:
        need_model(self.items, "items")
        need_model(self.always_one, "always_one")


def fit_items(learner: Any, X: FloatArray, targets: FloatArray, weights: Mapping[str, FloatArray]) -> Any:
    """Fit a learner, or a pipeline, to features (n, d, q) and targets (n, d).

    A learner that does not take features per item itself sees the long form, (n * d, q) and (n * d,).

    Parameters
    ----------
    targets : ndarray of shape (n, d) or (n, d + 1)
        The last of d + 1 targets belongs to the row, not to an item; see `LiftedItems`.
    weights : mapping of keywords of `learner.fit` to ndarrays of shape (n,)
        All items of a row have its weight.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[[0.0], [1.0]], [[2.0], [3.0]]])
    >>> predict_items(fit_items(LinearRegression(), X, np.array([[1.0, 3.0], [5.0, 7.0]]), {}), X).round(12)
    array([[1., 3.],
           [5., 7.]])
    """
    n_items, n_features = X.shape[1:]
    if targets.shape[1] > n_items:
        items = fit_items(clone(learner), X, targets[:, :n_items], weights)
        return LiftedItems(items, fitted(_without_items(learner), rows_of(X), targets[:, n_items], weights))
    if hasattr(learner, "fit_blocks"):
        return fitted(learner, X, targets, weights)
    repeated = {keyword: np.repeat(weight, n_items) for keyword, weight in weights.items()}
    return fitted(learner, X.reshape(-1, n_features), targets.ravel(), repeated)


def predict_items(model: Any, X: FloatArray) -> FloatArray:
    """Return the predictions (n, d), or (n, d + 1) if lifted, of a fitted model for features (n, d, q)."""
    if isinstance(model, LiftedItems):
        always_one = np.reshape(model.always_one.predict(rows_of(X)), (-1, 1))
        return np.hstack([predict_items(model.items, X), always_one])
    if hasattr(model, "fit_blocks"):
        return np.asarray(model.predict(X))
    return np.reshape(model.predict(X.reshape(-1, X.shape[2])), X.shape[:2])


def rows_of(X: Any) -> Any:
    """Return features of rows, for what depends on the row and not on an item: the means over the items."""
    return np.mean(X, axis=1) if is_per_item(X) else X


def _without_items(learner: Any) -> Any:
    """Return a copy of the learner in which items have no intercepts or coefficients of their own."""
    return clone(learner).set_params(**({"per_item": "none"} if hasattr(learner, "per_item") else {}))
