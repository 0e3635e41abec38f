"""Choose among solver-free models by their decisions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from rich.console import Console
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from decidewise.checks import FloatArray, as_integer, as_matrix, check_items, check_same_rows
from decidewise.evaluate import check_in_units, normalized_regret
from decidewise.models.candidates import default_candidates
from decidewise.models.estimator.all_or_nothing import all_or_nothing
from decidewise.models.estimator.cost_names import read_cost_names
from decidewise.models.estimator.features import read_features
from decidewise.models.selection.out_of_fold import OutOfFold, affordable, folds
from decidewise.models.selection.scores import CandidateScores, named, reasons, table
from decidewise.problems.base import Problem, as_problem, check_rows


class WiseRegressorCV(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Choose the model with the best decisions on held-out rows; the solver scores models but does not train them.

    Every candidate is fitted on each fold, and its predictions decide the held-out rows. The candidate with the lowest
    regret is compared with each of the others row by row. The first candidate, in order from the simplest to the most
    complex, whose regret exceeds the lowest by at most one standard error of this difference is chosen, and fitted on
    all rows.

    Parameters
    ----------
    problem : Problem
        The feasible set and its sense. If it differs by row, row `i` belongs to row `i` of the data of `fit`.
    candidates : mapping of str to estimator, or list of estimators, optional
        Regressors of many outputs, such as `WiseRegressor(learner)`, from the simplest to the most complex. The default
        is `decidewise.models.default_candidates(X, y)`, a dictionary that can be changed and passed here. If the
        problem has known costs, candidates must predict in the units of the costs, and the default ones do.
    cv : int, splitter or iterable of splits
        As in scikit-learn. A number makes folds of shuffled rows, or of whole groups if `fit` gets groups.
        `TimeSeriesSplit` respects the order of time; rows that are never held out are not scored.
    max_solves : int, optional
        The largest number of solver calls for the choice. If scoring all held-out rows would take more, a random subset
        of them is scored, the same for all candidates. Every model is still fitted on all training rows of its folds.
    random_state : int, RandomState instance or None
        Shuffles the rows into folds, and draws the rows to score.

    Attributes
    ----------
    best_name_, best_index_, best_estimator_
        The chosen candidate: its name, its position, and the model fitted on all rows.
    cv_results_ : dict of arrays
        One entry per candidate: its name ("candidate"), its normalised "regret" on held-out rows in percent with its
        "standard_error", the "difference" to the lowest regret with its standard error ("difference_standard_error"),
        "rank", "seconds", "n_solves", and the "error" if it could not be scored.
    n_solves_ : int
        The number of solver calls for the choice.
    n_features_in_ : int
    n_items_in_ : int, if the features are per item
    feature_names_in_ : ndarray of str, if the features have names
    cost_names_in_ : ndarray of str, if the costs have names

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> train, test = make_shortest_path(1_200, degree=6, seed=0).split(200)
    >>> model = WiseRegressorCV(train.problem, random_state=0).fit(train.X, train.costs)
    >>> "gamma" in model.best_name_  # the costs are polynomials of the features, which suit a log link
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
        X : array-like or frame of shape (n, p), or array-like of shape (n, d, q) with features of each item
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
            read_cost_names(self, y, reset=True)
            check_same_rows(X=X, costs=costs)
            check_items(X, costs.shape[1])
            check_rows(self.problem, len(costs))
            candidates = self.candidates
            if candidates is None:
                candidates = default_candidates(X, costs, lifted=self.problem.has_known)
            candidates = named(candidates)
            for candidate in candidates.values():
                check_in_units(candidate, self.problem)
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
        """Return minus the normalised regret in percent, so that a search prefers better decisions."""
        if sample_weight is not None:
            raise ValueError("regret is not weighted; leave out sample_weight.")
        read_cost_names(self, y, reset=False)
        return -normalized_regret(self.problem, self.predict(X), y)

    def summary(self) -> None:
        """Print the candidates as a table, with the lowest regret first, and why candidates failed."""
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
        # The candidates check what a frame may contain, and whether numbers must be finite.
        return read_features(self, X, reset=reset, skip_check_array=hasattr(X, "columns"), ensure_all_finite=False)
