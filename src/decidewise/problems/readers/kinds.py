"""The kinds of problems that a file can describe: the signatures of their constructors, and what `kinds.toml` says.

A kind is a public problem by its name in lower case, `knapsack` for `Knapsack`, or another of its constructors,
`shortest_path.from_edges`; and `file` and `python`, see `decidewise.problems.readers.problem_file`. Names, defaults and
what is required come from signatures; summaries, types, meanings, sizes, ties and examples from `kinds.toml`.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import decidewise.problems
from decidewise.problems.contract import Problem
from decidewise.problems.mapped_problem import ProgramOptions
from decidewise.problems.views import View


@dataclass(frozen=True)
class Argument:
    """An argument of a constructor: a key in a file."""

    name: str
    type: str  # such as "array-like of shape (m,)"
    text: str
    default: Any  # `inspect.Parameter.empty` if the argument is required

    @property
    def required(self) -> bool:
        """Whether a file must have this key."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True)
class Kind:
    """A kind of problem, `kind = "knapsack"`, which a class or one of its class methods builds."""

    name: str
    build: Callable[..., Problem]
    owner: type[Any]
    summary: str
    arguments: Mapping[str, Argument]
    example: Mapping[str, Any]  # arguments that work
    size: str  # the number of costs, as a formula or in words
    ties: str

    @classmethod
    def of(cls, name: str, build: Callable[..., Problem], owner: type[Any]) -> Self:
        """Return the kind that is described under this name."""
        said = _described()[name]
        arguments = {}
        for key, parameter in _parameters(build):
            what, text = said["arguments"][key]
            arguments[key] = Argument(key, what, text, parameter.default)
        return cls(
            name, build, owner, said["summary"], arguments, said["example"], said.get("costs", ""), said.get("ties", "")
        )

    @property
    def sense(self) -> str | None:
        """The sense if none is given; None if it is not that of the kind."""
        default = self.arguments["sense"].default if "sense" in self.arguments else None
        return default if isinstance(default, str) else None

    @property
    def polyhedron(self) -> str:
        """Whether the example has a polyhedron: "yes", "relaxation" or "no", or "" if it cannot be built alone."""
        if self.name not in built_in():
            return ""
        problem = self.build(**self.example)
        return "no" if problem.polyhedron is None else "relaxation" if problem.is_integer else "yes"


@cache
def _described() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("kinds.toml").read_text(encoding="utf-8"))


@cache
def built_in() -> dict[str, Kind]:
    """Return the kinds of all public problems, by name."""
    kinds = {}
    for name in decidewise.problems.__all__:
        cls = getattr(decidewise.problems, name)
        if not (isinstance(cls, type) and issubclass(cls, Problem)) or issubclass(cls, View) or cls is Problem:
            continue
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        kinds[kind] = Kind.of(kind, cls, cls)
        for method, found in vars(cls).items():
            if isinstance(found, classmethod) and not method.startswith("_") and _takes_names_alone(found.__func__):
                full = f"{kind}.{method}"
                kinds[full] = Kind.of(full, getattr(cls, method), cls)
    return kinds


def _parameters(build: Callable[..., Any]) -> Iterator[tuple[str, inspect.Parameter]]:
    """Yield the parameters of a constructor; the options of programs are those that `LinearProgram` names."""
    for key, parameter in inspect.signature(build).parameters.items():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            yield key, parameter
            continue
        options = inspect.signature(decidewise.problems.LinearProgram).parameters
        yield from ((option, options[option]) for option in ProgramOptions.__annotations__)


def as_toml(kind: str, arguments: Mapping[str, Any]) -> str:
    """Return the file of a problem.

    >>> print(as_toml("top_k", {"n": 4, "k": 2, "sense": "min"}), end="")
    kind = "top_k"
    n = 4
    k = 2
    sense = "min"
    """
    return "".join(f"{key} = {_toml(value)}\n" for key, value in {"kind": kind, **arguments}.items())


def _takes_names_alone(function: Callable[..., Any]) -> bool:
    """Whether all options of a constructor are in its signature, so that a file can name them."""
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    return inspect.Parameter.VAR_KEYWORD not in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml(str(key))} = {_toml(entry)}" for key, entry in value.items()) + " }"
    return repr(value)
