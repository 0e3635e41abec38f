"""The choice among solver-free models, by the decisions that they lead to."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from rich.console import Console
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from decidewise.checks import FloatArray, as_integer, as_matrix, check_same_rows
from decidewise.evaluate import normalized_regret
from decidewise.models.candidates import default_candidates
from decidewise.models.estimator.all_or_nothing import all_or_nothing
from decidewise.models.estimator.traits import refuse_masked
from decidewise.models.selection.out_of_fold import OutOfFold, affordable, folds
from decidewise.models.selection.scores import CandidateScores, named, reasons, table
from decidewise.problems.base import Problem, as_problem


class WiseRegressorCV(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Choose the model that decides best on rows it has not seen; the solver judges, and no training needs it.

    Every candidate is fitted fold by fold, and the held-out rows are decided by its predictions. The candidate with the
    lowest regret is compared with each of the others row by row; the first one (they come from the simplest to the most
    complex) that is not worse by more than one standard error of this difference is chosen, and fitted on all rows.

    Parameters
    ----------
    problem : Problem
        The feasible region and its sense.
    candidates : mapping of str to estimator, or list of estimators, optional
        From the simplest to the most complex: any regressors of many outputs, such as `WiseRegressor(learner)`. By
        default those of `decidewise.models.default_candidates`, which may be changed and passed here.
    cv : int, splitter or iterable of splits
        As in scikit-learn. A number makes folds of shuffled rows, or of whole groups where `fit` is given groups.
        `TimeSeriesSplit` keeps to the order of time; rows that are never held out do not count.
    max_solves : int, optional
        The most solver calls that choosing may take. Where scoring every held-out row would take more, as many rows as
        there are calls for are drawn at random, the same for all candidates; every model is still fitted on all rows
        of its folds.
    random_state : int, RandomState instance or None
        Shuffles the rows into folds, and draws those that are scored.

    Attributes
    ----------
    best_name_, best_index_, best_estimator_
        The chosen candidate: its name, its place, and the model fitted on all rows.
    cv_results_ : dict of arrays
        Of each candidate its name ("candidate"), normalised "regret" out of fold in percent with its "standard_error",
        the "difference" to the lowest regret with its standard error ("difference_standard_error"), "rank", "seconds",
        "n_solves", and the "error" that kept it from being scored.
    n_solves_ : int
        The solver calls that choosing took.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where the features came with names

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> train, test = make_shortest_path(1_200, degree=6, seed=0).split(200)
    >>> model = WiseRegressorCV(train.problem, random_state=0).fit(train.X, train.costs)
    >>> "gamma" in model.best_name_  # costs are a polynomial of the features: the log link decides best
    True
    >>> model.predict(test.X).shape
    (1000, 40)
    """

    def __init__(
        self,
        problem: Problem,
        candidates: Any = None,
        *,
        cv: Any = 5,
        max_solves: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.problem = problem
        self.candidates = candidates
        self.cv = cv
        self.max_solves = max_solves
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Choose a candidate and fit it on all rows.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
        y : array-like or frame of shape (n, d)
            The costs.
        groups : array-like of shape (n,), optional
            Rows of one group are held out together.
        """
        with all_or_nothing(self):
            as_problem(self.problem)
            if self.max_solves is not None:
                as_integer(self.max_solves, name="max_solves", minimum=0)
            if y is None:
                raise ValueError(
                    "WiseRegressorCV requires y to be passed, but the target y is None. Pass the costs, (n, d)."
                )
            costs = as_matrix(y, n_columns=self.problem.n_costs, owner=type(self.problem).__name__)
            X = self._read(X, reset=True)
            check_same_rows(X=X, costs=costs)
            candidates = named(default_candidates(X, costs) if self.candidates is None else self.candidates)
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
            splits = folds(self.cv, X, costs, groups, rng)
            rows = affordable(splits, len(candidates), self.max_solves, rng)
            scores = CandidateScores.run(OutOfFold.of(self.problem, X, costs, splits, rows), candidates)
            self.cv_results_ = scores.results
            self.n_solves_ = scores.n_solves
            self.best_index_ = scores.choice
            self.best_name_ = list(candidates)[scores.choice]
            self.best_estimator_ = clone(candidates[self.best_name_]).fit(X, costs)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the costs (n, d) that the chosen model predicts."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        return np.reshape(self.best_estimator_.predict(X), (-1, self.problem.n_costs))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the normalised regret in percent, so that a search keeps the model that decides best."""
        if sample_weight is not None:
            raise ValueError("regret is not weighted; leave sample_weight out.")
        return -normalized_regret(self.problem, self.predict(X), y)

    def summary(self) -> None:
        """Print the candidates as a table, the lowest regret first, and why some of them failed."""
        check_is_fitted(self)
        console, results = Console(), self.cv_results_
        console.print(table(results, self.best_index_))
        lines = [f"Chosen: {self.best_name_}, after {self.n_solves_:,} solver calls."]
        lines += reasons(results["candidate"], results["error"])
        console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.regressor_tags.poor_score = True  # the score is minus a regret, never above zero
        return tags

    def _read(self, X: Any, *, reset: bool) -> Any:
        refuse_masked(X)
        # A frame may hold whatever the candidates take; whether numbers are finite is theirs to say, too.
        return validate_data(self, X, reset=reset, skip_check_array=hasattr(X, "columns"), ensure_all_finite=False)
