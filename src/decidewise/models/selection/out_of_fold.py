"""The regret of models on held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing

from decidewise.checks import FloatArray
from decidewise.errors import TrainingWarning
from decidewise.evaluate import Hindsight, check_in_units
from decidewise.models.linear.units import cost_unit
from decidewise.models.selection.folds import Splits
from decidewise.models.selection.ridge_path import fit_path
from decidewise.models.selection.time_folds import Rows
from decidewise.problems.base import Problem


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
        return self.regrets([estimator])[0]

    def regrets(self, path: Sequence[Any]) -> list[FloatArray]:
        """Return the regrets of several estimators that differ only in their ridge, and are fitted together."""
        predictions = zip(*(self._predict(path, train, test) for train, test in self.splits), strict=True)
        held = np.searchsorted(self.rows, np.concatenate([test for _, test in self.splits]))
        truth, counts = self.truth.take(held), np.bincount(held)
        return [
            np.bincount(held, truth.regret(np.concatenate(prediction) / self.unit)) / counts
            for prediction in predictions
        ]

    def regret_of_known(self, predictions: FloatArray) -> FloatArray:
        """Return the regret of each row for predictions (n, d) of all rows that needed no fit."""
        return self.truth.regret(predictions[self.rows] / self.unit)

    def smallest_fold(self) -> Self:
        """Return the fold with the fewest held-out rows alone, the first of several, with these rows."""
        fold = min(self.splits, key=lambda split: len(split[1]))
        places = np.searchsorted(self.rows, np.unique(fold[1]))
        return replace(self, splits=[fold], rows=self.rows[places], truth=self.truth.take(places))

    def halved(self, rng: np.random.Generator) -> Self:
        """Return the same rows with each fold twice, once with each half of its training rows."""
        shuffled: Iterable[tuple[Rows, Rows]] = ((rng.permutation(train), test) for train, test in self.splits)
        halves = [(half, test) for train, test in shuffled for half in np.array_split(train, 2)]
        return replace(self, splits=halves)

    def _predict(self, path: Sequence[Any], train: Rows, test: Rows) -> list[FloatArray]:
        features, held_out = _safe_indexing(self.X, train), _safe_indexing(self.X, test)
        with warnings.catch_warnings():
            # Silenced here, since bad training shows in the regret; the chosen model is refitted with warnings on.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", TrainingWarning)
            models = fit_path([for_rows(estimator, train) for estimator in path], features, self.costs[train])
        for model in models:
            check_in_units(model, self.truth.problem)
            if getattr(model, "stopped_", None) == "interrupted":
                raise KeyboardInterrupt  # a model whose training was interrupted must not be scored
        return [np.reshape(model.predict(held_out), (len(test), -1)) for model in models]
