"""Columns as people have them, with categories, dates and gaps, as numeric features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from decidewise.app.tables.raw_values import Raw, as_dates, as_numbers, as_texts, kind_of
from decidewise.kit.checks import BoolArray, FloatArray, nearest_names, without
from decidewise.kit.errors import InputError
from decidewise.kit.notebook import is_frame
from decidewise.rows.columns import NamedColumns

#: Parts of the calendar are used only if the training rows span at least so many days.
_DAYS_FOR_WEEKDAYS, _DAYS_FOR_YEAR = 21, 400
#: The share of the rows from which on there are too many names to learn from.
_MOST_NAMES = 0.5
_PARTS = ("weekday", "year", "day")
#: The entries of a plan for a column, by its kind.
_FORMS: dict[str, dict[str, type]] = {
    "numbers": {"name": str, "kind": str, "fill": float, "gaps": bool, "low": float, "high": float},
    "names": {"name": str, "kind": str, "base": str, "levels": list, "known": list},
    "dates": {"name": str, "kind": str, "parts": list, "gaps": bool},
    "left out": {"name": str, "kind": str, "reason": str},
}
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class TableFeatures(TransformerMixin, BaseEstimator):
    r"""Turn the columns of a table into numeric features, and say what was done to each.

    - Numbers stay as they are; a gap is filled with the median, and a second feature says where gaps were.
    - Text is one-hot encoded, with the most frequent value as the reference. Values beyond `max_levels`, or seen
      in a single row, have no feature of their own; nor do values that only new rows have.
    - Dates become their place in the week, the year and the day, as far as the training rows span them.
    - A column that cannot help is left out: the same value everywhere, no value, or another text in almost every row.

    In a pipeline it makes a model of a raw frame: `make_pipeline(TableFeatures(), WiseRegressorCV(problem))`. Columns
    are found by name, in whatever order, and further ones are ignored. What is fitted is plain data (`columns_`), so
    that a model file can hold it.

    Parameters
    ----------
    columns : sequence of str, optional
        The names of the columns to use; by default all.
    categories : sequence of str
        Columns of numbers that are names, such as the number of a shop.
    kept : sequence of str
        Columns of numbers that are kept even if they are the same in every row, such as forecasts.
    max_levels : int
        The largest number of features for one column of names.

    Attributes
    ----------
    columns_ : list of dict
        What is done to each column, with the range of its numbers or its names; text and numbers only.
    feature_names_ : tuple of str
    noted_ : dict of str to str
        What was done to a column, in a sentence, by its name; nothing about plain numbers. `notes_` are the sentences.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, unless the columns have no names

    Examples
    --------
    >>> import pandas as pd
    >>> from decidewise import TableFeatures
    >>> table = pd.DataFrame({"load": [1.0, np.nan, 3.0, 5.0], "kind": ["a", "b", "b", "a"], "day": [7, 7, 7, 7]})
    >>> prepared = TableFeatures().fit(table)
    >>> prepared.feature_names_
    ('load', 'load is missing', 'kind = b')
    >>> prepared.transform({"load": [np.nan], "kind": ["b"]})
    array([[3., 1., 1.]])
    >>> print(*prepared.notes_, sep="\n")
    'load': 1 of 4 values missing (25 %), filled with the median 3, and a feature says where.
    'kind': text, one-hot encoded in 1 feature; reference level 'a'.
    'day': left out, since it is 7 in every row.

    With names, for another frame:

    >>> prepared.set_output(transform="pandas").transform(table[:2])
       load  load is missing  kind = b
    0   1.0              0.0       0.0
    1   3.0              1.0       1.0
    """

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        *,
        categories: Sequence[str] = (),
        kept: Sequence[str] = (),
        max_levels: int = 30,
    ) -> None:
        self.columns = columns
        self.categories = categories
        self.kept = kept
        self.max_levels = max_levels

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what to do to each column of a table.

        Parameters
        ----------
        X : frame of pandas or polars, Arrow table, dictionary of columns, or array of shape (n, p)
        """
        table = self._read(X, reset=True)
        plans, notes = [], {}
        chosen = list(table.names if self.columns is None else self.columns)
        for name in chosen:
            plan, note = self._plan(name, np.asarray(table.read(name)))
            plans.append(plan)
            if note:
                notes[name] = f"{name!r}: {note}."
        self.columns_: list[dict[str, Any]] = plans
        self.noted_: dict[str, str] = notes
        if isinstance(X, Mapping) or is_frame(X):
            self.n_features_in_ = len(chosen)
            self.feature_names_in_ = np.array(chosen, dtype=object)
        if not self.feature_names_:
            raise InputError(f"no feature is left to predict from. {' '.join(self.notes_)}")
        return self

    @property
    def notes_(self) -> tuple[str, ...]:
        """What was done, in sentences."""
        return tuple(self.noted_.values())

    @property
    def with_gaps_(self) -> list[str]:
        """The columns whose training rows had gaps and that are features all the same."""
        return [plan["name"] for plan in self.columns_ if plan.get("gaps") or "" in plan.get("known", ())]

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """The names of the features, in the order of `transform`."""
        return tuple(name for plan in self.columns_ for name in _names(plan))

    @property
    def is_calendar(self) -> list[bool]:
        """Whether each feature is a part of a date."""
        return [plan["kind"] == "dates" for plan in self.columns_ for _ in _names(plan)]

    @property
    def needed(self) -> dict[str, str]:
        """The columns that `transform` needs, each with its kind: "numbers", "names" or "dates"."""
        check_is_fitted(self, "columns_")
        return {plan["name"]: plan["kind"] for plan in self.columns_ if plan["kind"] != "left out"}

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the features, as an array of text."""
        check_is_fitted(self, "columns_")
        return np.array(self.feature_names_, dtype=object)

    def transform(self, X: Any) -> FloatArray:
        """Return the features (n, p) of a table with the same columns; costs are not needed."""
        needed, table = self.needed, self._read(X, reset=False)
        if missing := without(needed, table.names):
            raise InputError(f"the table has no column {missing[0]!r}{nearest_names(missing[0], table.names)}")
        parts = [
            _MAKE[plan["kind"]](plan, np.asarray(table.read(plan["name"])))
            for plan in self.columns_
            if plan["kind"] != "left out"
        ]
        return np.ascontiguousarray(np.column_stack(parts))

    def _read(self, X: Any, *, reset: bool) -> NamedColumns:
        if isinstance(X, Mapping) and not issparse(X):  # some sparse matrices are dictionaries
            return NamedColumns(tuple(X), 0, X.__getitem__)  # as a batch without rows has it, too
        if is_frame(X):
            return NamedColumns.of(X)
        if reset:
            self.__dict__.pop("feature_names_in_", None)
        values = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False, ensure_min_samples=1 + reset)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(values.shape[1])])
        return NamedColumns(tuple(names), len(values), dict(zip(names, values.T, strict=True)).__getitem__)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _check_kept(self) -> None:
        """Raise a `ValueError` if this is not what `fit` makes: it may come from a file."""
        for plan in vars(self).get("columns_", []):
            kind = plan["kind"]
            if {key: type(value) for key, value in plan.items()} != _FORMS[kind]:
                raise ValueError(f"a column of kind {kind!r} has other entries than it should")
            texts = [*plan.get("levels", ()), *plan.get("known", ()), *plan.get("parts", ())]
            if not all(isinstance(text, str) for text in texts) or not set(plan.get("parts", ())) <= set(_PARTS):
                raise ValueError(f"a column of kind {kind!r} has entries that are no names")
            if kind == "numbers" and not -np.inf < plan["low"] <= plan["high"] < np.inf:
                raise ValueError(f"column {plan['name']!r} has no range from low to high")

    def _plan(self, name: str, values: Raw) -> tuple[dict[str, Any], str]:
        if name in self.kept:
            return _plan_numbers(name, values, kept=True)
        kind = "names" if name in self.categories else kind_of(name, values)
        return {"names": self._plan_names, "numbers": _plan_numbers, "dates": _plan_dates}[kind](name, values)

    def _plan_names(self, name: str, values: Raw) -> tuple[dict[str, Any], str]:
        texts, gaps = as_texts(values)
        if gaps.all():
            return _left_out(name, "it has no value at all")
        levels, counts = np.unique(texts[~gaps], return_counts=True)
        if gaps.any():
            levels, counts = np.append(levels, ""), np.append(counts, gaps.sum())
        if len(levels) == 1:
            return _left_out(name, f"it is {str(levels[0])!r} in every row")
        if counts.max() == 1:
            return _left_out(
                name, "it has another text in every row; dates must be written like 2026-01-31 to be read as such"
            )
        if len(levels) > max(self.max_levels, _MOST_NAMES * len(texts)) and name not in self.categories:
            return _left_out(
                name,
                f"it has {len(levels):,} names in {len(texts):,} rows; --categories {name!r} keeps the most frequent",
            )
        order = np.lexsort((levels, -counts))
        levels, counts = levels[order], counts[order]
        own = [str(level) for level in levels[1:][counts[1:] > 1][: self.max_levels]]
        rest = len(levels) - 1 - len(own)
        plan = {"name": name, "kind": "names", "base": str(levels[0]), "levels": own, "known": sorted(map(str, levels))}
        if not own:
            return _left_out(name, f"it is {str(levels[0])!r} in all rows but a few of one kind each")
        features = f"{len(own)} feature{'s' * (len(own) > 1)}"
        what = "a category" if name in self.categories else "text"
        also = f", which also stands for {rest} rare value{'s' * (rest > 1)}" if rest else ""
        missing = f"; {int(gaps.sum()):,} gaps count as a value" if gaps.any() else ""
        return plan, f"{what}, one-hot encoded in {features}; reference level {str(levels[0])!r}{also}{missing}"


def _missing(gaps: BoolArray) -> str:
    n, n_all = int(gaps.sum()), len(gaps)
    return f"{n:,} of {n_all:,} values missing ({100 * n / n_all:.2g} %)"


def _left_out(name: str, reason: str) -> tuple[dict[str, Any], str]:
    return {"name": name, "kind": "left out", "reason": reason}, f"left out, since {reason}"


def _plan_numbers(name: str, values: Raw, *, kept: bool = False) -> tuple[dict[str, Any], str]:
    numbers = as_numbers(values, name)
    gaps = np.isnan(numbers)
    if gaps.all():
        return _left_out(name, "it has no value at all")
    known = numbers[~gaps]
    if known.min() == known.max() and not gaps.any() and not kept:
        return _left_out(name, f"it is {known[0]:g} in every row")
    fill = float(np.median(known))
    seen = {"low": float(known.min()), "high": float(known.max())}
    plan = {"name": name, "kind": "numbers", "fill": fill, "gaps": bool(gaps.any()), **seen}
    if not gaps.any():
        return plan, ""
    return plan, f"{_missing(gaps)}, filled with the median {fill:.6g}, and a feature says where"


def _plan_dates(name: str, values: Raw) -> tuple[dict[str, Any], str]:
    dates = as_dates(values, name)
    gaps = np.isnat(dates)
    if gaps.all():
        return _left_out(name, "it has no value at all")
    known = dates[~gaps]
    days = (known.max() - known.min()) / np.timedelta64(1, "D")
    is_shown = {
        "weekday": days >= _DAYS_FOR_WEEKDAYS,
        "year": days >= _DAYS_FOR_YEAR,
        "day": len(np.unique(known - known.astype("datetime64[D]"))) > 1,
    }
    parts = [part for part, shown in is_shown.items() if shown]
    if not parts:
        return _left_out(name, f"its {days:.0f} days are too few for weekdays or seasons to show")
    plan = {"name": name, "kind": "dates", "parts": parts, "gaps": bool(gaps.any())}
    words = {"weekday": "the day of the week", "year": "the time of the year", "day": "the time of the day"}
    missing = f"; {_missing(gaps)}, and a feature says where" if gaps.any() else ""
    *first, last = (words[part] for part in parts)
    return plan, f"a date, as {', '.join(first)}{' and ' * bool(first)}{last}{missing}"


def _make_numbers(plan: Mapping[str, Any], values: Raw) -> FloatArray:
    numbers = as_numbers(values, plan["name"])
    gaps = np.isnan(numbers)
    filled = np.where(gaps, plan["fill"], numbers)
    return np.column_stack([filled, gaps]) if plan["gaps"] else filled[:, np.newaxis]


def _make_names(plan: Mapping[str, Any], values: Raw) -> FloatArray:
    texts, _ = as_texts(values)
    return (texts[:, np.newaxis] == np.array(plan["levels"])[np.newaxis]).astype(float)


def _make_dates(plan: Mapping[str, Any], values: Raw) -> FloatArray:
    dates = as_dates(values, plan["name"])
    gaps = np.isnat(dates)
    known = np.where(gaps, np.datetime64("1970-01-01", "us"), dates)
    days = known.astype("datetime64[D]")
    parts: list[FloatArray] = []
    for part in plan["parts"]:
        if part == "weekday":
            weekday = (days.astype(np.int64) + 3) % 7  # the first day of 1970 was a Thursday
            parts.append(weekday[:, np.newaxis] == np.arange(1, 7))
        elif part == "year":
            parts.append(_wave((days - days.astype("datetime64[Y]")) / np.timedelta64(1, "D") / 365.25))
        else:
            parts.append(_wave((known - days) / np.timedelta64(1, "D")))
    made = np.column_stack(parts).astype(float)
    made[gaps] = 0.0
    return np.column_stack([made, gaps]) if plan["gaps"] else made


def _wave(turns: Any) -> FloatArray:
    return np.column_stack([np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)])


_MAKE: dict[str, Callable[[Mapping[str, Any], Raw], FloatArray]] = {
    "numbers": _make_numbers,
    "names": _make_names,
    "dates": _make_dates,
}


def _names(plan: Mapping[str, Any]) -> Iterator[str]:
    name = plan["name"]
    if plan["kind"] == "numbers":
        yield name
    elif plan["kind"] == "names":
        yield from (f"{name} = {level or 'missing'}" for level in plan["levels"])
    elif plan["kind"] == "dates":
        for part in plan["parts"]:
            if part == "weekday":
                yield from (f"{name} is a {day}" for day in _WEEKDAYS[1:])
            else:
                yield from (f"{wave} of the {part} of {name}" for wave in ("sine", "cosine"))
    if plan.get("gaps"):
        yield f"{name} is missing"
