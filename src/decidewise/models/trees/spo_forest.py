"""A forest of SPO trees: each on rows drawn with replacement, their costs averaged.

Elmachtoub, Liang and McNellis, "Decision trees for decision-making under the predict-then-optimize framework", 2020.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from decidewise.kit.checks import FloatArray, as_integer
from decidewise.kit.kept import need
from decidewise.models.estimator.base import all_or_nothing, read_features
from decidewise.models.estimator.scored_by_regret import ScoredByRegret
from decidewise.models.trees.growing import Growth
from decidewise.models.trees.nodes import Nodes
from decidewise.models.trees.samples import MAX_TREES, TreeSamples, check_samples
from decidewise.models.trees.spo_tree import check_kept_trees, in_callers_sense, predicted
from decidewise.problems.contract import Problem, as_problem


class SpoForestRegressor(ScoredByRegret):
    """The mean prediction of many SPO trees, each grown on a bootstrap sample of the rows and not pruned.

    See `SpoTreeRegressor` for how a tree splits; this averages the costs that the trees predict, and leaves the
    decision to the problem.

    Parameters
    ----------
    problem : Problem
        The feasible region and its sense. If it differs by row, row `i` belongs to row `i` of the data of `fit`.
    n_estimators : int
        The number of trees.
    max_depth, min_samples_leaf, n_thresholds
        As for `SpoTreeRegressor`.
    max_features : float, optional
        The share of the features that are tried at a node, drawn anew for each node; None means all.
    n_jobs : int, optional
        The number of threads that grow trees; -1 means one for each processor. The result does not depend on it.
    random_state : int, RandomState instance or None

    Attributes
    ----------
    trees_ : list of Nodes

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> train, test = make_shortest_path(300, degree=6, seed=0).split(200)
    >>> forest = SpoForestRegressor(train.problem, n_estimators=5, random_state=0).fit(train.X, train.costs)
    >>> forest.predict(test.X).shape, len(forest.trees_)
    ((100, 40), 5)
    """

    def __init__(
        self,
        problem: Problem,
        *,
        n_estimators: int = 100,
        max_depth: int | None = None,
        min_samples_leaf: int = 5,
        n_thresholds: int = 100,
        max_features: float | None = 1 / 3,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.problem = problem
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.n_thresholds = n_thresholds
        self.max_features = max_features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the trees on features X (n, p), or (n, d, q) of each item, and costs y (n, d)."""
        with all_or_nothing(self):
            as_problem(self.problem)
            growth = Growth.of(self)
            as_integer(self.n_estimators, name="n_estimators", maximum=MAX_TREES)
            X, costs = self._read(X, y)
            samples = TreeSamples.of(self.problem, costs, X)
            check_samples(len(samples), self.min_samples_leaf, per_item=samples.per_item)
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
            trees = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(_grown)(growth, samples, own) for own in rng.spawn(self.n_estimators)
            )
            self.trees_: list[Nodes] = [in_callers_sense(nodes, self.problem, samples) for nodes in trees]
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predicted costs (n, d): the mean over the trees."""
        check_is_fitted(self)
        X = read_features(self, X, reset=False, dtype=np.float64)
        total = predicted(self.trees_[0], X)
        for nodes in self.trees_[1:]:
            total = total + predicted(nodes, X)
        return total / len(self.trees_)

    def _check_kept(self) -> None:
        if hasattr(self, "trees_"):
            need(isinstance(self.trees_, list) and len(self.trees_) > 0, "trees_ must be a list of trees")
            check_kept_trees(self, self.trees_)


def _grown(growth: Growth, samples: TreeSamples, rng: np.random.Generator) -> Nodes:
    rows = rng.integers(len(samples.costs), size=len(samples.costs))
    return growth.grow(samples.take(rows), rng)
