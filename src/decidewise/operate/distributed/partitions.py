"""Rows on a Dask cluster as a source of sums: partitions, summed up where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

import numpy as np

from decidewise.kit.checks import FloatArray, listed
from decidewise.operate.decide import DecisionsOf, RegretOf
from decidewise.operate.distributed.workers import check_same_code, code_fingerprint, sentences_about
from decidewise.rows.checkpoint import Checkpoint
from decidewise.rows.columns import ColumnRoles
from decidewise.rows.source import Combine, Rows, RowSource, Sums, add, combine_all, located

#: Sums that one task combines: three levels of the binary tree, so that there are few tasks and few bytes in each.
FAN_IN = 8


@dataclass(frozen=True)
class Partition:
    """Some rows on the cluster: delayed features, costs and weights, or one delayed tuple of them."""

    number: int
    blocks: Any
    columns: ColumnRoles | None = None


class PartitionRows(RowSource):
    """The partitions of Dask arrays, of a Dask data frame, or of a list of delayed blocks, each of them a block.

    The arguments are those of `decidewise.operate.distributed.fit`.
    """

    def __init__(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, features: Any = None, costs: Any = None
    ) -> None:
        self.partitions = partitions_of(X, y, sample_weight, features, costs, needs_costs=True)
        self.columns = self.partitions[0].columns

    def keep(self, path: Any, model: Any) -> None:
        """Keep the results of finished passes in a file."""
        from dask.base import tokenize  # noqa: PLC0415  (an extra)

        keys = tokenize([part.blocks for part in self.partitions])
        rows = {"partitions": len(self.partitions), "keys": keys, "columns": repr(self.columns)}
        self.checkpoint = Checkpoint.of(path, model, every=0.0, **rows)

    def reduce(self, function: Callable[[Rows], Sums], combine: Combine = add) -> Sums:
        """Return the results of `function` on all partitions, combined in a fixed tree on the cluster."""
        from dask import delayed  # noqa: PLC0415  (an extra)

        finished = None if self.checkpoint is None else self.checkpoint.next_pass()
        if finished is not None:
            return finished
        token, code = uuid4().hex[:12], code_fingerprint()
        work = delayed(function, pure=False, traverse=False)
        shape = _shape(self._first) if "_first" in vars(self) else None
        level = [
            delayed(on_partition, pure=False)(
                work,
                part.blocks,
                part.number,
                part.columns,
                code,
                shape,
                dask_key_name=f"partition-{part.number}-{token}",
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
                delayed(on_partition, pure=False)(Rows.head, part.blocks, part.number, part.columns, code_fingerprint())
            )
            if rows is not None:
                return rows
        raise ValueError("there are no rows at all. Pass at least one partition with rows.")


def on_partition(
    work: Callable[[Rows], Any],
    blocks: Any,
    number: int,
    columns: ColumnRoles | None,
    code: str,
    shape: tuple[Any, Any] | None = None,
) -> Any:
    """Return the work on the rows of a partition, or None if it has no rows; errors name the partition.

    `code` is the fingerprint of the process that sends the work, and `shape` that of a row of the first partition.
    """
    check_same_code(code)
    # A model that was fitted on named columns asks for their names when it predicts.
    as_frame = isinstance(work, DecisionsOf | RegretOf) and hasattr(work.model, "feature_names_in_")
    rows = _as_rows(blocks, f"partition {number}", columns, as_frame)
    if len(rows):
        if shape is not None and rows.costs is not None and _shape(rows) != shape:
            raise ValueError(
                f"{rows.origin} has rows of features {_shape(rows)[0]} and costs {_shape(rows)[1]}; those of the first "
                f"partition are {shape[0]} and {shape[1]}. All partitions need the same columns."
            )
        with located(rows):
            return work(rows)
    return np.empty((0, work.problem.n_costs)) if isinstance(work, DecisionsOf) else None


def _shape(rows: Rows) -> tuple[Any, Any]:
    """Return the shapes of the features and of the costs of one row."""
    return tuple(rows.X.shape[1:]), None if rows.costs is None else tuple(rows.costs.shape[1:])


def _combined(parts: Sequence[Sums | None], combine: Combine) -> Sums | None:
    some = [part for part in parts if part is not None]
    return combine_all(some, combine) if some else None


def _as_rows(blocks: Any, origin: str, columns: ColumnRoles | None, as_frame: bool) -> Rows:
    """Return a partition that has been read as rows."""
    if columns is not None:
        missing = [name for name in columns.numbers if name not in blocks.columns]
        if missing:
            raise ValueError(f"{origin} has no column {listed(missing)}. All partitions need the same columns.")
        try:
            X = blocks[list(columns.features)]
            X = X.astype(np.float64) if as_frame else X.to_numpy(dtype=np.float64)
            costs = blocks[list(columns.costs)].to_numpy(dtype=np.float64) if columns.costs else None
            weight = columns.sample_weight
            weights = None if weight is None else blocks[weight].to_numpy(dtype=np.float64)
        except (TypeError, ValueError):
            for name in columns.numbers:
                _numbers(blocks[name], f"{origin}, column {name!r}")
            raise
        return Rows(X, costs, weights, origin, columns=columns)
    if not isinstance(blocks, list | tuple) or not 1 <= len(blocks) <= 3:
        raise ValueError(f"{origin} must be a tuple (X, costs) or (X, costs, weights); it is {type(blocks).__name__}.")
    X, costs, weights = (_numbers(values, origin) for values in (*blocks, None, None)[:3])
    if X is None:
        raise ValueError(f"{origin} has no features.")
    if costs is not None and costs.ndim == 2 and not costs.shape[1]:
        costs = None
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


def partitions_of(
    X: Any, y: Any, sample_weight: Any, features: Any, costs: Any, *, needs_costs: bool
) -> list[Partition]:
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


def _result(task: Any) -> Any:
    """Return the result of a delayed task: from the cluster if there is a client, else from threads of this process."""
    try:
        from distributed import get_client  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError as missing:
        raise ImportError("a cluster needs Dask; install it with pip install 'decidewise[dask]'.") from missing
    try:
        client = get_client()
    except ValueError:
        return task.compute(scheduler="threads")
    with sentences_about(client.scheduler.address if client.scheduler else "?"):
        return client.compute(task).result()
