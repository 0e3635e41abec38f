"""SPO trees, whose splits minimise the cost of decisions, and a forest of them.

Elmachtoub, Liang and McNellis, "Decision trees for decision-making under the predict-then-optimize framework", 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from decidewise.kit.checks import FloatArray, as_choice, as_integer, as_number
from decidewise.kit.kept import need
from decidewise.models.estimator.base import all_or_nothing, as_generator, read_features
from decidewise.models.estimator.scored_by_regret import ScoredByRegret, set_aside
from decidewise.models.trees.growing import Growth, prune
from decidewise.models.trees.nodes import Nodes, as_text, draw, leaf_labels
from decidewise.models.trees.samples import MAX_TREES, TreeSamples, check_samples
from decidewise.problems.contract import Problem, as_problem, sign_of


class SpoTreeRegressor(ScoredByRegret):
    """A decision tree that splits where decisions become cheapest.

    A leaf predicts the mean cost of its rows, which is the best prediction for rows that share one decision. A node is
    split by the feature and the threshold for which `Σ c·z*(mean cost of the side)`, over the rows of both sides, is
    least; among equals the squared error decides. With features (n, p) and one region for all rows, that is two solves
    for each candidate, all candidates of a node in one batch.

    With features per item, X of shape (n, d, q), one tree serves all items and a leaf predicts the cost of an item.
    There, and where the region differs by row, each candidate solves every row of the node.

    Parameters
    ----------
    problem : Problem
        The feasible region and its sense. If it differs by row, row `i` belongs to row `i` of the data of `fit`.
    max_depth : int, optional
        None lets the tree grow until its leaves cannot be split.
    min_samples_leaf : int
        The smallest number of samples of a leaf: rows, or items of rows with features per item.
    n_thresholds : int
        The largest number of thresholds tried for each feature of a node; they are at quantiles.
    max_features : float, optional
        The share of the features that are tried at a node, drawn anew for each node; None means all.
    validation_fraction : float, optional
        The share of the rows that are set aside to prune the tree by their regret; they count in the means of the
        leaves afterwards. With None, only splits that do not lower the cost of the training rows are removed.
    validation : {"random", "last"}
        Which rows to set aside: a random part, or, if the rows are in order of time, the last ones.
    random_state : int, RandomState instance or None

    Attributes
    ----------
    nodes_ : Nodes
        The tree, as arrays with one entry per node.

    Notes
    -----
    Unlike in the public code of the paper, optimal decisions need not be integers, and a split that only a later one
    makes useful is found, since pruning comes last.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> x = np.arange(40)[:, None] - 19.5
    >>> costs = np.where(x < 0, [1.0, 2.0, 3.0], [3.0, 2.0, 1.0])
    >>> tree = SpoTreeRegressor(TopK(3, 1, sense="min"), min_samples_leaf=5, validation_fraction=None).fit(x, costs)
    >>> print(tree.to_text())
    all: 40 rows
      x0 <= 0: 20 rows, decides on cost 0
      x0 > 0: 20 rows, decides on cost 2
    """

    def __init__(
        self,
        problem: Problem,
        *,
        max_depth: int | None = 4,
        min_samples_leaf: int = 20,
        n_thresholds: int = 100,
        max_features: float | None = None,
        validation_fraction: float | None = 0.2,
        validation: Literal["random", "last"] = "random",
        random_state: Any = None,
    ) -> None:
        self.problem = problem
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.n_thresholds = n_thresholds
        self.max_features = max_features
        self.validation_fraction = validation_fraction
        self.validation = validation
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Grow and prune the tree on features X (n, p), or (n, d, q) of each item, and costs y (n, d)."""
        with all_or_nothing(self):
            as_problem(self.problem)
            growth = Growth.of(self)
            if self.validation_fraction is not None:
                as_number(self.validation_fraction, name="validation_fraction", above=0, below=1)
            as_choice(self.validation, name="validation", choices=("random", "last"))
            X, costs = self._read(X, y)
            rng = as_generator(self.random_state)
            samples = TreeSamples.of(self.problem, costs, X)
            kept = held = samples
            all_rows = "" if self.validation_fraction is None else "validation_fraction=None"
            if self.validation_fraction is not None:
                rows, aside = set_aside(len(X), self.validation_fraction, self.validation, rng, otherwise=all_rows)
                kept, held = samples.take(rows), samples.take(aside)
            check_samples(len(kept), self.min_samples_leaf, per_item=kept.per_item, otherwise=all_rows)
            nodes = prune(growth.grow(kept, rng), held)
            self.nodes_ = in_callers_sense(nodes.refilled(samples.features, samples.values), self.problem, samples)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predicted costs (n, d): the mean cost of the leaf of each row, or of each item."""
        check_is_fitted(self)
        return predicted(self.nodes_, read_features(self, X, reset=False, dtype=np.float64))

    def to_text(self) -> str:
        """Return the tree as text, one line per node; a leaf says what it decides."""
        return as_text(*self._described())

    def plot(self, ax: Any = None) -> Any:
        """Draw the tree with matplotlib and return the axes: those given, or those of a new figure, `ax.figure`."""
        return draw(*self._described(), ax=ax)

    def _check_kept(self) -> None:
        if hasattr(self, "nodes_"):
            check_kept_trees(self, [self.nodes_])

    def _described(self) -> tuple[Nodes, Sequence[str], Callable[[int], str], str]:
        """Return the nodes, the names of features, the label of a leaf, and the name of a sample."""
        check_is_fitted(self)
        per_item = hasattr(self, "n_items_in_")
        features = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        costs = getattr(self, "cost_names_in_", [f"cost {j}" for j in range(self.nodes_.value.shape[1])])
        label = leaf_labels(self.nodes_, self.problem, costs, per_item=per_item)
        return self.nodes_, features, label, "item" if per_item else "row"


def check_kept_trees(estimator: Any, trees: Sequence[Any]) -> None:
    """Raise unless all trees split by features that the estimator has, and predict as many costs."""
    n_features = as_integer(estimator.n_features_in_, name="n_features_in_")
    for nodes in trees:
        need(isinstance(nodes, Nodes), "a tree must be of nodes")
        need(nodes.feature.max() < n_features, f"a tree must split by one of {n_features} features")
        need(nodes.value.shape[1] == trees[0].value.shape[1], "all trees must predict as many costs")


def in_callers_sense(nodes: Nodes, problem: Problem, samples: TreeSamples) -> Nodes:
    """Return the tree with values in the problem's own sense, without the known part of the costs."""
    value = sign_of(problem) * (nodes.value if samples.per_item else nodes.value[:, : problem.n_costs])
    return replace(nodes, value=value)


def predicted(nodes: Nodes, X: FloatArray) -> FloatArray:
    """Return the predictions (n, d) of a tree for features (n, p) or (n, d, q)."""
    values = nodes.value[nodes.apply(X.reshape(-1, X.shape[-1]))]
    return values.reshape(X.shape[:2]) if X.ndim == 3 else values


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
            rng = as_generator(self.random_state)
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
