"""Fit a learner under the change of measure, and the scales of the change that are themselves predicted.

Each step is a sequence of passes over the rows of a source. Rows in memory are a source with one block, on which any
learner can be fitted; on other sources, those whose fit is a sum over rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_array, check_random_state, get_tags

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray, as_features, as_matrix, is_per_item
from decidewise.kit.scaling import norms
from decidewise.measure import checked_sizes, cost_sizes, draw, mean_one, targets_of, weights_of
from decidewise.models.estimator.features import read_features
from decidewise.models.estimator.from_rows import describe
from decidewise.models.estimator.items import fit_items, predict_items, rows_of
from decidewise.models.estimator.traits import (
    check_features,
    deviance_power,
    fitted,
    multi_output,
    weight_keyword,
)
from decidewise.models.linear.link import linear_predictor, respond
from decidewise.models.linear.streamed import StreamedBlocks
from decidewise.models.linear.units import back_from
from decidewise.rows.passes import Pass, Passes
from decidewise.rows.source import Rows, RowSource
from decidewise.rows.tree import Combine, Sums, add

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


@dataclass(frozen=True)
class InMemory(RowSource):
    """Rows in memory as one block; their features may be of any form that a learner takes."""

    rows: Rows

    def first(self) -> Rows:
        """Return all rows."""
        return self.rows

    def reduce(self, function: Callable[[Rows], Sums], combine: Combine = add) -> Sums:
        """Return the result of `function` on all rows."""
        return function(self.rows)


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
            raised = yield Pass(_RaisedSizes(self.exponent, self.unit, lowest))
            self._found["raised"] = float(raised[0][0])
        return float(self._found["raised"]) / sizes.weight

    def smallest_lifted(self, scale: Any) -> Passes[float]:
        """Return the smallest target of the cost that is always 1."""
        sizes = yield from self._sizes()
        if not isinstance(scale, PredictedScale):
            return float((1.0 if scale is None else scale) / max(sizes.largest, sizes.lowest))
        found = yield Pass(_LeastTarget(self._of_rows(scale), self.exponent, self.unit, sizes.lowest), _minimum)
        return float(found[0][0])

    def fit(self, scale: Any) -> Passes[Any]:
        """Return a fitted copy of the learner; a scale of None is 1 in the caller's units."""
        check_time()
        smallest = (yield from self._sizes()).lowest if self.lifted else None
        if isinstance(self.source, InMemory):
            self._found["weight"] = _weights_of(self.source.rows).sum()
            return self._fit_in_memory(self.source.rows, scale, smallest)
        learner = clone(self.learner)
        describe(learner, self.source)
        blocks = self.blocks(self._of_rows(scale) if isinstance(scale, PredictedScale) else scale, smallest)
        fit = yield from learner.fit_summed(blocks)
        self._found["weight"] = blocks.total_weight
        return fit

    def blocks(self, scale: Any, smallest: float | None = None) -> StreamedBlocks:
        """Return the rows as blocks; `smallest` is the smallest size if they are lifted."""
        power = deviance_power(self.learner)
        return StreamedBlocks(self.source, self.exponent, scale, power, self.unit, smallest, self.without_zeros)

    def _fit_in_memory(self, rows: Rows, scale: Any, smallest: float | None) -> Any:
        X, per_item = rows.X, is_per_item(rows.X)
        if isinstance(scale, PredictedScale):
            scale = scale.at(X)
        if self.in_blocks and not (per_item and self.lifted):
            learner = clone(self.learner)
            X = read_features(learner, X, reset=True, dtype=[np.float64, np.float32], ensure_all_finite=False)
            return learner.fit_blocks(self.blocks(scale, smallest).of(replace(rows, stored_features=X)))
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
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
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
        ((total, weight),) = yield Pass(_MeanOf(self._of_rows(norm)))
        mean, mean_size = float(total / weight), (yield from self.mean_size())
        return replace(norm, factor=mean_size / mean if mean > 0 else 1.0, smallest=SMALLEST * mean_size)

    def _of_rows(self, scale: PredictedScale) -> Callable[[Any], FloatArray]:
        """Return a scale as a function of the features of a block."""
        return scale.at if isinstance(self.source, InMemory) else ScaleOfBlock(scale)

    def _sizes(self) -> Passes[Sizes]:
        if "sizes" in self._found:
            known: Sizes = self._found["sizes"]
            return known
        sums, extremes = yield Pass(_SizesOf(self.exponent, self.unit), _sums_and_extremes)
        sizes = Sizes(*(float(value) for value in sums), *(float(value) for value in extremes))
        if sizes.weighted <= 0:
            known_rows = f"{len(self.source.rows.costs)} " if isinstance(self.source, InMemory) else ""  # type: ignore[arg-type]
            raise ValueError(
                f"all {known_rows}rows have weight zero (zero costs or zero sample weights), so there is nothing to "
                "learn from. Pass at least one row with a non-zero cost and a non-zero weight."
            )
        self._found["sizes"] = sizes
        return sizes


@dataclass(frozen=True)
class ScaleOfBlock:
    """A scale `‖f(x)‖^exponent` of a linear model, as a function of the features of a block."""

    scale: PredictedScale

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the scale of each row of the features: (b,)."""
        # Not by `predict`, which would ask for the names of the columns: a source has checked them.
        model = self.scale.model
        return self.scale.of(respond(model.effective_link, linear_predictor(X, model.coef_, model.intercept_)))


def _weights_of(rows: Rows) -> FloatArray:
    return np.ones(len(rows.costs)) if rows.weights is None else rows.weights  # type: ignore[arg-type]


def _sizes_of(rows: Rows, exponent: float, unit: float) -> FloatArray:
    sizes = cost_sizes(as_matrix(rows.costs) / unit, exponent)
    if not np.isfinite(sizes).all():
        raise ValueError(
            f"the weights ‖y‖^{exponent:g} of the costs leave the range of float64. Choose a smaller exponent, or "
            "scale all costs to norms nearer 1."
        )
    return sizes


@dataclass(frozen=True)
class _SizesOf:
    """The weight and the weighted size of some rows, and their smallest and largest size where the weight is not 0."""

    exponent: float
    unit: float

    def __call__(self, rows: Rows) -> Sums:
        sizes, weights = _sizes_of(rows, self.exponent, self.unit), _weights_of(rows)
        some = sizes[weights > 0]
        extremes = np.array([sizes.min(initial=np.inf), some.max(initial=-np.inf)])
        return np.array([weights.sum(), (weights * sizes).sum()]), extremes


@dataclass(frozen=True)
class _RaisedSizes:
    """The weighted sum of sizes, after raising small ones."""

    exponent: float
    unit: float
    lowest: float

    def __call__(self, rows: Rows) -> Sums:
        sizes = np.maximum(_sizes_of(rows, self.exponent, self.unit), self.lowest)
        return (np.array([(_weights_of(rows) * sizes).sum()]),)


@dataclass(frozen=True)
class _LeastTarget:
    """The smallest `s(x)/a` of rows of positive weight."""

    scale: Callable[[Any], FloatArray]
    exponent: float
    unit: float
    lowest: float

    def __call__(self, rows: Rows) -> Sums:
        sizes = np.maximum(_sizes_of(rows, self.exponent, self.unit), self.lowest)
        targets = self.scale(rows.X) / sizes
        return (np.array([targets[_weights_of(rows) > 0].min(initial=np.inf)]),)


@dataclass(frozen=True)
class _MeanOf:
    """The weighted sum of a scale over rows, and the weight."""

    scale: Callable[[Any], FloatArray]

    def __call__(self, rows: Rows) -> Sums:
        weights = _weights_of(rows)
        return (np.array([(weights * self.scale(rows.X)).sum(), weights.sum()]),)


def _sums_and_extremes(left: Sums, right: Sums) -> Sums:
    (low, high), (other_low, other_high) = left[1], right[1]
    return left[0] + right[0], np.array([min(low, other_low), max(high, other_high)])


def _minimum(left: Sums, right: Sums) -> Sums:
    return (np.minimum(left[0], right[0]),)


def _readable(X: Any, *, allow_nan: bool) -> Any:
    """Return features from which rows can be drawn; check all of them, since the learner sees only the drawn rows."""
    if hasattr(X, "columns"):
        return X
    return check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=not allow_nan)
