"""The data set: features, costs, and the problem that turns costs into decisions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from decidewise.kit.checks import FloatArray, as_integer, check_items, check_same_rows
from decidewise.problems.contract import Problem, as_problem, check_rows


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples of one problem; row `i` of every array belongs to sample `i`.

    Attributes
    ----------
    X : ndarray of shape (n, p) or (n, d, q)
        The features, known when the decision is made: those of each sample, or of each of its d items.
    costs : ndarray of shape (n, d)
        The realised costs; the problem minimises or maximises them, as its `sense` says.
    problem : Problem
        The problem that these costs belong to. If it differs by row, it has n rows.
    mean_costs : ndarray of shape (n, d), optional
        `E[costs | X]`, if known. No prediction from `X` decides better on average, so the regret of `mean_costs` is the
        floor. It is None for observed data.
    row_names : ndarray of shape (n,), optional
        A key of each sample, such as its date.
    cost_names : tuple of d str, optional
        The names of the costs, which are those of the items.
    feature_names : tuple of p or q str, optional

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> train, test = make_shortest_path(120, degree=4, seed=0).split(100)
    >>> len(train), len(test), test.costs.shape
    (100, 20, (20, 40))

    Observed data, such as a table of prices, have no known mean:

    >>> observed = Dataset(train.X, train.costs, train.problem)
    >>> observed.mean_costs is None
    True
    """

    X: FloatArray
    costs: FloatArray
    problem: Problem
    mean_costs: FloatArray | None = None
    row_names: npt.NDArray[Any] | None = None
    cost_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        as_problem(self.problem)
        optional = {"mean_costs": self.mean_costs, "row_names": self.row_names}
        known = {name: value for name, value in optional.items() if value is not None}
        check_same_rows(X=self.X, costs=self.costs, **known)
        check_items(self.X, self.costs.shape[1])
        check_rows(self.problem, len(self.costs))
        for name, names, size in (
            ("cost_names", self.cost_names, self.costs.shape[1]),
            ("feature_names", self.feature_names, self.X.shape[-1]),
        ):
            if names is not None and len(names) != size:
                raise ValueError(f"{name} must have {size} names; got {len(names)}.")

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        n_costs, n_features = self.costs.shape[1], self.X.shape[-1]
        parts = f"{n_features} features, {n_costs} costs"
        if self.X.ndim == 3:
            parts = f"{n_costs} items with {n_features} feature{'s' * (n_features != 1)} each"
        return f"Dataset({len(self)} rows, {parts}, {self.problem!r})"

    def split(self, n_train: int) -> tuple[Dataset, Dataset]:
        """Return the first `n_train` rows and the rest, as views of the same arrays."""
        if not 1 <= as_integer(n_train, name="n_train") < len(self):
            raise ValueError(
                f"n_train must leave at least one row on each side, so lie in 1..{len(self) - 1}; got {n_train}."
            )
        return self[:n_train], self[n_train:]

    def __getitem__(self, rows: Any) -> Dataset:
        """Return the given rows, a slice or an array of row numbers; also of the problem, if it differs by row."""
        return replace(
            self,
            X=self.X[rows],
            costs=self.costs[rows],
            problem=self.problem.take(rows),
            mean_costs=None if self.mean_costs is None else self.mean_costs[rows],
            row_names=None if self.row_names is None else self.row_names[rows],
        )
