"""The change of measure around any regressor."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.metrics import r2_score
from sklearn.utils import Tags, check_array, check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from decidewise.checks import (
    FloatArray,
    as_features,
    as_flag,
    as_matrix,
    as_number,
    as_sample_weight,
    check_items,
    check_same_rows,
    is_per_item,
)
from decidewise.errors import CalibrationWarning
from decidewise.measure import mean_one, resample, transform
from decidewise.models.estimator.all_or_nothing import all_or_nothing
from decidewise.models.estimator.cost_names import read_cost_names
from decidewise.models.estimator.features import read_features
from decidewise.models.estimator.items import fit_items, predict_items
from decidewise.models.estimator.traits import (
    as_regressor,
    check_features,
    loss_without_mean,
    multi_output,
    refuse_masked,
    weight_keyword,
)
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.linear.blocks import BLOCK_ROWS, RowBlocks
from decidewise.models.linear.units import back_from, cost_unit


def _has_partial_fit(model: WiseRegressor) -> bool:
    learner = model._learner()
    if not hasattr(learner, "fit_blocks"):
        raise AttributeError(
            f"partial_fit needs a learner whose fit is one sum over the rows: GeneralizedLinear() or None; got "
            f"{type(learner).__name__}. Use fit."
        )
    return bool(learner.partial_fit_blocks)  # raises an AttributeError with the reason for a log link


class WiseRegressor(MetaEstimatorMixin, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Fit any regressor to costs for good decisions, without a solver.

    The learner is fitted with sample weights `‖y‖^exponent` and targets `y/‖y‖^exponent`. Its best prediction is
    `E[y | x] / E[‖y‖^exponent | x]`, which has the direction of the expected cost; the optimal decision of a linear
    problem depends only on this direction.

    Parameters
    ----------
    estimator : scikit-learn regressor, optional
        The learner, or a pipeline that ends in one. None is the exact linear fit, `GeneralizedLinear()`. A learner with
        a single output is fitted once per output. A learner that takes no sample weights is fitted on a sample drawn
        from the changed measure.
    exponent : float
        1 is WISE; 0 is the learner without a change of measure.
    rescale : bool
        Whether to fit `E[‖y‖^exponent | x]` too and to multiply predictions by it, so that `predict` returns costs in
        their own units. Decisions stay the same, since the fitted factor is kept positive: it is at least the smallest
        positive `‖y‖^exponent` in training.
    random_state : int, RandomState instance or None
        Draws the sample for learners that take no weights; the default gives the same model every time.

    Attributes
    ----------
    estimator_ : the fitted learner
    scale_estimator_ : the learner fitted to `‖y‖^exponent`, if `rescale` is true
    n_features_in_ : int
    n_items_in_ : int, if the features are per item
    feature_names_in_ : ndarray of str, if the features have names
    cost_names_in_ : ndarray of str, if the costs have names

    Examples
    --------
    >>> import numpy as np
    >>> X = np.zeros((2, 1))
    >>> WiseRegressor().fit(X, [[4.0, 0.0], [0.0, 1.0]]).predict(X[:1])
    array([[0.8, 0.2]])
    """

    def __init__(
        self, estimator: Any = None, *, exponent: float = 1.0, rescale: bool = False, random_state: Any = 0
    ) -> None:
        self.estimator = estimator
        self.exponent = exponent
        self.rescale = rescale
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the learner under the change of measure.

        Parameters
        ----------
        X : array-like or frame of shape (n, p), or array-like of shape (n, d, q)
            With features of each item, (n, d, q), the learner is fitted once for all items, on one row per item of each
            sample; all items of a sample have its weight.
        y : array-like or frame of shape (n, d)
            The costs, with one row per sample and one column per decision variable.
        sample_weight : array-like of shape (n,), optional
        """
        learner = self._check_parameters()
        costs, weights = _read(X, y, sample_weight)
        if loss := loss_without_mean(learner):
            warnings.warn(
                f"the conditional mean does not minimise {loss} (the absolute error, for example, gives the median), "
                "but the best decision depends on the mean. So decisions may stay wrong with any number of rows. "
                "Choose a squared, Poisson or gamma loss.",
                CalibrationWarning,
                stacklevel=2,
            )
        with all_or_nothing(self):
            read_cost_names(self, y, reset=True)
            self._n_outputs = costs.shape[1]
            self._unit = cost_unit(costs[:BLOCK_ROWS], power=self.exponent)
            self._seen_with = self.exponent, self.rescale
            self.estimator_ = self._fit(learner, X, costs, self.exponent, weights)
            if self.rescale:
                sizes = self._sizes(costs)
                self._smallest_size = sizes[sizes > 0].min()
                # E[‖y‖^exponent | x] is a plain mean: the same fit of a single cost, with exponent 0.
                rows, learner = _of_rows(X), _without_items(learner)
                self.scale_estimator_ = self._fit(learner, rows, sizes[:, None], 0.0, weights)
            for name in ("n_features_in_", "n_items_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
                if hasattr(self.estimator_, name):
                    setattr(self, name, getattr(self.estimator_, name))
            if is_per_item(X):
                self.n_items_in_, self.n_features_in_ = np.shape(X)[1:]
        return self

    @available_if(_has_partial_fit)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to those of the last `fit` and the calls since then: the model is that of one `fit` on all rows.

        Only for the exact linear fit: `WiseRegressor()`, or `WiseRegressor(GeneralizedLinear(...))` with the squared
        deviance and the identity link. It stores sums over the rows, so a table of any length can be read in parts.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`, with any number of rows.

        Examples
        --------
        >>> import numpy as np
        >>> X, costs = np.eye(3), np.array([[4.0, 0.0], [0.0, 1.0], [3.0, 4.0]])
        >>> model = WiseRegressor().partial_fit(X[:2], costs[:2]).partial_fit(X[2:], costs[2:])
        >>> np.allclose(model.predict(X), WiseRegressor().fit(X, costs).predict(X))
        True
        """
        if not hasattr(self, "estimator_"):
            return self.fit(X, y, sample_weight)
        learner = self._check_parameters()
        if (self.exponent, self.rescale) != self._seen_with:
            exponent, rescale = self._seen_with
            raise ValueError(
                f"the rows so far were fitted with {exponent=} and {rescale=}; now exponent={self.exponent} and "
                f"rescale={self.rescale}. Set them back, or call fit to start again."
            )
        costs, weights = _read(X, y, sample_weight)
        read_cost_names(self, y, reset=False)
        with all_or_nothing(self):
            self.estimator_ = self._add(self.estimator_, learner, X, costs, self.exponent, weights)
            if self.rescale:
                sizes = self._sizes(costs)
                self._smallest_size = min(self._smallest_size, sizes[sizes > 0].min(initial=np.inf))
                rows, learner = _of_rows(X), _without_items(learner)
                self.scale_estimator_ = self._add(self.scale_estimator_, learner, rows, sizes[:, None], 0.0, weights)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predicted costs (n, d): directions of any length or, with `rescale`, costs in their own units."""
        check_is_fitted(self)
        directions = self._directions(X)
        if not self.rescale:
            return directions
        sizes = np.reshape(self.scale_estimator_.predict(_of_rows(X)), (-1, 1))
        in_units = directions / back_from(self._unit, self.exponent) * np.maximum(sizes, self._smallest_size)
        return in_units * self._unit

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination under the changed measure: 1 if perfect, 0 for the best constant.

        To score decisions, use `decidewise.evaluate.regret_scorer`.
        """
        check_is_fitted(self)
        read_cost_names(self, y, reset=False)
        weights, targets = transform(as_matrix(y) / self._unit, self.exponent)
        if sample_weight is not None:
            weights = weights * as_sample_weight(sample_weight, len(weights))
        directions = self._directions(X) / back_from(self._unit, self.exponent)
        return float(r2_score(targets, directions, sample_weight=weights, multioutput="variance_weighted"))

    @property
    def predicts_directions(self) -> bool:
        """Whether predictions are directions, which cannot be added to known costs."""
        return self.exponent > 0 and not self.rescale

    def _learner(self) -> Any:
        return GeneralizedLinear() if self.estimator is None else self.estimator

    def _check_parameters(self) -> Any:
        """Return the learner; raise if a parameter is bad."""
        as_number(self.exponent, name="exponent", at_least=0)
        as_flag(self.rescale, name="rescale")
        return as_regressor(self._learner(), name="estimator")

    def _directions(self, X: Any) -> FloatArray:
        if hasattr(self, "n_items_in_") or is_per_item(X):
            X = read_features(self, X, reset=False)
            own = hasattr(self.estimator_, "fit_blocks")  # it takes features per item itself
            return self.estimator_.predict(X) if own else predict_items(self.estimator_, X)
        return np.reshape(self.estimator_.predict(X), (-1, self._n_outputs))

    def _sizes(self, costs: FloatArray) -> FloatArray:
        """Return `‖y‖^exponent` for each row of costs (n, d), with costs divided by their unit."""
        sizes, _ = transform(costs / self._unit, self.exponent)
        return sizes

    def _add(
        self, fitted: Any, learner: Any, X: Any, costs: FloatArray, exponent: float, sample_weight: FloatArray | None
    ) -> Any:
        """Return a copy of the fitted learner with more rows added, and with the present parameters of `learner`."""
        more = copy(fitted).set_params(**learner.get_params(deep=False))
        X = read_features(more, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite=False)
        unit = self._unit if exponent > 0 else 1.0
        return more.partial_fit_blocks(RowBlocks(X, costs, sample_weight, exponent=exponent, unit=unit))

    def _fit(self, learner: Any, X: Any, costs: FloatArray, exponent: float, sample_weight: FloatArray | None) -> Any:
        """Return a fitted copy of the learner for the given costs and exponent."""
        unit = self._unit if exponent > 0 else 1.0
        if hasattr(learner, "fit_blocks"):
            learner = clone(learner)
            X = read_features(learner, X, reset=True, dtype=[np.float64, np.float32], ensure_all_finite=False)
            return learner.fit_blocks(RowBlocks(X, costs, sample_weight, exponent=exponent, unit=unit))
        per_item = is_per_item(X)
        X = as_features(X) if per_item else X
        check_features(X.reshape(-1, X.shape[2]) if per_item else X)
        costs = as_matrix(costs)
        keyword = weight_keyword(learner)
        if keyword is None:
            X = X if per_item else _readable(X, allow_nan=get_tags(learner).input_tags.allow_nan)
            random = check_random_state(self.random_state)
            rng = np.random.default_rng(random.randint(2**31))
            X, targets = resample(X, costs / unit, len(costs), rng, exponent=exponent, sample_weight=sample_weight)
            fit_arguments = {}
        else:
            weights, targets = transform(costs / unit, exponent)
            weights = weights if sample_weight is None else weights * sample_weight
            # Weights of mean 1 keep the meaning of the learner's own penalties.
            fit_arguments = {keyword: mean_one(weights)}
        targets = targets * back_from(unit, exponent)
        if per_item:
            return fit_items(clone(learner), X, targets, fit_arguments)
        if targets.shape[1] == 1:
            return clone(learner).fit(X, targets[:, 0], **fit_arguments)
        return clone(multi_output(learner)).fit(X, targets, **fit_arguments)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._learner())
        tags.target_tags.single_output = False
        tags.target_tags.positive_only = inner.target_tags.positive_only
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


def _read(X: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, FloatArray | None]:
    """Return the costs (n, d), not yet checked to be finite, and the weights (n,) or None."""
    if y is None:
        raise ValueError("WiseRegressor requires y to be passed, but the target y is None. Pass the costs, (n, d).")
    refuse_masked(X)
    costs = as_matrix(y, finite=False)
    check_same_rows(X=X, costs=costs)
    check_items(X, costs.shape[1])
    return costs, None if sample_weight is None else as_sample_weight(sample_weight, len(costs))


def _of_rows(X: Any) -> Any:
    """Return features of rows, for what depends on the row and not on an item: the means over the items."""
    return np.mean(X, axis=1) if is_per_item(X) else X


def _without_items(learner: Any) -> Any:
    """Return the learner for what depends on the row: there, items have no intercepts or coefficients of their own."""
    return clone(learner).set_params(per_item="none") if hasattr(learner, "per_item") else learner


def _readable(X: Any, *, allow_nan: bool) -> Any:
    """Return features from which rows can be drawn; check all of them, since the learner sees only the drawn rows."""
    if hasattr(X, "columns"):
        return X
    return check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=not allow_nan)
