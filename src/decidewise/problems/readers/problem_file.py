"""Files that describe a problem, `problem.toml`: its kind, and the arguments of that kind.

    kind = "knapsack"
    weights = { file = "weights.csv" }     # beside this file; .csv, .npy, or .npz for a sparse matrix
    capacities = [20, 25]

    kind = "file"                          # a model that some tool has written
    path = "battery.mps"
    costs = { "sell_*" = 1, "buy_*" = -1 }
    [by_row]                               # numbers of a program that differ by row, by the names of the model
    sides.grid = { column = "capacity" }   # or lower, upper and known, of variables

    kind = "python"                        # a problem, or a function that returns one, in a module beside this file
    object = "my_problem:build"
    arguments = { hours = 24 }

    [table]                                # optional: what the columns of the history are, for `decidewise compare`
    costs = "price_*"

What differs by row comes from columns of a table: `source = { column = "from" }`, or `known = { columns = "toll_*" }`.
`known` are known costs that are added to the predicted ones, also as a list or from a file.

Reading a file of kind "python" imports, and so executes, the module that it names: read only files you trust. Files of
all other kinds execute nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from decidewise.kit.checks import as_array, matching_names, nearest_names, shown
from decidewise.kit.errors import InputError
from decidewise.kit.files import read_toml
from decidewise.problems.contract import Problem
from decidewise.problems.known_costs import KnownCosts
from decidewise.problems.linear_program import LinearProgram
from decidewise.problems.readers.arrays import read_array
from decidewise.problems.readers.files import read_problem
from decidewise.problems.readers.function import import_problem
from decidewise.problems.readers.kinds import Kind, built_in

_KNOWN, _TABLE, _BY_ROW = "known", "table", "by_row"
#: What `LinearProgram.by_row` takes by the names of constraints and of variables.
_PARTS = ("sides", "lower", "upper", "known")


@dataclass(frozen=True)
class Columns:
    """What differs by row: columns of a table.

    Parameters
    ----------
    names : tuple of str
        Names, or one pattern such as `"toll_*"`.
    single : bool
        Whether this is one column, a vector, and not a matrix.
    """

    names: tuple[str, ...]
    single: bool

    def of(self, table: Any) -> np.ndarray:
        """Return the columns of a table: of shape (n,), or (n, number of columns)."""
        there = [str(name) for name in getattr(table, "column_names", getattr(table, "columns", table))]
        chosen: list[str] = []
        for name in self.names:
            found = [name] if name in there else [there[place] for place in matching_names(name, there)]
            if not found:
                raise InputError(f"the table has no column {name!r}{nearest_names(name, there)}")
            chosen += found
        values = [np.asarray(table[name]) for name in chosen]
        return values[0] if self.single else np.column_stack([as_array(value, name="columns") for value in values])


@dataclass(frozen=True)
class ProblemFile:
    r"""A file that describes a problem, read but not yet built.

    `decidewise.problems.read_problem(path)` reads and builds at once; this class is for files that take something from
    the columns of a table.

    Parameters
    ----------
    path : Path
    kind : Kind
    arguments : mapping
        The arguments of the kind, with arrays from files. What differs by row is an object of the class `Columns`.
    known : Any
        Known costs beside the predicted ones, or None.
    by_row : mapping
        For `LinearProgram.by_row`: sides, bounds and known costs by name, each a number, a list or `Columns`.
    table : mapping
        What the file says about the columns of a table, in its section `[table]`; see `docs/tables.md`.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "problem.toml"
    >>> _ = path.write_text('kind = "top_k"\nn = 3\nk = 1\nsense = "min"\nknown = { columns = "toll_*" }\n')
    >>> file = ProblemFile.read(path)
    >>> file.columns
    ('toll_*',)
    >>> problem = file.build({"toll_a": [0.0, 9.0], "toll_b": [3.0, 0.0], "toll_c": [0.0, 0.0]})
    >>> problem.solve([[2.0, 1.0, 4.0], [2.0, 4.0, 3.0]])
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """

    path: Path
    kind: Kind
    arguments: Mapping[str, Any]
    known: Any = None
    by_row: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    table: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file; raise an `InputError` that names the file and the key if it is not valid."""
        path = Path(path)
        table = read_toml(path, "the problem")
        try:
            described = table.pop(_TABLE, {})
            if not isinstance(described, dict):
                raise InputError(f"table must be a section, [table]; got {shown(described)}.")
            kind = _kind(table)
            by_row = _by_row(table.pop(_BY_ROW, {}), kind, path.parent)
            takes_known = _KNOWN in kind.arguments
            _check_keys(table, kind, () if takes_known else (_KNOWN,))
            values = _values({key: value for key, value in table.items() if key != "kind"}, path.parent)
            _place_in_folder(values, kind, path.resolve().parent)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        known = None if takes_known else values.pop(_KNOWN, None)
        return cls(path, kind, values, known, by_row, described)

    @classmethod
    def of(cls, problem: Any) -> Self:
        """Return a file as it is, that of a path, or what stands for a problem that is built already."""
        if isinstance(problem, cls):
            return problem
        if isinstance(problem, Problem):
            kind = replace(Kind.of("python", import_problem, Problem), build=lambda: problem)
            return cls(Path(type(problem).__name__), kind, {})
        return cls.read(problem)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that `build` needs: names, or patterns of names."""
        named = [value for part in self.by_row.values() for value in part.values()]
        values = [*self.arguments.values(), self.known, *named]
        return tuple(name for value in values if isinstance(value, Columns) for name in value.names)

    def build(self, table: Any = None) -> Problem:
        """Build the problem; one that takes no columns is built once.

        Parameters
        ----------
        table : frame, table or mapping of arrays, optional
            Has the columns, if the file names any: one row per sample.
        """
        return self._built(table) if self.columns else self._same_for_all

    @cached_property
    def _same_for_all(self) -> Problem:
        return self._built(None)

    def _built(self, table: Any) -> Problem:
        if self.columns and table is None:
            raise InputError(
                f"{self.path} takes the columns {', '.join(map(repr, self.columns))} from a table, one row per "
                "sample: pass one, ProblemFile.read(path).build(table)."
            )

        def filled(value: Any) -> Any:
            return value.of(table) if isinstance(value, Columns) else value

        try:
            arguments = {key: filled(value) for key, value in self.arguments.items()}
            problem = self.kind.build(**arguments)
            if self.by_row:
                parts = {part: {name: filled(value) for name, value in of.items()} for part, of in self.by_row.items()}
                assert isinstance(problem, LinearProgram)  # which the kind says
                problem = problem.by_row(**parts)
            return problem if self.known is None else KnownCosts(problem, filled(self.known))
        except (TypeError, ValueError, OverflowError) as reason:
            raise InputError(f"{self.path}: {reason}") from reason


def kinds() -> dict[str, Kind]:
    """Return all kinds of problems that a file can describe, by name.

    >>> {"knapsack", "shortest_path.from_edges", "file", "python"} <= set(kinds())
    True
    """
    return {
        **built_in(),
        "file": Kind.of("file", read_problem, LinearProgram),
        "python": Kind.of("python", import_problem, Problem),
    }


def files_of(path: Path) -> list[Path]:
    """Return the path of a problem file, and those of the files and the module that it names."""
    texts: list[str] = []
    values: list[Any] = [read_toml(path, "the problem")]
    while values:
        value = values.pop()
        if isinstance(value, dict | list):
            values += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str):
            texts += [value, f"{value.partition(':')[0]}.py"]
    return [path, *(path.parent / text for text in texts if os.path.isfile(path.parent / text))]


def _kind(table: Mapping[str, Any]) -> Kind:
    known = kinds()
    if "kind" not in table:
        raise InputError('kind is missing, such as kind = "knapsack". `decidewise problems` lists all kinds.')
    name = table["kind"]
    if not isinstance(name, str) or name not in known:
        raise InputError(f"there is no kind {name!r}{nearest_names(str(name), known)}")
    return known[name]


def _by_row(section: Any, kind: Kind, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the numbers of a program that differ by row: a table of names for each part."""
    if not section and isinstance(section, dict):
        return {}
    if not issubclass(kind.owner, LinearProgram):
        raise InputError(
            f"kind {kind.name!r} has no section [by_row], which is for linear programs and models from files. Write "
            'what differs by row as a column where it belongs, such as source = { column = "from" }.'
        )
    example = 'such as upper.pump = { column = "limit" }'
    if not isinstance(section, dict):
        raise InputError(f"by_row must be a section, [by_row], {example}; got {shown(section)}.")
    for part, names in section.items():
        if part not in _PARTS:
            raise InputError(f"by_row has no {part!r}{nearest_names(part, _PARTS)}")
        if not isinstance(names, dict) or any(key in names for key in ("column", "columns", "file")):
            raise InputError(f"by_row.{part} must have the names that it is for, {example}; got {shown(names)}.")
    return {
        part: {name: _value(value, f"by_row.{part}.{name}", folder) for name, value in names.items()}
        for part, names in section.items()
    }


def _place_in_folder(values: dict[str, Any], kind: Kind, folder: Path) -> None:
    """Let paths start at the folder of the file."""
    if kind.name == "python":
        values["folder"] = str(folder / _as_text(values.get("folder", "."), "folder"))
    if kind.name == "file":
        values["path"] = folder / _as_text(values["path"], "path")
        if values["path"].suffix.lower() == ".toml":
            raise InputError(f"path must be that of a model, such as model.mps; got {values['path'].name!r}.")


def _check_keys(table: Mapping[str, Any], kind: Kind, further: tuple[str, ...]) -> None:
    keys = [*kind.arguments, *further]
    for key in table:
        if key not in ("kind", *keys):
            others = [other.name for other in kinds().values() if other.owner is kind.owner and key in other.arguments]
            hint = f"; kind = {others[0]!r} has it." if others else nearest_names(key, keys)
            raise InputError(f"kind {kind.name!r} has no key {key!r}{hint}")
    missing = [name for name, argument in kind.arguments.items() if argument.required and name not in table]
    if missing:
        needed = ", ".join(name for name, argument in kind.arguments.items() if argument.required)
        raise InputError(f"{missing[0]} is missing: kind {kind.name!r} needs {needed}.")


def _values(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    return {key: _value(value, key, folder) for key, value in table.items()}


def _value(value: Any, key: str, folder: Path) -> Any:
    """Return a value with arrays from files, and columns as such."""
    if not isinstance(value, Mapping):
        is_tables = isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value)
        return [_values(entry, folder) for entry in value] if is_tables else value
    if len(value) == 1:
        [(source, what)] = value.items()
        if source == "file" and isinstance(what, str):
            return read_array(folder / what, name=key)
        if source == "column" and isinstance(what, str):
            return Columns((what,), single=True)
        names = [what] if isinstance(what, str) else what
        if source == "columns" and isinstance(names, list) and names and all(isinstance(name, str) for name in names):
            return Columns(tuple(names), single=False)
    if key in ("arguments", "cost"):
        return _values(value, folder)
    if key == "costs":
        return value
    raise InputError(
        f'{key} must be a value, {{ file = "..." }}, {{ column = "..." }} or {{ columns = [...] }}; got {shown(value)}.'
    )


def _as_text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{key} must be a string; got {shown(value)}.")
    return value
