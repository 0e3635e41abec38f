"""The regret of models on held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.utils import _safe_indexing

from decidewise.checks import FloatArray, as_integer
from decidewise.errors import TrainingWarning
from decidewise.evaluate import Hindsight, check_in_units
from decidewise.models.linear.units import cost_unit
from decidewise.problems.base import Problem

Rows = npt.NDArray[np.intp]
Splits = list[tuple[Rows, Rows]]


def folds(cv: Any, X: Any, costs: FloatArray, groups: Any, rng: np.random.Generator) -> Splits:
    """Return pairs of training rows and held-out rows.

    Parameters
    ----------
    cv : int, splitter, iterable of splits or None
        As in scikit-learn, except that a number (None is 5) makes folds of shuffled rows, or of whole groups if
        `groups` are given.
    """
    if cv is None or isinstance(cv, int | np.integer):
        n_splits = 5 if cv is None else as_integer(cv, name="cv", minimum=2)
        seed = int(rng.integers(2**31))
        cv = GroupKFold(n_splits) if groups is not None else KFold(n_splits, shuffle=True, random_state=seed)
    splits = [(np.asarray(train), np.asarray(test)) for train, test in check_cv(cv).split(X, costs, groups)]
    if not splits:
        raise ValueError("cv has no splits; pass pairs of training rows and held-out rows, a splitter or a number.")
    for fold, (train, test) in enumerate(splits):
        rows = np.concatenate([train, test])
        if not len(train) or rows.min() < 0 or rows.max() >= len(costs):
            raise ValueError(
                f"fold {fold} of cv must have at least one training row, and all its rows must be between 0 and "
                f"{len(costs) - 1}."
            )
    return splits


def affordable(splits: Splits, n_models: int, max_solves: int | None, rng: np.random.Generator) -> Rows:
    """Return the held-out rows, or a random subset that can be scored with at most `max_solves` solver calls.

    A row takes one call for its best decision, and one for each model and each fold that holds it out.
    """
    rows, counts = np.unique(np.concatenate([test for _, test in splits]), return_counts=True)
    if max_solves is not None:
        order = rng.permutation(len(rows))
        spent = np.cumsum(1 + n_models * counts[order])
        rows = np.sort(rows[order[spent <= max_solves]])
    if len(rows) < 2:
        raise ValueError(
            f"{len(rows)} rows can be scored, but a comparison needs at least two. Hold out more rows, or allow more "
            f"solver calls: {n_models} models take {2 * (1 + n_models)} for two rows, and max_solves={max_solves}."
        )
    return rows


def for_rows(estimator: Any, rows: Rows) -> Any:
    """Return an unfitted copy of an estimator; any problem among its parameters that differs by row has these rows."""
    twin = clone(estimator)
    parameters = twin.get_params(deep=True)
    by_row = {name: value for name, value in parameters.items() if isinstance(value, Problem) and value.n_rows}
    return twin.set_params(**{name: problem.take(rows) for name, problem in by_row.items()})


@dataclass(frozen=True)
class OutOfFold:
    """Rows held out in one or more folds, and predicted by models fitted on the training rows of these folds.

    Attributes
    ----------
    X, costs : the features and costs of all rows
    splits : list of (training rows, held-out rows)
        All held-out rows are in `rows`.
    rows : ndarray of int, increasing
        The rows to score.
    truth : Hindsight
        The best decisions for these rows, with their costs in some unit.
    unit : float
        What predictions are divided by before they decide.
    """

    X: Any
    costs: FloatArray
    splits: Splits
    rows: Rows
    truth: Hindsight
    unit: float

    @classmethod
    def of(cls, problem: Problem, X: Any, costs: FloatArray, splits: Splits, rows: Rows) -> Self:
        """Solve once for the best decisions of the given rows; leave out folds that hold out none of them."""
        kept = [(train, test[np.isin(test, rows)]) for train, test in splits]
        kept = [(train, test) for train, test in kept if len(test)]
        # Keeps squares of regrets in range. The unit does not matter, since regrets are reported in percent.
        unit = cost_unit(costs[rows], power=2.0)
        truth = Hindsight.of(problem.take(rows).in_unit(unit), costs[rows] / unit)
        # Only known costs have a unit that predictions must share.
        return cls(X, costs, kept, rows, truth, unit if problem.has_known else 1.0)

    @property
    def n_solves(self) -> int:
        """The number of solver calls that it takes to score one model."""
        return sum(len(test) for _, test in self.splits)

    def regret(self, estimator: Any) -> FloatArray:
        """Fit a copy of the estimator for each fold; return the regret of each row, averaged over its folds."""
        prediction = np.concatenate([self._predict(estimator, train, test) for train, test in self.splits])
        held = np.searchsorted(self.rows, np.concatenate([test for _, test in self.splits]))
        if self.unit != 1:
            prediction = prediction / self.unit
        return np.bincount(held, self.truth.take(held).regret(prediction)) / np.bincount(held)

    def halved(self, rng: np.random.Generator) -> Self:
        """Return the same rows with each fold twice, once with each half of its training rows."""
        shuffled: Iterable[tuple[Rows, Rows]] = ((rng.permutation(train), test) for train, test in self.splits)
        halves = [(half, test) for train, test in shuffled for half in np.array_split(train, 2)]
        return replace(self, splits=halves)

    def _predict(self, estimator: Any, train: Rows, test: Rows) -> FloatArray:
        with warnings.catch_warnings():
            # Silenced here, since bad training shows in the regret; the chosen model is refitted with warnings on.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", TrainingWarning)
            model = for_rows(estimator, train).fit(_safe_indexing(self.X, train), self.costs[train])
        check_in_units(model, self.truth.problem)
        if getattr(model, "stopped_", None) == "interrupted":
            raise KeyboardInterrupt  # a model whose training was interrupted must not be scored
        return np.reshape(model.predict(_safe_indexing(self.X, test)), (len(test), -1))
