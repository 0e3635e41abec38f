"""Columns of a table: those of any source by name, and which of them are features, costs, weights and keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.kit.checks import FloatArray, as_array, listed, nearest_names, shown
from decidewise.kit.errors import InputError


def select_columns(names: Sequence[str], wanted: Any, *, argument: str) -> list[str]:
    """Return the columns that a name, a pattern such as `"x_*"`, or a list of these selects, each of them once.

    >>> select_columns(["day", "x_a", "x_b"], "x_*", argument="features")
    ['x_a', 'x_b']
    """
    selected: dict[str, None] = {}  # in this order
    among = set(names)
    for pattern in [wanted] if isinstance(wanted, str) else list(wanted):
        found = [pattern] if pattern in among else [name for name in names if fnmatchcase(name, str(pattern))]
        if not found:
            raise InputError(f"{argument}: the table has no column {pattern!r}{nearest_names(str(pattern), names)}")
        selected |= dict.fromkeys(found)
    return list(selected)


def one_column(names: Sequence[str], wanted: Any, *, argument: str) -> str:
    """Return the single column that a name or a pattern selects."""
    found = select_columns(names, wanted, argument=argument)
    if len(found) != 1:
        raise InputError(f"{argument} must be one column; {wanted!r} selects {len(found)}: {listed(found)}.")
    return found[0]


def pattern_parts(columns: Sequence[str], pattern: Any) -> tuple[str, ...]:
    """Return what stands for the `*` of a pattern in each column; the columns themselves if it is no pattern.

    >>> pattern_parts(["price_8", "price_9"], "price_*")
    ('8', '9')
    """
    if not isinstance(pattern, str) or pattern.count("*") != 1 or pattern in columns:
        return tuple(columns)
    before, after = pattern.split("*")
    return tuple(column[len(before) : len(column) - len(after)] for column in columns)


@dataclass(frozen=True)
class ColumnRoles:
    """The columns of a wide or a long table by their roles.

    Attributes
    ----------
    features : tuple of str, or tuple of d tuples of q str
        The p features of a row, or the q features of each of d items of a wide table.
    feature_names : tuple of p or q str
    costs : tuple of str
        Wide: the d costs. Long: the one column of the cost. Empty for rows to decide on.
    sample_weight, rows, items : str, optional
    item_names : tuple of str
        The names of the costs, which are those of the items of a long table.
    """

    features: tuple[Any, ...]
    feature_names: tuple[str, ...]
    costs: tuple[str, ...]
    sample_weight: str | None = None
    rows: str | None = None
    items: str | None = None
    item_names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        *,
        features: Any,
        costs: Any,
        sample_weight: str | None = None,
        rows: str | None = None,
        items: str | None = None,
        item_names: Sequence[str] = (),
    ) -> ColumnRoles:
        """Find the columns among the names of a table; `costs` may be None for rows to decide on."""
        sample_weight, rows, items = (
            None if name is None else one_column(names, name, argument=argument)
            for name, argument in ((sample_weight, "sample_weight"), (rows, "rows"), (items, "items"))
        )
        cost_columns = [] if costs is None else select_columns(names, costs, argument="costs")
        if items is not None:
            if rows is None:
                raise ValueError("a long table needs the column of the sample keys as well: pass rows=...")
            if costs is not None:
                one_column(names, costs, argument="costs")
            if isinstance(features, Mapping):
                raise ValueError("features of a long table are columns, not a mapping: pass their names or a pattern.")
        chosen: tuple[Any, ...]
        if isinstance(features, Mapping):
            known = tuple(item_names) or pattern_parts(cost_columns, costs)
            chosen, labels, item_names = item_columns(names, features, known), tuple(map(str, features)), known
            own = dict(zip(pattern_parts(cost_columns, costs), cost_columns, strict=True))
            if own and set(known) <= set(own):
                cost_columns = [own[item] for item in known]
        else:
            chosen = labels = tuple(select_columns(names, features, argument="features"))
            item_names = tuple(cost_columns) if cost_columns and items is None else tuple(item_names)
        leaked = [name for name in cost_columns if name in labels and not isinstance(features, Mapping)]
        if leaked:
            raise ValueError(f"{listed(leaked)} are both features and costs. Leave the costs out of the features.")
        return cls(chosen, labels, tuple(cost_columns), sample_weight, rows, items, tuple(item_names))

    @property
    def per_item(self) -> bool:
        """Whether the columns of a wide table are features of its items."""
        return bool(self.features) and not isinstance(self.features[0], str)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that are read as numbers, each of them once."""
        flat = [name for item in self.features for name in item] if self.per_item else list(self.features)
        flat += [*self.costs, *([self.sample_weight] if self.sample_weight else [])]
        return tuple(dict.fromkeys(flat))

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the keys: of the samples, and of the items of a long table."""
        return tuple(name for name in (self.rows, self.items) if name is not None)

    @property
    def lines_per_row(self) -> int:
        """The number of lines that each sample has."""
        return 1 if self.items is None else len(self.item_names)

    def with_items(self, item_names: Sequence[str]) -> ColumnRoles:
        """Return the same columns with the names of the items."""
        return replace(self, item_names=tuple(item_names))

    def name_of(self, what: str, places: Sequence[int]) -> str:
        """Return the column of an entry of the features, the costs or the weights."""
        if what == "sample_weight":
            return str(self.sample_weight)
        if what == "costs":
            return self.costs[0 if self.items is not None else places[0]]
        if self.per_item:
            return str(self.features[places[0]][places[1]])
        return self.feature_names[places[-1]]


def item_columns(
    names: Sequence[str], features: Mapping[Any, Any], items: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    """Return for each item the columns of its features.

    >>> item_columns(["day", "x_a", "x_b"], {"x": "x_*", "day": "day"}, ["b", "a"])
    (('x_b', 'day'), ('x_a', 'day'))
    """
    by_feature = []
    for name, pattern in features.items():
        argument = f"features[{name!r}]"
        columns = select_columns(names, pattern, argument=argument)
        if isinstance(pattern, str) and pattern in names:
            by_feature.append([pattern] * len(items))  # all items of a row have it
            continue
        own = dict(zip(pattern_parts(columns, pattern), columns, strict=True))
        by_name = isinstance(pattern, str)
        missing = [item for item in items if item not in own] if by_name else []
        if len(columns) != len(items) or missing:
            lacks = f"; there is none for {listed(missing)}" if missing else ""
            raise ValueError(f"{argument} selects {len(columns)} columns, and there are {len(items)} costs{lacks}.")
        by_feature.append([own[item] for item in items] if by_name else columns)
    return tuple(zip(*by_feature, strict=True))


@dataclass(frozen=True)
class NamedColumns:
    """The columns of a table, by name.

    Attributes
    ----------
    names : tuple of str
    n_rows : int
    first_row : int
        The number of the first row, counted from 0, if these are only some rows of a table.

    Examples
    --------
    >>> table = NamedColumns.of({"day": ["mon", "tue"], "x_a": [1, 2], "x_b": [3, 4]})
    >>> table.matching("x_*", argument="features"), table.numbers(["x_b"])[:, 0]
    (['x_a', 'x_b'], array([3., 4.]))
    """

    names: tuple[str, ...]
    n_rows: int
    read: Callable[[str], Any]
    first_row: int = 0

    @classmethod
    def of(cls, source: Any) -> NamedColumns:
        """Return the columns of a source; its library is not imported unless the source is a file."""
        if isinstance(source, str | Path):
            from decidewise.rows.file_blocks import read_files  # noqa: PLC0415 - most tables are in memory

            source = read_files(source)
        if isinstance(source, Mapping):
            lengths = {name: len(values) for name, values in source.items()}
            if len(set(lengths.values())) > 1:
                raise ValueError(f"the columns of the table must be equally long; they have {lengths} entries.")
            return cls._checked(source, next(iter(lengths.values()), 0), lambda name: source[name])
        if hasattr(source, "column_names") and hasattr(source, "num_rows"):  # Arrow
            return cls._checked(source.column_names, source.num_rows, lambda name: _of_arrow(source.column(name)))
        if hasattr(source, "columns") and hasattr(source, "shape"):  # pandas, polars
            return cls._checked(source.columns, source.shape[0], lambda name: source[name].to_numpy())
        from decidewise.rows.file_blocks import FORMATS  # noqa: PLC0415

        raise TypeError(
            f"a table is a path of a file ({FORMATS}), a frame of pandas or polars, an Arrow table, or a dictionary "
            f"of columns; got {shown(source)}."
        )

    @classmethod
    def _checked(cls, names: Iterable[Any], n_rows: int, read: Callable[[str], Any]) -> NamedColumns:
        columns = list(names)
        unnamed = [name for name in columns if not isinstance(name, str)]
        if unnamed:
            raise ValueError(f"the columns of a table must have text as names; got {listed(unnamed)}.")
        twice = [name for name, count in Counter(columns).items() if count > 1]
        if twice:
            raise ValueError(f"the columns of a table must have different names; {listed(twice)} occur twice.")
        if not columns or not n_rows:
            raise ValueError(f"the table is empty: it has {n_rows} rows and {len(columns)} columns.")
        return cls(tuple(columns), int(n_rows), read)

    def matching(self, wanted: Any, *, argument: str) -> list[str]:
        """Return the columns that a name, a pattern such as `"x_*"`, or a list of these selects, each of them once."""
        return select_columns(self.names, wanted, argument=argument)

    def one(self, name: Any, *, argument: str) -> str:
        """Return the single column that a name or a pattern selects."""
        return one_column(self.names, name, argument=argument)

    def numbers(self, names: Iterable[str]) -> FloatArray:
        """Return numeric columns (n, k), not yet checked to be finite."""
        return np.column_stack([as_array(self.read(name), name=f"column {name!r}") for name in names])

    def keys(self, name: str) -> npt.NDArray[Any]:
        """Return a column of keys (n,): integers, dates or text; raise if one is missing."""
        keys = np.asarray(self.read(name))
        if keys.dtype.kind == "f" and np.isfinite(keys).all() and (keys == np.round(keys)).all():
            keys = keys.astype(np.int64)  # whole numbers that a reader widened
        missing = np.zeros(len(keys), dtype=bool)
        if keys.dtype.kind in "Mmf":
            missing = np.isnat(keys) if keys.dtype.kind in "Mm" else np.isnan(keys)
        elif keys.dtype.kind == "O":  # None, NaN, and pandas.NA, which is no bool
            missing = np.array([key is None or str(key) in ("nan", "<NA>", "NaT") for key in keys])
        if missing.any():
            raise ValueError(f"column {name!r} has no key in row {int(missing.argmax())} of the table. Drop the row.")
        return keys.astype(str) if keys.dtype.kind == "O" else keys


def check_distinct(keys: npt.NDArray[Any], name: str) -> None:
    """Raise if a key of a wide table is in several lines."""
    distinct, counts = np.unique(keys, return_counts=True)
    if (counts > 1).any():
        raise ValueError(
            f"{name} {distinct[counts > 1][0]} is in {counts.max()} lines of the table. A wide table has one line per "
            "sample; if this one has a line per item, name the column of the items (--items)."
        )


def _of_arrow(column: Any) -> npt.NDArray[Any]:
    """Return a column of an Arrow table; categories as their values, for otherwise their gaps would become values."""
    if hasattr(column.type, "index_type"):
        column = column.cast(column.type.value_type)
    values: npt.NDArray[Any] = column.to_numpy()
    return values
