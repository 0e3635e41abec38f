"""The change of measure around any regressor."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from decidewise.kit.checks import (
    BoolArray,
    FloatArray,
    as_choice,
    as_flag,
    as_integer,
    as_matrix,
    as_number,
    as_sample_weight,
    check_items,
    check_same_rows,
    is_per_item,
    n_rows,
)
from decidewise.kit.errors import CalibrationWarning
from decidewise.kit.kept import need_model
from decidewise.measure import transform
from decidewise.models.estimator.base import (
    KnownParameters,
    ManyOutputs,
    all_or_nothing,
    check_fitted,
    only_if,
    read_cost_names,
    read_features,
    refuse_no_numbers,
)
from decidewise.models.estimator.changed_fit import ChangedFit, PredictedScale
from decidewise.models.estimator.from_rows import FitsRows
from decidewise.models.estimator.learner import (
    LiftedItems,
    as_regressor,
    deviance_power,
    loss_without_mean,
    predict_items,
)
from decidewise.models.estimator.seen_in_part import fit_seen, predicted_sizes, seen_costs
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.linear.blocks import BLOCK_ROWS, InMemory
from decidewise.models.linear.units import back_from, cost_unit
from decidewise.rows.passes import Passes, run
from decidewise.rows.source import Rows, RowSource

SCALES = ("unit", "mean", "iterated")
# After this many fits, the decisions of another fit are the same in nearly all rows.
_N_ITERATES = 6


def _has_partial_fit(model: WiseRegressor) -> bool:
    learner = model._learner()
    if not hasattr(learner, "fit_blocks"):
        raise AttributeError(
            f"partial_fit needs a learner whose fit is one sum over the rows: GeneralizedLinear() or None; got "
            f"{type(learner).__name__}. Use fit."
        )
    if model.exponent and not (isinstance(model.scale, str) and model.scale in ("unit", "mean") and not model.lifted):
        raise AttributeError(
            'partial_fit needs scale="unit" or scale="mean", and lifted=False: otherwise the weights of earlier rows '
            "change with every chunk, since they depend on a model or on the mean size of all rows. Use fit."
        )
    if model.missing != "error":
        raise AttributeError('partial_fit needs costs that are all seen, missing="error". Use fit.')
    return bool(learner.partial_fit_blocks)  # raises an AttributeError with the reason for a log link


class WiseRegressor(FitsRows, MetaEstimatorMixin, ManyOutputs, RegressorMixin, KnownParameters):
    """Fit any regressor to costs for good decisions, without a solver.

    The learner is fitted with sample weights `a/s(x)²` and targets `y s(x)/a`, where `a = ‖y‖^exponent` and `s(x) > 0`
    is a scale. Its best prediction is `s(x) E[y | x] / E[a | x]`, which has the direction of the expected cost whatever
    the scale; the optimal decision of a linear problem depends only on this direction.

    Parameters
    ----------
    estimator : scikit-learn regressor, optional
        The learner, or a pipeline that ends in one. None is the exact linear fit, `GeneralizedLinear()`. A learner with
        a single output is fitted once per output. A learner that takes no sample weights is fitted on a sample drawn
        from the changed measure.
    exponent : float
        1 is WISE; 0 is the learner without a change of measure, whatever the scale.
    scale : {"mean", "unit", "iterated"} or scikit-learn regressor
        The scale `s(x)`:

        - "mean", the mean of `a`: predictions have the size of the costs, so that penalties and tolerances of the
          learner mean what they mean for the costs.
        - "unit", 1: the paper's WISE, whose predictions have norms of at most about 1. An exact linear fit decides as
          with "mean".
        - "iterated", `‖f(x)‖^exponent` with the learner's own prediction `f`, which starts from the learner's fit to
          the costs and is fitted again six times. Choose it if features are in the units of the costs, such as
          forecasts or the costs of yesterday. The learner must not fit training rows much closer than new ones, since
          the scale must not depend on the costs of the row.
        - a regressor of `E[a | x]`.
    lifted : bool
        Whether to fit one more cost that is always 1, and to divide predictions by it. Then `predict` estimates
        `E[y | x]` itself, not only its direction, as a problem with known costs needs. Sizes `a` below a tenth of their
        mean are raised to it; the divisor is at least its smallest target in training, so it is positive. Without known
        costs, decisions stay the same if no size is raised and outputs are fitted one by one.
    missing : {"error", "ignore"}
        What NaN in the costs means. "error" refuses it. "ignore" takes it as "not seen", and fits each item on the rows
        in which it is seen, with sizes `a(x)` predicted by a log-linear fit to what is seen of them. What is seen may
        depend on the features and on chance, not on the costs. It needs `fit`, the scale "mean" or "unit", numbers as
        features, and `lifted=False`; with `exponent=0` it is the learner on the costs that are seen.
    random_state : int, RandomState instance or None
        Draws the sample for learners that take no weights; the default gives the same model every time.

    Attributes
    ----------
    estimator_ : the fitted learner
    n_outputs_ : int
        The number of costs.
    unit_ : float
        Predictions are those of `estimator_` times this; 1 unless the costs are near the ends of float64, or lifted.
    scale_estimator_ : the fitted regressor of `E[a | x]`, if `scale` is a regressor
    n_features_in_ : int
    n_items_in_ : int, if the features are per item
    feature_names_in_ : ndarray of str, if the features have names
    cost_names_in_ : ndarray of str, if the costs have names

    Notes
    -----
    For a Poisson, gamma or Tweedie deviance of power `p` the weights are `a/s(x)^(2 - p)`, because such a deviance
    grows only with this power of the scale. `docs/theory.md` proves that all of these are Fisher consistent.

    Examples
    --------
    >>> import numpy as np
    >>> X, costs = np.zeros((2, 1)), [[4.0, 0.0], [0.0, 1.0]]
    >>> WiseRegressor().fit(X, costs).predict(X[:1])  # 2.5 times the unit prediction: the mean norm
    array([[2. , 0.5]])
    >>> WiseRegressor(scale="unit").fit(X, costs).predict(X[:1])
    array([[0.8, 0.2]])

    Costs of which a part is not seen, such as the hours at which nothing was bought:

    >>> X, costs = np.zeros((3, 1)), [[4.0, np.nan], [4.0, 2.0], [np.nan, 2.0]]
    >>> WiseRegressor(missing="ignore").fit(X, costs).predict(X[:1]).round(12)
    array([[4., 2.]])
    """

    estimator_: Any

    def __init__(
        self,
        estimator: Any = None,
        *,
        exponent: float = 1.0,
        scale: Any = "mean",
        lifted: bool = False,
        missing: Literal["error", "ignore"] = "error",
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.exponent = exponent
        self.scale = scale
        self.lifted = lifted
        self.missing = missing
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the learner under the change of measure.

        Parameters
        ----------
        X : array-like or frame of shape (n, p), or array-like of shape (n, d, q)
            With features of each item, (n, d, q), the learner is fitted once for all items, on one row per item of each
            sample; all items of a sample have its weight.
        y : array-like or frame of shape (n, d)
            The costs, with one row per sample and one column per decision variable; NaN as `missing` says.
        sample_weight : array-like of shape (n,), optional
        """
        learner = self._check_parameters()
        costs, weights = _read(X, y, sample_weight)
        self._warn(learner, costs)
        with all_or_nothing(self):
            read_cost_names(self, y, reset=True)
            seen = seen_costs(costs, weights, missing=self.missing)
            source = InMemory(Rows(X, costs, weights))
            if seen is None:
                run(self._fit(learner, source), source)
            else:
                self._fit_seen(learner, source.rows, seen)
            self._take_names(("n_features_in_", "n_items_in_", "feature_names_in_"))
            if is_per_item(X):
                self.n_items_in_, self.n_features_in_ = np.shape(X)[1:]
        return self

    @only_if(_has_partial_fit)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to those of the last `fit` and the calls since then: the model is that of one `fit` on all rows.

        Only for the exact linear fit, `WiseRegressor()` or `WiseRegressor(GeneralizedLinear(...))` with the squared
        deviance and the identity link, with the scale "unit" or "mean". It stores sums over the rows, so a table of any
        length can be read in parts. Other scales, and lifted fits, need all rows: the weights of the first rows depend
        on the last.

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
        if (self.exponent, self.scale, self.lifted) != self._seen_with:
            exponent, scale, lifted = self._seen_with
            raise ValueError(
                f"the rows so far were fitted with {exponent=}, {scale=} and {lifted=}; now exponent={self.exponent}, "
                f"scale={self.scale!r} and lifted={self.lifted}. Set them back, or call fit to start again."
            )
        if not hasattr(self.estimator_, "moments_"):
            raise ValueError(
                "the last fit kept no sums over its rows, as after a log link or costs that are seen in part. "
                "Call fit to start again."
            )
        costs, weights = _read(X, y, sample_weight)
        read_cost_names(self, y, reset=False)
        more = copy(self.estimator_).set_params(**learner.get_params(deep=False))
        X = read_features(more, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite=False)
        source = InMemory(Rows(X, costs, weights))
        change = ChangedFit(learner, source, self.exponent, self._unit, self._lifts)
        blocks = change.blocks(None if self._scale is None else 1.0)
        with all_or_nothing(self):
            self._total_weight += _total(weights, len(costs))
            if self._scale is None:
                self.estimator_ = more.partial_fit_blocks(blocks)
            else:
                self._scale_to_mean(more.multiply_targets(1 / self._scale).partial_fit_blocks(blocks))
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predicted costs (n, d); with `scale="unit"` they are directions of any length.

        They have the size of the costs, but only with `lifted` do they estimate the costs of each row.
        """
        check_fitted(self, "estimator_")
        if n_rows(X) == 0 and np.ndim(X) > 1:  # which many learners refuse
            return np.empty((0, self.n_outputs_))
        prediction = self._learned(X)
        costs = prediction[:, :-1] if self._lifts else prediction
        if self._lifts:
            costs = costs / np.maximum(prediction[:, -1:], self._smallest_lifted)
        return costs if self.unit_ == 1 else costs * self.unit_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination under the changed measure: 1 if perfect, 0 for the best constant.

        To score decisions, use `decidewise.evaluate.regret_scorer`.
        """
        check_is_fitted(self)
        read_cost_names(self, y, reset=False)
        scale = self._scale.at(X) if isinstance(self._scale, PredictedScale) else self._scale
        power = deviance_power(self._learner())
        weights, targets = transform(as_matrix(y) / self._unit, self.exponent, scale=scale, power=power)
        if sample_weight is not None:
            weights = weights * as_sample_weight(sample_weight, len(weights))
        prediction = self._learned(X)[:, : self.n_outputs_]
        if not self._lifts:
            final = self._unit if scale is not None else back_from(self._unit, self.exponent)
            prediction = prediction / (final / self.unit_)
        if np.allclose(prediction, targets, rtol=1e-9, atol=0):  # the direction of a single cost is a constant
            return 1.0
        return float(r2_score(targets, prediction, sample_weight=weights, multioutput="variance_weighted"))

    @property
    def predicts_directions(self) -> bool:
        """Whether predictions are right up to a factor that depends on the row: they cannot be added to known costs."""
        return self.exponent > 0 and not self.lifted

    @property
    def _lifts(self) -> bool:
        exponent, _, lifted = self._seen_with
        return bool(lifted and exponent > 0)  # with exponent 0 the cost that is always 1 is predicted as 1

    def _learner(self) -> Any:
        return GeneralizedLinear() if self.estimator is None else self.estimator

    def _check_parameters(self) -> Any:
        """Return the learner; raise if a parameter is bad."""
        as_number(self.exponent, name="exponent", at_least=0)
        as_flag(self.lifted, name="lifted")
        as_choice(self.missing, name="missing", choices=("error", "ignore"))
        check_random_state(self.random_state)
        if isinstance(self.scale, str) or not hasattr(self.scale, "fit"):
            if not (isinstance(self.scale, str) and self.scale in SCALES):
                raise ValueError(f"scale must be one of {', '.join(SCALES)}, or a regressor; got {self.scale!r}.")
        else:
            as_regressor(self.scale, name="scale")
        return as_regressor(self._learner(), name="estimator")

    def _warn(self, learner: Any, costs: FloatArray) -> None:
        if loss := loss_without_mean(learner):
            warnings.warn(
                f"the conditional mean does not minimise {loss} (the absolute error, for example, gives the median), "
                "but the best decision depends on the mean. So decisions may stay wrong with any number of rows. "
                "Choose a squared, Poisson or gamma loss.",
                CalibrationWarning,
                stacklevel=3,
            )
        if costs.shape[1] == 1 and self.exponent > 0 and not self.lifted:
            warnings.warn(
                "there is one cost only, and its direction is a constant, 1 or -1, with little to learn from. Set "
                "exponent=0, or pass one column per decision variable.",
                CalibrationWarning,
                stacklevel=3,
            )

    def _passes(self, source: RowSource) -> Passes[None]:
        learner = self._check_parameters()
        first = source.first()
        if first.costs is None:
            raise ValueError(f"{first.origin} has no costs, and a fit needs them.")
        if not hasattr(learner, "fit_rows"):
            raise ValueError(
                f"rows that are not in memory need a learner whose fit is a sum over them, GeneralizedLinear() or "
                f"None; got {type(learner).__name__}. Use fit."
            )
        if self.missing != "error":
            raise ValueError('missing="ignore" needs all rows in memory. Use fit, or missing="error".')
        if self.lifted and self.exponent > 0 and first.X.ndim == 3:
            raise ValueError("lifted=True with features per item needs all rows in memory. Use fit.")
        self._warn(learner, first.costs)
        yield from self._fit(learner, source)
        self._take_names(("n_features_in_", "n_items_in_", "feature_names_in_", "cost_names_in_"))

    def _take_names(self, names: Sequence[str]) -> None:
        """Take over what the fitted learner knows of its features."""
        for name in names:
            self.__dict__.pop(name, None)
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))

    def _fit(self, learner: Any, source: RowSource) -> Passes[None]:
        """Fit the learner, after its scale."""
        self.__dict__.pop("scale_estimator_", None)
        costs: Any = source.first().costs
        self.n_outputs_ = costs.shape[1]
        self._unit = cost_unit(costs[:BLOCK_ROWS], power=self.exponent)
        self._seen_with = self.exponent, self.scale, self.lifted
        change = ChangedFit(learner, source, self.exponent, self._unit, self._lifts, self.random_state)
        self._scale: Any = None
        scale: Any
        if self.exponent == 0:
            self._scale = scale = 1.0
        elif self.scale == "unit":
            scale = None
        elif self.scale == "mean" and change.in_one_pass:
            self._scale, fitted = 1.0, (yield from change.fit(1.0))
            self._total_weight = change.total_weight
            self._scale_to_mean(fitted)
            self.unit_ = change.unit_after(self._scale)
            return
        elif self.scale == "mean":
            self._scale = scale = yield from change.mean_size()
        elif self.scale == "iterated":
            self._scale = yield from change.first_iterate()
            for _ in range(_N_ITERATES - 1):
                self._scale = yield from change.next_iterate(self._scale)
            scale = self._scale
        else:
            self._scale = yield from change.fitted_scale(self.scale)
            self.scale_estimator_ = self._scale.model
            scale = self._scale
        self.estimator_ = yield from change.fit(scale)
        self._total_weight = change.total_weight
        self.unit_ = change.unit_after(self._scale)
        if change.lifted:
            self._smallest_lifted = yield from change.smallest_lifted(scale)

    def _fit_seen(self, learner: Any, rows: Rows, seen: BoolArray) -> None:
        """Fit the learner to costs of which some are not seen."""
        exponent = self.exponent
        if exponent > 0 and (self.lifted or not (isinstance(self.scale, str) and self.scale in ("unit", "mean"))):
            raise ValueError(
                'costs that are seen in part need scale="mean" or scale="unit", and lifted=False; got '
                f"scale={self.scale!r} and lifted={self.lifted}."
            )
        self.__dict__.pop("scale_estimator_", None)
        self.n_outputs_ = seen.shape[1]
        self._unit = unit = cost_unit(np.where(seen, rows.costs, 0.0), power=exponent)  # type: ignore[arg-type]
        self._seen_with = exponent, self.scale, self.lifted
        sizes = predicted_sizes(rows, seen, exponent, unit)
        mean_size = float(np.average(sizes, weights=rows.weights))
        self._scale = None if exponent > 0 and self.scale == "unit" else mean_size
        self.estimator_ = fit_seen(learner, rows, seen, sizes, self._scale, unit, self.random_state)
        self.unit_ = back_from(unit, exponent) if self._scale is None else unit

    def _scale_to_mean(self, fitted: Any) -> None:
        """Keep an exact linear fit of the scale 1, multiplied by the mean size of all rows so far."""
        n_items = getattr(fitted, "n_items_in_", 1)  # all items of a row count in the weight of a shared model
        self._scale = fitted.moments_.total_weight / (n_items * self._total_weight)
        self.estimator_ = fitted.multiply_targets(self._scale)

    def _learned(self, X: Any) -> FloatArray:
        if hasattr(self, "n_items_in_") or is_per_item(X):
            return predict_items(self.estimator_, read_features(self, X, reset=False))
        refuse_no_numbers(X, name="X", text=True)
        return np.reshape(self.estimator_.predict(X), (-1, self.n_outputs_ + self._lifts))

    def _check_kept(self) -> None:
        if self.estimator is not None:
            need_model(self.estimator, "estimator")
        if not hasattr(self, "estimator_"):
            return
        if not isinstance(self.estimator_, LiftedItems):
            need_model(self.estimator_, "estimator_")
        as_integer(self.n_outputs_, name="n_outputs_")
        as_number(self.unit_, name="unit_", above=0)
        exponent, _, lifted = self._seen_with
        as_number(exponent, name="exponent", at_least=0)
        if as_flag(lifted, name="lifted") and exponent > 0:
            as_number(self._smallest_lifted, name="_smallest_lifted", above=0)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._learner())
        tags.target_tags.positive_only = inner.target_tags.positive_only
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


def _read(X: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, FloatArray | None]:
    """Return the costs (n, d), not yet checked to be finite, and the weights (n,) or None."""
    if y is None:
        raise ValueError("WiseRegressor requires y to be passed, but the target y is None. Pass the costs, (n, d).")
    refuse_no_numbers(X, name="X", text=True)  # a learner that needs numbers says so itself
    costs = as_matrix(y, finite=False)
    check_same_rows(X=X, costs=costs)
    check_items(X, costs.shape[1])
    return costs, None if sample_weight is None else as_sample_weight(sample_weight, len(costs))


def _total(weights: FloatArray | None, n_rows: int) -> float:
    return float(n_rows) if weights is None else float(weights.sum())
