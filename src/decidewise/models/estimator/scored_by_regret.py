"""What estimators that know the problem have in common: how they read rows, set some aside, and score by regret."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags

from decidewise.evaluate import normalized_regret
from decidewise.kit.checks import (
    FloatArray,
    IndexArray,
    as_choice,
    as_flag,
    as_integer,
    as_matrix,
    as_number,
    as_positive,
    check_items,
    check_same_rows,
)
from decidewise.losses import Loss, as_loss
from decidewise.models.estimator.base import ManyOutputs, read_cost_names, read_features
from decidewise.problems.contract import Problem, as_problem, check_rows

Rows = IndexArray


class ScoredByRegret(ManyOutputs, RegressorMixin, BaseEstimator):
    """A regressor with a parameter `problem`, whose score is minus the regret of its decisions."""

    problem: Problem

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the normalised regret in percent, so that a search selects the model with the lowest regret."""
        if sample_weight is not None:
            raise ValueError("regret is not weighted; leave sample_weight out.")
        read_cost_names(self, y, reset=False)
        return -normalized_regret(self.problem, self.predict(X), y)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the score is minus a regret, never above zero
        return tags

    def _read(self, X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
        """Return the features (n, p) or (n, d, q) and the costs (n, d) of a fit, checked against the problem."""
        if y is None:
            name = type(self).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None. Pass the costs.")
        X = read_features(self, X, reset=True, dtype=np.float64)
        read_cost_names(self, y, reset=True)
        costs = as_matrix(y, n_columns=self.problem.n_costs, owner=type(self.problem).__name__)
        check_same_rows(X=X, costs=costs)
        check_items(X, costs.shape[1])
        check_rows(self.problem, len(costs))
        return X, costs


class TrainedOnLoss(ScoredByRegret):
    """A regressor that is trained on a loss, and may set rows aside to end where their regret is lowest."""

    loss: str | Loss
    learning_rate: float
    early_stopping: bool
    validation_fraction: float
    validation: Literal["random", "last"]
    n_iter_no_change: int

    @property
    def predicts_directions(self) -> bool:
        """Whether predictions are directions, which cannot be added to known costs."""
        return as_loss(self.loss).directions

    def _check_training(self) -> Loss:
        """Check these parameters, and return the loss."""
        as_problem(self.problem)
        as_positive(self.learning_rate, name="learning_rate")
        as_integer(self.n_iter_no_change, name="n_iter_no_change")
        as_flag(self.early_stopping, name="early_stopping")
        as_number(self.validation_fraction, name="validation_fraction", above=0, below=1)
        as_choice(self.validation, name="validation", choices=("random", "last"))
        loss = as_loss(self.loss)
        loss.check(self.problem)
        if loss.refresh_every is not None:
            as_integer(loss.refresh_every, name=f"{type(loss).__name__}.refresh_every")
        return loss

    def _set_aside(self, n_rows: int, rng: np.random.Generator) -> tuple[slice | Rows, Rows]:
        """Return the rows to train on and the rows to validate on, of which there may be none."""
        if not self.early_stopping:
            return slice(None), np.arange(0)
        return set_aside(n_rows, self.validation_fraction, self.validation, rng, otherwise="early_stopping=False")


def set_aside(
    n_rows: int, fraction: float, which: Literal["random", "last"], rng: np.random.Generator, *, otherwise: str
) -> tuple[Rows, Rows]:
    """Return the rows to train on and the rows to set aside; `otherwise` ends the message if either would be empty."""
    n_aside = round(fraction * n_rows)
    if not 0 < n_aside < n_rows:
        raise ValueError(
            f"validation_fraction={fraction} sets aside {n_aside} of {n_rows} rows; at least one row must be set aside "
            f"and one kept. Pass more rows, another fraction, or {otherwise}."
        )
    if which == "last":
        return np.arange(n_rows - n_aside), np.arange(n_rows - n_aside, n_rows)
    order = rng.permutation(n_rows)
    return order[n_aside:], order[:n_aside]
