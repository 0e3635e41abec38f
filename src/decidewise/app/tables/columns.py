"""Which columns of a table are what, and what is read from one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from decidewise.kit.checks import nearest_names, shown
from decidewise.kit.errors import InputError
from decidewise.problems import Levels, ProblemFile
from decidewise.problems.levels.problem import of_demand

Names = tuple[str, ...]


@dataclass(frozen=True)
class TableOptions:
    """Which columns of a table are what: the section `[table]` of a problem file, or options of a command.

    A column is named, or selected by a pattern such as `"x_*"`; `items` makes a table long, with one line per item, of
    which `item_order` is the order in the problem. `decidewise compare --help` says what each option is.

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
    absent_items: bool = False
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
            if name in ("shuffle", "absent_items"):
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
        if chosen.get("absent_items") and "items" not in chosen:
            raise InputError(
                "--absent-items is for long tables, whose lines may lack: name the keys of both, --rows and --items."
            )
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
    like, needed : optional
        The names of the costs, and the features with their kinds (`TableFeatures.needed`), of the model that reads.
    as_listed : sequence of str, optional
        The items of a long table in the order in which the whole table lists them, if this is a part of it.
    costs : bool or None
        Whether costs are read; None if they are there.
    in_order : bool
        Whether samples without costs are left out and the others sorted by time; otherwise they stay as they are, and
        times and groups are not read.
    levels : list of lists of float, optional
        The levels of each item that the model was fitted for, if it predicts what they cost.
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
    levels: Any = None

    @property
    def word(self) -> str:
        """What columns hold by default: costs, or demand if the problem knows what a level costs for it."""
        if self.file is None:
            return "cost" if self.levels is None else "demand"
        if self.file.columns:
            return "demand" if self.file.kind.owner is Levels and "cost" in self.file.arguments else "cost"
        return "demand" if of_demand(self.file.build()) else "cost"
