"""Fit a learner under the change of measure, and the scales of the change that are themselves predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_array, check_random_state, get_tags

from decidewise.kit.batches import check_time
from decidewise.kit.checks import BoolArray, FloatArray, as_features, as_matrix, is_per_item
from decidewise.kit.scaling import norms
from decidewise.measure import checked_sizes, draw, mean_one, targets_of, weights_of
from decidewise.models.estimator.features import read_features
from decidewise.models.estimator.items import fit_items, predict_items, rows_of
from decidewise.models.estimator.traits import (
    check_features,
    deviance_power,
    fitted,
    multi_output,
    weight_keyword,
)
from decidewise.models.linear.blocks import RowBlocks
from decidewise.models.linear.units import back_from
from decidewise.rows.passes import Passes

# A scale or a size far below the mean would give its row a weight or a target without bound.
SMALLEST = 0.1


@dataclass(frozen=True)
class PredictedScale:
    """A scale `s(x)` from a fitted model, at least `smallest`.

    Attributes
    ----------
    model : fitted regressor
    n_costs : int, optional
        If given, the scale is the norm of the model's first `n_costs` predictions, divided by `unit`, to the power of
        the exponent. If not, it is the prediction itself.
    """

    model: Any
    smallest: float
    factor: float = 1.0
    n_costs: int | None = None
    unit: float = 1.0
    exponent: float = 1.0

    def at(self, X: Any) -> FloatArray:
        """Return the scale of each row of the features: (n,)."""
        if self.n_costs is None:
            scale = np.ravel(np.asarray(self.model.predict(rows_of(X)), dtype=np.float64))
        else:
            predicted = predict_items(self.model, as_features(X)) if is_per_item(X) else self.model.predict(X)
            return self.of(np.asarray(predicted, dtype=np.float64))
        return np.maximum(scale * self.factor, self.smallest)

    def of(self, prediction: FloatArray) -> FloatArray:
        """Return the scale of rows for which the model predicts (n, n_costs) or more columns."""
        scale = norms(prediction.reshape(len(prediction), -1)[:, : self.n_costs] / self.unit) ** self.exponent
        return np.maximum(scale * self.factor, self.smallest)


Scale = PredictedScale | FloatArray | float | None


@dataclass(frozen=True)
class ChangedFit:
    """The fit of a learner under the change of measure, for any scale, on rows in memory.

    What it finds is returned by generators, as those of `ChangedStream`; they need no pass.

    Attributes
    ----------
    learner : regressor
        It is cloned, never fitted itself.
    X : array-like or frame of shape (n, p), or array-like of shape (n, d, q)
    costs : ndarray of shape (n, d)
    sample_weight : ndarray of shape (n,) or None
    exponent : float
    unit : float
        A power of two by which costs are divided before their sizes are computed, and with them the scales.
    lifted : bool
        Whether to fit one more cost that is always 1.
    random_state : int, RandomState instance or None
        For learners that take no weights.
    """

    learner: Any
    X: Any
    costs: FloatArray
    sample_weight: FloatArray | None
    exponent: float
    unit: float
    lifted: bool
    random_state: Any

    @property
    def in_blocks(self) -> bool:
        """Whether the learner reads blocks of rows."""
        return hasattr(self.learner, "fit_blocks")

    @property
    def in_one_pass(self) -> bool:
        """Whether the fit is one sum over the rows, which can be scaled afterwards."""
        return self.in_blocks and self.learner.effective_link == "identity" and not self.lifted

    def unit_after(self, scale: Any) -> float:
        """Return the factor from the learner's predictions to costs, or to directions if there is no scale."""
        return self.unit if self.lifted or not (self.in_blocks or scale is None) else 1.0

    @cached_property
    def sizes(self) -> FloatArray:
        """The sizes `a = ‖y‖^exponent` of the costs in their unit, (n,); if lifted, not far below their mean."""
        sizes = checked_sizes(as_matrix(self.costs) / self.unit, self.exponent)
        if not self.lifted:
            return sizes
        mean_one(np.where(self._rows, sizes, 0.0))  # raises if all are zero
        return np.maximum(sizes, SMALLEST * float(np.average(sizes, weights=self.sample_weight)))

    def mean_size(self) -> Passes[float]:
        """Return the weighted mean of the sizes."""
        yield from ()
        mean_one(np.where(self._rows, self.sizes, 0.0))  # raises if all are zero
        return float(np.average(self.sizes, weights=self.sample_weight))

    @property
    def total_weight(self) -> float:
        """The sum of the sample weights."""
        return float(len(self.costs)) if self.sample_weight is None else float(self.sample_weight.sum())

    def smallest_lifted(self, scale: Scale) -> Passes[float]:
        """Return the smallest target of the cost that is always 1."""
        yield from ()
        scale = self._at_rows(scale)
        return float(np.min(((1.0 if scale is None else scale) / self.sizes)[self._rows]))

    def fit(self, scale: Scale) -> Passes[Any]:
        """Return a fitted copy of the learner; a scale of None is 1 in the caller's units."""
        yield from ()
        check_time()
        scale = self._at_rows(scale)
        per_item = is_per_item(self.X)
        if self.in_blocks and not (per_item and self.lifted):
            learner = clone(self.learner)
            X = read_features(learner, self.X, reset=True, dtype=[np.float64, np.float32], ensure_all_finite=False)
            return learner.fit_blocks(self.blocks(X, scale))
        X = as_features(self.X) if per_item else self.X
        check_features(X.reshape(-1, X.shape[2]) if per_item else X)
        values = as_matrix(self.costs) / self.unit
        if self.lifted:
            values = np.column_stack([values, np.ones(len(values))])
        weights, targets = weights_of(self.sizes, scale, self._power), targets_of(values, self.sizes, scale)
        if scale is None and not self.lifted:
            targets = targets * back_from(self.unit, self.exponent)
        # Weights of mean 1 keep the meaning of the learner's own penalties.
        weights = mean_one(weights)
        if self.sample_weight is not None:
            weights = mean_one(weights * self.sample_weight)
        keyword, by_keyword = weight_keyword(self.learner), {}
        if keyword is not None:
            by_keyword[keyword] = weights
        elif weights.min() < weights.max():
            X = X if per_item else _readable(X, allow_nan=get_tags(self.learner).input_tags.allow_nan)
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
            rows = draw(weights, len(weights), rng)
            X, targets = _safe_indexing(X, rows), targets[rows]
        if per_item:
            return fit_items(clone(self.learner), X, targets, by_keyword)
        if targets.shape[1] == 1:
            return fitted(clone(self.learner), X, targets[:, 0], by_keyword)
        return fitted(clone(multi_output(self.learner)), X, targets, by_keyword)

    def blocks(self, X: FloatArray, scale: FloatArray | float | None) -> RowBlocks:
        """Return the rows of validated features as blocks."""
        return RowBlocks(
            X,
            self.costs,
            self.sample_weight,
            exponent=self.exponent,
            scale=scale,
            power=self._power,
            unit=self.unit,
            smallest_size=float(self.sizes.min()) if self.lifted else None,
        )

    def fitted_scale(self, estimator: Any) -> Passes[PredictedScale]:
        """Return the scale `E[a | x]` as a regressor predicts it; it is at least the smallest positive size."""
        sizes = replace(
            self,
            learner=estimator,
            X=rows_of(self.X),
            costs=self.sizes[:, None],
            exponent=0.0,
            unit=1.0,
            lifted=False,
        )
        return PredictedScale((yield from sizes.fit(1.0)), float(self.sizes[self._rows & (self.sizes > 0)].min()))

    def first_iterate(self) -> Passes[PredictedScale]:
        """Return the scale of the learner fitted to the costs themselves, without rows of zeros, whose weight is 0."""
        weights = self.sample_weight
        if not self.sizes.all():
            weights = np.where(self.sizes > 0, 1.0 if weights is None else weights, 0.0)
        plain = replace(self, sample_weight=weights, exponent=0.0, lifted=False)
        return (yield from self._norms_of((yield from plain.fit(1.0)), plain.unit_after(1.0)))

    def next_iterate(self, scale: PredictedScale) -> Passes[PredictedScale]:
        """Return the scale of the learner fitted with a given scale."""
        return (yield from self._norms_of((yield from self.fit(scale)), self.unit_after(1.0)))

    def _norms_of(self, model: Any, unit_after: float) -> Passes[PredictedScale]:
        """Return the scale `‖f(x)‖^exponent` of a fitted model, with the mean of the sizes, and not far below it."""
        norm = PredictedScale(model, 0.0, 1.0, self.costs.shape[1], self.unit / unit_after, self.exponent)
        mean = float(np.average(norm.at(self.X), weights=self.sample_weight))
        mean_size = yield from self.mean_size()
        return replace(norm, factor=mean_size / mean if mean > 0 else 1.0, smallest=SMALLEST * mean_size)

    def _at_rows(self, scale: Scale) -> FloatArray | float | None:
        return scale.at(self.X) if isinstance(scale, PredictedScale) else scale

    @cached_property
    def _rows(self) -> BoolArray:
        """Which rows count: those of positive sample weight."""
        return np.ones(len(self.costs), dtype=bool) if self.sample_weight is None else self.sample_weight > 0

    @cached_property
    def _power(self) -> float:
        return deviance_power(self.learner)


def _readable(X: Any, *, allow_nan: bool) -> Any:
    """Return features from which rows can be drawn; check all of them, since the learner sees only the drawn rows."""
    if hasattr(X, "columns"):
        return X
    return check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=not allow_nan)
