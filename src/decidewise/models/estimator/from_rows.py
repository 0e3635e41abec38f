"""Estimators that are fitted in passes over rows which need not be in memory: files, or partitions on a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from decidewise.models.estimator.base import all_or_nothing
from decidewise.rows.passes import Passes, run
from decidewise.rows.source import RowSource


class FitsRows(ABC):
    """An estimator whose fit is a sequence of sums over rows."""

    def fit_files(
        self,
        paths: Any,
        *,
        features: Any,
        costs: Any,
        sample_weight: str | None = None,
        rows: str | None = None,
        items: str | None = None,
        block_rows: int | None = None,
        text: Mapping[str, Any] | None = None,
        checkpoint: Any = None,
        checkpoint_every: float = 30.0,
    ) -> Self:
        r"""Fit on files of any size, block by block, as `fit` does on their rows in memory.

        A squared deviance takes one pass over the files, a log link one per Newton step, `scale="iterated"` fourteen.
        Memory is bounded by the size of a block. A progress bar shows rows per second and the time left.

        Parameters
        ----------
        paths : path, glob pattern, folder, or list of these
            Files ending in .parquet, .pq, .arrow, .feather, .ipc, .csv or .tsv (the last two also .gz; all need
            pyarrow, of the extra `cli`), read in the order of their names. All must have the same columns. Folders
            named `key=value` in a folder (Hive partitions) give their files a column `key`. A file without rows adds
            nothing.
        features : str, list of str, or mapping
            The columns of the features: names, or a pattern such as `"x_*"`. A mapping of names to patterns gives
            features of each item, as in `decidewise.data.read_table`.
        costs : str or list of str
            Wide tables: the columns of the costs, in the order of the problem. Long tables: the column of the cost.
        sample_weight : str, optional
            The column of the weights.
        rows, items : str, optional
            The columns of the sample keys and of the item keys of a long table. All lines of a sample must be next to
            each other in one file. Items that are numbers or dates are in their own order, others in that in which
            the first sample lists them.
        block_rows : int, optional
            Rows per block; by default about 16 MB of numbers. The digits beyond rounding depend on it, but not on the
            number of threads.
        text : dict, optional
            How text files are written: `separator`, `decimal` and `encoding`; by default what separates most names in
            the first line, a point, and UTF-8.
        checkpoint : path, optional
            A file for what is finished: if the run is killed, the same call continues from it, with the same result
            bit for bit. It is deleted when the fit is done.
        checkpoint_every : float
            Seconds between two writes of the checkpoint.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from decidewise import GeneralizedLinear
        >>> with TemporaryDirectory() as folder:
        ...     for part in range(3):
        ...         _ = Path(folder, f"part-{part}.csv").write_text(f"x,c_1,c_2\n{part},{2 * part + 1},{-part}\n")
        ...     model = GeneralizedLinear().fit_files(folder, features="x", costs="c_*")
        >>> model.coef_.round(12).ravel(), model.intercept_.round(12)
        (array([ 2., -1.]), array([1., 0.]))
        """
        from decidewise.rows.files import FIT_BYTES, FileRows  # noqa: PLC0415 - most fits read no file

        source = FileRows(
            paths,
            features=features,
            costs=costs,
            sample_weight=sample_weight,
            rows=rows,
            items=items,
            block_rows=block_rows,
            text=text,
            block_bytes=FIT_BYTES,
            description=f"{type(self).__name__}.fit_files",
        )
        if (problem := getattr(self, "problem", None)) is not None:
            from decidewise.problems.time_order import check_in_time  # noqa: PLC0415

            check_in_time(problem, source.columns, costs)
        if checkpoint is not None:
            source.keep(checkpoint, self, checkpoint_every)
        return self.fit_rows(source)

    def fit_rows(self, source: RowSource) -> Self:
        """Fit on the rows of a source; see `decidewise.rows`."""
        run(self.passes(source), source)
        source.close()
        return self

    def passes(self, source: RowSource) -> Passes[Self]:
        """Return the fit as passes over the rows of a source, which is asked for its first rows and columns alone."""
        with all_or_nothing(self):
            yield from self._passes(source)
        return self

    @abstractmethod
    def _passes(self, source: RowSource) -> Passes[None]:
        """Set the fitted attributes."""


def describe(estimator: Any, source: RowSource) -> None:
    """Record the number of features and items of a source, and the names of its columns, as `fit` does."""
    for name in ("n_items_in_", "feature_names_in_", "cost_names_in_"):
        estimator.__dict__.pop(name, None)
    first, columns = source.first(), source.columns
    estimator.n_features_in_ = first.X.shape[-1]
    if first.X.ndim == 3:
        estimator.n_items_in_ = first.X.shape[1]
    elif columns is not None:
        estimator.feature_names_in_ = np.asarray(columns.feature_names, dtype=object)
    if columns is not None:
        estimator.cost_names_in_ = np.asarray(columns.item_names, dtype=object)
