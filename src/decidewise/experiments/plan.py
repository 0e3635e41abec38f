"""What to run: a plan, read from a TOML file.

    trials = 20
    epochs = 100
    batch_size = 32

    [[problems]]
    name = "knapsack"
    data = "decidewise.data:make_knapsack"  # called as make_knapsack(n, degree=..., seed=seed + trial, **options)
    options = { instance_seed = 42 }
    seed = 43
    degrees = [1, 2, 4]
    samples = [100, 200]
    learning_rate = [1e-2, 5e-3]            # one for each number of samples, or one for all
    test_samples = 2_000
    methods = [
      { name = "MSE", loss = "mse" },
      { name = "MSE", loss = "mse", mode = "exact" },
      { name = "PFY", loss = "pfy", parameters = { n_samples = 3, sigma = 1.0 } },
    ]

Reading a plan imports nothing: it is data, and so are the names of functions and modules in it. Running it imports
those modules, also from beside the plan, and executes them: run only plans you trust. A module listed under `imports`
is imported first, so that it can register a loss of its own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from decidewise.checks import as_integer, as_positive
from decidewise.errors import InputError
from decidewise.experiments.importable import check_module, check_name, check_text
from decidewise.experiments.methods import Method

#: Of integers: what the store can hold, even the sum of two of them.
_LARGEST = 2**62
Part = TypeVar("Part")
_KINDS: dict[type, str] = {str: "strings", dict: "tables"}


@dataclass(frozen=True)
class PlannedProblem:
    """One problem of a plan: its data, and the methods that are compared on it.

    Parameters
    ----------
    data : str
        `"package.module:function"`, which returns a `decidewise.data.Dataset`.
    learning_rate : float or sequence of float
        One for all, or one for each entry of `samples`.
    seed : int
        Trial `t` draws its data with `seed + t`.
    """

    name: str
    data: str
    degrees: Sequence[int]
    samples: Sequence[int]
    test_samples: int
    learning_rate: float | Sequence[float]
    methods: Sequence[Method]
    seed: int = 42
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_name(self.data)
        for name in ("degrees", "samples", "methods"):
            _check_list(getattr(self, name), name)
        for name in ("degrees", "samples"):
            for value in getattr(self, name):
                _check_integer(value, f"an entry of {name}")
        _check_distinct("degree", self.degrees)
        _check_distinct("number of samples", self.samples)
        _check_distinct("method", [f"{method.name} ({method.mode})" for method in self.methods])
        _check_integer(self.test_samples, "test_samples")
        _check_integer(self.seed, "seed", minimum=0)
        if isinstance(self.learning_rate, Sequence) and len(self.learning_rate) != len(self.samples):
            raise InputError(
                f"learning_rate has {len(self.learning_rate)} entries and samples {len(self.samples)}; give one rate "
                "for each number of samples, or a single number for all."
            )
        for rate in self.learning_rates.values():
            as_positive(rate, name="learning_rate")

    @property
    def learning_rates(self) -> dict[int, float]:
        """The learning rate for each number of samples."""
        if isinstance(self.learning_rate, Sequence):
            return dict(zip(self.samples, self.learning_rate, strict=True))
        return dict.fromkeys(self.samples, self.learning_rate)


@dataclass(frozen=True)
class Plan:
    """All that is needed to repeat an experiment.

    Parameters
    ----------
    name : str
        The stem of the file it was read from.
    imports : sequence of str
        Modules to import first.
    folder : str
        Where modules are looked for that are not installed: that of the file.
    """

    name: str
    problems: Sequence[PlannedProblem]
    trials: int
    epochs: int = 100
    batch_size: int = 32
    imports: Sequence[str] = ()
    folder: str = ""

    def __post_init__(self) -> None:
        check_text(self.name, "the name of the file")
        _check_list(self.problems, "problems")
        _check_distinct("problem", [problem.name for problem in self.problems])
        for name in ("trials", "epochs", "batch_size"):
            _check_integer(getattr(self, name), name)
        for module in self.imports:
            check_module(module)

    @property
    def n_cells(self) -> int:
        """How many cells it has, in all trials."""
        return self.trials * sum(len(p.degrees) * len(p.samples) * len(p.methods) for p in self.problems)

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules beyond decidewise that the plan names."""
        names = [*self.imports, *(problem.data for problem in self.problems)]
        names += [method.model for problem in self.problems for method in problem.methods if method.model]
        modules = {name.partition(":")[0] for name in names}
        return tuple(sorted(module for module in modules if module.partition(".")[0] != "decidewise"))


def read_plan(path: Path | str) -> Plan:
    """Read a plan, or raise an `InputError` that names the file, the place in it and what to do.

    The file is data: nothing that it names is imported. `run` does that, and executes it; run only plans you trust.
    """
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as reason:
        raise InputError(f"cannot read the plan {path}: {reason.strerror}.") from reason
    except (ValueError, RecursionError) as reason:
        raise InputError(f"{path} is not valid TOML: {reason}.") from reason
    return _plan(path, table)


def _plan(path: Path, table: Mapping[str, Any]) -> Plan:
    where = str(path)
    _entries(table, "imports", str, where)
    problems = []
    for i, problem in enumerate(_entries(table, "problems", dict, where)):
        place = f"{where}: problems[{i}]"
        methods = [
            _make(Method, method, f"{place}.methods[{j}]")
            for j, method in enumerate(_entries(problem, "methods", dict, place))
        ]
        problems.append(_make(PlannedProblem, {**problem, "methods": methods}, place))
    return _make(Plan, {**table, "problems": problems}, where, name=path.stem, folder=str(path.resolve().parent))


def _entries(table: Mapping[str, Any], key: str, kind: type, where: str) -> list[Any]:
    entries = table.get(key, [])
    if not (isinstance(entries, list) and all(isinstance(entry, kind) for entry in entries)):
        raise InputError(f"{where}: {key} must be a list of {_KINDS[kind]}; got {entries!r}.")
    return entries


def _make(part: type[Part], table: Mapping[str, Any], where: str, **known: Any) -> Part:
    """Make a part of the plan of its table; `known` are fields that do not stand there."""
    expected = {entry.name: entry for entry in fields(part) if entry.name not in known}  # type: ignore[arg-type]
    for key, value in table.items():
        if key not in expected:
            raise InputError(f"{where}: unknown key {key!r}; known keys are {', '.join(expected)}.")
        kind = {"str": str, "Mapping[str, Any]": dict}.get(str(expected[key].type))
        if kind and not isinstance(value, kind):
            raise InputError(f"{where}: {key} must be a {_KINDS[kind][:-1]}; got {value!r}.")
    for key, entry in expected.items():
        if key not in table and entry.default is MISSING and entry.default_factory is MISSING:
            raise InputError(f"{where}: {key} is missing.")
    try:
        return part(**table, **known)
    except (TypeError, ValueError) as reason:
        raise InputError(f"{where}: {reason}") from reason


def _check_integer(value: Any, name: str, *, minimum: int = 1) -> None:
    if as_integer(value, name=name, minimum=minimum) > _LARGEST:
        raise InputError(f"{name} must be at most {_LARGEST}; got {value}.")


def _check_list(values: Any, name: str) -> None:
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise InputError(f"{name} must be a list of at least one entry; got {values!r}.")


def _check_distinct(what: str, values: Sequence[Any]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise InputError(f"{what} {value} stands there twice; each needs a place of its own in the tables.")
