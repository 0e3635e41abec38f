"""Tables as people have them, wide or long, read into arrays with names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.data.dataset import Dataset
from decidewise.kit.checks import FloatArray, as_flag, listed
from decidewise.problems import PresentItems
from decidewise.problems.contract import Problem, as_problem
from decidewise.problems.time_order import check_columns_in_time, check_items_in_time
from decidewise.rows.columns import ColumnRoles, NamedColumns, check_distinct
from decidewise.rows.long_tables import LongLayout

#: The feature that says which items a row has.
_PRESENT = "present"


def read_table(
    source: Any,
    *,
    problem: Problem,
    costs: Any,
    features: Any,
    rows: str | None = None,
    items: str | None = None,
    item_order: Sequence[Any] | None = None,
    absent_items: bool = False,
) -> Dataset:
    """Read a wide or a long table of features and realised costs.

    A **wide** table has one line per sample and one column per cost. A **long** table has one line per sample and item,
    with a column of sample keys (`rows`), a column of item keys (`items`), the features of the item and its cost. It is
    read into features of shape (n, d, q), for one model that all items share.

    Columns are selected by name, by a pattern such as `"x_*"`, or by a list of these.

    Parameters
    ----------
    source : path, frame, Arrow table or dictionary of columns
        A file (`.csv`, `.tsv`, `.parquet`, `.arrow`; these need pyarrow, of the extra `cli`), a folder of such files, a
        pattern such as `"history/*.csv"`, or a frame of pandas or polars.
    problem : Problem
        The problem that the costs belong to.
    costs : str or list of str
        Wide: the columns of the costs, in the order of the problem. Long: the column of the cost.
    features : str, list of str, or mapping
        The columns of the features. A wide table may hold features of each item too:
        `{"forecast": "forecast_*", "load": "load"}` beside `costs="price_*"` is read into (n, d, 2). Columns are
        matched to costs by what stands for the `*`; a single column is a feature that all items of a row have.
    rows : str, optional
        The column of sample keys, each once in a wide table.
    items : str, optional
        The column of item keys; it makes the table long.
    item_order : sequence, optional
        The items of a long table in the order of the problem's costs. By default numbers, dates and names that differ
        by a number are in their own order, and other names in the order in which the first sample lists them; a problem
        whose costs are those of consecutive periods needs it for such names. Lines may come in any order.
    absent_items : bool
        Whether samples of a long table may lack items. The features and the cost of an absent item are zero, one more
        feature, `present`, is 1 for items that are there, and the problem of the data set is `PresentItems` of yours. A
        linear model is then exactly that of the present items. If items are new in each sample, number them there, and
        use the number as the key.

    Returns
    -------
    Dataset
        With the names of rows, costs and features. Samples are in the order in which they first occur.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> table = {
    ...     "day": ["mon", "mon", "tue", "tue"],
    ...     "hour": [8, 9, 9, 8],
    ...     "forecast": [30.0, 40.0, 45.0, 33.0],
    ...     "price": [31.0, 44.0, 46.0, 30.0],
    ... }
    >>> data = read_table(
    ...     table, problem=TopK(2, 1), rows="day", items="hour", features=["forecast"], costs="price"
    ... )
    >>> data, data.cost_names, data.costs
    (Dataset(2 rows, 2 items with 1 feature each, TopK(n=2, k=1, sense='max')), ('8', '9'), array([[31., 44.],
           [30., 46.]]))
    """
    as_problem(problem)
    table = NamedColumns.of(source)
    if items is None and item_order is not None:
        raise ValueError("item_order is for long tables; list the columns of the costs in their order instead.")
    if as_flag(absent_items, name="absent_items") and items is None:
        raise ValueError("absent_items is for long tables, whose lines may lack; pass items, the column of their keys.")
    columns = ColumnRoles.of(table.names, features=features, costs=costs, rows=rows, items=items)
    if items is None:
        n_costs = len(columns.costs)
        _check_width(problem, n_costs, f"costs={costs!r} selects {n_costs} columns, {listed(columns.costs)}")
        check_columns_in_time(problem, columns.costs, costs)
        keys = _row_keys(table, columns.rows)
        values = table.numbers(columns.costs)
        _check_finite(values, columns.costs, lambda row: _shown_row(keys, row))
        X = _wide_features(table, columns, keys)
        return Dataset(
            X, values, problem, row_names=keys, cost_names=columns.item_names, feature_names=columns.feature_names
        )
    order = None if item_order is None else [str(item) for item in item_order]
    layout = LongLayout.of(table, rows, items, order, absent_items=absent_items)
    if not layout.is_ordered:
        check_items_in_time(problem, items, layout.items, "Pass them in the order of time: item_order.")
    _check_width(problem, len(layout.items), f"the column {items!r} has {len(layout.items)} items")
    lines = _long_numbers(table, layout, (*columns.costs, *columns.features))
    X, feature_names = np.ascontiguousarray(lines[:, :, 1:]), columns.feature_names
    if absent_items and _PRESENT in feature_names:
        raise ValueError(f"absent_items makes a feature {_PRESENT!r}, and features has one of this name. Rename it.")
    if absent_items:
        problem, X = PresentItems(problem, layout.present), _with_present(X, layout)
        feature_names = (*feature_names, _PRESENT)
    return Dataset(
        X,
        np.ascontiguousarray(lines[:, :, 0]),
        problem,
        row_names=layout.rows,
        cost_names=layout.items,
        feature_names=feature_names,
    )


def read_features(
    source: Any, like: Dataset, *, features: Any = None, rows: str | None = None, items: str | None = None
) -> FloatArray:
    """Read the features of new rows, in the order of the items and features of an earlier table.

    Parameters
    ----------
    source : path, frame, Arrow table or dictionary of columns
        As for `read_table`; it needs no costs.
    like : Dataset
        What `read_table` returned for the training rows. An item that it does not have is an error, and so is one that
        a new row lacks, unless `like` was read with `absent_items`. Then the last feature says which items are present:
        `PresentItems(problem, X[:, :, -1])` is the problem of the new rows.
    features : str, list of str, or mapping, optional
        As for `read_table`; by default the columns with the feature names of `like`.
    rows, items : str, optional
        As for `read_table`.

    Returns
    -------
    ndarray of shape (n, p) or (n, d, q)
        Rows are in the order in which they first occur.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> table = {"day": [1, 1], "hour": [8, 9], "forecast": [30.0, 40.0], "price": [31.0, 44.0]}
    >>> train = read_table(table, problem=TopK(2, 1), rows="day", items="hour", features="forecast", costs="price")
    >>> read_features({"day": [2, 2], "hour": [9, 8], "forecast": [7.0, 5.0]}, train, rows="day", items="hour")
    array([[[5.],
            [7.]]])
    """
    table = NamedColumns.of(source)
    wanted, absent_items = features, isinstance(like.problem, PresentItems)
    if wanted is None and like.feature_names is not None:
        wanted = like.feature_names[:-1] if absent_items else like.feature_names
    if wanted is None or like.cost_names is None:
        raise ValueError("like must be a Dataset with names, as read_table returns it, or features must be given.")
    columns = ColumnRoles.of(
        table.names, features=wanted, costs=None, rows=rows, items=items, item_names=like.cost_names
    )
    if items is None:
        X = _wide_features(table, columns, _row_keys(table, columns.rows))
    else:
        layout = LongLayout.of(table, rows, items, list(like.cost_names), trained=True, absent_items=absent_items)
        X = _long_numbers(table, layout, columns.features)
        X = _with_present(X, layout) if absent_items else X
    if X.ndim != like.X.ndim or X.shape[1:] != like.X.shape[1:]:
        raise ValueError(f"the features have the shape {('n', *X.shape[1:])}, and like.X {('n', *like.X.shape[1:])}.")
    return X


def _with_present(X: FloatArray, layout: LongLayout) -> FloatArray:
    """Return features (n, d, q + 1), the last of which says which items are present.

    Zeros alone would pull a shared model: with this feature, absent items have an intercept of their own.
    """
    return np.concatenate([X, layout.present[:, :, np.newaxis]], axis=2)


def _wide_features(table: NamedColumns, columns: ColumnRoles, keys: npt.NDArray[Any] | None) -> FloatArray:
    """Return features (n, p), or (n, d, q) of each item."""
    if not columns.per_item:
        X = table.numbers(columns.features)
        _check_finite(X, columns.feature_names, lambda row: _shown_row(keys, row))
        return X
    X = np.stack([table.numbers(item) for item in columns.features], axis=1)
    _check_finite(
        X, columns.feature_names, lambda row, item: f"{_shown_row(keys, row)}, item {columns.item_names[item]}"
    )
    return X


def _long_numbers(table: NamedColumns, layout: LongLayout, names: Sequence[str]) -> FloatArray:
    """Return columns of a long table (n, d, k)."""
    values = layout.arrange(table.numbers(names))
    _check_finite(values, names, lambda row, item: layout.named(row * len(layout.items) + item))
    return values


def _check_width(problem: Problem, found: int, what: str) -> None:
    if found != problem.n_costs:
        raise ValueError(f"{what}, and {type(problem).__name__} has {problem.n_costs} costs.")


def _row_keys(table: NamedColumns, rows: str | None) -> npt.NDArray[Any] | None:
    if rows is None:
        return None
    keys = table.keys(table.one(rows, argument="rows"))
    check_distinct(keys, rows)
    return keys


def _shown_row(keys: npt.NDArray[Any] | None, row: int) -> str:
    return f"row {row if keys is None else keys[row]}"


def _check_finite(values: FloatArray, names: Sequence[str], where: Callable[..., str]) -> None:
    """Raise if an entry (n, ..., k) is not finite; `where` names its row, and its item if there are items."""
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        *place, column = (int(index) for index in bad[0])
        found = values[tuple(bad[0])]
        what = "no value, or NaN" if np.isnan(found) else f"{found:+}"
        raise ValueError(
            f"{where(*place)}, column {names[column]!r} has {what} ({len(bad)} such entries in all). Fill them, or "
            "drop their rows."
        )
