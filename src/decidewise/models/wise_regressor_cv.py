"""Choose among models by their decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import time
from typing import Any, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from decidewise.evaluate import check_in_units, normalized_regret
from decidewise.kit.checks import (
    FloatArray,
    as_choice,
    as_features,
    as_integer,
    as_matrix,
    as_positive,
    check_items,
    check_same_rows,
    is_per_item,
)
from decidewise.kit.doubts import said_once
from decidewise.kit.interrupts import attempt, reason_of
from decidewise.models.candidate_menu import Candidates
from decidewise.models.candidates import constant_names, default_candidates, given_forecasts
from decidewise.models.estimator.features import read_features
from decidewise.models.estimator.from_rows import FitsRows, describe
from decidewise.models.estimator.traits import all_or_nothing, read_cost_names
from decidewise.models.learners.averaged import AveragedRegressor
from decidewise.models.linear.blocks import one_library_thread
from decidewise.models.selection.choice_on_rows import ChoiceOnRows, choose_on_rows
from decidewise.models.selection.folds import affordable, folds
from decidewise.models.selection.lags import lagged
from decidewise.models.selection.out_of_fold import OutOfFold
from decidewise.models.selection.polish import polished
from decidewise.models.selection.race import n_models_to_score, race
from decidewise.models.selection.row_folds import RowFolds
from decidewise.models.selection.scores import CandidateScores, choose, named, reasons
from decidewise.models.selection.summary import ChoiceSummary
from decidewise.models.selection.sums import passes_of
from decidewise.models.selection.weights import FittedWeights, average_weights, constant_share
from decidewise.problems.contract import Problem, as_problem, check_rows
from decidewise.rows.passes import Passes, run, together
from decidewise.rows.source import RowSource


class WiseRegressorCV(FitsRows, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Choose the models with the best decisions on held-out rows; the solver scores models but does not train them.

    Every candidate is fitted on each fold, and its predictions decide the held-out rows. The candidate with the lowest
    regret is compared with each of the others row by row. Those whose regret exceeds the lowest by at most one standard
    error of this difference cannot be told apart. The choice is a weighted average of predicted directions: half of the
    weight is shared by these candidates alike, and half is fitted, so that the average of all candidates within four
    standard errors has the lowest WISE loss on held-out rows, unless it then decides clearly worse. If it is not proven
    that they decide better than the training mean, this has a share in the average. `docs/choosing.md` shows what each
    of these gains over choosing one of the candidates.

    `fit_files`, and `decidewise.operate.distributed.fit`, choose by the same rule on rows that are not in memory, among
    the candidates that are sums over rows: the training mean, forecasts, and linear models with any exponent, deviance
    and scale. Candidates with scaled, quadratic or smooth features, for outliers, trees and models that these correct
    need all rows; they are listed as not tried.

    Parameters
    ----------
    problem : Problem
        The feasible set and its sense. If it differs by row, row `i` belongs to row `i` of the data of `fit`.
    candidates : mapping of str to estimator, or list of estimators, optional
        Regressors of many outputs, such as `WiseRegressor(learner)`, from the simplest to the most complex. The default
        is `decidewise.models.default_candidates(X, y)`, a dictionary that can be changed and passed here. If the
        problem has known costs, candidates must predict in the units of the costs, and the default ones do.
    forecast : list of columns of X, callable, or mapping of str to these, optional
        Forecasts of the costs that the features already contain, one column per cost, or functions of `X` that return
        (n, d). Each is a candidate as it is; see `decidewise.models.GivenForecast`.
    lags : sequence of int
        For rows in the order of time: `lags=(1, 7)` also scores the costs of one and of seven rows before as
        predictions. They are baselines and are never chosen, because `predict` does not know the costs of the rows
        before a new row. To have them chosen, put them into `X` and name their columns in `forecast`.
    cv : int, splitter or iterable of splits
        As in scikit-learn. A number makes folds of shuffled rows; of whole groups if `fit` gets groups; of consecutive
        blocks (`BlockFolds`) if `fit` gets times. `TimeFolds(5, gap=1, window=365)` holds out only what comes later,
        with a gap and a rolling window: it measures the future more strictly, and chooses worse, since its first models
        see few rows. Rows that are never held out are not scored.
    rule : {"average", "one standard error", "minimum"}
        Average the candidates as above, or take a single one: the first (the simplest) within one standard error of the
        lowest regret, or that with the lowest regret. The average is drawn to the training mean, if this is among the
        candidates, as far as the lowest regret is less than two standard errors below that of the mean.
    train_solves : int
        The largest number of solver calls for training: with enough of them, SPO+ is trained too, from the best linear
        candidate and from plain WISE. By default none.
    max_solves : int, optional
        The largest number of solver calls for scoring. If scoring all held-out rows would take more, a random subset
        of them is scored, the same for all candidates. Every model is still fitted on all training rows of its folds.
    max_seconds : float, optional
        The largest time of a fit, about: candidates that are not scored in time are not tried, or stopped between two
        steps of their fits. A part of the time is kept for the fit on all rows. The choice then depends on the machine.
    n_jobs : int, optional
        How many candidates are scored at a time, as in scikit-learn. It does not change the result.
    random_state : int, RandomState instance or None
        Shuffles the rows into folds, and draws the rows to score.

    Attributes
    ----------
    best_name_, best_index_ : str, int
        The name and the position of the chosen candidate; among several that are averaged, of that with the lowest
        regret.
    members_ : list of str
        The candidates that are averaged, or the chosen one alone.
    weights_ : dict of str to float
        The weights of the members in the average, which sum to one.
    best_estimator_
        The model fitted on all rows: the chosen candidate, or an `AveragedRegressor`.
    cv_results_ : dict of arrays
        One entry per candidate: its name ("candidate"), its normalised "regret" on held-out rows in percent with its
        "standard_error", the "difference" to the lowest regret with its standard error ("difference_standard_error"),
        "rank", "seconds", "n_solves", "status" ("scored", "baseline", "dropped" after a trial on one fold, "failed" or
        "not tried"), the reason if it was not scored ("note"), and this reason again if it failed ("error").
    notes_ : dict of str to str
        For each family of the default candidates, why it was tried or why not; and if the training mean has a share in
        the average, by its name, why it has.
    n_solves_ : int
        The number of solver calls for scoring.
    n_features_in_ : int
    n_items_in_ : int, if the features are per item
    feature_names_in_ : ndarray of str, if the features have names
    cost_names_in_ : ndarray of str, if the costs have names

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> train, test = make_shortest_path(1_200, degree=6, seed=0).split(200)
    >>> model = WiseRegressorCV(train.problem, random_state=0).fit(train.X, train.costs)
    >>> "wise 0.75 gamma" in model.members_  # the costs are polynomials of the features, which suit a log link
    True
    >>> model.predict(test.X).shape
    (1000, 40)
    """

    def __init__(
        self,
        problem: Problem,
        candidates: Any = None,
        *,
        forecast: Any = None,
        lags: Sequence[int] = (),
        cv: Any = 5,
        rule: Literal["average", "one standard error", "minimum"] = "average",
        train_solves: int = 0,
        max_solves: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.problem = problem
        self.candidates = candidates
        self.forecast = forecast
        self.lags = lags
        self.cv = cv
        self.rule = rule
        self.train_solves = train_solves
        self.max_solves = max_solves
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None, times: Any = None) -> Self:
        """Choose a candidate and fit it on all rows.

        Parameters
        ----------
        X : array-like or frame of shape (n, p), or array-like of shape (n, d, q) with features of each item
        y : array-like or frame of shape (n, d)
            The costs.
        groups : array-like of shape (n,), optional
            Rows of one group are held out together.
        times : array-like of shape (n,), optional
            When each row was, as numbers or dates, in increasing order: consecutive blocks are held out.
        """
        with all_or_nothing(self), said_once():
            begin = time()
            self._check_parameters()
            if y is None:
                raise ValueError(
                    "WiseRegressorCV requires y to be passed, but the target y is None. Pass the costs, (n, d)."
                )
            costs = as_matrix(y, n_columns=self.problem.n_costs, owner=type(self.problem).__name__)
            X = self._read(X, reset=True)
            read_cost_names(self, y, reset=True)
            check_same_rows(X=X, costs=costs)
            check_items(X, costs.shape[1])
            check_rows(self.problem, len(costs))
            candidates = self._candidates(X, costs)
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
            splits = folds(self.cv, X, costs, groups, rng, times=times)
            baselines = lagged(costs, self.lags, splits)
            n_models = n_models_to_score(candidates, len(splits)) + len(baselines)
            # After the race SPO+ from two starts is scored, and the averages with equal and with fitted weights.
            n_trained, n_averages = 2 * (self.train_solves > 0), 2 * self._averages
            rows = affordable(splits, n_models + n_trained + n_averages, self.max_solves, rng)
            held_out = OutOfFold.of(self.problem, X, costs, splits, rows)
            settings: dict[str, Any] = {"n_jobs": self.n_jobs}
            if self.max_seconds is not None:
                # A fit on all rows takes about as long as that of one fold.
                settings["deadline"] = begin + self.max_seconds * len(splits) / (len(splits) + 1)
            n_later = n_trained * held_out.n_solves + n_averages * len(held_out.sample)
            max_solves = None if self.max_solves is None else self.max_solves - n_later
            scores = race(held_out, candidates, max_solves=max_solves, baselines=baselines, **settings)
            ranked = {name: candidates[name] for name in scores.ranked}
            trained, note = polished(
                self.problem, ranked, splits, len(costs), self.train_solves, with_steps=not is_per_item(X)
            )
            if trained:
                scores = scores.plus(race(held_out, trained, at_least_one=False, **settings))
            fitted = FittedWeights({}, 0)
            if self._averages:
                fitted = held_out.fitted_weights(scores, constant_names(candidates))
            self.n_solves_ = scores.n_solves + fitted.n_solves
            self.notes_ = {**candidates.notes, "SPO+": note}

            def fit_all(models: Mapping[str, Any]) -> list[Any]:
                if len(models) == 1:
                    return [_fit(model, X, costs) for model in models.values()]
                with one_library_thread():
                    return list(Parallel(n_jobs=self.n_jobs)(delayed(_fit)(each, X, costs) for each in models.values()))

            self._settle(scores, {**candidates, **trained}, fitted.weights, fit_all)
        return self

    @said_once()
    def fit_rows(self, source: RowSource) -> Self:
        """Choose on the rows of a source; see `decidewise.rows`."""
        with all_or_nothing(self):
            self._choose_on_rows(source)
        source.close()
        return self

    def _passes(self, source: RowSource) -> Passes[None]:
        raise TypeError("a choice passes over the rows itself; call fit_rows.")

    def _choose_on_rows(self, source: RowSource) -> None:
        """Choose among the candidates that are sums over rows, and fit the choice, in passes over a source.

        The rule is that of rows in memory.
        """
        self._check_parameters()
        limited = self.lags or self.train_solves or self.max_seconds is not None
        if self.problem.n_rows is not None or not isinstance(self.cv, int) or limited:
            raise ValueError(
                "on rows that are not in memory, the problem must be the same for every row, cv a number of folds, and "
                "there are no lags, no train_solves and no max_seconds. Use fit on a part of the rows."
            )
        describe(self, source)
        first = source.first()
        if first.costs is None:
            raise ValueError(f"{first.origin} has no costs, and a choice needs them.")
        as_matrix(first.costs, n_columns=self.problem.n_costs, owner=type(self.problem).__name__)
        candidates = self._candidates(first.X, first.costs)
        seed = check_random_state(self.random_state).randint(2**31)
        folds_of_rows = RowFolds(as_integer(self.cv, name="cv", minimum=2))
        choice = choose_on_rows(
            self.problem,
            source,
            candidates,
            folds=folds_of_rows,
            max_solves=self.max_solves,
            seed=seed,
            averages=self._averages,
            constant=constant_names(candidates),
        )
        self.notes_, self.n_solves_ = dict(candidates.notes), choice.n_solves

        def fit_all(models: Mapping[str, Any]) -> list[Any]:
            found = run(together([passes_of(model, source) for model in models.values()]), source)
            return [reason_of(each) if isinstance(each, Exception) else each for each in found]

        self._settle(choice, candidates, choice.fitted, fit_all)

    @property
    def _averages(self) -> bool:
        return self.rule == "average"

    def _settle(
        self,
        scores: CandidateScores | ChoiceOnRows,
        models: Mapping[str, Any],
        fitted: Mapping[str, float],
        fit_all: Callable[[Mapping[str, Any]], list[Any]],
    ) -> None:
        """Choose, and fit the choice on all rows. A member that fails there has failed, and the others are chosen from.

        `fit_all` fits models and returns them, or for one that fails the reason.
        """
        notes, done = self.notes_, dict[str, Any]()
        while True:
            self.cv_results_, self.notes_ = scores.results, dict(notes)
            self._decide(models, fitted)
            new = {name: clone(models[name]) for name in self.members_ if name not in done}
            done |= zip(new, fit_all(new), strict=True)
            failed = {name: f"on all rows: {done[name]}" for name in new if isinstance(done[name], str)}
            if not failed:
                break
            scores = scores.without(failed)
            left = {name: weight for name, weight in fitted.items() if name not in failed and weight > 0}
            fitted = {name: weight / sum(left.values()) for name, weight in left.items()}
        self.best_estimator_ = self._combined(models, [done[name] for name in self.members_])

    def _decide(self, candidates: Mapping[str, Any], fitted: Mapping[str, float]) -> None:
        """Set what is chosen, from the results and from the fitted weights of the candidates."""
        self.best_index_ = choose(self.cv_results_, self.rule)
        self.best_name_ = str(self.cv_results_["candidate"][self.best_index_])
        self.weights_ = {self.best_name_: 1.0}
        if self._averages:
            constant = constant_names(candidates)
            self.weights_ = average_weights(self.cv_results_, fitted, constant)
            simple, share = constant_share(self.cv_results_, constant)
            if share > 0:
                whole = f"{100 * self.weights_[simple]:.1f} % of the average"
                self.notes_[simple] = f"{whole}, since no candidate is proven to decide better"
        self.members_ = list(self.weights_)

    def predict(self, X: Any) -> FloatArray:
        """Return the costs (n, d) that the chosen model predicts."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        check_items(X, self.problem.n_costs)
        return np.reshape(self.best_estimator_.predict(X), (-1, self.problem.n_costs))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the normalised regret in percent, so that a search prefers better decisions."""
        if sample_weight is not None:
            raise ValueError("regret is not weighted; leave out sample_weight.")
        read_cost_names(self, y, reset=False)
        return -normalized_regret(self.problem, self.predict(X), y)

    def summary(self) -> ChoiceSummary:
        """Return the candidates as a table, with the lowest regret first, and why candidates failed.

        `print` shows it; a notebook does if it is the last line of a cell.
        """
        check_is_fitted(self)
        chosen = self.best_name_
        if len(self.members_) > 1:
            chosen = f"the average of {len(self.members_)} candidates with the weights in the table"
        notes = [f"{family}: {note}." for family, note in self.notes_.items()]
        notes += reasons(self.cv_results_["candidate"], self.cv_results_["note"])
        sentence = f"Chosen: {chosen}, after {self.n_solves_:,} solver calls."
        return ChoiceSummary(self.cv_results_, self.weights_, sentence, tuple(notes))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.regressor_tags.poor_score = True  # the score is minus a regret, never above zero
        return tags

    def _check_parameters(self) -> None:
        as_problem(self.problem)
        if self.max_solves is not None:
            as_integer(self.max_solves, name="max_solves", minimum=0)
        if self.max_seconds is not None:
            as_positive(self.max_seconds, name="max_seconds")
        as_choice(self.rule, name="rule", choices=("average", "one standard error", "minimum"))
        as_integer(self.train_solves, name="train_solves", minimum=0)

    def _candidates(self, X: Any, costs: FloatArray) -> Candidates:
        """Return the candidates; raise if a forecast or a candidate cannot be used with the problem."""
        forecasts = given_forecasts(self.forecast)
        for forecast in forecasts.values():
            forecast.fit(X, costs)  # a bad forecast is an error now, not a candidate that fails
        if self.candidates is None:
            as_features(X)  # the training mean would not notice bad features
            candidates = default_candidates(X, costs, lifted=self.problem.has_known, forecast=self.forecast)
        else:
            menu = self.candidates if isinstance(self.candidates, Candidates) else Candidates()
            candidates = menu.renewed(forecasts | named(self.candidates))
        for candidate in candidates.values():
            check_in_units(candidate, self.problem)
        return candidates

    def _combined(self, models: Mapping[str, Any], fitted: list[Any]) -> Any:
        """Return the model of the fitted members: one of the candidates, or their average."""
        if len(fitted) == 1:
            return fitted[0]
        shares = list(self.weights_.values())
        return AveragedRegressor.of_fitted(
            [(name, models[name]) for name in self.members_],
            self.problem.n_costs,
            fitted,
            directions=not self.problem.has_known,
            weights=None if len(set(shares)) == 1 else shares,
            n_jobs=self.n_jobs,
        )

    def _read(self, X: Any, *, reset: bool) -> Any:
        # The candidates check what a frame may contain, and whether numbers must be finite.
        return read_features(self, X, reset=reset, skip_check_array=hasattr(X, "columns"), ensure_all_finite=False)


def _fit(model: Any, X: Any, costs: FloatArray) -> Any:
    """Return the fitted model, or why it failed: as text, since not every exception can leave a process."""
    found = attempt(lambda: model.fit(X, costs))
    return reason_of(found) if isinstance(found, Exception) else found
