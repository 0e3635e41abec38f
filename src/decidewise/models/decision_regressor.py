"""A linear predictor trained by Adam on any loss; the solver is called in training only if the loss needs it."""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import Any, Literal, Self

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from decidewise.kit.batches import time_limit
from decidewise.kit.checks import FloatArray, as_choice, as_flag, as_integer, as_number, as_positive
from decidewise.kit.errors import SolveLimitReached, TimeLimitReached, TrainingWarning
from decidewise.losses import Loss, Target, as_loss
from decidewise.models.estimator.base import all_or_nothing, as_generator, check_known_items, read_features
from decidewise.models.estimator.scored_by_regret import TrainedOnLoss
from decidewise.models.linear.deviances import Link, check_kept_coefficients, check_means, linear_predictor, respond
from decidewise.models.linear.per_item import PerItem
from decidewise.models.linear.units import Units
from decidewise.models.training.loop import Budget, Epoch, TrainingLoop
from decidewise.models.training.step import NO_FITS, Training, start
from decidewise.problems.contract import Problem
from decidewise.problems.views import in_unit


class DecisionRegressor(TrainedOnLoss):
    """Train a linear predictor of costs on a decision-focused loss.

    The parameters are in groups: what is trained on what, the form of the model, its labels, the training, and when it
    ends (after its epochs, its budget, or no progress on rows set aside).

    Parameters
    ----------
    problem : Problem
        The feasible region and its sense. If it differs by row, row `i` belongs to row `i` of the data of `fit`.
    loss : str or Loss
        A name from `decidewise.losses.registry`, or a loss with parameters of your own, such as `Pfy(n_samples=3)`.
        With `protocol="safe"` the loss sees costs and predictions divided by a typical cost, so its parameters that
        have a unit, such as the amplitude of noise, are relative to the typical cost.
    link : {"identity", "log"}
        Whether the prediction is the linear predictor itself or its exponential (for positive costs).
    per_item : {"none", "intercept", "coefficients"}
        For `X` of shape (n, d, q), q features of each item with one model for all items: what each item has of its own
        beside it. Training starts at the shared model, unless `init` is an array or a model with values per item.
    n_neighbors : int, optional
        If given, labels are computed for averaged costs: `neighbor_weight` times the sample's own costs, and the rest
        for the mean costs of this many nearest samples, by standardised features.
    protocol : {"safe", "paper"}
        With "safe", training standardises features and divides costs by a typical cost, so that the model does not
        depend on their units. The fitted model is an average over the steps of Adam, in which recent steps count more,
        and never worse than the start (see the notes). With "paper", Adam works on features and costs unchanged and,
        without `early_stopping`, the last parameters are kept.
    init : {"wise", "mse", "torch", "zeros"}, array of shape (p + 1, d), or linear model
        The start of training: the exact WISE fit, the exact least-squares fit, uniform in `±1/sqrt(p)` (as in the
        paper), zeros, an array of parameters with the intercepts in the first row, or any model with `coef_` and
        `intercept_`, also inside a `WiseRegressor`, such as `WiseRegressor(GeneralizedLinear("gamma"))` for the log
        link. A model that is not fitted yet is fitted on the training rows. Arrays and models use the caller's units.
    epochs : int
        Passes over the data.
    batch_size : int
    learning_rate : float
        The learning rate of Adam: about the size of its first steps for a feature of standard deviation one, in units
        of the typical cost (of a direction, for a loss of directions such as `Wise`; of the logarithm, for the log
        link).
    max_solves, max_seconds : optional
        Budgets for the whole fit. Training stops before it would exceed the solver calls, which include those for
        labels and validation, or when the seconds are over.
    early_stopping : bool
        Whether to set aside `validation_fraction` of the rows, to stop after `n_iter_no_change` epochs without a lower
        regret there, and to keep the best model, which may be the start.
    validation : {"random", "last"}
        Which rows to set aside: a random part, or, if the rows are in order of time, the last ones.
    verbose : bool
        Whether to show a progress bar with the time left.
    random_state : int, RandomState instance or None

    Attributes
    ----------
    coef_ : ndarray of shape (d, p), or (q,) if items share it
    intercept_ : ndarray of shape (d,), or float if items share it
    history_ : list of Epoch
        Loss, validation regret, solver calls and seconds of each epoch; `pandas.DataFrame(history_)` is a table. Losses
        are of costs in the units of training.
    label_solves_, label_seconds_ : int, float
        Solver calls and seconds for the labels.
    n_solves_ : int
        The solver calls of the whole fit.
    stopped_ : str
        Why training ended: "epochs", "no change", "max_solves", "max_seconds", "interrupted" or "diverged".

    Notes
    -----
    With `early_stopping`, the model is that of the lowest regret on the rows set aside. With `protocol="safe"` and
    without it, training evaluates the loss over all rows before the first epoch and after the last, to keep the better
    parameters. If the start was better, it is kept, with a `TrainingWarning`. If not, and if the start is a fit (not
    "torch" or "zeros"), the model is drawn back towards it: of the points a quarter, a half and three quarters of the
    way, and the end, the nearest to the start is kept whose mean loss does not exceed that of the end by more than
    three standard errors, since a minimum on few rows is noisy (`docs/notes/spo_plus.md` shows what this gains). All of
    this takes as many solver calls as four more epochs, and none if the loss needs no solver. Under `max_solves` or
    `max_seconds` each evaluation takes about a twentieth of what is left after the labels; if that is not enough for
    all rows, it uses a random part of them. If the loss refreshes its target (`Loss.refresh_every`), all evaluations
    use the first target; the solver calls of a refresh count in the epoch after it.

    Ctrl-C ends training and keeps the best model so far, which may be the start: by validation regret if rows are set
    aside, otherwise by the mean loss during an epoch. Before the labels are complete, Ctrl-C leaves the regressor
    unchanged. If the loss diverges, the best model so far is kept and a `DivergenceError` names the epoch. If
    `max_seconds` are over before the labels are complete, the start is kept, with a warning.

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> train, test = make_shortest_path(300, degree=6, seed=0).split(200)
    >>> model = DecisionRegressor(train.problem, "spo+", epochs=5, random_state=0).fit(train.X, train.costs)
    >>> model.predict(test.X).shape, model.n_solves_  # for the labels, five epochs and four evaluations
    ((100, 40), 2000)
    """

    def __init__(
        self,
        problem: Problem,
        loss: str | Loss = "spo+",
        *,
        # the form of the model
        link: Link = "identity",
        per_item: PerItem = "none",
        # labels
        n_neighbors: int | None = None,
        neighbor_weight: float = 0.5,
        # training
        protocol: Literal["safe", "paper"] = "safe",
        init: Any = "wise",
        epochs: int = 100,
        batch_size: int = 32,
        learning_rate: float = 1e-2,
        # a budget, and rows set aside
        max_solves: int | None = None,
        max_seconds: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.2,
        validation: Literal["random", "last"] = "random",
        n_iter_no_change: int = 10,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.problem = problem
        self.loss = loss
        self.protocol = protocol
        self.init = init
        self.link = link
        self.per_item = per_item
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_solves = max_solves
        self.max_seconds = max_seconds
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.validation = validation
        self.n_iter_no_change = n_iter_no_change
        self.n_neighbors = n_neighbors
        self.neighbor_weight = neighbor_weight
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on features X (n, p), or (n, d, q) of each item, and costs y (n, d)."""
        clock = perf_counter()
        with all_or_nothing(self):
            loss = self._check_parameters()
            X, costs = self._read(X, y)
            rng = as_generator(self.random_state)
            kept, held = self._set_aside(len(X), rng)
            held_X, held_costs = X[held], costs[held]
            X, costs = X[kept], costs[kept]
            units = self._units(X, costs, loss)
            features = units.features(X) * units.varies
            if self.n_neighbors is not None:
                costs = neighbor_costs(features.reshape(len(X), -1), costs, self.n_neighbors, self.neighbor_weight)
                units = self._units(X, costs, loss)
            design = np.concatenate([np.ones((*X.shape[:-1], 1)), features], axis=-1)
            parameters = start(self.init, X, costs, units=units, link=self.link, directions=loss.directions, rng=rng)
            if X.ndim == 3:
                self._check_shared(parameters)
            units.leave(parameters, self.link)  # raises now if the start cannot be expressed in the caller's units
            deadline = clock + (self.max_seconds or np.inf)
            budget = Budget(in_unit(self.problem, units.cost), self.max_solves, deadline)
            safe, is_fit = self.protocol == "safe", not (isinstance(self.init, str) and self.init in NO_FITS)
            loop = TrainingLoop(
                budget,
                parameters.copy(),
                clock,
                epochs=self.epochs,
                n_iter_no_change=self.n_iter_no_change,
                safe=safe,
                draw_back=safe and is_fit,
                verbose=self.verbose,
            )
            problem = budget.problem
            held_out = None
            if len(held):
                held_out = problem.take(held), units.features(held_X), held_costs / units.cost
            label_rng = rng.spawn(1)[0]  # so that random labels do not change the random numbers of training
            before = perf_counter()
            with time_limit(deadline):
                features = features.reshape(len(X), -1)
                target = self._label(loss, problem.take(kept), features, costs / units.cost, loop, len(held), label_rng)
            label_solves, label_seconds = problem.n_solves, perf_counter() - before
        try:
            if target is not None:
                training = Training(
                    parameters,
                    design,
                    target,
                    loss,
                    link=self.link,
                    per_item=self.per_item,
                    batch_size=self.batch_size,
                    learning_rate=self.learning_rate,
                    averages=safe,
                    rng=rng,
                    label_rng=label_rng,
                )
                with time_limit(deadline):  # also inside a long batch
                    loop.run(training, held_out, rng)
        finally:
            # Also if training diverged or a solver failed: the best model so far can be used.
            self.intercept_, self.coef_ = self._fitted(units.leave(loop.parameters, self.link), shared=X.ndim == 3)
            self.label_solves_, self.label_seconds_ = label_solves, label_seconds
            self.history_: list[Epoch] = loop.history
            self.stopped_, self.n_solves_ = loop.stopped, problem.n_solves
        if loop.remark:
            warnings.warn(loop.remark, TrainingWarning, stacklevel=2)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predicted costs (n, d)."""
        check_is_fitted(self)
        X = read_features(self, X, reset=False, dtype=np.float64)
        if self.per_item != "none":
            check_known_items(self, X)
        return respond(self.link, linear_predictor(X, self.coef_, self.intercept_))

    def _check_parameters(self) -> Loss:
        """Check all parameters and return the loss."""
        loss = self._check_training()
        as_choice(self.protocol, name="protocol", choices=("safe", "paper"))
        as_choice(self.link, name="link", choices=("identity", "log"))
        as_choice(self.per_item, name="per_item", choices=("none", "intercept", "coefficients"))
        as_integer(self.epochs, name="epochs")
        as_integer(self.batch_size, name="batch_size")
        if self.max_solves is not None:
            as_integer(self.max_solves, name="max_solves", minimum=0)
        if self.max_seconds is not None:
            as_positive(self.max_seconds, name="max_seconds")
        if self.n_neighbors is not None:
            as_integer(self.n_neighbors, name="n_neighbors")
        as_number(self.neighbor_weight, name="neighbor_weight", at_least=0, at_most=1)
        as_flag(self.verbose, name="verbose")
        return loss

    def _check_kept(self) -> None:
        as_loss(self.loss)
        check_kept_coefficients(self)

    def _read(self, X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
        X, costs = super()._read(X, y)
        if X.ndim == 2 and self.per_item != "none":
            raise ValueError(
                f'per_item="{self.per_item}" needs features per item, X of shape (n, d, q); got X.shape={X.shape}, '
                "where every cost has its own coefficients anyway."
            )
        if self.link == "log":
            # A few costs at or below zero do no harm: the start says if it cannot be fitted to them.
            with np.errstate(over="ignore"):
                means = costs.mean(axis=0)
            if means.min() <= 0:
                raise ValueError(
                    f'link="log" predicts positive costs only; column {means.argmin()} has the mean {means.min():g}. '
                    'Use link="identity".'
                )
            check_means(means)
        return X, costs

    def _units(self, X: FloatArray, costs: FloatArray, loss: Loss) -> Units:
        if self.protocol == "paper":
            return Units.callers(X.shape[-1])
        return Units.of(X.reshape(-1, X.shape[-1]), costs, directions=loss.directions)

    def _fitted(self, parameters: FloatArray, *, shared: bool) -> tuple[Any, FloatArray]:
        """Return the intercept and the coefficients; with features of each item, once if the items share them."""
        intercept, coefficients = parameters[0], parameters[1:].T
        if not shared or self.per_item == "coefficients":
            return intercept, coefficients
        return (intercept if self.per_item == "intercept" else float(intercept[0])), coefficients[0]

    def _check_shared(self, parameters: FloatArray) -> None:
        """Raise if the start differs by item where items share their parameters."""
        shared = parameters[{"none": slice(None), "intercept": slice(1, None), "coefficients": slice(0)}[self.per_item]]
        if not np.allclose(shared, shared[:, :1], rtol=1e-9, atol=1e-9 * np.abs(shared).max(initial=0.0)):
            raise ValueError(
                f'init differs by item, and per_item="{self.per_item}" does not. Pass a start that is the same for all '
                'items, or per_item="intercept" or "coefficients".'
            )

    def _label(
        self,
        loss: Loss,
        problem: Problem,
        features: FloatArray,
        costs: FloatArray,
        loop: TrainingLoop,
        n_held_out: int,
        rng: np.random.Generator,
    ) -> Target | None:
        """Return the target of the training rows, or None if `max_seconds` was reached before."""
        try:
            target = loss.prepare(problem, costs, X=features, rng=rng)
            # The rows held out are solved twice: for their costs, and for the predictions of the start.
            loop.budget.problem.check_limit(2 * n_held_out)
        except SolveLimitReached:
            raise ValueError(
                f"max_solves={self.max_solves} does not cover the labels and the validation of "
                f"{len(costs) + n_held_out} rows. Allow more solver calls, pass fewer rows, or choose a loss without "
                "labels, such as Wise."
            ) from None
        except TimeLimitReached:
            loop.stopped = "max_seconds"
            loop.remark = (
                f"max_seconds={self.max_seconds:g} was reached before the labels of {len(costs)} rows were computed, "
                "so the model is the start, without training. Allow more seconds, or pass fewer rows."
            )
            return None
        return target


def neighbor_costs(X: FloatArray, costs: FloatArray, n_neighbors: int, weight: float = 0.5) -> FloatArray:
    """Return `weight · c_i + (1 - weight) · mean of the costs of the nearest other samples`: (n, d) -> (n, d).

    >>> neighbor_costs(np.array([[0.0], [1.0], [9.0]]), np.array([[2.0], [4.0], [8.0]]), 1).ravel()
    array([3., 3., 6.])
    """
    if not 1 <= n_neighbors < len(X):
        raise ValueError(
            f"n_neighbors must be between 1 and {len(X) - 1}, the number of other rows; got {n_neighbors}."
        )
    # Without an argument `kneighbors` excludes the sample itself, even among equal rows.
    nearest = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors(return_distance=False)
    return weight * costs + (1 - weight) * costs[nearest].mean(axis=1)
