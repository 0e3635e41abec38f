"""Plans: TOML files that list what to run.

    trials = 20
    epochs = 100
    batch_size = 32

    [[problems]]
    name = "knapsack"
    data = "decidewise.data:make_knapsack"  # called as make_knapsack(n, degree=..., seed=seed + trial, **options)
    options = { instance_seed = 42 }
    seed = 43
    degrees = [1, 2, 4]                     # optional: omit it if the data function takes no degree
    samples = [100, 200]
    learning_rate = [1e-2, 5e-3]            # one per number of samples, or one for all, or a sweep
    test_samples = 2_000
    methods = [
      { name = "MSE", loss = "mse" },
      { name = "MSE", loss = "mse", mode = "exact" },
      { name = "PFY", loss = "pfy", parameters = { n_samples = 3, sigma = { sweep = [0.1, 1.0] } } },
      { name = "Mine", loss = "my_losses:MyLoss" },
    ]

`methods` and `parameters` at the top of the file are for all problems: methods for those that list none, and parameters
for every model, beside its own. `methods = "more.toml"` takes the methods of another file in the same folder, so that
several plans can share them.

Reading a plan imports none of the functions and classes that it names. Running it imports, and so executes, their
modules, from the folder of the plan too: run only plans you trust.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from decidewise.kit.errors import InputError
from decidewise.kit.files import read_toml
from decidewise.kit.importable import check_name
from decidewise_bench.experiments.methods import Method, Rate, Sweep, check_rates, check_text

#: The largest integer in a plan: the sum of two of them still fits into the store.
_MAX_INTEGER = 2**62
Count = Annotated[int, msgspec.Meta(ge=1, le=_MAX_INTEGER)]
Counts = Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)]


class PlannedProblem(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One problem of a plan: its data, and the methods to compare on it.

    Parameters
    ----------
    data : str
        `"package.module:function"`. It is called as `function(n, degree=degree, seed=seed + trial, **options)`, without
        `degree` if the plan has no degrees, and returns a `decidewise.data.Dataset` of `n` rows: first `samples` rows
        for training, then `test_samples` rows for testing.
    degrees : tuple of int, optional
        Degrees of generated data; the higher the degree, the worse a linear model fits.
    learning_rate : float, tuple of float or Sweep, optional
        Adam's learning rate: one for all, one per entry of `samples`, or a sweep, `{ sweep = [1e-3, 1e-2] }`. Only
        methods with a loss and mode "adam" need one.
    seed : int
        Trial `t` draws its data with `seed + t`.
    methods : tuple of Method
        Sweeps are expanded into one method per value. By default those of the plan.
    parameters : dict
        Of every method that is a model; a parameter of its own comes first.

    Examples
    --------
    >>> from decidewise_bench.experiments import Method, Plan, PlannedProblem
    >>> paths = PlannedProblem(
    ...     name="paths",
    ...     data="decidewise.data:make_shortest_path",
    ...     degrees=(2, 4),
    ...     samples=(50,),
    ...     test_samples=100,
    ...     methods=(Method(name="WISE", loss="wise", mode="exact"),),
    ... )
    >>> paths.seed, len(paths.methods)
    (42, 1)
    """

    name: str
    data: str
    samples: Counts
    test_samples: Count
    methods: tuple[Method, ...] = ()
    degrees: Counts | None = None
    learning_rate: Rate | Sweep | None = None
    seed: Annotated[int, msgspec.Meta(ge=0, le=_MAX_INTEGER)] = 42
    options: dict[str, Any] = {}
    parameters: dict[str, Any] = {}

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_name(self.data)
        _check_distinct("degree", self.degrees or ())
        _check_distinct("number of samples", self.samples)
        if self.methods:  # otherwise the plan completes the problem with its own
            self._expand_sweeps()
            _check_distinct("method", [f"{method.name} ({method.mode})" for method in self.methods])
            self._check_rates()

    def rate(self, method: Method, samples: int) -> float | None:
        """Return the learning rate of a method for a number of samples, None if the method needs none."""
        if not method.has_rate:
            return None
        rate = self.learning_rate if method.learning_rate is None else method.learning_rate
        if isinstance(rate, tuple):
            return rate[self.samples.index(samples)]
        assert not isinstance(rate, Sweep)  # sweeps are expanded by now
        return rate

    def _expand_sweeps(self) -> None:
        methods = tuple(
            _changed(method, parameters=self.parameters | method.parameters) if method.model else method
            for method in self.methods
        )
        if isinstance(self.learning_rate, Sweep):
            swept = self.learning_rate
            methods = tuple(
                _changed(method, learning_rate=swept) if method.has_rate and method.learning_rate is None else method
                for method in methods
            )
            msgspec.structs.force_setattr(self, "learning_rate", None)
        expanded = tuple(each for method in methods for each in method.expand())
        msgspec.structs.force_setattr(self, "methods", expanded)

    def _check_rates(self) -> None:
        if self.learning_rate is not None:
            check_rates(self.learning_rate)
        for rates in (self.learning_rate, *(method.learning_rate for method in self.methods)):
            if isinstance(rates, tuple) and len(rates) != len(self.samples):
                raise InputError(
                    f"learning_rate has {len(rates)} entries and samples {len(self.samples)}; give one rate per number "
                    "of samples, or a single rate for all."
                )
        without = [method.name for method in self.methods if method.has_rate and method.learning_rate is None]
        if without and self.learning_rate is None:
            raise InputError(f"learning_rate is missing; {without[0]} is trained by Adam and needs one.")


class PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The contents of a plan's file.

    Parameters
    ----------
    trials : int
        The number of trials; each trial draws new data.
    epochs, batch_size : int
        The epochs and the batch size of Adam.
    methods : tuple of Method
        Of all problems that list none.
    parameters : dict
        Of every method that is a model, in all problems; those of the problem and of the method itself come first.
    """

    problems: Annotated[tuple[PlannedProblem, ...], msgspec.Meta(min_length=1)]
    trials: Count
    epochs: Count = 100
    batch_size: Count = 32
    methods: tuple[Method, ...] = ()
    parameters: dict[str, Any] = {}

    def __post_init__(self) -> None:
        _check_distinct("problem", [problem.name for problem in self.problems])
        for problem in self.problems:
            if not (problem.methods or self.methods):
                raise InputError(f"{problem.name} has no methods; list some there, or at the top for all problems.")
        completed = tuple(
            _changed(problem, methods=problem.methods or self.methods, parameters=self.parameters | problem.parameters)
            for problem in self.problems
        )
        msgspec.structs.force_setattr(self, "problems", completed)


class Plan(PlanFile, frozen=True, kw_only=True):
    """A plan with its name and folder.

    Parameters
    ----------
    name : str
        The stem of the plan's file.
    folder : str
        The folder of the file; modules that are not installed are imported from it.

    Examples
    --------
    >>> from decidewise_bench.paper import PLANS
    >>> plan = read_plan(PLANS / "knapsack.toml")
    >>> plan.name, plan.trials, plan.n_cells
    ('knapsack', 20, 2160)
    """

    name: str
    folder: str = ""

    @property
    def n_cells(self) -> int:
        """The number of cells in all trials."""
        return self.trials * sum(len(p.degrees or (None,)) * len(p.samples) * len(p.methods) for p in self.problems)

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules outside decidewise that the plan names."""
        names = [problem.data for problem in self.problems]
        names += [name for problem in self.problems for method in problem.methods for name in method.importable]
        modules = {name.partition(":")[0] for name in names}
        return tuple(sorted(module for module in modules if module.partition(".")[0] != "decidewise"))


def read_plan(path: Path | str) -> Plan:
    """Read a plan; raise an `InputError` that names the file, the place and the mistake if it is not valid.

    This imports nothing that the plan names. `run` imports, and so executes, the modules: run only plans you trust.

    Examples
    --------
    >>> from decidewise_bench.paper import PLANS
    >>> plan = read_plan(PLANS / "knapsack.toml")
    >>> plan.name, [problem.name for problem in plan.problems], plan.trials
    ('knapsack', ['knapsack'], 20)
    """
    path = Path(path)
    table = read_toml(path, "the plan")
    check_text(path.stem, "the name of the file")
    if isinstance(shared := table.get("methods"), str):
        table = {**table, "methods": read_toml(path.with_name(shared), "the methods").get("methods", ())}
    try:
        found = msgspec.convert(table, PlanFile)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {_sentence(error, table)}") from error
    return Plan(**msgspec.structs.asdict(found), name=path.stem, folder=str(path.resolve().parent))


#: The class of each table in a plan, by the key of the table; "" is the whole file.
_PARTS = {"": PlanFile, "problems": PlannedProblem, "methods": Method, "learning_rate": Sweep}


def _sentence(error: msgspec.ValidationError, table: Mapping[str, Any]) -> str:
    """Return the error in the terms of TOML, with the place and the value found there."""
    message, _, place = str(error).partition(" - at `$")
    place = place.strip("`.")
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", message):
        part = _PARTS[re.sub(r"\[\d+\]$", "", place).rpartition(".")[2]]
        message = f"unknown key {unknown[1]!r}; known keys are {', '.join(part.__struct_fields__)}."
    elif missing := re.fullmatch(r"Object missing required field `(.*)`", message):
        message = f"{missing[1]} is missing."
    elif expected := re.fullmatch(r"Expected `(.*?)`(.*?)(?:, got .*)?", message):
        words = {"array": "list", "object": "table", "str": "string", "int": "integer", "float": "number"}
        kinds = [words.get(kind, kind) for kind in expected[1].split(" | ") if kind != "null"]
        message = f"expected {' or '.join(kinds)}{expected[2]}; got {_found(table, place)!r}."
    return f"{place}: {message}".removeprefix(": ")


def _found(table: Any, place: str) -> Any:
    """Return the value at a place such as "problems[0].seed"."""
    for key, index in re.findall(r"(\w+)|\[(\d+)\]", place):
        table = table[key] if key else table[int(index)]
    return table


def _changed(part: Any, **changes: Any) -> Any:
    """Return a part of a plan with other fields, and check it; `replace` of older versions of msgspec does not."""
    return type(part)(**(msgspec.structs.asdict(part) | changes))


def _check_distinct(what: str, values: Sequence[Any]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise InputError(f"{what} {value} is listed twice; list each {what} once.")
