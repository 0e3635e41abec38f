"""A generalized linear model of many outputs, fitted in passes over the rows; least squares takes one pass."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import MultiOutputMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_array

from decidewise.kit.checks import (
    FloatArray,
    as_choice,
    as_flag,
    as_integer,
    as_matrix,
    as_number,
    as_sample_weight,
    check_items,
    check_same_rows,
)
from decidewise.measure import nothing_to_learn
from decidewise.models.estimator.base import (
    KnownParameters,
    ScoredByVariance,
    all_or_nothing,
    check_fitted,
    check_known_items,
    only_if,
    read_cost_names,
    read_features,
    refuse_no_numbers,
)
from decidewise.models.estimator.from_rows import FitsRows, describe
from decidewise.models.linear.blocks import Block, Blocks, InMemory
from decidewise.models.linear.deviances import (
    Deviance,
    Link,
    check_kept_coefficients,
    check_means,
    linear_predictor,
    respond,
)
from decidewise.models.linear.log_linear import LinearFit, fit_log_linear
from decidewise.models.linear.moments import Moments, WideMoments
from decidewise.models.linear.per_item import ItemMoments, PerItem, fit_log_linear_items
from decidewise.rows.passes import Passes, in_memory
from decidewise.rows.source import Rows, RowSource

AnyMoments = Moments | ItemMoments | WideMoments


def _has_partial_fit(model: GeneralizedLinear) -> bool:
    if model.effective_link == "log":
        raise AttributeError(
            "partial_fit needs the squared deviance and the identity link, whose fit is one sum over the rows; other "
            "fits need several passes over all rows. Use fit, or fit_files for rows that do not fit into memory."
        )
    return True


class GeneralizedLinear(FitsRows, MultiOutputMixin, ScoredByVariance, KnownParameters):
    """Generalized linear model with all outputs fitted at once.

    `X` of shape (n, p) gives every output its own coefficients. `X` of shape (n, d, q) has q features of each of d
    items, one item for each output, and all items share one model.

    For each output, or for all items together, it minimises half the weighted mean of the deviance plus a ridge:
    `1/(2 Σw) Σ_i w_i dev(y_i, μ_i) + alpha/2 ‖b‖²`, where `μ_i` is `x_i·b + a` (identity link) or `exp(x_i·b + a)`
    (log link). The ridge is added to the mean deviance, not to the sum (as in scikit-learn's generalized linear
    models), so `alpha` keeps its meaning when rows are added or weights are scaled. `Ridge(alpha)` is the squared
    deviance with `alpha / Σw`.

    Every deviance here is a Bregman divergence, so the conditional mean minimises it, and the log-linear model
    `WiseRegressor(GeneralizedLinear("gamma"))` is Fisher consistent, like least squares (`docs/theory.md`).

    Parameters
    ----------
    deviance : {"squared", "poisson", "gamma", "tweedie"}
        The loss to minimise: `(y - μ)²`; `2 (y log(y/μ) - y + μ)`, for targets that are not negative;
        `2 (log(μ/y) + y/μ - 1)`, for positive targets; or a deviance between the last two.
    power : float
        The power of "tweedie", from 1 (Poisson) to 2 (gamma); other deviances ignore it.
    link : {None, "identity", "log"}
        How the prediction follows from the linear predictor. None is the identity for "squared" and the logarithm for
        the others, whose predictions must be positive; they allow no other link.
    alpha : float
        The ridge; it does not penalise the intercept.
    fit_intercept : bool
        Whether to fit an intercept.
    per_item : {"none", "intercept", "coefficients"}
        What each item has of its own beside the shared model, for `X` of shape (n, d, q): nothing; an intercept; or an
        intercept and coefficients, `b + δ_j` for item j. Then the ridge is `alpha/2 (‖b‖² + Σ_j ‖δ_j‖²)`, which pulls
        the items towards each other; without a ridge each item is fitted by itself.
    max_iter : int
        The largest number of passes over the rows for an output with a log link.
    tol : float
        An output has converged if the next step is predicted to lower its objective by less than this, in units of the
        mean of its targets to the power 2 - p. Each Newton step about doubles the number of correct digits, so a tight
        tolerance takes at most one more pass.
    warm_start : bool
        Whether a fit with a log link starts from the last fit instead of least squares on logarithms.

    Attributes
    ----------
    coef_ : ndarray of shape (n_outputs, n_features), or (n_features,) for a one-dimensional target or a shared model
    intercept_ : ndarray of shape (n_outputs,), or float
    n_iter_ : ndarray of int of shape (n_outputs,), or int
        The number of Newton steps for each output, with one pass over the rows each; 1 for least squares.
    converged_ : ndarray of bool of shape (n_outputs,), or bool
    moments_ : what `partial_fit` goes on from, for least squares
        Sums over the rows; with fewer rows than features, from 200 features on, the weighted rows themselves.
    n_features_in_ : int
    n_items_in_ : int, if the features are per item
    feature_names_in_ : ndarray of str, if the features have names
    cost_names_in_ : ndarray of str, if the targets have names

    Notes
    -----
    With the squared deviance and the identity link, the fit is exact: one sum of products over blocks of rows and one
    small symmetric linear system. Otherwise each pass gives a Newton step for every output that has not converged; from
    20 features on, if the rows are in memory, by conjugate gradients. The squared deviance with a log link is not
    convex: its answer is a local minimum.

    In both cases large tables are never copied, and are read with all threads. If the features do not have full rank,
    the coefficients of least norm are returned (directions of the features a million times weaker than the strongest
    count as absent). If the best coefficients are infinite (as for a group of rows that has only zero targets), the fit
    ends when the objective gains less than `tol`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> model = GeneralizedLinear().fit(X, np.hstack([2 * X + 1, -X]))
    >>> model.predict([[3.0]]).round(12)
    array([[ 7., -3.]])
    >>> GeneralizedLinear("gamma").fit(X, 5 * 2**X).predict([[3.0]]).round(12)
    array([[40.]])

    Two items with one feature each, and one model for both:

    >>> X = np.array([[[0.0], [1.0]], [[2.0], [3.0]]])
    >>> model = GeneralizedLinear().fit(X, [[1.0, 3.0], [5.0, 7.0]])
    >>> model.coef_.round(12), model.predict([[[4.0], [5.0]]]).round(12)
    (array([2.]), array([[ 9., 11.]]))
    """

    coef_: FloatArray
    intercept_: Any
    moments_: AnyMoments

    def __init__(
        self,
        deviance: Literal["squared", "poisson", "gamma", "tweedie"] = "squared",
        *,
        power: float = 1.5,
        link: Literal["identity", "log"] | None = None,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        per_item: PerItem = "none",
        max_iter: int = 100,
        tol: float = 1e-8,
        warm_start: bool = False,
    ) -> None:
        self.deviance = deviance
        self.power = power
        self.link = link
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.per_item = per_item
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, p) or (n, d, q)
        y : array-like of shape (n, d) or (n,)
        sample_weight : array-like of shape (n,), optional
            Not negative; a weight of 2 is the same as the row twice.
        """
        with all_or_nothing(self):
            deviance = self._check_parameters()
            blocks, n_dimensions = self._read(X, y, sample_weight, reset=True)
            return in_memory(self._fit(blocks, n_dimensions, deviance))

    @only_if(_has_partial_fit)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to those of the last `fit` and the calls since then: the result is that of one `fit` on all rows."""
        with all_or_nothing(self):
            deviance = self._check_parameters()
            blocks, n_dimensions = self._read(X, y, sample_weight, reset=not hasattr(self, "moments_"))
            return in_memory(self._add(blocks, n_dimensions, deviance))

    def fit_blocks(self, blocks: Blocks) -> Passes[Self]:
        """Return the fit on blocks of rows as passes over them."""
        with all_or_nothing(self):
            return (yield from self._fit(blocks, 2, self._check_parameters()))

    def _passes(self, source: RowSource) -> Passes[None]:
        deviance = self._check_parameters()
        describe(self, source)
        yield from self._fit(Blocks(source), 2, deviance)

    @only_if(_has_partial_fit)
    def partial_fit_blocks(self, blocks: Blocks) -> Self:
        """Add more blocks of rows, as `partial_fit` adds rows in memory."""
        with all_or_nothing(self):
            return in_memory(self._add(blocks, 2, self._check_parameters()))

    def multiply_targets(self, factor: float) -> Self:
        """Change a fit with the identity link to that of targets `factor` times as large, without another pass."""
        self.moments_ = self.moments_.multiplied(factor)
        self.coef_, self.intercept_ = self.coef_ * factor, self.intercept_ * factor
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predictions of the shape of the targets: (n, d) or (n,)."""
        check_fitted(self, "coef_")
        X = read_features(self, X, reset=False, dtype=np.float64)
        if self.per_item != "none":
            check_known_items(self, X)
        return respond(self.effective_link, linear_predictor(X, self.coef_, self.intercept_))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination, as every regressor of scikit-learn does."""
        read_cost_names(self, y, reset=False)
        return super().score(X, y, sample_weight)

    @property
    def effective_link(self) -> Link:
        """The link of the model: that of the deviance where `link` is None."""
        return self.link or Deviance.of(self.deviance, self.power).link

    def _check_parameters(self) -> Deviance:
        """Return the deviance; raise if one of its parameters is bad."""
        deviance = Deviance.of(self.deviance, self.power)
        as_choice(self.link, name="link", choices=(None, "identity", "log"))
        if deviance.power > 0 and self.link == "identity":
            raise ValueError(
                f"the {self.deviance} deviance needs positive predictions, which the identity link does not give. "
                'Use link="log", or deviance="squared".'
            )
        as_number(self.alpha, name="alpha", at_least=0)
        as_number(self.tol, name="tol", at_least=0)
        as_integer(self.max_iter, name="max_iter")
        as_flag(self.fit_intercept, name="fit_intercept")
        as_flag(self.warm_start, name="warm_start")
        as_choice(self.per_item, name="per_item", choices=("none", "intercept", "coefficients"))
        if self.per_item == "intercept" and not self.fit_intercept:
            raise ValueError(
                'per_item="intercept" fits an intercept per item; set fit_intercept=True, or per_item="none".'
            )
        return deviance

    def _read(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Blocks, int]:
        if y is None:
            raise ValueError("GeneralizedLinear requires y to be passed, but the target y is None. Pass the targets.")
        read_cost_names(self, y, reset=reset)
        # Finiteness is checked block by block, while the rows are in the cache; the message names row and column.
        numbers = {"dtype": [np.float64, np.float32], "ensure_all_finite": False}
        X = read_features(self, X, reset=reset, **numbers)
        refuse_no_numbers(y, name="y")
        y = check_array(y, ensure_2d=False, input_name="y", estimator=self, **numbers)
        check_same_rows(X=X, y=y)
        n_dimensions = y.ndim
        y = y.reshape(len(y), -1) if X.ndim == 2 else as_matrix(y, name="y", finite=False)
        check_items(X, y.shape[1])
        weights = None if sample_weight is None else as_sample_weight(sample_weight, len(X))
        return Blocks(InMemory(Rows(X, y, weights))), 1 if X.ndim == 3 else n_dimensions

    def _fit(self, blocks: Blocks, n_dimensions: int, deviance: Deviance) -> Passes[Self]:
        first = blocks.first()
        wide = WideMoments.for_blocks(blocks, first, self.fit_intercept)
        moments = wide or self._no_rows(first)
        n_dimensions = n_dimensions if first.n_items is None else 1
        if self.effective_link == "identity":
            return self._solve((yield from moments.plus(blocks)), n_dimensions)
        self.__dict__.pop("moments_", None)  # a later `partial_fit` must not add to rows from before this fit
        shared = yield from (wide or Moments.for_rows_like(first, self.fit_intercept)).plus(blocks.checked(deviance))
        return (yield from self._iterate(blocks, shared, deviance, n_dimensions))

    def _no_rows(self, first: Block) -> Moments | ItemMoments:
        """Return the moments of no rows, for rows like those of the first block."""
        if self.per_item == "none":
            return Moments.for_rows_like(first, self.fit_intercept)
        if first.n_items is None:
            raise ValueError(
                f'per_item="{self.per_item}" needs features per item, X of shape (n, d, q); got features of shape '
                f"(n, {first.X.shape[1]}), where every target has its own coefficients anyway."
            )
        return ItemMoments.for_rows_like(first, self.fit_intercept)

    def _add(self, blocks: Blocks, n_dimensions: int, deviance: Deviance) -> Passes[Self]:
        """Fit on the rows seen so far and those of the blocks."""
        if not hasattr(self, "moments_"):
            return (yield from self._fit(blocks, n_dimensions, deviance))
        first = blocks.first()
        n_dimensions = n_dimensions if first.n_items is None else 1
        self._check_continues(first, n_dimensions)
        return self._solve((yield from self.moments_.plus(blocks)), n_dimensions)

    def _check_continues(self, block: Block, n_dimensions: int) -> None:
        """Raise unless the targets of more rows and the parameters fit the rows seen so far."""
        if isinstance(self.moments_, ItemMoments) or self.per_item != "none":
            sums = self._no_rows(block)
            so_far: Any = self.moments_
            if type(sums) is not type(so_far) or sums.gram.shape != so_far.gram.shape:
                raise ValueError(
                    f"the rows so far had sums of shape {so_far.gram.shape}; these, with per_item="
                    f'"{self.per_item}", have {sums.gram.shape}. Pass the same items, or call fit to start again.'
                )
            return
        seen, now = (
            f"(n, {shape[0]})" if shape else "(n,)"
            for shape in (self.coef_.shape[:-1], block.targets.shape[1:n_dimensions])
        )
        if seen != now:
            raise ValueError(
                f"the rows so far had targets of shape {seen}; these have {now}. Pass the same columns, or call fit to "
                "start again."
            )
        if not self.fit_intercept and self.moments_.shift.any():
            raise ValueError(
                "fit_intercept is False now, but was True for the rows so far. Set it back, or call fit to start again."
            )

    def _solve(self, moments: AnyMoments, n_dimensions: int) -> Self:
        _check_weight(moments)
        if isinstance(moments, ItemMoments):
            coefficients, intercepts = moments.solve(self.alpha, self.fit_intercept, self.per_item)
        else:
            coefficients, intercepts = moments.solve(self.alpha, self.fit_intercept)
        self.moments_ = moments
        once = np.ones(len(intercepts), dtype=np.int64)
        return self._keep(LinearFit(coefficients, intercepts, once, once.astype(bool)), n_dimensions)

    def _iterate(
        self, blocks: Blocks, moments: Moments | WideMoments, deviance: Deviance, n_dimensions: int
    ) -> Passes[Self]:
        _check_weight(moments)
        zero = np.flatnonzero(moments.cross[0] <= 0)
        if len(zero):
            raise ValueError(
                f"column {zero[0]} of the targets is zero in every row of positive weight, which a log link cannot "
                'predict with finite coefficients. Drop the column, or use link="identity".'
            )
        check_means(moments.cross[0] / moments.total_weight)
        start = None
        if self.warm_start and hasattr(self, "coef_"):
            coefficients, intercepts = np.atleast_2d(self.coef_).T, np.atleast_1d(self.intercept_)
            if coefficients.shape == moments.cross[1:].shape:
                start = coefficients, intercepts
        fit = yield from fit_log_linear(blocks, moments, deviance, self, start)
        if self.per_item != "none" and isinstance(moments, Moments):
            fit = yield from fit_log_linear_items(blocks, moments, fit, deviance, self)
        unfinished = np.flatnonzero(~fit.converged)
        if len(unfinished):
            named = ", ".join(map(str, unfinished[:10])) + (", ..." if len(unfinished) > 10 else "")
            warnings.warn(
                f"{len(unfinished)} of {len(fit.converged)} outputs did not converge in {self.max_iter} passes: "
                f"{named}. Raise max_iter, add a ridge (alpha), or look for outliers in the features.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self._keep(fit, n_dimensions)

    def _keep(self, fit: LinearFit, n_dimensions: int) -> Self:
        one_model, shared = n_dimensions == 1, self.per_item == "none"
        is_flat = one_model and self.per_item != "coefficients"
        self.coef_ = fit.coefficients[:, 0] if is_flat else fit.coefficients.T
        self.intercept_ = float(fit.intercepts[0]) if one_model and shared else fit.intercepts
        self.n_iter_ = int(fit.n_iter.max()) if one_model else fit.n_iter
        self.converged_ = bool(fit.converged.all()) if one_model else fit.converged
        return self

    def _check_kept(self) -> None:
        Deviance.of(self.deviance, self.power)
        check_kept_coefficients(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.effective_link == "log"
        return tags


def _check_weight(moments: AnyMoments) -> None:
    """Raise if no row counts: under the change of measure, a row of zero costs has weight zero."""
    if moments.total_weight <= 0:
        raise nothing_to_learn()
