"""The choice of `WiseRegressorCV` for rows that are not in memory: out-of-fold regret in passes over a source.

All candidates are fitted for all folds together, so that k folds of c candidates take as many passes as one fit. One
further pass decides every row by the models of its fold, and returns the sums from which regrets and the standard
errors of their differences follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from time import perf_counter
from typing import Any
from zlib import crc32

import numpy as np

from decidewise.evaluate import Hindsight, check_in_units
from decidewise.kit.checks import FloatArray
from decidewise.kit.interrupts import attempt, reason_of
from decidewise.models.learners.averaged import AveragedRegressor
from decidewise.models.linear.units import cost_unit
from decidewise.models.selection.null_models import NullModels
from decidewise.models.selection.row_folds import RowFolds, TrainingRows
from decidewise.models.selection.scores import none_scored
from decidewise.models.selection.sums import is_sum_over_rows, passes_of
from decidewise.models.selection.weights import (
    average_weights,
    comparable,
    fitted_weights,
    places_to_fit,
    weighted_products,
)
from decidewise.problems.contract import Problem
from decidewise.problems.views import in_unit
from decidewise.rows.passes import Pass, Passes, run, together
from decidewise.rows.source import Rows, RowSource, Sums, add

# The predictions of all candidates are held at once, for so many costs.
_COSTS_IN_A_PIECE = 100_000
_NONE = NullModels()


@dataclass(frozen=True)
class ChoiceOnRows:
    """Candidates scored on rows that were never in memory together.

    Attributes
    ----------
    notes : dict of str to str
        Why each candidate was not scored; empty if it was.
    untried : frozenset of str
        Those of the others that were not tried.
    baselines : frozenset of str
        Those that were scored for comparison, and are not to be chosen.
    sums : RegretsOnRows
        Of the candidates that were scored, in their order.
    seconds : float
        The time for each of them.
    n_solves : int
    fitted : dict of str to float
        The weights with which the candidates predict best together.
    """

    notes: dict[str, str]
    untried: frozenset[str]
    baselines: frozenset[str]
    sums: RegretsOnRows
    seconds: float
    n_solves: int
    fitted: dict[str, float] = field(default_factory=dict)

    @property
    def scored(self) -> list[str]:
        """The candidates that were scored."""
        return [name for name, note in self.notes.items() if not note]

    def _status(self, name: str) -> str:
        if self.notes[name]:
            return "not tried" if name in self.untried else "failed"
        return "baseline" if name in self.baselines else "scored"

    def without(self, failed: Mapping[str, str]) -> ChoiceOnRows:
        """Return the scores with some candidates as failed, by name, with the reasons."""
        notes, kept = self.notes | dict(failed), [place for place, name in enumerate(self.scored) if name not in failed]
        if self.baselines.issuperset(self.scored[place] for place in kept):
            raise none_scored({name: note for name, note in notes.items() if name not in self.baselines})
        return replace(self, notes=notes, sums=self.sums.of_some(kept))

    @cached_property
    def results(self) -> dict[str, Any]:
        """Arrays with one entry per candidate, as `WiseRegressorCV.cv_results_`."""
        names, sums = list(self.notes), self.sums
        places = np.array([names.index(name) for name in self.scored])
        chosen_from = [name not in self.baselines for name in self.scored]
        lowest = int(np.argmin(np.where(chosen_from, sums.percent, np.inf)))

        def spread(values: Any) -> FloatArray:
            entries = np.full(len(names), np.nan)
            entries[places] = values
            return entries

        regret = spread(sums.percent)
        status = [self._status(name) for name in names]
        return {
            "candidate": np.array(names, dtype=object),
            "regret": regret,
            "standard_error": spread(sums.errors()),
            "difference": regret - sums.percent[lowest],
            "difference_standard_error": spread(sums.errors(minus=lowest)),
            "rank": np.argsort(np.argsort(regret, kind="stable")) + 1,
            "seconds": np.nan_to_num(spread(self.seconds)),
            "n_solves": np.nan_to_num(spread(sums.n_rows)).astype(int),
            "status": np.array(status, dtype=object),
            "note": np.array([self.notes[name] for name in names], dtype=object),
            "error": np.array(
                [self.notes[name] if what == "failed" else "" for name, what in zip(names, status, strict=True)],
                dtype=object,
            ),
        }


def choose_on_rows(
    problem: Problem,
    source: RowSource,
    candidates: Mapping[str, Any],
    *,
    folds: RowFolds,
    max_solves: int | None,
    seed: int,
    averages: bool,
    null: NullModels = _NONE,
) -> ChoiceOnRows:
    """Score candidates by their out-of-fold regret; those that are no sums over rows are not tried, and some may fail.

    Parameters
    ----------
    problem : Problem
        The same for every row.
    source : RowSource
        With costs.
    candidates : mapping of str to estimator
    folds : RowFolds
    max_solves : int, optional
        The largest number of solver calls; if scoring all rows would take more, a random part of them is scored, so
        large that more calls are most unlikely.
    seed : int
        Draws the rows to score.
    averages : bool
        Whether candidates will be averaged, and so need weights.
    null : NullModels
        Those among the candidates: constant ones get no fitted weight, and beaten ones none at all.
    """
    first = source.first()
    per_item = first.X.ndim == 3
    possible = {name: model for name, model in candidates.items() if is_sum_over_rows(model, per_item=per_item)}
    untried = frozenset(candidates) - frozenset(possible)
    notes = {name: "needs all rows in memory" if name in untried else "" for name in candidates}
    begin = perf_counter()
    training = [TrainingRows(source, folds, fold) for fold in range(folds.n_folds)]
    fits = [rows.passes(passes_of(model, rows)) for model in possible.values() for rows in training]
    *found, n_rows = run(together([*fits, _count()]), source)
    if isinstance(n_rows, Exception):
        raise n_rows
    models: dict[str, list[Any]] = {}
    for place, name in enumerate(possible):
        own = found[place * folds.n_folds : (place + 1) * folds.n_folds]
        failed = [model for model in own if isinstance(model, Exception)]
        if failed:
            notes[name] = reason_of(failed[0])
        else:
            models[name] = own
    if not models:
        raise none_scored(notes)
    n_models = len(models) + 1
    n_averages = 2 if averages else 0
    share = 1.0
    if max_solves is not None:
        affordable = max_solves / (n_models + n_averages)
        if affordable < n_rows[0]:
            share = max(0.0, affordable - 3 * float(np.sqrt(affordable))) / float(n_rows[0])  # drawn one by one
    # Keeps squares of regrets in range. Only known costs have a unit that predictions must share.
    unit = cost_unit(first.costs, power=2.0)  # type: ignore[arg-type]
    work = OutOfFoldSums(problem, folds, tuple(models.values()), unit, share, seed, compares=averages)
    products, compared, why = source.reduce(work, added)
    sums = RegretsOnRows.of(products)
    seconds = (perf_counter() - begin) / max(1, len(models))
    choice = ChoiceOnRows(notes, untried, frozenset(null.beaten), sums, seconds, n_models * sums.n_rows)
    choice = choice.without({name: str(reason) for name, reason in zip(models, why, strict=True) if reason})
    if not averages:
        return choice
    results = choice.results
    fitting = [str(results["candidate"][place]) for place in places_to_fit(results, null.constant)]
    among = [*(list(models).index(name) for name in fitting), -1]
    weights = fitted_weights(compared[np.ix_(among, among)], in_units=problem.has_known)
    fitted = dict(zip(fitting, weights, strict=True))
    equal, mixed = average_weights(results), average_weights(results, fitted)
    if mixed == equal:
        return choice
    both = tuple(_averages(models, weights, problem) for weights in (equal, mixed))
    products, _, why = source.reduce(replace(work, models=both, compares=False), added)
    of_both = RegretsOnRows.of(products)
    worse = any(why) or of_both.percent[1] - of_both.percent[0] > of_both.errors(minus=0)[1]
    n_solves = choice.n_solves + n_averages * of_both.n_rows
    return replace(choice, n_solves=n_solves, fitted={} if worse else fitted)


def _averages(models: Mapping[str, list[Any]], weights: Mapping[str, float], problem: Problem) -> list[Any]:
    """Return the average of the models of each fold."""
    settings: dict[str, Any] = {"directions": not problem.has_known, "weights": list(weights.values())}
    by_fold = zip(*(models[name] for name in weights), strict=True)
    return [
        AveragedRegressor.of_fitted(list(zip(weights, fitted, strict=True)), problem.n_costs, **settings)
        for fitted in by_fold
    ]


def _count() -> Passes[Sums]:
    return (yield Pass(_n_rows))


def _n_rows(rows: Rows) -> Sums:
    rows.check()
    return (np.array(float(len(rows))),)


@dataclass(frozen=True)
class OutOfFoldSums:
    """The sums over the rows of a block of their regrets, each row decided by the models of its fold.

    Attributes
    ----------
    models : tuple of c lists of k fitted models
    unit : float
        What costs are divided by.
    share : float
        The share of the rows to score.
    seed : int
        Draws them.
    compares : bool
        Whether the predictions are compared, too, for the weights of an average.
    """

    problem: Problem
    folds: RowFolds
    models: tuple[list[Any], ...]
    unit: float
    share: float
    seed: int
    compares: bool

    def __call__(self, rows: Rows) -> Sums:
        """Return the products (c + 2, c + 2) of regrets, best values and ones, and (c + 1, c + 1) of predictions.

        The third entry says why models failed, (c,); what they have in the others is NaN.
        """
        why = [""] * len(self.models)
        regrets, best = np.zeros((len(self.models), 0)), np.zeros(0)
        compared = np.zeros((len(self.models) + 1, len(self.models) + 1))
        problem = in_unit(self.problem, self.unit)
        in_units = self.problem.has_known
        for fold, X, costs in self._pieces(rows):
            truth = Hindsight.of(problem, costs / self.unit)
            own = np.full((len(self.models), len(costs)), np.nan)
            predictions = [np.full_like(costs, np.nan) for _ in self.models] if self.compares else []
            for place, fits in enumerate(self.models):
                found = attempt(partial(self._decided, fits[fold], X, truth))
                if isinstance(found, Exception):
                    why[place] = why[place] or reason_of(found)
                    continue
                prediction, own[place] = found
                if self.compares:
                    predictions[place] = comparable(prediction, in_units=in_units)
            if self.compares:
                compared += weighted_products(predictions, costs / self.unit, in_units=in_units)
            regrets, best = np.hstack([regrets, own]), np.append(best, np.abs(truth.best))
        columns = np.vstack([regrets, best, np.ones(len(best))])
        return columns @ columns.T, compared, np.array(why)

    def _decided(self, model: Any, X: Any, truth: Hindsight) -> tuple[FloatArray, FloatArray]:
        """Return what a model predicts for some rows, in the unit of `truth`, and its regrets."""
        check_in_units(model, self.problem)
        prediction = np.reshape(model.predict(X), (len(X), -1)) / (self.unit if self.problem.has_known else 1.0)
        return prediction, truth.regret(prediction)

    def _pieces(self, rows: Rows) -> Iterator[tuple[int, Any, FloatArray]]:
        """Yield the rows to score in pieces, of which the predictions of all models fit into memory: fold, X, costs."""
        scored = self._scored(rows)
        for fold, (place, part) in enumerate(self.folds.split(rows)):
            chosen = np.flatnonzero(scored[place])
            n_pieces = -(-len(chosen) * self.problem.n_costs // _COSTS_IN_A_PIECE)
            for piece in np.array_split(chosen, n_pieces) if n_pieces else ():
                yield fold, part.X[piece], part.costs[piece]  # type: ignore[index]  # the fits needed them

    def _scored(self, rows: Rows) -> Any:
        if self.share >= 1.0:
            return np.ones(len(rows), dtype=bool)
        rng = np.random.default_rng([self.seed, crc32(rows.origin.encode()), rows.first])
        return rng.random(len(rows)) < self.share


def added(left: Sums, right: Sums) -> Sums:
    """Return the sums of two blocks; of the reasons why a model failed, the first is kept."""
    return *add(left[:-1], right[:-1]), np.where(left[-1] == "", right[-1], left[-1])


@dataclass(frozen=True)
class RegretsOnRows:
    """Regrets of c candidates on all rows together, from the sums of `OutOfFoldSums`."""

    products: FloatArray
    n_rows: int
    scale: float

    @classmethod
    def of(cls, products: FloatArray) -> RegretsOnRows:
        """Return the regrets; raise if they cannot be a percentage."""
        n_rows, scale = int(products[-1, -1]), float(products[-2, -1])
        if n_rows < 2:
            raise ValueError(f"{n_rows} rows could be scored; pass more rows, or a larger max_solves.")
        if scale == 0:
            raise ValueError(
                "the optimal value of every row is 0, so regrets cannot be a percentage of it. Check that the costs "
                "are not all zero."
            )
        return cls(products, n_rows, scale)

    def of_some(self, places: list[int]) -> RegretsOnRows:
        """Return the regrets of some of the candidates."""
        kept = [*places, -2, -1]
        return replace(self, products=self.products[np.ix_(kept, kept)])

    @property
    def percent(self) -> FloatArray:
        """The regrets (c,) in percent of the optimal values."""
        return 100 * self.products[:-2, -1] / self.scale

    def errors(self, minus: int | None = None) -> FloatArray:
        """Return the standard errors (c,) of the regrets, or of their differences to that of a candidate."""
        c = len(self.products) - 2
        contrasts = np.eye(c)
        if minus is not None:
            contrasts[:, minus] -= 1.0
        ratios = contrasts @ self.percent / 100
        # The residuals are `contrast · regrets - ratio · best`, whose mean is zero.
        weights = np.hstack([contrasts, -ratios[:, None]])
        squares = np.einsum("ij,jk,ik->i", weights, self.products[:-1, :-1], weights)
        return 100 * np.sqrt(np.maximum(0.0, squares) * self.n_rows / (self.n_rows - 1)) / self.scale
