"""Choose among models by their decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import time
from typing import Any, Literal, Self

import numpy as np
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
)
from decidewise.kit.errors import said_once
from decidewise.kit.interrupts import reason_of
from decidewise.models.candidate_menu import Candidates
from decidewise.models.candidates import default_candidates, demand_candidates, given_forecasts
from decidewise.models.estimator.base import all_or_nothing, read_cost_names, read_features
from decidewise.models.estimator.from_rows import FitsRows, describe
from decidewise.models.learners.averaged import AveragedRegressor
from decidewise.models.selection.choice_on_rows import ChoiceOnRows, choose_on_rows
from decidewise.models.selection.families import SPO_PLUS, explained, family_shares
from decidewise.models.selection.folds import folds
from decidewise.models.selection.last_fits import fit_all
from decidewise.models.selection.null_models import NullModels, with_nothing
from decidewise.models.selection.row_folds import RowFolds
from decidewise.models.selection.scores import CandidateScores, lowest, named, reasons
from decidewise.models.selection.search import search
from decidewise.models.selection.summary import ChoiceSummary
from decidewise.models.selection.sums import passes_of
from decidewise.models.selection.weights import average_weights, null_share
from decidewise.problems.contract import Problem, as_problem, check_rows
from decidewise.rows.passes import Passes, run, together
from decidewise.rows.source import RowSource


class WiseRegressorCV(FitsRows, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Choose the models with the best decisions on held-out rows; the solver scores models but does not train them.

    Every candidate is fitted on each fold, and its predictions decide the held-out rows. The choice is a weighted
    average of the candidates whose regret is near the lowest: of their directions, with their mean size. As long as no
    candidate is proven to beat the null model, that has a share too: the best of the given forecasts, or without any
    the training mean, or doing nothing where that is better. `docs/model_choice.md` has the rule, and what each part of
    it gains.

    `fit_files`, and `decidewise.operate.distributed.fit`, choose by the same rule on rows that are not in memory, among
    the candidates that are sums over rows: the training mean, forecasts, linear and log-linear models.

    Parameters
    ----------
    problem : Problem
        The feasible set and its sense. If it differs by row, row `i` belongs to row `i` of the data of `fit`.
    candidates : mapping of str to estimator, or list of estimators, optional
        Regressors of many outputs, such as `WiseRegressor(learner)`, from the simplest to the most complex. The default
        is `decidewise.models.default_candidates(X, y)`, a dictionary that can be changed and passed here, and "do
        nothing" where the decision zero is possible. If the problem has known costs, candidates must predict in the
        units of the costs, and the default ones do.
    forecast : list of columns of X, callable, or mapping of str to these, optional
        Forecasts of the costs that the features already contain, one column per cost, or functions of `X` that return
        (n, d). Each is a candidate as it is; see `decidewise.models.GivenForecast`. With a forecast the training mean
        is a baseline, which is never chosen.
    lags : sequence of int
        For rows in the order of time: `lags=(1, 7)` also scores the costs of one and of seven rows before as
        predictions. They are baselines and are never chosen, because `predict` does not know the costs of the rows
        before a new row. To have them chosen, put them into `X` and name their columns in `forecast`.
    cv : int, splitter or iterable of splits
        As in scikit-learn. A number makes folds of shuffled rows; of whole groups if `fit` gets groups; of consecutive
        blocks (`BlockFolds`) if `fit` gets times. `TimeFolds(5, gap=1, window=365)` holds out only what comes later,
        with a gap and a rolling window: it measures the future more strictly, and chooses worse, since its first models
        see few rows. `RowFolds(5, rows_together=30)` holds out runs of rows that are not in memory.
    rule : {"average", "minimum"}
        Average the candidates as above, or take the one with the lowest regret.
    train_solves : int or "auto"
        The largest number of solver calls for training: with enough of them, SPO+ is trained too, from the best linear
        candidate and from plain WISE. By default none. With "auto" a batch of calls is timed, and SPO+ may train about
        as long as the rest of the search took, for 30 epochs at most; the choice then depends on the machine.
    max_solves : int, optional
        The largest number of solver calls for scoring. If scoring all held-out rows would take more, a random subset
        of them is scored, the same for all candidates. Every model is still fitted on all training rows of its folds.
    max_seconds : float, optional
        Approximate time limit of a fit. Candidates that are not scored in time are left out, and so are members of the
        average that the time does not suffice to fit on all rows; `notes_` says so. The choice then depends on the
        machine.
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
    null_model_ : str or None
        The name of the null model; None if there is none among your own candidates.
    candidates_ : dict of str to estimator
        All candidates, not fitted, with those that SPO+ has trained.
    families_ : dict of str to str
        The family of each candidate; see `family_shares`.
    best_estimator_
        The model fitted on all rows: the chosen candidate, or an `AveragedRegressor`.
    cv_results_ : dict of arrays
        One entry per candidate: its name ("candidate"), its normalised "regret" on held-out rows in percent with its
        "standard_error", the "difference" to the lowest regret with its standard error ("difference_standard_error"),
        "rank", "seconds", "n_solves", "status" ("scored", "baseline", "dropped" after a trial on one fold, "failed" or
        "not tried"), the reason if it was not scored ("note"), and this reason again if it failed ("error").
    notes_ : dict of str to str
        For each family of the default candidates, why it was tried or why not; and for the "null model", which one it
        is, and its share in the average.
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

    weights_: dict[str, float]
    members_: list[str]

    def __init__(
        self,
        problem: Problem,
        candidates: Any = None,
        *,
        forecast: Any = None,
        lags: Sequence[int] = (),
        cv: Any = 5,
        rule: Literal["average", "minimum"] = "average",
        train_solves: int | Literal["auto"] = 0,
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
            The costs; or the demand of each item, if the problem is `Levels` with a cost of demand.
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
            costs = self.problem.as_costs(y, realised=True)
            X = self._read(X, reset=True)
            read_cost_names(self, y, reset=True)
            check_same_rows(X=X, costs=costs)
            check_items(X, costs.shape[1])
            check_rows(self.problem, len(costs))
            demand = None if np.asarray(y).shape[-1] == costs.shape[1] else y
            candidates, n_asked = self._candidates(X, costs, demand)
            null = NullModels.of(candidates)
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
            splits = folds(self.cv, X, costs, groups, rng, times=times)
            seconds = np.inf if self.max_seconds is None else self.max_seconds
            found = search(
                self.problem,
                X,
                costs,
                candidates,
                splits,
                rng,
                null=null,
                averages=self._averages,
                lags=self.lags,
                train_solves=self.train_solves,
                max_solves=None if self.max_solves is None else max(0, self.max_solves - n_asked),
                max_seconds=seconds - (time() - begin),
                n_jobs=self.n_jobs,
            )
            self.n_solves_ = n_asked + found.n_solves
            self.notes_ = {**candidates.notes, SPO_PLUS: found.note}
            self.families_ = candidates.families | dict.fromkeys(found.trained, SPO_PLUS)
            took = dict(zip(found.scores.names, found.scores.seconds, strict=True))
            last = partial(fit_all, X=X, costs=costs, seconds=took, n_jobs=self.n_jobs, deadline=begin + seconds)
            self._settle(found.scores, {**candidates, **found.trained}, null, found.weights, last)
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
        if self.problem.n_rows is not None or not isinstance(self.cv, int | RowFolds) or limited:
            raise ValueError(
                "on rows that are not in memory, the problem must be the same for every row, cv a number of folds or "
                "RowFolds, and there are no lags, no train_solves and no max_seconds. Use fit on a part of the rows."
            )
        describe(self, source)
        first = source.first()
        if first.costs is None:
            raise ValueError(f"{first.origin} has no costs, and a choice needs them.")
        as_matrix(first.costs, n_columns=self.problem.n_costs, owner=type(self.problem).__name__)
        candidates, n_asked = self._candidates(first.X, first.costs)
        null = NullModels.of(candidates)
        seed = check_random_state(self.random_state).randint(2**31)
        choice = choose_on_rows(
            self.problem,
            source,
            candidates,
            folds=self.cv if isinstance(self.cv, RowFolds) else RowFolds(self.cv),
            max_solves=None if self.max_solves is None else max(0, self.max_solves - n_asked),
            seed=seed,
            averages=self._averages,
            null=null,
        )
        self.notes_, self.n_solves_ = dict(candidates.notes), n_asked + choice.n_solves
        self.families_ = dict(candidates.families)

        def fit_together(models: Mapping[str, Any]) -> list[Any]:
            found = run(together([passes_of(model, source) for model in models.values()]), source)
            return [reason_of(each) if isinstance(each, Exception) else each for each in found]

        self._settle(choice, candidates, null, choice.fitted, fit_together)

    @property
    def _averages(self) -> bool:
        return self.rule == "average"

    def _settle(
        self,
        scores: CandidateScores | ChoiceOnRows,
        models: Mapping[str, Any],
        null: NullModels,
        fitted: Mapping[str, float],
        last_fits: Callable[[Mapping[str, Any]], list[Any]],
    ) -> None:
        """Choose, and fit the choice on all rows. A member that fails there has failed, and the others are chosen from.

        `last_fits` fits models and returns them, for one that fails the reason, and None for one that is late.
        """
        notes, done, self.candidates_ = self.notes_, dict[str, Any](), dict(models)
        while True:
            self.cv_results_, self.notes_ = scores.results, dict(notes)
            self._decide(null, fitted)
            new = {name: clone(models[name]) for name in self.members_ if done.get(name) is None}
            done |= zip(new, last_fits(new), strict=True)
            if late := [name for name in new if done[name] is None]:
                left = {name: weight for name, weight in self.weights_.items() if name not in late}
                self.weights_ = {name: weight / sum(left.values()) for name, weight in left.items()}
                self.members_ = list(left)
                self.notes_["time"] = f"no longer fitted on all rows when max_seconds was reached: {', '.join(late)}"
            failed = {name: f"on all rows: {done[name]}" for name in self.members_ if isinstance(done[name], str)}
            if not failed:
                break
            scores = scores.without(failed)
            left = {name: weight for name, weight in fitted.items() if name not in failed and weight > 0}
            fitted = {name: weight / sum(left.values()) for name, weight in left.items()}
        self.best_estimator_ = self._combined(models, [done[name] for name in self.members_])

    def _decide(self, null: NullModels, fitted: Mapping[str, float]) -> None:
        """Set what is chosen, from the results, the null models and the fitted weights of the candidates."""
        self.best_index_ = lowest(self.cv_results_)
        self.best_name_ = str(self.cv_results_["candidate"][self.best_index_])
        self.weights_ = {self.best_name_: 1.0}
        name, share = null_share(self.cv_results_, null)
        self.null_model_ = name or None
        if self._averages:
            self.weights_ = average_weights(self.cv_results_, fitted, null)
        self.members_ = list(self.weights_)
        if name:
            whole = f"{100 * self.weights_.get(name, 0.0):.1f} % of the average"
            why = f"{whole}, since no candidate is proven to decide better" if share > 0 else "proven to be beaten"
            self.notes_["null model"] = f"{name!r}, {why}"

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
        sentences = [f"Chosen: {chosen}, after {self.n_solves_:,} solver calls."]
        sentences += [f"- {100 * share:.0f} % {meaning}" for share, meaning in explained(family_shares(self))]
        notes = [f"{family}: {note}." for family, note in self.notes_.items()]
        notes += reasons(self.cv_results_["candidate"], self.cv_results_["note"])
        return ChoiceSummary(self.cv_results_, self.weights_, "\n".join(sentences), tuple(notes))

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
        as_choice(self.rule, name="rule", choices=("average", "minimum"))
        if self.train_solves != "auto":
            as_integer(self.train_solves, name='train_solves, if it is not "auto",', minimum=0)

    def _candidates(self, X: Any, costs: FloatArray, demand: Any = None) -> tuple[Candidates, int]:
        """Return the candidates, and the solver calls that it took to know whether doing nothing is one of them.

        Raise if a forecast or a candidate cannot be used with the problem.
        """
        n_asked = 0
        forecasts = given_forecasts(self.forecast if demand is None else None)
        for forecast in forecasts.values():
            forecast.fit(X, costs)  # a bad forecast is an error now, not a candidate that fails
        if self.candidates is None:
            as_features(X)  # the training mean would not notice bad features
            given = self.forecast if demand is None else None
            candidates = default_candidates(X, costs, lifted=self.problem.has_known, forecast=given)
            if demand is not None:  # only `Levels` take it for costs
                levels: Any = self.problem
                candidates = demand_candidates(candidates, levels.with_demand(demand), forecast=self.forecast)
        else:
            menu = self.candidates if isinstance(self.candidates, Candidates) else Candidates()
            candidates = menu.renewed(forecasts | named(self.candidates))
        if self.candidates is None or isinstance(self.candidates, Candidates):
            candidates, n_asked = with_nothing(candidates, self.problem, costs)
        for candidate in candidates.values():
            check_in_units(candidate, self.problem)
        return candidates, n_asked

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
        X = read_features(self, X, reset=reset, skip_check_array=hasattr(X, "columns"), ensure_all_finite=False)
        table = getattr(self.problem, "demand_table", None)
        return X if table is None else table.features(X)
