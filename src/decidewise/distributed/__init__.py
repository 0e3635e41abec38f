"""The fits, decisions and regrets of files, for rows on a Dask cluster.

Each partition is summed up where it is, and the sums are combined in one tree of tasks. Only sums come back to the
client, and the first 2,048 rows, which set the shift of the sums. The tree depends on the partitions alone, so the
digits are the same whatever the number of workers, and whether or not one of them was lost on the way.

Rows may be Dask arrays, a Dask data frame with the names of its columns, or a list of delayed blocks `(X, costs)` or
`(X, costs, weights)`. Partitions are read again in every pass; `persist()` them if they fit into the cluster's memory.

>>> import dask
>>> import numpy as np
>>> from decidewise import WiseRegressor
>>> from decidewise.distributed import fit
>>> def block(seed):
...     X = np.random.default_rng(seed).normal(size=(100, 2))
...     return X, np.hstack([X + 5, X[:, :1] + 7])
>>> blocks = [dask.delayed(block)(seed) for seed in range(4)]  # each worker makes or reads its own
>>> fit(WiseRegressor(), blocks).n_features_in_  # without a cluster, in threads
2

On a cluster, make a `distributed.Client("tcp://10.0.0.5:8786")` first. The cluster executes what this process sends,
and this process unpickles the answers: each must trust the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

import numpy as np

from decidewise.checks import FloatArray, listed
from decidewise.choose_files import StreamedChoice, choose_rows
from decidewise.decide_files import DecisionsOf, RegretOf, StreamedRegret
from decidewise.problems.base import Problem, as_problem
from decidewise.streams.checkpoint import Checkpoint
from decidewise.streams.columns import ColumnRoles
from decidewise.streams.rows import Rows, RowSource, located
from decidewise.streams.tree import Combine, Sums, add, combine_all

__all__ = ["choose", "decide", "evaluate", "fit"]

#: Sums that one task combines: three levels of the binary tree, so that there are few tasks and few bytes in each.
FAN_IN = 8
_FIRST_ROWS = 2048


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
    """
    if not hasattr(model, "fit_rows"):
        raise TypeError(f"{type(model).__name__} is not a sum over rows. Pass WiseRegressor(), or GeneralizedLinear().")
    source = PartitionRows(_partitions(X, y, sample_weight, features, costs, needs_costs=True))
    if checkpoint is not None:
        source.keep(checkpoint, model)
    return model.fit_rows(source)


def decide(model: Any, problem: Problem, X: Any, *, features: Any = None) -> Any:
    """Return an optimal decision for each row, as a Dask array with the partitions of `X`; nothing is computed yet.

    Parameters
    ----------
    model : fitted estimator
        As for `decidewise.decide`; its `predict` is called with arrays.
    problem : Problem
        The same for every row.
    X : Dask array, Dask data frame, or list of delayed blocks `(X,)`
    features : str or list of str, optional
        The columns of a data frame; by default those the model was fitted with.
    """
    _check_same_for_all_rows(problem)
    from dask import array, delayed  # noqa: PLC0415  (an extra)

    if features is None and hasattr(X, "columns"):
        features = [str(name) for name in getattr(model, "feature_names_in_", ())] or None
    partitions = _partitions(X, None, None, features, None, needs_costs=False)
    work = delayed(DecisionsOf(model, problem), pure=False, traverse=False)
    lengths = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(partitions)
    blocks = [
        array.from_delayed(
            delayed(_on_partition, pure=False)(work, part.blocks, part.number, part.columns),
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
    """
    _check_same_for_all_rows(problem)
    source = PartitionRows(_partitions(X, y, sample_weight, features, costs, needs_costs=True))
    return StreamedRegret.of(source.reduce(RegretOf(model, problem)), problem)


def choose(
    problem: Problem,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    features: Any = None,
    costs: Any = None,
    exponents: Sequence[float] = (0.0, 0.5, 1.0),
    alphas: Sequence[float] = (0.0, 0.01, 0.1, 1.0),
    folds: int = 5,
    rows_together: int = 1,
) -> StreamedChoice:
    """Choose the exponent and the ridge of an exact linear fit by out-of-fold regret on the rows of a cluster.

    Parameters
    ----------
    problem : Problem
        The same for every row.
    X, y, sample_weight, features, costs
        As for `fit`.
    exponents, alphas, folds, rows_together
        As for `decidewise.choose_files`; rows are numbered within their partition.
    """
    _check_same_for_all_rows(problem)
    source = PartitionRows(_partitions(X, y, sample_weight, features, costs, needs_costs=True))
    return choose_rows(problem, source, exponents, alphas, folds=folds, rows_together=rows_together)


@dataclass(frozen=True)
class Partition:
    """Some rows on the cluster: delayed features, costs and weights, or one delayed tuple of them."""

    number: int
    blocks: Any
    columns: ColumnRoles | None = None


class PartitionRows(RowSource):
    """The partitions of rows on a cluster, each of them a block."""

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self.partitions = partitions
        self.columns = partitions[0].columns

    def keep(self, path: Any, model: Any) -> None:
        """Keep the results of finished passes in a file."""
        from dask.base import tokenize  # noqa: PLC0415  (an extra)

        parameters = {name: repr(value) for name, value in sorted(model.get_params().items())}
        keys = tokenize([part.blocks for part in self.partitions])
        identity = [repr(model), parameters, len(self.partitions), keys, repr(self.columns)]
        self.checkpoint = Checkpoint.at(path, json.dumps(identity), every=0.0)

    def first(self) -> Rows:
        """Return some of the first rows."""
        return self._first

    def reduce(self, function: Callable[[Rows], Sums], combine: Combine = add) -> Sums:
        """Return the results of `function` on all partitions, combined in a fixed tree on the cluster."""
        from dask import delayed  # noqa: PLC0415  (an extra)

        finished = None if self.checkpoint is None else self.checkpoint.next_pass()
        if finished is not None:
            return finished
        token = uuid4().hex[:12]
        work = delayed(function, pure=False, traverse=False)
        level = [
            delayed(_on_partition, pure=False)(
                work, part.blocks, part.number, part.columns, dask_key_name=f"partition-{part.number}-{token}"
            )
            for part in self.partitions
        ]
        depth = 0
        # Also a single partition is combined, which leaves out partitions without rows.
        while depth == 0 or len(level) > 1:
            depth += 1
            level = [
                delayed(_combined, pure=False)(
                    level[first : first + FAN_IN], combine, dask_key_name=f"sums-{depth}-{first}-{token}"
                )
                for first in range(0, len(level), FAN_IN)
            ]
        total: Sums | None = _result(level[0])
        if total is None:
            raise ValueError("there are no rows at all. Pass at least one partition with rows.")
        if self.checkpoint is not None:
            self.checkpoint.finish(total)
        return total

    @cached_property
    def _first(self) -> Rows:
        from dask import delayed  # noqa: PLC0415  (an extra)

        for part in self.partitions:
            rows: Rows | None = _result(
                delayed(_on_partition, pure=False)(_head, part.blocks, part.number, part.columns)
            )
            if rows is not None:
                return rows
        raise ValueError("there are no rows at all. Pass at least one partition with rows.")


def _on_partition(work: Callable[[Rows], Any], blocks: Any, number: int, columns: ColumnRoles | None) -> Any:
    """Return the work on the rows of a partition, or None if it has no rows; errors name the partition."""
    # A model that was fitted on named columns asks for their names when it predicts.
    as_frame = isinstance(work, DecisionsOf | RegretOf) and hasattr(work.model, "feature_names_in_")
    rows = _as_rows(blocks, f"partition {number}", columns, as_frame)
    if len(rows):
        with located(rows):
            return work(rows)
    return np.empty((0, work.problem.n_costs)) if isinstance(work, DecisionsOf) else None


def _head(rows: Rows) -> Rows:
    some = slice(0, _FIRST_ROWS)
    costs, weights = (None if values is None else values[some].copy() for values in (rows.costs, rows.weights))
    return Rows(rows.X[some].copy(), costs, weights, rows.origin, rows.first, rows.columns)


def _combined(parts: Sequence[Sums | None], combine: Combine) -> Sums | None:
    some = [part for part in parts if part is not None]
    return combine_all(some, combine) if some else None


def _as_rows(blocks: Any, origin: str, columns: ColumnRoles | None, as_frame: bool) -> Rows:
    """Return a partition that has been read as rows."""
    if columns is not None:
        missing = [name for name in columns.numbers if name not in blocks.columns]
        if missing:
            raise ValueError(f"{origin} has no column {listed(missing)}. All partitions need the same columns.")
        X = blocks[list(columns.features)]
        X = X.astype(np.float64) if as_frame else X.to_numpy(dtype=np.float64)
        costs = blocks[list(columns.costs)].to_numpy(dtype=np.float64) if columns.costs else None
        weight = columns.sample_weight
        weights = None if weight is None else blocks[weight].to_numpy(dtype=np.float64)
        return Rows(X, costs, weights, origin, columns=columns)
    if not isinstance(blocks, list | tuple) or not 1 <= len(blocks) <= 3:
        raise ValueError(f"{origin} must be a tuple (X, costs) or (X, costs, weights); it is {type(blocks).__name__}.")
    X, costs, weights = (_numbers(values, origin) for values in (*blocks, None, None)[:3])
    if X is None:
        raise ValueError(f"{origin} has no features.")
    lengths = [len(values) for values in (X, costs, weights) if values is not None]
    if len(set(lengths)) > 1:
        raise ValueError(f"{origin} has features, costs and weights of {lengths} rows; they must have the same rows.")
    return Rows(X, costs, weights, origin)


def _numbers(values: Any, origin: str) -> FloatArray | None:
    if values is None:
        return None
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as reason:
        raise ValueError(f"{origin} must hold numbers: {reason}.") from reason


def _partitions(X: Any, y: Any, sample_weight: Any, features: Any, costs: Any, *, needs_costs: bool) -> list[Partition]:
    """Return the partitions of Dask arrays, of a Dask data frame, or of a list of delayed blocks."""
    if isinstance(X, list | tuple):
        partitions = [Partition(number, block) for number, block in enumerate(X)]
    elif hasattr(X, "columns") and hasattr(X, "to_delayed"):
        if features is None or (needs_costs and costs is None):
            raise ValueError('name the columns of the data frame: features="x_*", costs="c_*".')
        columns = ColumnRoles.of(list(X.columns), features=features, costs=costs, sample_weight=sample_weight)
        partitions = [Partition(number, block, columns) for number, block in enumerate(X.to_delayed())]
    elif hasattr(X, "chunks") and hasattr(X, "to_delayed"):
        if needs_costs and y is None:
            raise ValueError("a fit on Dask arrays needs the costs as well: pass y.")
        arrays = {"X": X, "y": y, "sample_weight": sample_weight}
        known = {name: array for name, array in arrays.items() if array is not None}
        for name, array in known.items():
            _check_chunks(name, array, X)
        rows = zip(*(array.to_delayed().ravel() for array in known.values()), strict=True)
        partitions = [Partition(number, _arguments(known, blocks)) for number, blocks in enumerate(rows)]
    else:
        raise TypeError(
            f"X must be a Dask array, a Dask data frame or a list of delayed blocks; got {type(X).__name__}. For rows "
            "in memory use the model's fit, and for files its fit_files."
        )
    if not partitions:
        raise ValueError("there are no partitions at all. Pass at least one.")
    return partitions


def _arguments(known: dict[str, Any], blocks: Sequence[Any]) -> tuple[Any, Any, Any]:
    own = dict(zip(known, blocks, strict=True))
    return own["X"], own.get("y"), own.get("sample_weight")


def _check_chunks(name: str, array: Any, X: Any) -> None:
    if any(len(sizes) > 1 for sizes in array.chunks[1:]):
        raise ValueError(
            f"{name} is split by columns, and a sum needs whole rows. Use {name}.rechunk({{1: -1}}), or read it in "
            "blocks of rows."
        )
    same = len(array.chunks[0]) == len(X.chunks[0]) and all(
        a == b or np.isnan(a) or np.isnan(b) for a, b in zip(array.chunks[0], X.chunks[0], strict=True)
    )
    if not same:
        raise ValueError(
            f"{name} is not split into the rows of X: it has {len(array.chunks[0])} partitions with "
            f"{listed(array.chunks[0])} rows, and X {len(X.chunks[0])} with {listed(X.chunks[0])}. Use "
            f"{name}.rechunk({{0: X.chunks[0]}})."
        )


def _check_same_for_all_rows(problem: Problem) -> None:
    if as_problem(problem).n_rows is not None:
        raise ValueError(
            f"{type(problem).__name__} differs by row, and partitions do not know the numbers of their rows. Use "
            "decide_files and evaluate_files."
        )


def _result(task: Any) -> Any:
    """Return the result of a delayed task: from the cluster if there is a client, else from threads of this process."""
    try:
        from distributed import KilledWorker, get_client  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError as missing:
        raise ImportError("a cluster needs Dask; install it with pip install 'decidewise[dask]'.") from missing
    try:
        client = get_client()
    except ValueError:
        return task.compute(scheduler="threads")
    address = client.scheduler.address if client.scheduler else "?"
    try:
        return client.compute(task).result()
    except KilledWorker as reason:
        raise RuntimeError(
            f"the task {reason.task} was given up: every worker that began it died, often for lack of memory. Make the "
            "partitions smaller, or give the workers more memory."
        ) from reason
    except (CancelledError, OSError) as reason:
        raise ConnectionError(
            f"lost the Dask scheduler at {address!r}. Connect to another one and call again; with a checkpoint, "
            "finished passes are not repeated."
        ) from reason
