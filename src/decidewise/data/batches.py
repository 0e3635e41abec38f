"""Rows drawn from one population, for a decision that is made once for all of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray, as_integer, as_matrix, as_vector, check_same_rows


def draw_rows(X: Any, costs: Any, size: int, n_rows: int, *, seed: int) -> tuple[FloatArray, FloatArray]:
    """Draw rows of `size` items from a population, to train for one decision on all of it.

    Whom to call, whom to treat: a budget is spent on one population, and its past is one long list of items. Each row
    that is drawn has a few of them, none twice, so that a problem of `size` items, with a budget in proportion, stands
    for that of the population. The model is shared by all items, so it then predicts any number of them.

    Parameters
    ----------
    X : array-like of shape (m, q)
        The features of the items.
    costs : array-like of shape (m,)
        Their costs, or values.
    size : int
        The number of items in a row.
    n_rows : int
    seed : int

    Returns
    -------
    X : ndarray of shape (n_rows, size, q)
    costs : ndarray of shape (n_rows, size)

    Examples
    --------
    >>> from decidewise import WiseRegressor, decide
    >>> from decidewise.data import draw_rows
    >>> from decidewise.problems import TopK
    >>> past = np.arange(1000.0)
    >>> X, gains = draw_rows(past[:, None], past**2, size=50, n_rows=200, seed=0)
    >>> model = WiseRegressor().fit(X, gains)
    >>> today = np.array([[700.0], [20.0], [900.0]])
    >>> decide(model, TopK(3, 1), today[np.newaxis])  # one row with all of today's items
    array([[0., 0., 1.]])
    """
    X, costs = as_matrix(X, name="X"), as_vector(costs, name="costs")
    check_same_rows(X=X, costs=costs)
    size, n_rows = as_integer(size, name="size", maximum=len(X)), as_integer(n_rows, name="n_rows")
    rng = np.random.default_rng(as_integer(seed, name="seed", minimum=0))
    drawn = np.stack([rng.choice(len(X), size=size, replace=False) for _ in range(n_rows)])
    return X[drawn], costs[drawn]
