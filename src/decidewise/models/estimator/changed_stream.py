"""The change of measure for rows of a source: the steps of `ChangedFit`, each of them in passes over the rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from decidewise.kit.checks import FloatArray
from decidewise.measure import cost_sizes
from decidewise.models.estimator.changed_fit import SMALLEST, PredictedScale
from decidewise.models.estimator.from_rows import describe
from decidewise.models.estimator.traits import deviance_power
from decidewise.models.linear.link import linear_predictor, respond
from decidewise.models.linear.streamed import StreamedBlocks
from decidewise.rows.passes import Pass, Passes
from decidewise.rows.source import Rows, RowSource
from decidewise.rows.tree import Sums


class Sizes(NamedTuple):
    """Sums over the rows: their weight and weighted size, and the extremes of the sizes."""

    weight: float
    weighted: float
    smallest: float
    largest: float


@dataclass(frozen=True)
class ChangedStream:
    """The fit of a linear learner under the change of measure, in passes over the rows of a source.

    Attributes
    ----------
    learner : GeneralizedLinear
        It is cloned, never fitted itself.
    source : RowSource
    exponent, unit, lifted
        As for `ChangedFit`.
    """

    learner: Any
    source: RowSource
    exponent: float
    unit: float
    lifted: bool
    #: What earlier passes have found.
    _found: dict[str, Any] = field(default_factory=dict)

    @property
    def in_one_pass(self) -> bool:
        """Whether the fit is one sum over the rows, which can be scaled afterwards."""
        return self.learner.effective_link == "identity" and not self.lifted

    def unit_after(self, scale: Any) -> float:
        """Return the factor from the learner's predictions to costs."""
        return self.unit if self.lifted else 1.0

    @property
    def total_weight(self) -> float:
        """The sum of the sample weights, known after the first fit."""
        return float(self._found["weight"])

    def mean_size(self) -> Passes[float]:
        """Return the weighted mean of the sizes; if lifted, of sizes raised to a tenth of their mean."""
        sizes = yield from self._sizes()
        mean = sizes.weighted / sizes.weight
        if not self.lifted:
            return mean
        if "raised" not in self._found:
            raised = yield Pass(_RaisedSizes(self.exponent, self.unit, SMALLEST * mean))
            self._found["raised"] = float(raised[0][0])
        return float(self._found["raised"]) / sizes.weight

    def fit(self, scale: Any) -> Passes[Any]:
        """Return a fitted copy of the learner; a scale of None is 1 in the caller's units."""
        learner = clone(self.learner)
        describe(learner, self.source)
        smallest = _smallest((yield from self._sizes())) if self.lifted else None
        blocks = StreamedBlocks(
            self.source,
            self.exponent,
            ScaleOfBlock(scale) if isinstance(scale, PredictedScale) else scale,
            deviance_power(self.learner),
            self.unit,
            smallest,
        )
        return (yield from self._fit(learner, blocks))

    def smallest_lifted(self, scale: Any) -> Passes[float]:
        """Return the smallest target of the cost that is always 1."""
        sizes = yield from self._sizes()
        lowest = _smallest(sizes)
        if not isinstance(scale, PredictedScale):
            return float((1.0 if scale is None else scale) / max(sizes.largest, lowest))
        found = yield Pass(_LeastTarget(ScaleOfBlock(scale), self.exponent, self.unit, lowest), _minimum)
        return float(found[0][0])

    def fitted_scale(self, estimator: Any) -> Passes[PredictedScale]:
        """Raise: a regressor of the scale is not a sum over rows."""
        yield from ()
        raise ValueError(
            f"scale={estimator!r} needs all rows in memory. Use scale='mean', 'unit' or 'iterated', which are sums "
            "over the rows."
        )

    def first_iterate(self) -> Passes[PredictedScale]:
        """Return the scale of the learner fitted to the costs themselves, without rows of zeros, whose weight is 0."""
        learner = clone(self.learner)
        describe(learner, self.source)
        power = deviance_power(self.learner)
        blocks = StreamedBlocks(self.source, 0.0, 1.0, power, self.unit, without_zeros=not self.lifted)
        return (yield from self._norms_of((yield from self._fit(learner, blocks)), 1.0))

    def next_iterate(self, scale: PredictedScale) -> Passes[PredictedScale]:
        """Return the scale of the learner fitted with a given scale."""
        return (yield from self._norms_of((yield from self.fit(scale)), self.unit_after(1.0)))

    def _fit(self, learner: Any, blocks: StreamedBlocks) -> Passes[Any]:
        fitted = yield from learner.fit_summed(blocks)
        self._found["weight"] = blocks.total_weight
        return fitted

    def _norms_of(self, model: Any, unit_after: float) -> Passes[PredictedScale]:
        n_costs = self.source.first().costs.shape[1]  # type: ignore[union-attr]
        norm = PredictedScale(model, 0.0, 1.0, n_costs, self.unit / unit_after, self.exponent)
        ((total, weight),) = yield Pass(_MeanOf(ScaleOfBlock(norm)))
        mean, mean_size = float(total / weight), (yield from self.mean_size())
        return replace(norm, factor=mean_size / mean if mean > 0 else 1.0, smallest=SMALLEST * mean_size)

    def _sizes(self) -> Passes[Sizes]:
        if "sizes" in self._found:
            known: Sizes = self._found["sizes"]
            return known
        sums, extremes = yield Pass(_SizesOf(self.exponent, self.unit), _sums_and_extremes)
        sizes = Sizes(*(float(value) for value in sums), *(float(value) for value in extremes))
        if sizes.weighted <= 0:
            raise ValueError(
                "all rows have weight zero (zero costs or zero sample weights), so there is nothing to learn from. "
                "Pass at least one row with a non-zero cost and a non-zero weight."
            )
        self._found["sizes"] = sizes
        return sizes


def _smallest(sizes: Sizes) -> float:
    """Return the smallest size, after raising those below a tenth of the mean."""
    return max(sizes.smallest, SMALLEST * sizes.weighted / sizes.weight)


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
    return np.ones(len(rows)) if rows.weights is None else rows.weights


def _sizes_of(rows: Rows, exponent: float, unit: float) -> FloatArray:
    sizes = cost_sizes(np.asarray(rows.costs, dtype=np.float64) / unit, exponent)
    if not np.isfinite(sizes).all():
        rows.check()
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
        return np.array([weights.sum(), weights @ sizes]), extremes


@dataclass(frozen=True)
class _RaisedSizes:
    """The weighted sum of sizes, after raising small ones."""

    exponent: float
    unit: float
    lowest: float

    def __call__(self, rows: Rows) -> Sums:
        sizes = np.maximum(_sizes_of(rows, self.exponent, self.unit), self.lowest)
        return (np.array([_weights_of(rows) @ sizes]),)


@dataclass(frozen=True)
class _LeastTarget:
    """The smallest `s(x)/a` of rows of positive weight."""

    scale: ScaleOfBlock
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

    scale: ScaleOfBlock

    def __call__(self, rows: Rows) -> Sums:
        weights = _weights_of(rows)
        return (np.array([weights @ self.scale(rows.X), weights.sum()]),)


def _sums_and_extremes(left: Sums, right: Sums) -> Sums:
    (low, high), (other_low, other_high) = left[1], right[1]
    return left[0] + right[0], np.array([min(low, other_low), max(high, other_high)])


def _minimum(left: Sums, right: Sums) -> Sums:
    return (np.minimum(left[0], right[0]),)
