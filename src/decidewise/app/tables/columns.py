"""Which columns of a table are what, and the columns by name: parts of dates among them, and features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

import numpy as np

from decidewise.app.tables.raw_values import Raw, are_dates, as_dates, as_numbers, check_column
from decidewise.kit.checks import listed, nearest_names, shown, without
from decidewise.kit.errors import InputError
from decidewise.problems import ProblemFile
from decidewise.rows.columns import NamedColumns

Names = tuple[str, ...]


@dataclass(frozen=True)
class TableOptions:
    """Which columns of a table are what: the section `[table]` of a problem file, or options of a command.

    A column is named, or selected by a pattern such as `"x_*"`.

    Attributes
    ----------
    costs : tuple of str
        Wide: the columns of the costs, in the order of the problem. Long: the column of the cost. By default `cost_*`
        in a wide table and `cost` in a long one.
    features : tuple of str
        By default all columns that are nothing else. `name=pattern` makes a feature of each item of a wide table, as in
        `("forecast=forecast_*", "load=load")`.
    rows, items : str, optional
        The columns of the keys of samples and of items; `items` makes the table long.
    item_order : tuple of str
        The items of a long table in the order of the problem; by default numbers and dates in their own order, and
        names in that of the first sample.
    forecast : tuple of str
        A forecast of the costs that is already there: one column per cost, or the one column of a long table.
    known : tuple of str
        Known costs beside the predicted ones: one column per cost, or the one column of a long table.
    time : str, optional
        When each sample was: rows are sorted by it, and no model is trained on what came later. By default `rows`, if
        its keys are dates and there are no groups.
    shuffle : bool
        Whether rows are in no order, although their keys are dates.
    groups : str, optional
        Samples of one group are held out together.
    categories : tuple of str
        Numeric columns to treat as categories.
    unit : str
        The unit of the costs, such as EUR, for reports.

    Examples
    --------
    >>> TableOptions.of({"costs": "price_*", "time": "day"}, time="hour").costs
    ('price_*',)
    """

    costs: Names = ()
    features: Names = ()
    rows: str | None = None
    items: str | None = None
    item_order: Names = ()
    forecast: Names = ()
    known: Names = ()
    time: str | None = None
    shuffle: bool = False
    groups: str | None = None
    categories: Names = ()
    unit: str = ""

    @classmethod
    def of(cls, section: Mapping[str, Any], **given: Any) -> Self:
        """Return the options of a file, with those that are given (not None, and not False) in their place."""
        several = {field.name for field in fields(cls) if field.default == ()}
        known = [field.name for field in fields(cls)]
        given = {name: value for name, value in given.items() if value is not None and value is not False}
        replaced = {*given, *(other for name, other in (("shuffle", "time"), ("time", "shuffle")) if name in given)}
        said = [(f"[table]: {name}", name, value) for name, value in section.items() if name not in replaced]
        said += [(f"--{name.replace('_', '-')}", name, value) for name, value in given.items()]
        chosen: dict[str, Any] = {}
        for where, name, value in said:
            if name not in known:
                raise InputError(f"[table] has no key {name!r}{nearest_names(name, known)}")
            if name == "shuffle":
                if not isinstance(value, bool):
                    raise InputError(f"{where} must be true or false; got {shown(value)}.")
                chosen[name] = value
                continue
            if isinstance(value, Mapping) and name == "features":
                value = [f"{feature}={pattern}" for feature, pattern in value.items()]  # noqa: PLW2901
            listed = [value] if isinstance(value, str) else value
            single = name not in several
            what = "a name" if single else "names"
            if not isinstance(listed, Sequence) or (single and not isinstance(value, str)):
                raise InputError(f"{where} must be {what}; got {shown(value)}.")
            wrong = [entry for entry in listed if not isinstance(entry, str | int) or entry == ""]
            if wrong:
                raise InputError(f"{where} must be {what}; got {shown(wrong[0])}.")
            chosen[name] = value if single else tuple(str(entry) for entry in listed)
        if chosen.get("shuffle") and "time" in chosen:
            raise InputError("shuffle and time exclude each other: rows are in the order of time, or in none.")
        return cls(**chosen)

    def as_dict(self) -> dict[str, Any]:
        """Return the options that are not empty, as text and lists of text."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {name: value for name, value in plain.items() if value}

    @property
    def keys(self) -> list[str]:
        """The columns by which samples are told apart, ordered and grouped."""
        return [name for name in (self.rows, self.items, self.time, self.groups) if name]


@dataclass(frozen=True)
class Reading:
    """What is read from a table.

    Attributes
    ----------
    options : TableOptions
    file : ProblemFile, optional
        The problem; without it, samples have none.
    like : sequence of str, optional
        The names of the costs that a model was trained with, for a table that need not have costs.
    needed : mapping of str to str, optional
        The features that a model needs, with their kinds (`TableFeatures.needed`); by default those that the options
        select.
    as_listed : sequence of str, optional
        The items of a long table in the order in which the whole table lists them, if this is a part of it.
    costs : bool or None
        Whether costs are read; None if they are there.
    in_order : bool
        Whether samples without costs are left out and the others sorted by time; otherwise they stay as they are, and
        times and groups are not read.
    whole : bool
        Whether this is the whole table; in a part of one, no sample need have costs.
    """

    options: TableOptions
    file: ProblemFile | None = None
    like: Sequence[str] | None = None
    needed: Mapping[str, str] | None = None
    as_listed: Sequence[str] | None = None
    costs: bool | None = True
    in_order: bool = True
    whole: bool = True


#: What may follow the name of a column of dates, and what such a part is called in words.
_PARTS = {".date": "day", ".hour": "hour", ".month": "month", ".year": "year"}


class TableColumns:
    """The columns of a table; a wide and a long one find samples in them.

    Attributes
    ----------
    table : NamedColumns
    reading : Reading
    given : tuple of str
        The columns without parts of dates.
    notes, doubts : list of str
        What was done to the table, in sentences; doubts deserve a look.
    """

    def __init__(self, table: NamedColumns, reading: Reading) -> None:
        self.reading, self.options, self.like = reading, reading.options, reading.like
        self.given = table.names
        self.table = with_date_parts(table, self.options.keys)
        self.notes: list[str] = []
        self.doubts: list[str] = []

    def raw(self, name: str) -> Raw:
        """Return a column as it is."""
        return np.asarray(self.table.read(name))

    def feature(self, name: str, feature: str | None = None) -> Raw:
        """Return a column of a feature as it is; raise if it is a mixture, while rows still have their numbers."""
        values, needed = self.raw(name), self.reading.needed
        if needed is None and (feature or name) not in self.options.categories:
            check_column(name, values)
        elif needed is not None and needed.get(feature or name) == "numbers":
            as_numbers(values, name)
        return values

    def select(self, wanted: Any, argument: str) -> list[str]:
        """Return the columns that names and patterns select; raise with the nearest names if there are none."""
        selected: list[str] = []
        for pattern in [wanted] if isinstance(wanted, str) else wanted:
            try:
                found = self.table.matching(pattern, argument=argument)
            except ValueError:
                raise InputError(
                    f"--{argument}: the table has no column {pattern!r}{nearest_names(pattern, self.table.names)}"
                ) from None
            selected += [name for name in found if name not in selected]
        return selected

    def one(self, name: str, argument: str) -> str:
        """Return the single column that a name or a pattern selects."""
        found = self.select(name, argument)
        if len(found) > 1:
            raise InputError(f"--{argument} must be one column; {name!r} selects {listed(found)}.")
        return found[0]

    def of_problem(self) -> list[str]:
        """Return the columns that the problem takes."""
        patterns = () if self.reading.file is None else self.reading.file.columns
        return [name for pattern in patterns for name in self.select(pattern, "problem")]

    def of_features(self, used: Sequence[str]) -> list[str]:
        """Return the features: those that a model needs, those that are named, or all columns that are not `used`."""
        if self.reading.needed is not None:
            if missing := without(self.reading.needed, self.table.names):
                hint = nearest_names(missing[0], self.table.names)
                raise InputError(f"the table has no column {missing[0]!r}, which the model needs{hint}")
            return list(self.reading.needed)
        if self.options.features:
            return self.select(self.options.features, "features")
        named = {argument: getattr(self.options, argument) for argument in ("rows", "items", "groups", "time")}
        found = {argument: self.one(name, argument) for argument, name in named.items() if name}
        taken = {*used, *found.values(), *self.select(self.options.known, "known"), *self.of_problem()}
        keys = {found[argument] for argument in ("rows", "time") if argument in found}
        dates = [name for name in keys if name in self.given and are_dates(self.raw(name))]
        unnamed = [name for name in self.table.names if not name.strip()]
        if unnamed:
            self.notes.append("A column without a name is left out of the features.")
        return [name for name in self.given if name in dates or (name not in taken and name not in unnamed)]


def with_date_parts(table: NamedColumns, wanted: Iterable[str | None]) -> NamedColumns:
    """Return the table with the parts of dates that are wanted, such as `time.date`, as further columns.

    >>> times = np.array(["2026-01-31T23:00", "2026-02-01T00:00"], dtype="datetime64[m]")
    >>> table = with_date_parts(NamedColumns.of({"time": times}), ["time.date", "time.hour"])
    >>> table.read("time.date"), table.read("time.hour")
    (array(['2026-01-31', '2026-02-01'], dtype='datetime64[D]'), array([23,  0]))
    """
    made = {}
    for name in wanted:
        base, dot, part = (name or "").rpartition(".")
        if name and name not in table.names and dot + part in _PARTS and base in table.names:
            values = np.asarray(table.read(base))
            if are_dates(values):
                made[name] = _part(as_dates(values, name), part)
    if not made:
        return table
    return replace(
        table, names=(*table.names, *made), read=lambda name: made[name] if name in made else table.read(name)
    )


def in_words(name: str) -> str:
    """Return what a column is called in words: the part of a date, or its name.

    >>> in_words("time.date"), in_words("day")
    ('day', 'day')
    """
    return next((word for part, word in _PARTS.items() if name.endswith(part)), name)


def _part(values: Any, part: str) -> Any:
    days = values.astype("datetime64[D]")
    if part == "date":
        return days
    if part == "hour":
        return ((values - days) // np.timedelta64(1, "h")).astype(np.int64)
    if part == "month":
        return values.astype("datetime64[M]").astype(np.int64) % 12 + 1
    return values.astype("datetime64[Y]").astype(np.int64) + 1970
