"""The start of training a linear predictor, and its steps by Adam on a prepared target.

Parameters are of shape (p + 1, d), with the intercepts in the first row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from decidewise.kit.checks import FloatArray, IndexArray, all_finite, check_finite
from decidewise.losses import Loss, Target
from decidewise.losses.parts.adam import Adam
from decidewise.measure import norms
from decidewise.models.estimator.learner import LiftedItems, as_regressor
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.linear.blocks import Blocks, InMemory
from decidewise.models.linear.deviances import Link, linear_predictor, multiplied, respond
from decidewise.models.linear.per_item import PerItem
from decidewise.models.linear.units import Units
from decidewise.models.wise_regressor import WiseRegressor
from decidewise.rows.passes import in_memory
from decidewise.rows.source import Rows

#: Starts that do not look at the data.
NO_FITS = ("torch", "zeros")
NAMES = ("wise", "mse", *NO_FITS)


def start(
    init: Any,
    X: FloatArray,
    costs: FloatArray,
    *,
    units: Units,
    link: Link,
    directions: bool,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the starting parameters in the units of training, a new array of shape (p + 1, d).

    With features per item, (n, d, q), these are the parameters (q + 1, d) of each item: the same for all items, unless
    an array or a model given as `init` has others.

    Parameters
    ----------
    init : {"wise", "mse", "torch", "zeros"}, array of shape (p + 1, d), or linear model
        As for `DecisionRegressor`; of the gamma deviance, if "wise" has the log link.
    X, costs : ndarrays of shapes (n, p) or (n, d, q), and (n, d)
        In the units of the caller, as are a model and an array; the names are in the units of training.
    directions : bool
        Whether predictions are directions. If not, a WISE start is scaled to the size of the costs, because most losses
        depend on it.
    """
    shape = (X.shape[-1] + 1, costs.shape[1])
    per_item = X.ndim == 3
    if isinstance(init, str):
        if init not in NAMES:
            raise ValueError(f"init must be one of {', '.join(NAMES)}, an array or a linear model; got {init!r}.")
        if init == "zeros":
            return np.zeros(shape)
        if init == "torch":
            drawn = rng.uniform(-1, 1, size=(shape[0], 1) if per_item else shape) / np.sqrt(X.shape[-1])
            return drawn.repeat(shape[1], axis=1) if per_item else drawn
        exponent = 1.0 if init == "wise" else 0.0
        features, costs = units.features(X) * units.varies, costs / units.cost
        blocks = Blocks(InMemory(Rows(features, costs, None)), exponent or None)
        model = GeneralizedLinear("gamma" if exponent and link == "log" else "squared", link=link)
        parameters = _parameters(in_memory(model.fit_blocks(blocks)), link)
        parameters = parameters.repeat(shape[1], axis=1) if per_item else parameters
        return multiplied(link, parameters, _factor(costs, 1.0, exponent, directions))
    if hasattr(init, "predict") or hasattr(init, "fit"):
        model = _fitted(init, X, costs)
        is_wise = isinstance(model, WiseRegressor)
        # Of unit scale it predicts costs divided by their expected size to the power of its exponent, otherwise costs.
        exponent = model.exponent if is_wise and model.scale == "unit" else 0.0
        unit = units.cost / model.unit_ if is_wise else units.cost
        parameters, factor = _parameters(model, link), _factor(costs / units.cost, unit, exponent, directions)
    else:
        parameters, factor = _as_array(init), 1 / units.prediction
    if per_item and parameters.shape in ((shape[0],), (shape[0], 1)):
        parameters = parameters.reshape(-1, 1).repeat(shape[1], axis=1)
    if parameters.shape != shape:
        alternative = f", or {shape[:1]} for all items" if per_item else ""
        raise ValueError(
            f"init must have shape (n_features + 1, n_costs) = {shape}, the intercepts in the first row{alternative}; "
            f"got {parameters.shape}."
        )
    return multiplied(link, units.enter(parameters), factor)


def _as_array(init: Any) -> FloatArray:
    try:
        parameters = np.asarray(init, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"init must be one of {', '.join(NAMES)}, an array of numbers or a linear model; got an object of type "
            f"{type(init).__name__}."
        ) from None
    if parameters.ndim == 2:
        check_finite(parameters, name="init")
    return parameters


def _fitted(model: Any, X: FloatArray, costs: FloatArray) -> Any:
    """Return the model, or a fitted clone if it is not fitted; for a search, return its best estimator."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        model = clone(as_regressor(model, name="init")).fit(X, costs)
    return getattr(model, "best_estimator_", model)


def _parameters(model: Any, link: Link) -> FloatArray:
    """Return the parameters (p + 1, d) of a fitted model; for a `WiseRegressor`, those of its learner.

    If it is lifted, those of the cost that is always 1 are left out, since the predictor is linear.
    """
    if isinstance(model, WiseRegressor):
        learner = model.estimator_.items if isinstance(model.estimator_, LiftedItems) else model.estimator_
        return _parameters(learner, link)[:, : model.n_outputs_]
    if not hasattr(model, "coef_"):
        raise ValueError(
            f"init must be linear in the features, with coef_ and intercept_; got {type(model).__name__}. Transform "
            "the features first and pass the linear model alone, or start at another model."
        )
    if isinstance(model, GeneralizedLinear):
        own_link = model.effective_link
        if own_link != link:
            raise ValueError(f'init has the {own_link} link and the regressor the {link} link; set link="{own_link}".')
    intercepts, coefficients = np.atleast_1d(model.intercept_), np.atleast_2d(model.coef_).T
    if coefficients.shape[1] == 1:  # shared by all items, each of which may have an intercept of its own
        coefficients = coefficients.repeat(len(intercepts), axis=1)
    return np.vstack([intercepts, coefficients])


def _factor(costs: FloatArray, unit: float, exponent: float, directions: bool) -> float:
    """Return the factor to the units of training from predictions of costs divided by their size to the exponent.

    Costs are those of training, (n, d); the predictions are of costs in a unit, itself in units of training.
    """
    sizes = norms(costs)
    factor = (sizes**exponent).mean() * np.float64(unit) ** (exponent - 1)
    return float(factor / (sizes.mean() or 1.0)) if directions else float(factor)


@dataclass
class Training:
    """The state of a training: parameters `(p + 1, d)`, the optimiser, and the data in batches.

    Parameters
    ----------
    parameters : ndarray of shape (p + 1, d)
        Changed in place; the intercepts are in the first row. With features per item, those of each item, of which some
        or all stay the same for all items, as `per_item` says.
    design : ndarray of shape (n, p + 1) or (n, d, q + 1)
        A column of ones, then the features.
    averages : bool
        Whether the result is the average over the steps, not the parameters after the last one.
    rng, label_rng : numpy.random.Generator
        For the order of the rows and the loss; for labels.
    """

    parameters: FloatArray
    design: FloatArray
    target: Target
    loss: Loss
    _: KW_ONLY
    link: Link
    per_item: PerItem
    batch_size: int
    learning_rate: float
    averages: bool
    rng: np.random.Generator
    label_rng: np.random.Generator

    def __post_init__(self) -> None:
        self.adam = Adam(self.parameters, self.learning_rate)
        self.average = Average(self.parameters) if self.averages else None

    @property
    def result(self) -> FloatArray:
        """The parameters that training has found so far; they change in place with the next step."""
        return self.parameters if self.average is None else self.average.parameters

    def epoch(self) -> Iterator[float]:
        """Take one step per batch, with the rows in a new order; yield the mean loss so far after each."""
        order = self.rng.permutation(len(self.design))
        design, target = self.design[order], self.target[order]
        total = 0.0
        for rows in self._batches(len(order)):
            total += float(self._step(design[rows], target[rows]).sum())
            yield total / min(rows.stop, len(order))

    def refresh_is_due(self, n_epochs: int) -> bool:
        """Whether the loss refreshes its target after that many epochs."""
        every = self.loss.refresh_every
        return every is not None and n_epochs > 0 and n_epochs % every == 0

    def refresh(self) -> None:
        """Let the loss refresh the target, given the present predictions of all rows."""
        prediction = self._predict(self.parameters, self.design)
        if all_finite(prediction):  # if not, the loss of the next step is NaN, which stops training
            self.target = self.loss.refreshed(prediction, self.target, self.label_rng)

    def losses(self, parameters: FloatArray, target: Target, order: IndexArray, seed: int) -> Iterator[FloatArray]:
        """Evaluate the losses of parameters, without taking steps; yield those of one batch after the other.

        The rows are taken in the given order. The random numbers come from the seed, so that two sets of parameters are
        compared with the same numbers.
        """
        rng = np.random.default_rng(seed)
        for rows in self._batches(len(order)):
            values, _, _ = self._evaluate(parameters, self.design[order[rows]], target[order[rows]], rng)
            yield values

    def _batches(self, n_rows: int) -> Iterator[slice]:
        return (slice(first, first + self.batch_size) for first in range(0, n_rows, self.batch_size))

    def _step(self, design: FloatArray, target: Target) -> FloatArray:
        values, gradient, prediction = self._evaluate(self.parameters, design, target, self.rng)
        if gradient is None:
            return values
        if self.link == "log":
            gradient = gradient * prediction
        self.adam.step(self._of_parameters(design, gradient), len(design))
        if self.average is not None:
            self.average.add(self.parameters)
        return values

    def _predict(self, parameters: FloatArray, design: FloatArray) -> FloatArray:
        """Return predictions (b, d) for rows of the design."""
        if design.ndim == 2:
            return respond(self.link, design @ parameters)
        shared = self.per_item == "none"
        return respond(self.link, linear_predictor(design, parameters[:, 0] if shared else parameters.T, 0.0))

    def _of_parameters(self, design: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the gradient in the parameters (p + 1, d), given that in the linear predictor (b, d).

        The gradient of a parameter that items share is the sum over items. It is repeated for each item, so that all
        items take the same steps.
        """
        if design.ndim == 2:
            return design.T @ gradient
        if self.per_item == "none":
            total = gradient.ravel() @ design.reshape(-1, design.shape[2])
            return np.repeat(total[:, None], gradient.shape[1], axis=1)
        result = np.einsum("njk,nj->kj", design, gradient)
        if self.per_item == "intercept":
            result[1:] = result[1:].sum(axis=1, keepdims=True)
        return result

    def _evaluate(
        self, parameters: FloatArray, design: FloatArray, target: Target, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray | None, FloatArray]:
        """Return the losses (b,), their gradient (b, d) in the prediction, and the prediction (b, d).

        If the prediction is not finite, the losses are NaN and the gradient is None.
        """
        prediction = self._predict(parameters, design)
        if not all_finite(prediction):
            return np.full(len(design), np.nan), None, prediction
        return *self.loss.value_and_grad_unchecked(prediction, target, rng), prediction


class Average:
    """The weighted mean of the parameters after each step, in which the weights of old steps decay as a power.

    Steps of a constant size end in a cloud around the minimum, and the mean is near its centre. After t steps the last
    one has the weight 9 / (t + 8), so that the first ones, still on the way, soon count for nothing (Shamir and Zhang,
    "Stochastic gradient descent for non-smooth optimization", ICML 2013).
    """

    _DECAY = 8

    def __init__(self, start: FloatArray) -> None:
        self.parameters = start.copy()
        self.steps = 0

    def add(self, parameters: FloatArray) -> None:
        """Take in the parameters after one more step."""
        self.steps += 1
        self.parameters += (self._DECAY + 1) / (self.steps + self._DECAY) * (parameters - self.parameters)
