"""The fits, decisions and regrets of files, for rows on a Dask cluster.

Each partition is summed up where it is, and the sums are combined in one tree of tasks. Only sums come back to the
client, and the first 2,048 rows, which set the shift of the sums. The tree depends on the partitions alone, so the
digits are the same whatever the number of workers, and whether or not one of them was lost on the way.

Rows may be Dask arrays, a Dask data frame with the names of its columns, or a list of delayed blocks `(X, costs)` or
`(X, costs, weights)`. Partitions are read again in every pass; `persist()` them if they fit into the cluster's memory.

Without a cluster, they are computed in threads. On a cluster, make a `distributed.Client("tcp://10.0.0.5:8786")` first.
The cluster executes what this process sends,
The cluster executes what this process sends, and this process unpickles the answers: each must trust the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.operate.decide import DecisionsOf, StreamedRegret, evaluate_rows
from decidewise.operate.distributed.partitions import FAN_IN, PartitionRows, on_partition, partitions_of
from decidewise.operate.distributed.workers import code_fingerprint, workers_at
from decidewise.problems.contract import Problem, as_problem

__all__ = ["FAN_IN", "decide", "evaluate", "fit", "workers_at"]


def fit(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    features: Any = None,
    costs: Any = None,
    checkpoint: Any = None,
) -> Any:
    """Fit a model on the rows of a cluster, as its `fit` does on rows in memory; return the model.

    Parameters
    ----------
    model : GeneralizedLinear or WiseRegressor around one
        Or any estimator with `fit_rows`.
    X : Dask array (n, p) or (n, d, q), Dask data frame, or list of delayed blocks
        In partitions of rows, none of them split by columns.
    y : Dask array (n, d), optional
        The costs, with the partitions of `X`, if `X` is an array.
    sample_weight : Dask array (n,), or the name of a column, optional
    features, costs : str or list of str, optional
        The columns of a data frame: names, or patterns such as `"x_*"`.
    checkpoint : path, optional
        A file for the sums of finished passes: if the cluster goes away, the same call continues with the next pass.
        It is deleted when the fit is done.

    Examples
    --------
    >>> import dask
    >>> from decidewise import WiseRegressor
    >>> def block(seed):
    ...     X = np.random.default_rng(seed).normal(size=(100, 1))
    ...     return X, np.hstack([5 + X, 5 - X])
    >>> blocks = [dask.delayed(block)(seed) for seed in range(3)]  # each worker makes or reads its own
    >>> fit(WiseRegressor(), blocks).predict([[0.0]]).round(1)
    array([[5., 5.]])
    """
    if not hasattr(model, "fit_rows"):
        raise TypeError(f"{type(model).__name__} is not a sum over rows. Pass WiseRegressor(), or GeneralizedLinear().")
    source = PartitionRows(X, y, sample_weight, features=features, costs=costs)
    if checkpoint is not None:
        source.keep(checkpoint, model)
    return model.fit_rows(source)


def decide(model: Any, problem: Problem, X: Any, *, features: Any = None) -> Any:
    """Return an optimal decision for each row, as a Dask array with the partitions of `X`; nothing is computed yet.

    Parameters
    ----------
    model : fitted estimator
        As for `decidewise.operate.decide`; its `predict` is called with arrays.
    problem : Problem
        The same for every row.
    X : Dask array, Dask data frame, or list of delayed blocks `(X,)`
    features : str or list of str, optional
        The columns of a data frame; by default those the model was fitted with.

    Examples
    --------
    >>> from dask import array
    >>> from decidewise import WiseRegressor
    >>> from decidewise.problems import TopK
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = WiseRegressor().fit(X, np.hstack([1 + X, 4 - X]))
    >>> decide(model, TopK(2, 1, sense="min"), array.from_array(X, chunks=(2, 1))).compute()
    array([[1., 0.],
           [1., 0.],
           [0., 1.],
           [0., 1.]])
    """
    _check_same_for_all_rows(problem)
    from dask import array, delayed  # noqa: PLC0415  (an extra)

    if features is None and hasattr(X, "columns"):
        features = [str(name) for name in getattr(model, "feature_names_in_", ())] or None
    partitions = partitions_of(X, None, None, features, None, needs_costs=False)
    work = delayed(DecisionsOf(model, problem), pure=False, traverse=False)
    lengths = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(partitions)
    blocks = [
        array.from_delayed(
            delayed(on_partition, pure=False)(work, part.blocks, part.number, part.columns, code_fingerprint()),
            (length, problem.n_costs),
            dtype=np.float64,
        )
        for part, length in zip(partitions, lengths, strict=True)
    ]
    return array.concatenate(blocks, allow_unknown_chunksizes=True)


def evaluate(
    model: Any,
    problem: Problem,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    features: Any = None,
    costs: Any = None,
) -> StreamedRegret:
    """Return the regret of a model's decisions on the rows of a cluster; only sums come back.

    Parameters
    ----------
    model, problem
        As for `decide`.
    X, y, sample_weight, features, costs
        As for `fit`.

    Examples
    --------
    >>> import dask
    >>> from decidewise import WiseRegressor
    >>> from decidewise.problems import TopK
    >>> def block(seed):
    ...     X = np.random.default_rng(seed).normal(size=(100, 1))
    ...     return X, np.hstack([5 + X, 5 - X])
    >>> blocks = [dask.delayed(block)(seed) for seed in range(3)]  # each worker makes or reads its own
    >>> print(evaluate(fit(WiseRegressor(), blocks), TopK(2, 1, sense="min"), blocks))
    regret 0.00 [0.00, 0.00] % over 300 rows, with a 95 % interval.
    """
    _check_same_for_all_rows(problem)
    source = PartitionRows(X, y, sample_weight, features=features, costs=costs)
    return evaluate_rows(model, problem, source)


def _check_same_for_all_rows(problem: Problem) -> None:
    if as_problem(problem).n_rows is not None:
        raise ValueError(
            f"{type(problem).__name__} differs by row, and partitions do not know the numbers of their rows. Use "
            "decide_files and evaluate_files."
        )
