"""Fit a learner under the change of measure, and the scales of the change that are themselves predicted.

Each step is a sequence of passes over the rows of a source. Rows in memory are a source with one block, on which any
learner can be fitted; on other sources, those whose fit is a sum over rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_array, get_tags

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray, as_features, as_matrix, is_per_item
from decidewise.kit.scaling import norms
from decidewise.measure import (
    checked_sizes,
    cost_sizes,
    draw,
    mean_one,
    nothing_to_learn,
    out_of_range,
    targets_of,
    weights_of,
)
from decidewise.models.estimator.base import as_generator, read_features
from decidewise.models.estimator.from_rows import describe
from decidewise.models.estimator.learner import (
    check_features,
    deviance_power,
    fit_items,
    fitted,
    multi_output,
    predict_items,
    rows_of,
    weight_keyword,
)
from decidewise.models.linear.blocks import Blocks, InMemory
from decidewise.models.linear.deviances import linear_predictor, respond
from decidewise.models.linear.units import back_from
from decidewise.rows.passes import Pass, Passes
from decidewise.rows.source import Rows, RowSource, Sums

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

    def of_block(self, X: FloatArray) -> FloatArray:
        """Return the scale of a linear model for each row of the features of a source: (b,)."""
        # Not by `predict`, which would ask for the names of the columns: a source has checked them.
        model = self.model
        return self.of(respond(model.effective_link, linear_predictor(X, model.coef_, model.intercept_)))

    def of(self, prediction: FloatArray) -> FloatArray:
        """Return the scale of rows for which the model predicts (n, n_costs) or more columns."""
        scale = norms(prediction.reshape(len(prediction), -1)[:, : self.n_costs] / self.unit) ** self.exponent
        return np.maximum(scale * self.factor, self.smallest)


class Sizes(NamedTuple):
    """Sums over the rows: their weight and weighted size, and the extremes of the sizes."""

    weight: float
    weighted: float
    smallest: float
    largest: float

    @property
    def lowest(self) -> float:
        """The smallest size, after raising those below a tenth of the mean."""
        return max(self.smallest, SMALLEST * (self.weighted / self.weight))


@dataclass(frozen=True)
class ChangedFit:
    """The fit of a learner under the change of measure, for any scale, in passes over the rows of a source.

    Attributes
    ----------
    learner : regressor
        It is cloned, never fitted itself.
    source : RowSource
        `InMemory`, or any other if the learner is a `GeneralizedLinear`.
    exponent : float
    unit : float
        A power of two by which costs are divided before their sizes are computed, and with them the scales.
    lifted : bool
        Whether to fit one more cost that is always 1. Sizes far below their mean are then raised.
    random_state : int, RandomState instance or None
        For learners that take no weights.
    without_zeros : bool
        Whether rows of zero costs have weight zero.
    """

    learner: Any
    source: RowSource
    exponent: float
    unit: float
    lifted: bool
    random_state: Any = None
    without_zeros: bool = False
    #: What earlier passes have found.
    _found: dict[str, Any] = field(default_factory=dict)

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

    @property
    def total_weight(self) -> float:
        """The sum of the sample weights, known after the first fit."""
        return float(self._found["weight"])

    def mean_size(self) -> Passes[float]:
        """Return the weighted mean of the sizes."""
        sizes = yield from self._sizes()
        if not self.lifted:
            return sizes.weighted / sizes.weight
        if "raised" not in self._found:
            lowest = SMALLEST * (sizes.weighted / sizes.weight)
            work = partial(_sum_raised, exponent=self.exponent, unit=self.unit, lowest=lowest)
            self._found["raised"] = float((yield Pass(work))[0])
        return float(self._found["raised"]) / sizes.weight

    def smallest_lifted(self, scale: Any) -> Passes[float]:
        """Return the smallest target of the cost that is always 1."""
        sizes = yield from self._sizes()
        if not isinstance(scale, PredictedScale):
            return float((1.0 if scale is None else scale) / max(sizes.largest, sizes.lowest))
        work = partial(_least_target, scale=self._of_rows(scale), exponent=self.exponent)
        _, (least,) = yield Pass(partial(work, unit=self.unit, lowest=sizes.lowest), _merged)
        return float(least)

    def fit(self, scale: Any) -> Passes[Any]:
        """Return a fitted copy of the learner; a scale of None is 1 in the caller's units."""
        check_time()
        smallest = (yield from self._sizes()).lowest if self.lifted else None
        rows = self.source.rows if isinstance(self.source, InMemory) else None
        if isinstance(scale, PredictedScale):
            scale = scale.of_block if rows is None else scale.at(rows.X)
        learner, source = clone(self.learner), self.source
        if rows is None:
            describe(learner, source)
        else:
            self._found["weight"] = _weights_of(rows).sum()
            if not self.in_blocks or (self.lifted and is_per_item(rows.X)):
                return self._fit_whole(rows, scale, smallest)
            X = read_features(learner, rows.X, reset=True, dtype=[np.float64, np.float32], ensure_all_finite=False)
            source = InMemory(replace(rows, stored_features=X))
        blocks = replace(self, source=source).blocks(scale, smallest)
        fit = yield from learner.fit_blocks(blocks)
        if rows is None:
            self._found["weight"] = blocks.total_weight
        return fit

    def blocks(self, scale: Any, smallest: float | None = None) -> Blocks:
        """Return the rows as blocks; `smallest` is the smallest size if they are lifted."""
        power = deviance_power(self.learner)
        return Blocks(self.source, self.exponent, scale, power, self.unit, smallest, self.without_zeros)

    def _fit_whole(self, rows: Rows, scale: Any, smallest: float | None) -> Any:
        """Fit a learner that takes all rows at once."""
        X, per_item = rows.X, is_per_item(rows.X)
        X = as_features(X) if per_item else X
        check_features(X.reshape(-1, X.shape[2]) if per_item else X)
        values = as_matrix(rows.costs) / self.unit
        sizes = checked_sizes(values, self.exponent)
        sample_weight = rows.weights
        if self.without_zeros and not (some := cost_sizes(values, 1.0) > 0).all():
            sample_weight = np.where(some, 1.0 if sample_weight is None else sample_weight, 0.0)
        if smallest is not None:
            sizes = np.maximum(sizes, smallest)
            values = np.column_stack([values, np.ones(len(values))])
        weights, targets = weights_of(sizes, scale, deviance_power(self.learner)), targets_of(values, sizes, scale)
        if scale is None and not self.lifted:
            targets = targets * back_from(self.unit, self.exponent)
        # Weights of mean 1 keep the meaning of the learner's own penalties.
        weights = mean_one(weights)
        if sample_weight is not None:
            weights = mean_one(weights * sample_weight)
        keyword, by_keyword = weight_keyword(self.learner), {}
        if keyword is not None:
            by_keyword[keyword] = weights
        elif weights.min() < weights.max():
            X = X if per_item else _readable(X, allow_nan=get_tags(self.learner).input_tags.allow_nan)
            rng = as_generator(self.random_state)
            drawn = draw(weights, len(weights), rng)
            X, targets = _safe_indexing(X, drawn), targets[drawn]
        if per_item:
            return fit_items(clone(self.learner), X, targets, by_keyword)
        if targets.shape[1] == 1:
            return fitted(clone(self.learner), X, targets[:, 0], by_keyword)
        return fitted(clone(multi_output(self.learner)), X, targets, by_keyword)

    def fitted_scale(self, estimator: Any) -> Passes[PredictedScale]:
        """Return the scale `E[a | x]` as a regressor predicts it; it is at least the smallest positive size."""
        if not isinstance(self.source, InMemory):
            raise ValueError(
                f"scale={estimator!r} needs all rows in memory. Use scale='mean', 'unit' or 'iterated', which are "
                "sums over the rows."
            )
        rows = self.source.rows
        lowest = (yield from self._sizes()).lowest if self.lifted else 0.0
        sizes = np.maximum(checked_sizes(as_matrix(rows.costs) / self.unit, self.exponent), lowest)
        ones = replace(rows, stored_features=rows_of(rows.X), stored_costs=sizes[:, None])
        change = ChangedFit(estimator, InMemory(ones), 0.0, 1.0, lifted=False, random_state=self.random_state)
        return PredictedScale((yield from change.fit(1.0)), float(sizes[(_weights_of(rows) > 0) & (sizes > 0)].min()))

    def first_iterate(self) -> Passes[PredictedScale]:
        """Return the scale of the learner fitted to the costs themselves, without rows of zeros, whose weight is 0."""
        plain = replace(self, exponent=0.0, lifted=False, without_zeros=not self.lifted)
        return (yield from self._norms_of((yield from plain.fit(1.0)), plain.unit_after(1.0)))

    def next_iterate(self, scale: PredictedScale) -> Passes[PredictedScale]:
        """Return the scale of the learner fitted with a given scale."""
        return (yield from self._norms_of((yield from self.fit(scale)), self.unit_after(1.0)))

    def _norms_of(self, model: Any, unit_after: float) -> Passes[PredictedScale]:
        """Return the scale `‖f(x)‖^exponent` of a fitted model, with the mean of the sizes, and not far below it."""
        n_costs = self.source.first().costs.shape[1]  # type: ignore[union-attr]
        norm = PredictedScale(model, 0.0, 1.0, n_costs, self.unit / unit_after, self.exponent)
        ((total, weight),) = yield Pass(partial(_sum_scale, scale=self._of_rows(norm)))
        mean, mean_size = float(total / weight), (yield from self.mean_size())
        return replace(norm, factor=mean_size / mean if mean > 0 else 1.0, smallest=SMALLEST * mean_size)

    def _of_rows(self, scale: PredictedScale) -> Callable[[Any], FloatArray]:
        """Return a scale as a function of the features of some rows."""
        return scale.at if isinstance(self.source, InMemory) else scale.of_block

    def _sizes(self) -> Passes[Sizes]:
        if "sizes" in self._found:
            known: Sizes = self._found["sizes"]
            return known
        work = partial(_sum_sizes, exponent=self.exponent, unit=self.unit)
        (weight, weighted), (smallest, largest) = yield Pass(work, _merged)
        sizes = Sizes(float(weight), float(weighted), float(smallest), -float(largest))
        if sizes.weighted <= 0:
            in_memory = isinstance(self.source, InMemory)
            raise nothing_to_learn(len(self.source.first().costs) if in_memory else None)  # type: ignore[arg-type]
        self._found["sizes"] = sizes
        return sizes


def _weights_of(rows: Rows) -> FloatArray:
    return np.ones(len(rows.costs)) if rows.weights is None else rows.weights  # type: ignore[arg-type]


def _sizes_of(rows: Rows, exponent: float, unit: float) -> FloatArray:
    sizes = cost_sizes(as_matrix(rows.costs) / unit, exponent)
    if not np.isfinite(sizes).all():
        raise out_of_range(exponent)
    return sizes


def _sum_sizes(rows: Rows, *, exponent: float, unit: float) -> Sums:
    """Return the weight and the weighted size of rows, and their smallest and minus their largest size.

    The largest is that of rows whose weight is not zero.
    """
    sizes, weights = _sizes_of(rows, exponent, unit), _weights_of(rows)
    extremes = np.array([sizes.min(initial=np.inf), -sizes[weights > 0].max(initial=-np.inf)])
    return np.array([weights.sum(), (weights * sizes).sum()]), extremes


def _sum_raised(rows: Rows, *, exponent: float, unit: float, lowest: float) -> Sums:
    """Return the weighted sum of the sizes, after raising small ones."""
    return (np.array((_weights_of(rows) * np.maximum(_sizes_of(rows, exponent, unit), lowest)).sum()),)


def _sum_scale(rows: Rows, *, scale: Callable[[Any], FloatArray]) -> Sums:
    """Return the weighted sum of a scale over rows, and the weight."""
    weights = _weights_of(rows)
    return (np.array([(weights * scale(rows.X)).sum(), weights.sum()]),)


def _least_target(
    rows: Rows, *, scale: Callable[[Any], FloatArray], exponent: float, unit: float, lowest: float
) -> Sums:
    """Return the smallest `s(x)/a` of rows of positive weight, after no sum."""
    targets = scale(rows.X) / np.maximum(_sizes_of(rows, exponent, unit), lowest)
    return np.zeros(0), targets[_weights_of(rows) > 0].min(initial=np.inf, keepdims=True)


def _merged(left: Sums, right: Sums) -> Sums:
    """Return the sums of both, and the lowest of what follows them."""
    return left[0] + right[0], np.minimum(left[1], right[1])


def _readable(X: Any, *, allow_nan: bool) -> Any:
    """Return features from which rows can be drawn; check all of them, since the learner sees only the drawn rows."""
    if hasattr(X, "columns"):
        return X
    return check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=not allow_nan)
