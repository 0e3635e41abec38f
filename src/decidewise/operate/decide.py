"""From features to decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.evaluate import check_in_units
from decidewise.kit.checks import FloatArray, as_matrix, check_same_rows, n_rows
from decidewise.problems.contract import Problem, as_problem


def decide(model: Any, problem: Problem, X: Any) -> FloatArray:
    """Return an optimal decision for the costs that the model predicts from each row of features.

    Parameters
    ----------
    model : fitted estimator
        Any object whose `predict(X)` returns costs of shape (n, d): those of `decidewise.models`, of scikit-learn, or
        your own.
    problem : Problem
        If it differs by row, row `i` of the problem belongs to row `i` of `X`.
    X : array-like or frame of shape (n, p), or array-like of shape (n, d, q) with features of each item
        Features, in any form that the model accepts.

    Returns
    -------
    ndarray of shape (n, d)
        `problem.solve(model.predict(X))`.

    Raises
    ------
    ValueError
        If the prediction is not finite, or not of shape (n, problem.n_costs); or if the problem has known costs and the
        model predicts directions, as `WiseRegressor` does without `lifted`.
    SolverError
        If a row could not be solved.

    Examples
    --------
    >>> from decidewise import WiseRegressor, decide
    >>> from decidewise.problems import TopK
    >>> X = [[0.0], [1.0], [2.0]]
    >>> costs = [[1.0, 3.0], [2.0, 2.5], [3.0, 2.0]]
    >>> model = WiseRegressor().fit(X, costs)
    >>> decide(model, TopK(2, 1, sense="min"), [[0.5], [1.9]])  # the cheaper of two items
    array([[1., 0.],
           [0., 1.]])
    """
    as_problem(problem)
    if not callable(getattr(model, "predict", None)):
        raise TypeError(f"model must have a method predict(X), as fitted estimators do; got {type(model).__name__}.")
    check_in_units(model, problem)
    if np.ndim(X) > 1 and n_rows(X) == 0:  # which many models refuse to predict
        return problem.solve(np.empty((0, problem.n_costs)))
    prediction = as_matrix(
        model.predict(X), name="model.predict(X)", n_columns=problem.n_costs, owner=type(problem).__name__
    )
    check_same_rows(X=X, **{"model.predict(X)": prediction})
    return problem.solve(prediction)
