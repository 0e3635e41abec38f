"""A linear predictor trained by Adam on any loss, with the solver in the loop where the loss needs it."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from decidewise.checks import FloatArray, as_matrix, check_same_rows
from decidewise.evaluate import normalized_regret
from decidewise.losses import Loss, as_loss
from decidewise.models.course import Budget, Course, Epoch, OutOfBudget, Validation
from decidewise.models.robust import neighbour_costs
from decidewise.models.starts import start
from decidewise.models.training import Link, Training, respond


class DecisionRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Train a linear predictor of costs on a decision-focused loss.

    Parameters
    ----------
    problem : Problem
        The feasible region and its sense.
    loss : str or Loss
        A name from `decidewise.losses.registry`, or a loss with parameters of your own, such as `Pfy(n_samples=3)`.
    init : {"wise", "mse", "torch", "zeros"}, array of shape (p + 1, d), or linear model
        Where training starts: the exact WISE fit, the exact least-squares fit, uniform in `±1/sqrt(p)` (the paper's
        protocol), zero, parameters with the intercepts in the first row, or any model with `coef_` and `intercept_`
        or a `WiseRegressor` of one, such as `WiseRegressor(GeneralizedLinear("gamma"))` for the log link. A model
        that is not fitted yet is fitted on the training rows.
    link : {"identity", "log"}
        Whether the prediction is the linear predictor itself or its exponential (for positive costs).
    epochs : int
        Passes over the data.
    batch_size : int
    learning_rate : float
        Of Adam.
    max_solves, max_seconds : optional
        Budgets for the whole fit: training ends before it would go beyond the solver calls, those for labels and
        validation included, or after the step during which the seconds ran out.
    early_stopping : bool
        Whether to set aside `validation_fraction` of the rows, to stop after `n_iter_no_change` epochs without a
        lower regret there, and to return the best model, the starting one included.
    n_neighbors : int, optional
        With a number, labels are computed for costs averaged with those of that many nearest samples, the sample's
        own costs weighing `neighbor_weight`.
    verbose : bool
        Whether to show a progress bar with the time left.
    random_state : int, RandomState instance or None

    Attributes
    ----------
    coef_ : ndarray of shape (d, p)
    intercept_ : ndarray of shape (d,)
    history_ : list of Epoch
        Loss, validation regret, solver calls and seconds of each epoch; a list that pandas turns into a frame.
    label_solves_, label_seconds_ : int, float
        What the labels took.
    stopped_ : str
        Why training ended: "epochs", "no change", "max_solves", "max_seconds", "interrupted" or "diverged".

    Notes
    -----
    Ctrl-C ends training and keeps the best model so far: by validation regret where there is a validation set,
    otherwise by training loss. So does a loss that diverges, with a `DivergenceError` that names the epoch.

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> train, test = make_shortest_path(300, degree=6, seed=0).split(200)
    >>> model = DecisionRegressor(train.problem, "spo+", epochs=5, random_state=0).fit(train.X, train.costs)
    >>> model.predict(test.X).shape, model.history_[-1].solver_calls
    ((100, 40), 1200)
    """

    def __init__(
        self,
        problem: Any,
        loss: str | Loss = "spo+",
        *,
        init: Any = "wise",
        link: Link = "identity",
        epochs: int = 100,
        batch_size: int = 32,
        learning_rate: float = 1e-2,
        max_solves: int | None = None,
        max_seconds: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.2,
        n_iter_no_change: int = 10,
        n_neighbors: int | None = None,
        neighbor_weight: float = 0.5,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.problem = problem
        self.loss = loss
        self.init = init
        self.link = link
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_solves = max_solves
        self.max_seconds = max_seconds
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.n_neighbors = n_neighbors
        self.neighbor_weight = neighbor_weight
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on features X (n, p) and costs y (n, d)."""
        clock = perf_counter()
        X, costs = self._read(X, y)
        loss = as_loss(self.loss)
        loss.check(self.problem)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        problem = Budget(self.problem, self.max_solves)

        X, costs, validation = self._set_aside(X, costs, rng)
        if self.n_neighbors is not None:
            costs = neighbour_costs(X, costs, self.n_neighbors, self.neighbor_weight)
        parameters = start(self.init, X, costs, link=self.link, directions=loss.directions, rng=rng)
        before = perf_counter()
        try:
            target = loss.prepare(problem, costs)
            self.label_solves_, self.label_seconds_ = problem.n_solves, perf_counter() - before
            training = Training(
                parameters,
                np.column_stack([np.ones(len(X)), X]),
                target,
                loss,
                link=self.link,
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                rng=rng,
            )
            course = Course(self, training, problem, validation and Validation.of(problem, *validation), clock)
        except OutOfBudget:
            raise ValueError(
                f"max_solves={self.max_solves} does not cover the labels and the validation of {len(y)} rows. "
                "Allow more, pass fewer rows, or choose a loss without labels, such as Wise."
            ) from None
        try:
            course.run()
        finally:
            # Also when training diverged or a solver failed: the best model so far is there to be used.
            self.history_: list[Epoch] = course.history
            self.stopped_ = course.stopped
            self.intercept_, self.coef_ = course.parameters[0], course.parameters[1:].T
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predicted costs (n, d)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return respond(self.link, X @ self.coef_.T + self.intercept_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the normalised regret in percent, so that a search keeps the model that decides best."""
        if sample_weight is not None:
            raise ValueError("regret is not weighted; leave sample_weight out.")
        return -normalized_regret(self.problem, self.predict(X), y)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.regressor_tags.poor_score = True  # the score is minus a regret, never above zero
        return tags

    def _read(self, X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
        if y is None:
            raise ValueError("DecisionRegressor requires y to be passed, but the target y is None. Pass the costs.")
        X = validate_data(self, X, dtype=np.float64)
        costs = as_matrix(y, n_columns=self.problem.n_costs, owner=type(self.problem).__name__)
        check_same_rows(X=X, costs=costs)
        for name in ("epochs", "batch_size", "n_iter_no_change"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; got {getattr(self, name)!r}.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be positive; got {self.learning_rate!r}.")
        if self.link not in ("identity", "log"):
            raise ValueError(f'link must be "identity" or "log"; got {self.link!r}.')
        if self.link == "log" and costs.min() <= 0:
            row, column = np.argwhere(costs <= 0)[0]
            raise ValueError(
                f'link="log" predicts positive costs only; row {row}, column {column} has {costs[row, column]:g}. '
                'Use link="identity".'
            )
        return X, costs

    def _set_aside(
        self, X: FloatArray, costs: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray] | None]:
        if not self.early_stopping:
            return X, costs, None
        n_validation = round(self.validation_fraction * len(X))
        if not 0 < n_validation < len(X):
            raise ValueError(
                f"validation_fraction={self.validation_fraction} sets aside {n_validation} of {len(X)} rows; at least "
                "one must be left on either side. Pass more rows, another fraction, or early_stopping=False."
            )
        order = rng.permutation(len(X))
        held, kept = order[:n_validation], order[n_validation:]
        return X[kept], costs[kept], (X[held], costs[held])
