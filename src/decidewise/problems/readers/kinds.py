"""The kinds of problems that a file can describe: the signatures of their constructors, and an example of each.

What is said about them comes from docstrings; without these, under `python -OO`, files are read all the same.

A kind is a public problem by its name in lower case, `knapsack` for `Knapsack`, or another of its constructors,
`shortest_path.from_edges`; and `file` and `python`, see `decidewise.problems.readers.problem_file`.
"""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import decidewise.problems
from decidewise.problems.base import Problem
from decidewise.problems.views import View


@dataclass(frozen=True)
class Argument:
    """An argument of a constructor: a key in a file.

    Parameters
    ----------
    name : str
    type : str
        As the docstring has it, such as "array-like of shape (m,)", and otherwise the annotation.
    text : str
        What the docstring says about it.
    default : Any
        `inspect.Parameter.empty` if the argument is required.
    """

    name: str
    type: str
    text: str
    default: Any

    @property
    def required(self) -> bool:
        """Whether a file must have this key."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True)
class Kind:
    """A kind of problem.

    Parameters
    ----------
    name : str
        As in `kind = "knapsack"`.
    build : callable
        Returns the problem: a class or one of its class methods.
    owner : type
        The class of the problem.
    example : mapping
        Arguments that work.
    """

    name: str
    build: Callable[..., Problem]
    owner: type[Any]
    example: Mapping[str, Any]

    @cached_property
    def summary(self) -> str:
        """What the first line of the docstring says."""
        return inspect.cleandoc(self.build.__doc__ or "").partition("\n\n")[0].replace("\n", " ")

    @cached_property
    def arguments(self) -> dict[str, Argument]:
        """All arguments, by name."""
        described = _section(self.build, "Parameters")
        parameters = inspect.signature(self.build).parameters.values()
        return {
            p.name: Argument(p.name, *described.get(p.name, (str(p.annotation), "")), p.default) for p in parameters
        }

    @property
    def size(self) -> str:
        """The number of costs, as a formula or in words."""
        text = _section(self.owner, "Attributes").get("n_costs", ("", ""))[1].rstrip(".").replace("`", "")
        return text[:1].lower() + text[1:]

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

    @property
    def ties(self) -> str:
        """The rule for ties, from the docstring of the class or of its module."""
        for documented in (self.owner, sys.modules[self.owner.__module__]):
            found = re.search(
                r"\bTies[.:]\*? (.*?[.;])\s", inspect.cleandoc(documented.__doc__ or "") + "\n", re.DOTALL
            )
            if found:
                return " ".join(found[1].split()).rstrip(".;")
        return ""


@cache
def built_in() -> dict[str, Kind]:
    """Return the kinds of all public problems, by name."""
    kinds = {}
    examples = tomllib.loads(Path(__file__).with_name("examples.toml").read_text(encoding="utf-8"))
    for name in decidewise.problems.__all__:
        cls = getattr(decidewise.problems, name)
        if not (isinstance(cls, type) and issubclass(cls, Problem)) or issubclass(cls, View) or cls is Problem:
            continue
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        kinds[kind] = Kind(kind, cls, cls, examples[kind])
        for method, found in vars(cls).items():
            if isinstance(found, classmethod) and not method.startswith("_") and _takes_names_alone(found.__func__):
                full = f"{kind}.{method}"
                kinds[full] = Kind(full, getattr(cls, method), cls, examples[full])
    return kinds


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


def _section(documented: Any, title: str) -> dict[str, tuple[str, str]]:
    """Return the entries of a section of a numpydoc docstring: the type and the text, by name."""
    doc = inspect.cleandoc(documented.__doc__ or "")
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", doc, re.DOTALL | re.MULTILINE)
    entries: dict[str, tuple[str, str]] = {}
    for names, kind, text in re.findall(
        r"^(\S[^:\n]*)(?: : (.*))?\n((?: .*\n|\n)*)", found[1] + "\n" if found else "", re.M
    ):
        entries |= {name.strip(): (kind, " ".join(text.split())) for name in names.split(",")}
    return entries


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
