"""What our estimators share: how they read features and names, and calls that fail without side effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from decidewise.kit.checks import (
    all_finite,
    as_array,
    as_features,
    check_same_names,
    column_names,
    dtypes_of,
    is_per_item,
    n_rows,
    no_numbers,
    refuse_masked,
)


def read_features(estimator: Any, X: Any, *, reset: bool, **options: Any) -> Any:
    """Return features (n, p) or (n, d, q), checked against those of the last fit, or recorded if `reset`.

    Features (n, p) are read by scikit-learn's `validate_data`, with the given options. Features per item set
    `n_features_in_` to q and `n_items_in_` to d; since all items share one model, d may differ after the fit.
    """
    refuse_no_numbers(X, name="X", text=bool(options.get("skip_check_array")))
    if not is_per_item(X):
        if reset:
            estimator.__dict__.pop("n_items_in_", None)
        elif hasattr(estimator, "n_items_in_"):
            raise ValueError(
                f"{type(estimator).__name__} was fitted with features per item, X of shape (n, "
                f"{estimator.n_items_in_}, {estimator.n_features_in_}); got X.shape={np.shape(X)}. Pass one row of "
                f"{estimator.n_features_in_} features for each item."
            )
        if _is_plain(estimator, X, reset=reset, **options):
            estimator.n_features_in_ = X.shape[1]
            return X
        return validate_data(estimator, X, reset=reset, ensure_min_samples=int(reset), **options)
    is_empty = not reset and n_rows(X) == 0
    X = as_array(X, name="X") if is_empty else as_features(X, finite=options.get("ensure_all_finite", True) is True)
    if reset:
        estimator.__dict__.pop("feature_names_in_", None)
        estimator.n_items_in_, estimator.n_features_in_ = X.shape[1:]
    elif not hasattr(estimator, "n_items_in_"):
        raise ValueError(
            f"{type(estimator).__name__} was fitted with {estimator.n_features_in_} features per row, X of shape (n, "
            f"{estimator.n_features_in_}); got X.shape={X.shape}, which has features per item."
        )
    elif X.shape[2] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[2]} features per item, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input: X.shape={X.shape}."
        )
    return X


def refuse_no_numbers(values: Any, *, name: str, text: bool = False) -> None:
    """Raise if values are masked, dates, categories, structures, complex or text, which NumPy would convert.

    What else is wrong with them is left to the check of who reads them. `text` says whether text is allowed, for a
    learner that may encode it.

    >>> refuse_no_numbers([["1", "2"]], name="X")
    Traceback (most recent call last):
    ValueError: X must be an array of real numbers; list is not (strings, dates and durations are not numbers; convert
    them first).
    """
    refuse_masked(values, name=name)
    kinds = {getattr(dtype, "kind", "?") for dtype in dtypes_of(values)} or {"?"}
    if kinds <= set("fiub") or (text and hasattr(values, "columns")) or hasattr(values, "tocsr"):
        return
    try:
        array = np.asarray(values)
    except ValueError:  # ragged lists
        return
    if text and array.dtype.kind in "SUO":
        return
    if why := no_numbers(array, values):
        raise ValueError(f"{name} must be an array of real numbers; {type(values).__name__} is not ({why}).")


def _is_plain(
    estimator: Any, X: Any, *, reset: bool, dtype: Any = (), ensure_all_finite: bool = True, **others: Any
) -> bool:
    """Return whether `validate_data` would return X itself: finite float64, without names, as wide as in the fit.

    It takes a tenth of the time of a small fit, and ten times that of the prediction of a row.
    """
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.size > 0
        and not others
        and (dtype is np.float64 or np.float64 in dtype)
        and (reset or X.shape[1] == getattr(estimator, "n_features_in_", None))
        and not hasattr(estimator, "feature_names_in_")
        and (not ensure_all_finite or all_finite(X))
    )


def check_fitted(estimator: Any, attribute: str) -> None:
    """Raise scikit-learn's error unless the estimator has an attribute of its fit.

    Its own check, of all attributes and tags, takes longer than the prediction of a row.
    """
    if not hasattr(estimator, attribute):
        check_is_fitted(estimator, attribute)


def check_known_items(estimator: Any, X: Any) -> None:
    """Raise unless features per item have the items of the last fit, for a model in which items differ."""
    if X.shape[1] != estimator.n_items_in_:
        raise ValueError(
            f"X has {X.shape[1]} items, and {type(estimator).__name__} was fitted with {estimator.n_items_in_}, each "
            "with an intercept or coefficients of its own: a new item has none. Pass the items of training, in the "
            'same order, or fit with per_item="none".'
        )


class OnlyIf:
    """A method behind a check; see `only_if`."""

    def __init__(self, method: Callable[..., Any], check: Callable[[Any], object]) -> None:
        self.method, self.check = method, check
        self.__doc__ = method.__doc__

    def __get__(self, owner: Any, of: type | None = None) -> Any:
        if owner is None:
            return self.method
        self.check(owner)
        return self.method.__get__(owner, of)


def only_if(check: Callable[[Any], object]) -> Callable[[Callable[..., Any]], Any]:
    """Make a method available only if `check(estimator)` raises no `AttributeError`, which says what is needed.

    scikit-learn's `available_if` hides this sentence behind "This '...' has no attribute '...'".

    >>> def is_open(door):
    ...     if not door.open:
    ...         raise AttributeError("the door is shut; open it first.")
    >>> class Door:
    ...     open = False
    ...     walk = only_if(is_open)(lambda self: "through")
    >>> hasattr(Door(), "walk")
    False
    >>> Door().walk()
    Traceback (most recent call last):
    AttributeError: the door is shut; open it first.
    """
    return lambda method: OnlyIf(method, check)


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Return a context that restores the attributes of an estimator if it ends in an error.

    The values of the attributes are not copied, so they must not be changed in place.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def read_cost_names(estimator: Any, y: Any, *, reset: bool) -> None:
    """Keep the column names of the costs as `cost_names_in_` if `reset`, otherwise raise if they differ from those.

    Costs without names, such as arrays, are never refused.
    """
    names = column_names(y)
    if not reset:
        known = getattr(estimator, "cost_names_in_", None)
        check_same_names(known, names, of="y", expected=f"the costs that {type(estimator).__name__} was fitted with")
        return
    estimator.__dict__.pop("cost_names_in_", None)
    if names is not None:
        estimator.cost_names_in_ = np.array(names, dtype=object)


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a generator of NumPy for what scikit-learn takes as `random_state`."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


class KnownParameters(BaseEstimator):
    """An estimator whose class is inspected for its parameters only once.

    scikit-learn inspects it in every `clone` and `get_params`, which takes a fifth of the time of a small fit.
    """

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        return super()._get_param_names()


class ManyOutputs(MultiOutputMixin):
    """An estimator of many outputs, which refuses a one-dimensional target."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        return tags


class ScoredByVariance(RegressorMixin):
    """A regressor whose score is the coefficient of determination; targets that are no numbers are refused."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination, as every regressor of scikit-learn does."""
        check_is_fitted(self)
        refuse_no_numbers(y, name="y")
        return float(super().score(X, y, sample_weight))
