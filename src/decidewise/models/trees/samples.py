"""The samples that pass through a tree, and the cost of the decisions that predictions for them lead to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray, IndexArray
from decidewise.kit.errors import SolverError
from decidewise.problems.contract import Problem, sign_of
from decidewise.problems.views import is_lifted, lift

# The most numbers in one batch of predictions to solve.
_BATCH = 2**21

#: The most trees of one model: a number beyond it is a mistake, and would never end.
MAX_TREES = 1_000_000


@dataclass(frozen=True)
class Splits:
    """Candidate splits of some samples.

    Attributes
    ----------
    feature, threshold : ndarray of shape (g,)
        A sample goes left where `x[feature] <= threshold`.
    left, right : ndarray of shape (g, k)
        The means of the samples on each side.
    n_left, n_right : ndarray of shape (g,)
        The numbers of samples on each side.
    """

    feature: IndexArray
    threshold: FloatArray
    left: FloatArray
    right: FloatArray
    n_left: IndexArray
    n_right: IndexArray

    def __len__(self) -> int:
        return len(self.feature)

    def values(self, X: FloatArray, part: slice) -> FloatArray:
        """Return what a part of the splits predicts for features, (e, p) -> (h, e, k)."""
        goes_left = self.threshold[part, None] >= X[:, self.feature[part]].T
        return np.where(goes_left[:, :, None], self.left[part, None], self.right[part, None])


@dataclass(frozen=True)
class TreeSamples:
    """Features, costs and the problem, as a tree sees them.

    With features (n, p) a sample is a row and a leaf predicts a whole cost vector. With features per item (n, d, q) a
    sample is one item of one row, and a leaf predicts the cost of an item.

    Attributes
    ----------
    problem : Problem
        Lifted, if it has known costs.
    costs : ndarray of shape (n, D)
        To be minimised, and lifted if the problem is.
    X : ndarray of shape (n, p) or (n, d, q)
    """

    problem: Problem
    costs: FloatArray
    X: FloatArray

    @classmethod
    def of(cls, problem: Problem, costs: FloatArray, X: FloatArray) -> TreeSamples:
        """Return the samples of costs (n, d) in the problem's own sense."""
        lifted = problem.lifted
        return cls(lifted, sign_of(problem) * lift(lifted, costs), X)

    def take(self, rows: IndexArray) -> TreeSamples:
        """Return the samples of some rows, which may repeat."""
        return TreeSamples(self.problem.take(rows), self.costs[rows], self.X[rows])

    def __len__(self) -> int:
        return len(self.features)

    @property
    def per_item(self) -> bool:
        """Whether a sample is an item of a row."""
        return self.X.ndim == 3

    @property
    def shares_decisions(self) -> bool:
        """Whether all samples of a leaf have the same decision: a sample is a row, and the region is that of all."""
        return not self.per_item and self.problem.n_rows is None

    @cached_property
    def features(self) -> FloatArray:
        """The features of each sample, (m, p)."""
        return self.X.reshape(-1, self.X.shape[-1])

    @cached_property
    def values(self) -> FloatArray:
        """What a leaf averages: (n, D), or (n * d, 1) with features per item."""
        return self.costs[:, : self.X.shape[1]].reshape(-1, 1) if self.per_item else self.costs

    def predictions(self, values: FloatArray) -> FloatArray:
        """Return the predictions (n, D) that values of all samples, (m, k), make up."""
        if not self.per_item:
            return values
        prediction = values.reshape(self.X.shape[:2])
        if is_lifted(self.problem):
            prediction = np.column_stack([prediction, np.ones(len(prediction))])
        return prediction

    def cost_of_groups(self, means: FloatArray, sums: FloatArray) -> FloatArray:
        """Return `Σ c·z*(mean)` over each group of rows, given what is predicted for it and the sum of its costs.

        (g, D), (g, D) -> (g,). All rows of a group share one decision, so this needs one solve for each group, and a
        region that is the same for all rows.
        """
        return np.einsum("ij,ij->i", self.problem.minimize(np.ascontiguousarray(means)), sums)

    def cost_of_rows(self, prediction: FloatArray, rows: IndexArray) -> FloatArray:
        """Return `Σ_i c_i·z_i*(p_i)` over the rows (r,) for each of several predictions, (g, r, D) -> (g,)."""
        n_groups, n_rows, n_costs = prediction.shape
        problem = self.problem if self.problem.n_rows is None else self.problem.take(np.tile(rows, n_groups))
        try:
            decisions = problem.minimize(np.ascontiguousarray(prediction).reshape(-1, n_costs))
        except SolverError as error:
            raise error.at(int(rows[error.row % n_rows])) from error
        return np.einsum("grj,rj->g", decisions.reshape(prediction.shape), self.costs[rows])

    def cost_of_splits(self, splits: Splits, samples: IndexArray, now: FloatArray) -> FloatArray:
        """Return the cost of the decisions for all rows that have some of the samples, after each split: (g,).

        Where one decision serves all rows of a side, that is two solves for each split; otherwise every row is solved.

        Parameters
        ----------
        splits : Splits
        samples : ndarray of shape (e,)
            The samples that are split.
        now : ndarray of shape (n, D)
            The predictions of all rows before the split.
        """
        if self.shares_decisions:
            means = np.concatenate([splits.left, splits.right])
            counts = np.concatenate([splits.n_left, splits.n_right])
            return self.cost_of_groups(means, means * counts[:, None]).reshape(2, -1).sum(axis=0)
        rows, where, items = samples, np.arange(len(samples)), None
        if self.per_item:
            rows, where = np.unique(samples // self.X.shape[1], return_inverse=True)
            items = samples % self.X.shape[1]
        features = self.features[samples]
        size = max(1, _BATCH // (len(rows) * self.costs.shape[1]))
        costs = np.empty(len(splits))
        for first in range(0, len(splits), size):
            check_time()
            part = slice(first, first + size)
            prediction = splits.values(features, part)
            if items is not None:
                values, prediction = prediction, np.tile(now[rows], (len(prediction), 1, 1))
                prediction[:, where, items] = values[:, :, 0]
            costs[part] = self.cost_of_rows(prediction, rows)
        return costs


def check_samples(n_samples: int, min_samples_leaf: int, *, per_item: bool, otherwise: str = "") -> None:
    """Raise if there are fewer samples than one leaf needs; `otherwise` sets no rows aside."""
    if n_samples < min_samples_leaf:
        what = "items of rows" if per_item else "rows"
        aside = f", or set no rows aside ({otherwise})" if otherwise else ""
        raise ValueError(
            f"a tree has n_samples={n_samples} {what} to grow on, and a leaf needs min_samples_leaf="
            f"{min_samples_leaf}. Pass more rows, or a smaller min_samples_leaf{aside}."
        )
