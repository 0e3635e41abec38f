"""Tables as people have them, wide or long, read into arrays with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.data.dataset import Dataset
from decidewise.kit.checks import FloatArray, IntArray, listed
from decidewise.problems.contract import Problem, as_problem
from decidewise.rows.columns import item_columns, pattern_parts
from decidewise.rows.keys import own_order
from decidewise.rows.named_columns import NamedColumns

Names = tuple[str, ...]


def read_table(
    source: Any,
    *,
    problem: Problem,
    costs: Any,
    features: Any,
    rows: str | None = None,
    items: str | None = None,
    item_order: Sequence[Any] | None = None,
) -> Dataset:
    """Read a wide or a long table of features and realised costs.

    A **wide** table has one line per sample and one column per cost. A **long** table has one line per sample and item,
    with a column of sample keys (`rows`), a column of item keys (`items`), the features of the item and its cost. It is
    read into features of shape (n, d, q), for one model that all items share.

    NamedColumns are selected by name, by a pattern such as `"x_*"`, or by a list of these.

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
        `{"forecast": "forecast_*", "load": "load"}` beside `costs="price_*"` is read into (n, d, 2). NamedColumns are
        matched to costs by what stands for the `*`; a single column is a feature that all items of a row have.
    rows : str, optional
        The column of sample keys, each once in a wide table.
    items : str, optional
        The column of item keys; it makes the table long.
    item_order : sequence, optional
        The items of a long table in the order of the problem's costs. By default numbers, dates and names that differ
        by a number are in their own order, and other names in the order in which the first sample lists them; a problem
        whose costs are those of consecutive periods needs it for such names. Lines may come in any order.

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
    (Dataset(2 rows, 2 items with 1 features each, TopK(n_costs=2, sense='max')), ('8', '9'), array([[31., 44.],
           [30., 46.]]))
    """
    as_problem(problem)
    table = NamedColumns.of(source)
    if items is None:
        return _read_wide(table, problem, costs, features, rows, item_order)
    layout = LongLayout.of(table, rows, items, None if item_order is None else [str(item) for item in item_order])
    if not layout.is_ordered:
        check_items_in_time(problem, items, layout.items, "Pass them in the order of time: item_order.")
    cost = table.one(costs, argument="costs")
    names = _names_of_features(table, features)
    _check_width(problem, len(layout.items), f"the column {items!r} has {len(layout.items)} items")
    values = layout.arrange(table.numbers([cost, *names]))
    layout.check_finite(values, [cost, *names])
    return Dataset(
        np.ascontiguousarray(values[:, :, 1:]),
        np.ascontiguousarray(values[:, :, 0]),
        problem,
        row_names=layout.rows,
        cost_names=layout.items,
        feature_names=tuple(names),
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
        a new row lacks.
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
    wanted = like.feature_names if features is None else features
    if wanted is None or like.cost_names is None:
        raise ValueError("like must be a Dataset with names, as read_table returns it, or features must be given.")
    if items is None:
        X, names, keys = _wide_features(table, wanted, like.cost_names)
        _check_rows_finite(X, names, _row_keys(table, rows), keys)
    else:
        layout = LongLayout.of(table, rows, items, list(like.cost_names), trained=True)
        names = tuple(_names_of_features(table, wanted))
        X = layout.arrange(table.numbers(names))
        layout.check_finite(X, names)
    if X.ndim != like.X.ndim or X.shape[1:] != like.X.shape[1:]:
        raise ValueError(f"the features have the shape {('n', *X.shape[1:])}, and like.X {('n', *like.X.shape[1:])}.")
    return X


def _read_wide(
    table: NamedColumns, problem: Problem, costs: Any, features: Any, rows: str | None, item_order: Any
) -> Dataset:
    if item_order is not None:
        raise ValueError("item_order is for long tables; list the columns of the costs in their order instead.")
    columns = table.matching(costs, argument="costs")
    _check_width(problem, len(columns), f"costs={costs!r} selects {len(columns)} columns, {listed(columns)}")
    check_columns_in_time(problem, columns, costs)
    keys = _row_keys(table, rows)
    items = pattern_parts(columns, costs) if isinstance(features, Mapping) else tuple(columns)
    X, names, items = _wide_features(table, features, items)
    leaked = [name for name in columns if not isinstance(features, Mapping) and name in names]
    if leaked:
        raise ValueError(f"{listed(leaked)} are both features and costs. Leave the costs out of the features.")
    values = table.numbers(columns)
    _check_rows_finite(values, columns, keys)
    _check_rows_finite(X, names, keys, items)
    return Dataset(X, values, problem, row_names=keys, cost_names=items, feature_names=names)


def _wide_features(table: NamedColumns, features: Any, items: Names) -> tuple[FloatArray, Names, Names]:
    """Return features (n, p), or (n, d, q) for a mapping, their names, and the names of the items."""
    if not isinstance(features, Mapping):
        columns = table.matching(features, argument="features")
        return table.numbers(columns), tuple(columns), items
    parts = []
    for of_items in zip(*item_columns(table.names, features, items), strict=True):
        values = table.numbers(list(dict.fromkeys(of_items)))
        parts.append(np.broadcast_to(values, (len(values), len(items))))  # a column of the row is that of all its items
    return np.stack(parts, axis=2), tuple(map(str, features)), items


def _names_of_features(table: NamedColumns, features: Any) -> list[str]:
    if isinstance(features, Mapping):
        raise ValueError("features of a long table are columns, not a mapping: pass their names or a pattern.")
    return table.matching(features, argument="features")


def _check_width(problem: Problem, found: int, what: str) -> None:
    if found != problem.n_costs:
        raise ValueError(f"{what}, and {type(problem).__name__} has {problem.n_costs} costs.")


def _row_keys(table: NamedColumns, rows: str | None) -> npt.NDArray[Any] | None:
    if rows is None:
        return None
    keys = table.keys(table.one(rows, argument="rows"))
    distinct, counts = np.unique(keys, return_counts=True)
    if (counts > 1).any():
        raise ValueError(
            f"{rows} {distinct[counts > 1][0]} is in {counts.max()} lines of the table. A wide table has one line per "
            "sample; if this one has a line per item, name the column of the items."
        )
    return keys


def _check_rows_finite(
    values: FloatArray, names: Sequence[str], keys: npt.NDArray[Any] | None, items: Sequence[str] = ()
) -> None:
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, *place = bad[0]
        where = f"row {row if keys is None else keys[row]}"
        where += f", item {items[place[0]]}" if len(place) == 2 else ""
        _refuse(values[tuple(bad[0])], f"{where}, column {names[place[-1]]!r}", len(bad))


def _refuse(value: float, where: str, n_such: int) -> None:
    what = "no value, or NaN" if np.isnan(value) else f"{value:+}"
    raise ValueError(f"{where} has {what} ({n_such} such entries in all). Fill them, or drop their rows.")


class LongLayout:
    """Where each line of a long table goes: its sample and its item, by key."""

    def __init__(self, rows: npt.NDArray[Any], items: Names, place: IntArray, titles: Names, is_ordered: bool) -> None:
        self.rows, self.items, self.place, self.titles = rows, items, place, titles
        #: Whether the order of the items was given, or is their own; otherwise it is that of the first sample.
        self.is_ordered = is_ordered

    @classmethod
    def of(
        cls,
        table: NamedColumns,
        rows: str | None,
        items: str,
        order: list[str] | None,
        as_listed: Sequence[str] | None = None,
        *,
        trained: bool = False,
    ) -> LongLayout:
        """Find samples and items; raise if a pair is missing or doubled, or an item is not in the given order.

        Without an order, items that have none of their own are `as_listed`, by default by the first sample. If it is
        `trained`, the order is that of the items of a model.
        """
        if rows is None:
            raise ValueError("a long table needs the column of the sample keys as well: pass rows=...")
        titles = (table.one(rows, argument="rows"), table.one(items, argument="items"))
        row_keys, row_of = _factorize(table.keys(titles[0]))
        item_keys, item_of = _factorize(table.keys(titles[1]))
        names = [str(key) for key in item_keys]
        own = own_order(item_keys) if order is None else None
        if own is not None:
            order = [names[item] for item in own]
        wanted = order or as_listed
        if not wanted:
            # The order of the first sample; items that it lacks come last, and the error about them names this sample.
            in_first, _ = _factorize(item_of[row_of == 0])
            wanted = [names[item] for item in (*in_first, *np.setdiff1d(np.arange(len(names)), in_first))]
        unknown = [name for name in names if name not in set(wanted)]
        if unknown and order is not None and not trained:
            raise ValueError(f"item_order (--item-order) must name all items; it lacks {listed(unknown)}.")
        if unknown:
            raise ValueError(
                f"{titles[1]} {listed(unknown)} is not among the {len(wanted)} known items, {listed(wanted)}. Drop it, "
                "or train with it."
            )
        position = {name: place for place, name in enumerate(wanted)}
        place = row_of * len(wanted) + np.array([position[name] for name in names])[item_of]
        counts = np.bincount(place, minlength=len(row_keys) * len(wanted))
        layout = cls(row_keys, tuple(wanted), place, titles, order is not None)
        for wrong, what in ((counts > 1, "more than once"), (counts == 0, "missing")):
            if wrong.any():
                pair = layout._named(int(wrong.argmax()))
                raise ValueError(
                    f"{pair} is {what} in the table ({int(wrong.sum())} such pairs in all). Each of the "
                    f"{len(row_keys)} samples needs one line for each of the {len(wanted)} items."
                )
        return layout

    def arrange(self, lines: FloatArray) -> FloatArray:
        """Return lines (n * d, k) as an array (n, d, k)."""
        result = np.empty_like(lines)
        result[self.place] = lines
        return result.reshape(len(self.rows), len(self.items), -1)

    def check_finite(self, values: FloatArray, names: Sequence[str]) -> None:
        """Raise if an entry of (n, d, k) is not finite; name the sample, the item and the column."""
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            row, item, column = bad[0]
            pair = self._named(int(row * len(self.items) + item))
            _refuse(values[row, item, column], f"{pair}, column {names[column]!r}", len(bad))

    def _named(self, place: int) -> str:
        row, item = divmod(place, len(self.items))
        return f"{self.titles[0]} {self.rows[row]}, {self.titles[1]} {self.items[item]}"


def check_items_in_time(problem: Problem, title: str, items: Sequence[str], how: str) -> None:
    """Raise if items have no order of their own, and the problem takes theirs for that of time."""
    if problem.in_time and own_order(np.array(items)) is None:
        raise ValueError(
            f"{problem!r} takes the order of its costs for that of time, and {title!r} has names, {listed(items)}, "
            f"which have no order of their own. {how}"
        )


def check_columns_in_time(problem: Problem, columns: Sequence[str], pattern: Any) -> None:
    """Raise if a pattern selects columns in another order than their own, and the problem takes it for that of time."""
    parts = pattern_parts(columns, pattern)
    order = own_order(np.array(parts)) if problem.in_time and parts != tuple(columns) else None
    if order is not None and (order != np.arange(len(order))).any():
        raise ValueError(
            f"{problem!r} takes the order of its costs for that of time, and the table has {listed(columns)} in "
            "another order. Name each of these columns, in the order of time."
        )


def _factorize(keys: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the distinct keys in the order in which they first occur, and the position of each key among them."""
    distinct, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return distinct[order], rank[inverse.ravel()]
