"""The two problems of the field that the paper does not have: a truth that no linear model fits, and a small MILP."""

from __future__ import annotations

from itertools import product

import numpy as np

from decidewise.data import Dataset
from decidewise.data.polynomial import checked, polynomial, single_precision, streams
from decidewise.kit.checks import FloatArray, as_integer
from decidewise.problems import LinearProgram, TopK

#: The most binary variables whose decisions are listed: 4,096 decisions.
_MOST_BINARIES = 12


def make_cubic_top_k(n: int, *, seed: int, n_items: int = 50, k: int = 1) -> Dataset:
    """Draw items with one feature each, uniform on (-1, 1), and the value `10 (x³ - 0.65 x)`; choose the best `k`.

    One model serves all items, `X` has shape (n, n_items, 1). The best line through the values falls, since
    `E[x (x³ - 0.65 x)] = 1/5 - 0.65/3 < 0`, yet the most valuable items are those with the largest `x`. So the best
    linear model of the *values* chooses the worst end, whatever the number of rows, while a line that rises chooses
    nearly the best. Shah et al. (LODL, NeurIPS 2022) use such data.

    Examples
    --------
    >>> data = make_cubic_top_k(3, seed=0)
    >>> data.X.shape, data.costs.shape
    ((3, 50, 1), (3, 50))
    """
    n, n_items = as_integer(n, name="n"), as_integer(n_items, name="n_items")
    x = streams(seed)[1].uniform(-1, 1, (n, n_items))
    values = 10 * (x**3 - 0.65 * x)
    return Dataset(x[:, :, np.newaxis], values, TopK(n_items, k), values)


def make_covering(
    n: int,
    *,
    degree: int,
    seed: int,
    n_variables: int = 10,
    n_constraints: int = 3,
    n_features: int = 5,
    noise: float = 0.5,
    instance_seed: int = 42,
) -> Dataset:
    """Draw a covering problem in whole numbers: the cheapest set of `n_variables` that covers every demand.

    The minimum of `c·z` over binary `z` with `A z ≥ b`, where entries of `A` are whole numbers from 1 to 9 and `b` is
    four tenths of the row's sum, rounded down. Its linear relaxation is not integral. The costs are those of
    `make_shortest_path`.

    Examples
    --------
    >>> data = make_covering(3, degree=4, seed=0)
    >>> data.problem.solve(data.costs).sum(axis=1)
    array([5., 4., 4.])
    """
    n, degree, n_features, noise = checked(n, degree, n_features, noise)
    instance, samples = streams(seed, instance_seed)
    A = instance.randint(1, 10, (n_constraints, n_variables)).astype(float)
    problem = ListedProgram(A, np.floor(0.4 * A.sum(axis=1)))
    B = samples.binomial(1, 0.5, (n_variables, n_features))
    X = samples.normal(0, 1, (n, n_features))
    mean_costs = polynomial(X, B, degree)
    costs = mean_costs * samples.uniform(1 - noise, 1 + noise, mean_costs.shape)
    return Dataset(X, single_precision(costs), problem, mean_costs)


class ListedProgram(LinearProgram):
    """The integer program `min c·z`, `A z ≥ b`, `z` binary, so small that all its decisions are listed.

    A general solver takes milliseconds for such a program, and the table of the field solves millions. Choosing from
    the list is exact too, for costs that are positive or not. All else, such as the relaxation, is `LinearProgram`'s.

    Examples
    --------
    >>> ListedProgram(np.ones((1, 3)), np.array([2.0])).solve([3.0, 1.0, 2.0])
    array([0., 1., 1.])
    """

    def __init__(self, A: FloatArray, b: FloatArray) -> None:
        n = A.shape[1]
        if n > _MOST_BINARIES:
            raise ValueError(f"at most {_MOST_BINARIES} variables can be listed; got {n}. Use LinearProgram.")
        super().__init__(A_ub=-A, b_ub=-b, upper=1.0, integrality=np.ones(n))
        every = np.array(list(product((0.0, 1.0), repeat=n)))
        self._listed = every[(every @ A.T >= b).all(axis=1)]

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the first of the cheapest decisions in the list: (n, d) -> (n, d)."""
        return self._listed[np.argmin(costs @ self._listed.T, axis=1)]
