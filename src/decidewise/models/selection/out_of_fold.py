"""The regret of models on held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from decidewise.evaluate import Hindsight, check_in_units
from decidewise.kit.batches import seconds_left
from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import TimeLimitReached, TrainingWarning
from decidewise.models.linear.blocks import one_library_thread
from decidewise.models.linear.units import cost_unit
from decidewise.models.selection.folds import Splits
from decidewise.models.selection.ridge_path import fit_path
from decidewise.models.selection.scores import CandidateScores, is_clearly_higher
from decidewise.models.selection.shared_features import SharedFeatures, Steps, without_steps
from decidewise.models.selection.time_folds import Rows
from decidewise.models.selection.weights import (
    FittedWeights,
    average_weights,
    comparable,
    fitted_weights,
    places_to_fit,
    weighted_products,
)
from decidewise.problems.contract import Problem
from decidewise.problems.views import in_unit

# For the weights of an average, predictions of so many costs are kept of each model; none, if that is too few rows.
_MAX_COSTS_KEPT = 100_000
_MIN_ROWS_KEPT = 20


def problems_by_row(estimator: Any) -> dict[str, Problem]:
    """Return the problems among the parameters of an estimator that differ by row."""
    parameters = estimator.get_params(deep=True)
    return {name: value for name, value in parameters.items() if isinstance(value, Problem) and value.n_rows}


def _sample(rows: Rows, n_costs: int) -> Rows:
    """Return the rows whose predictions are kept. They are drawn: every seventh row might be a Sunday."""
    n_kept = _MAX_COSTS_KEPT // n_costs
    if len(rows) <= n_kept:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, n_kept if n_kept >= _MIN_ROWS_KEPT else 0, replace=False))


def _averaged(scores: CandidateScores, weights: Mapping[str, float]) -> FloatArray:
    """Return what an average of candidates predicts for the sample."""
    predictions = dict(zip(scores.names, scores.predictions, strict=True))
    return np.asarray(sum((weight * np.asarray(predictions[name]) for name, weight in weights.items()), 0.0))


class Scored(NamedTuple):
    """How a model decides held-out rows: regrets (n,) of all rows, and comparable predictions (m, d) of a sample.

    Both are averaged over the folds of each row.
    """

    regrets: FloatArray
    predictions: FloatArray


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
    sample : ndarray of int, increasing
        Those of the rows whose predictions are kept.
    """

    features: SharedFeatures
    costs: FloatArray
    splits: Splits
    rows: Rows
    truth: Hindsight
    unit: float
    sample: Rows

    @classmethod
    def of(cls, problem: Problem, X: Any, costs: FloatArray, splits: Splits, rows: Rows) -> Self:
        """Solve once for the best decisions of the given rows; leave out folds that hold out none of them."""
        kept = [(train, test[np.isin(test, rows)]) for train, test in splits]
        kept = [(train, test) for train, test in kept if len(test)]
        # Keeps squares of regrets in range. The unit does not matter, since regrets are reported in percent.
        unit = cost_unit(costs[rows], power=2.0)
        truth = Hindsight.of(in_unit(problem.take(rows), unit), costs[rows] / unit)
        # Only known costs have a unit that predictions must share.
        shared = unit if problem.has_known else 1.0
        return cls(SharedFeatures(X), costs, kept, rows, truth, shared, _sample(rows, costs.shape[1]))

    @property
    def n_solves(self) -> int:
        """The number of solver calls that it takes to score one model."""
        return sum(len(test) for _, test in self.splits)

    def regret(self, estimator: Any, *, on_fit: Callable[[Any], None] | None = None) -> FloatArray:
        """Fit a copy of the estimator for each fold; return the regret of each row, averaged over its folds.

        `on_fit` is called with each copy, once it is fitted.
        """
        return self.scored([estimator], on_fit=on_fit)[0].regrets

    def scored(self, path: Sequence[Any], *, on_fit: Callable[[Any], None] | None = None) -> list[Scored]:
        """Return how several estimators decide that differ only in their ridge, and are fitted together."""
        steps, bare = without_steps(path) if self.features.has_steps else (None, list(path))
        by_row = problems_by_row(bare[0])
        took = 0.0

        def predict(train: Rows, test: Rows) -> list[FloatArray]:
            nonlocal took
            if took > seconds_left():  # a fold takes about as long as the last one
                raise TimeLimitReached("the time is up")
            begin = perf_counter()
            twin = clone(bare[0])
            if by_row:
                twin.set_params(**{name: problem.take(train) for name, problem in by_row.items()})
            predicted = self._predict([twin, *bare[1:]], steps, train, test, on_fit)
            took = perf_counter() - begin
            return predicted

        predictions = zip(*(predict(train, test) for train, test in self.splits), strict=True)
        held, truth = self._held, self.truth.take(self._held)
        return [
            Scored(np.bincount(held, truth.regret(each / self.unit)) / self.counts, self._kept(each))
            for each in map(np.concatenate, predictions)
        ]

    def _kept(self, predictions: FloatArray) -> FloatArray:
        """Return comparable predictions of the sample, from those of the held-out rows of all folds."""
        rows = self.rows[self._held]
        kept = np.isin(rows, self.sample)
        rows, total = rows[kept], np.zeros((len(self.sample), predictions.shape[1]))
        own = comparable(predictions[kept] / self.unit, in_units=self._in_units)
        np.add.at(total, np.searchsorted(self.sample, rows), own)
        return total / self._sample_counts[:, None]

    def fitted_weights(self, scores: CandidateScores, constant: Iterable[str]) -> FittedWeights:
        """Return the weights with which candidates scored on these rows predict best together.

        Those named in `constant` predict the same for every row, and get none. There are no weights at all if the
        average with them decides clearly worse than without: then some candidate predicts badly and decides well.
        """
        truth = self.truth.take(np.searchsorted(self.rows, self.sample))
        if not truth.best.any():  # nothing to decide, or no sample
            return FittedWeights({}, 0)
        places, costs = places_to_fit(scores.results, constant), self.costs[self.sample]
        predictions = [own for place in places if (own := scores.predictions[place]) is not None]
        unit = self.unit if self._in_units else cost_unit(costs, power=2.0)
        with one_library_thread():  # so that rounding does not depend on the number of threads
            products = weighted_products(predictions, costs / unit, in_units=self._in_units)
        weights = fitted_weights(products, in_units=self._in_units)
        fitted = dict(zip([scores.names[place] for place in places], weights, strict=True))
        equal, mixed = average_weights(scores.results), average_weights(scores.results, fitted)
        if mixed == equal:
            return FittedWeights({}, 0)
        more = truth.regret(_averaged(scores, mixed)) - truth.regret(_averaged(scores, equal))
        worse = is_clearly_higher(more, truth, standard_errors=1.0)
        return FittedWeights({} if worse else fitted, 2 * len(self.sample))

    @property
    def _in_units(self) -> bool:
        """Whether predictions must be in the units of the costs, since known costs are added to them."""
        return self.truth.problem.has_known

    @property
    def _sample_counts(self) -> npt.NDArray[np.intp]:
        return self.counts[np.searchsorted(self.rows, self.sample)]

    @property
    def counts(self) -> npt.NDArray[np.intp]:
        """By how many folds each row is held out."""
        return np.bincount(self._held)

    @property
    def _held(self) -> Rows:
        """The places among `rows` of the held-out rows of all folds, one fold after the other."""
        return np.searchsorted(self.rows, np.concatenate([test for _, test in self.splits]))

    def scored_as_known(self, predictions: FloatArray) -> Scored:
        """Return how predictions (n, d) of all rows decide that needed no fit."""
        own = comparable(predictions[self.sample] / self.unit, in_units=self._in_units)
        return Scored(self.truth.regret(predictions[self.rows] / self.unit), own)

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
        rows = self.rows[places]
        sample = self.sample[np.isin(self.sample, rows)]
        return replace(self, splits=splits, rows=rows, truth=self.truth.take(places), sample=sample)

    def together(self, parts: Iterable[tuple[Self, Scored]]) -> Scored:
        """Return how a model decides, averaged over the folds of each row, from parts of the folds."""
        regrets, predictions = np.zeros(len(self.rows)), np.zeros((len(self.sample), self.costs.shape[1]))
        for part, own in parts:
            regrets[np.searchsorted(self.rows, part.rows)] += own.regrets * part.counts
            predictions[np.searchsorted(self.sample, part.sample)] += own.predictions * part._sample_counts[:, None]
        return Scored(regrets / self.counts, predictions / self._sample_counts[:, None])

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
