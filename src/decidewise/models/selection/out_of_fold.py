"""The regret of models on held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from decidewise.checks import FloatArray
from decidewise.errors import TrainingWarning
from decidewise.evaluate import Hindsight, check_in_units
from decidewise.models.linear.units import cost_unit
from decidewise.models.selection.folds import Splits
from decidewise.models.selection.ridge_path import fit_path
from decidewise.models.selection.shared_features import SharedFeatures, Steps, without_steps
from decidewise.models.selection.time_folds import Rows
from decidewise.problems.base import Problem


def problems_by_row(estimator: Any) -> dict[str, Problem]:
    """Return the problems among the parameters of an estimator that differ by row."""
    parameters = estimator.get_params(deep=True)
    return {name: value for name, value in parameters.items() if isinstance(value, Problem) and value.n_rows}


@dataclass(frozen=True)
class OutOfFold:
    """Rows held out in one or more folds, and predicted by models fitted on the training rows of these folds.

    Attributes
    ----------
    features : SharedFeatures
        The features of all rows.
    costs : ndarray of shape (n, d)
        The costs of all rows.
    splits : list of (training rows, held-out rows)
        All held-out rows are in `rows`.
    rows : ndarray of int, increasing
        The rows to score.
    truth : Hindsight
        The best decisions for these rows, with their costs in some unit.
    unit : float
        What predictions are divided by before they decide.
    """

    features: SharedFeatures
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
        return cls(SharedFeatures(X), costs, kept, rows, truth, unit if problem.has_known else 1.0)

    @property
    def n_solves(self) -> int:
        """The number of solver calls that it takes to score one model."""
        return sum(len(test) for _, test in self.splits)

    def regret(self, estimator: Any, *, on_fit: Callable[[Any], None] | None = None) -> FloatArray:
        """Fit a copy of the estimator for each fold; return the regret of each row, averaged over its folds.

        `on_fit` is called with each copy, once it is fitted.
        """
        return self.regrets([estimator], on_fit=on_fit)[0]

    def regrets(self, path: Sequence[Any], *, on_fit: Callable[[Any], None] | None = None) -> list[FloatArray]:
        """Return the regrets of several estimators that differ only in their ridge, and are fitted together."""
        steps, bare = without_steps(path) if self.features.has_steps else (None, list(path))
        by_row = problems_by_row(bare[0])

        def predict(train: Rows, test: Rows) -> list[FloatArray]:
            twin = clone(bare[0])
            if by_row:
                twin.set_params(**{name: problem.take(train) for name, problem in by_row.items()})
            return self._predict([twin, *bare[1:]], steps, train, test, on_fit)

        predictions = zip(*(predict(train, test) for train, test in self.splits), strict=True)
        held, truth = self._held, self.truth.take(self._held)
        return [
            np.bincount(held, truth.regret(np.concatenate(prediction) / self.unit)) / self.counts
            for prediction in predictions
        ]

    @property
    def counts(self) -> npt.NDArray[np.intp]:
        """By how many folds each row is held out."""
        return np.bincount(self._held)

    @property
    def _held(self) -> Rows:
        """The places among `rows` of the held-out rows of all folds, one fold after the other."""
        return np.searchsorted(self.rows, np.concatenate([test for _, test in self.splits]))

    def regret_of_known(self, predictions: FloatArray) -> FloatArray:
        """Return the regret of each row for predictions (n, d) of all rows that needed no fit."""
        return self.truth.regret(predictions[self.rows] / self.unit)

    def trial_fold(self) -> tuple[Self, Self]:
        """Return the fold for a trial, and the other folds: that with the most training rows, then the fewest held out.

        Complex models need rows, and in the order of time the first fold has few.
        """
        sizes = [(-len(train), len(test)) for train, test in self.splits]
        place = sizes.index(min(sizes))
        others = self.splits[:place] + self.splits[place + 1 :]
        return self._part(self.splits[place : place + 1]), self._part(others)

    def _part(self, splits: Splits) -> Self:
        places = np.searchsorted(self.rows, np.unique(np.concatenate([test for _, test in splits])))
        return replace(self, splits=splits, rows=self.rows[places], truth=self.truth.take(places))

    def together(self, parts: Iterable[tuple[Self, FloatArray]]) -> FloatArray:
        """Return the regret of each row, averaged over its folds, from the regrets of parts of the folds."""
        total = np.zeros(len(self.rows))
        for part, regrets in parts:
            total[np.searchsorted(self.rows, part.rows)] += regrets * part.counts
        return total / self.counts

    def halved(self, rng: np.random.Generator) -> Self:
        """Return the same rows with each fold twice, once with each half of its training rows."""
        shuffled: Iterable[tuple[Rows, Rows]] = ((rng.permutation(train), test) for train, test in self.splits)
        halves = [(half, test) for train, test in shuffled for half in np.array_split(train, 2)]
        return replace(self, splits=halves)

    def _predict(
        self,
        path: Sequence[Any],
        steps: Steps | None,
        train: Rows,
        test: Rows,
        on_fit: Callable[[Any], None] | None,
    ) -> list[FloatArray]:
        """Fit models without their feature steps on training rows; return their predictions of held-out rows."""
        features, held_out = self.features.of(train, test, steps)
        with warnings.catch_warnings():
            # Silenced here, since bad training shows in the regret; the chosen model is refitted with warnings on.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", TrainingWarning)
            models = fit_path(path, features, self.costs[train])
        for model in models:
            check_in_units(model, self.truth.problem)
            if getattr(model, "stopped_", None) == "interrupted":
                raise KeyboardInterrupt  # a model whose training was interrupted must not be scored
            if on_fit is not None:
                on_fit(model)
        return [np.reshape(model.predict(held_out), (len(test), -1)) for model in models]
