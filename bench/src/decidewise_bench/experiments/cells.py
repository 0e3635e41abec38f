"""Cells, and how to compute their rows: a cell is one method on one draw of data, with all that determines the row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
from threadpoolctl import threadpool_limits

from decidewise.data import Dataset
from decidewise.evaluate import Hindsight
from decidewise.kit.errors import NotForProblemError
from decidewise.kit.importable import load, resolve
from decidewise.kit.interrupts import is_interrupt, raise_noted, reason_of
from decidewise.problems import CountedProblem, Problem
from decidewise_bench.experiments.methods import Method
from decidewise_bench.experiments.plan import Plan
from decidewise_bench.experiments.rows import Row, machine

#: Rows of the training that precedes the timed one: enough for every code path of a loss.
_WARM_UP_ROWS = 64
Result = TypeVar("Result")


@dataclass(frozen=True)
class Cell:
    """Everything that determines a row: two cells with the same `key` have the same result.

    The key does not include the folder of the plan, from which the plan's own modules are imported.

    Examples
    --------
    >>> from decidewise_bench.experiments import cells_of_all, read_plan
    >>> from decidewise_bench.paper import PLANS
    >>> first, *_, last = cells_of_all([read_plan(PLANS / "knapsack.toml")])
    >>> first.seed, last.seed, first.key == last.key
    (43, 62, False)
    """

    plan: str
    problem: str
    degree: int | None
    samples: int
    trial: int
    method: Method
    data: str
    options: Mapping[str, Any]
    seed: int
    test_samples: int
    epochs: int
    batch_size: int
    learning_rate: float | None
    modules: tuple[str, ...]
    version: str
    libraries: str
    folder: str = field(default="", compare=False)

    @cached_property
    def key(self) -> str:
        """A hash of all fields except the folder."""
        return _hash({name: value for name, value in asdict(self).items() if name != "folder"})

    @property
    def draw(self) -> tuple[str, str, int | None, int, int]:
        """The draw of data: cells with the same draw share their data and are computed together."""
        return self.plan, self.problem, self.degree, self.samples, self.trial

    @property
    def random_state(self) -> int:
        """The seed of training, a hash of problem, degree, samples and data seed: the same for every method."""
        return int(_hash([self.problem, self.degree, self.samples, self.seed])[:7], 16)


def cells_of(plan: Plan, version: str, libraries: str) -> list[Cell]:
    """Return all cells of a plan, ordered by trial."""
    modules = plan.modules
    return [
        Cell(
            plan=plan.name,
            problem=problem.name,
            degree=degree,
            samples=samples,
            trial=trial,
            method=method,
            data=problem.data,
            options=problem.options,
            seed=problem.seed + trial,
            test_samples=problem.test_samples,
            epochs=plan.epochs,
            batch_size=plan.batch_size,
            learning_rate=problem.rate(method, samples),
            modules=modules,
            version=version,
            libraries=libraries,
            folder=plan.folder,
        )
        for trial in range(plan.trials)
        for problem in plan.problems
        for degree in problem.degrees or (None,)
        for samples in problem.samples
        for method in problem.methods
    ]


def check_names(cell: Cell) -> None:
    """Import the modules, data and methods that the cell names; raise if one is missing."""
    for module in cell.modules:
        load(module, cell.folder)
    resolve(cell.data)
    cell.method.check()


def compute(cells: Sequence[Cell]) -> Iterator[Row]:
    """Yield the row of each cell; all cells share one draw. If a method fails, its row gives the reason.

    An interrupt yields no row, even if it reaches this function as another exception or as none.
    """
    with threadpool_limits(1):  # makes seconds comparable, and keeps workers from competing for cores
        drawn = _attempt(lambda: _prepare(cells[0]))
        if isinstance(drawn, _NoResult):
            yield from (_row(cell, without=drawn) for cell in cells)
            return
        train, test, truth, floor = drawn
        for cell in cells:
            measured = _attempt(partial(_measure, cell, train, test, truth))
            if isinstance(measured, _NoResult):
                yield _row(cell, floor=floor, without=measured)  # and continue with the next method
            else:
                yield _row(cell, floor=floor, **measured)


class _NoResult(NamedTuple):
    """Why a row has no result."""

    status: Literal["failed", "refused"]
    reason: str


def _attempt(act: Callable[[], Result]) -> Result | _NoResult:
    """Call a function; return its result, or the reason if it raises. Data and methods may be user code."""
    result: Result | _NoResult
    try:
        result = act()
    except NotForProblemError as refusal:
        result = _NoResult("refused", str(refusal))
    except (Exception, SystemExit) as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from error
        result = _NoResult("failed", reason_of(error))
    raise_noted()
    return result


def _prepare(cell: Cell) -> tuple[Dataset, Dataset, Hindsight, float | None]:
    for module in cell.modules:
        load(module, cell.folder)
    train, test = _draw(cell)
    truth = Hindsight.of(test.problem, test.costs)
    floor = None if test.mean_costs is None else truth.normalized_regret(test.mean_costs)
    return train, test, truth, floor


def _draw(cell: Cell) -> tuple[Dataset, Dataset]:
    """Draw training and test data in one call, as the paper does: the first `samples` rows are for training."""
    n = cell.samples + cell.test_samples
    degree = {} if cell.degree is None else {"degree": cell.degree}
    data = resolve(cell.data)(n, **degree, seed=cell.seed, **cell.options)
    if not isinstance(data, Dataset):
        raise TypeError(f"{cell.data} must return a decidewise.data.Dataset; got {type(data).__name__}.")
    if len(data) != n:
        raise ValueError(
            f"{cell.data} returned {len(data):,} rows, and {n:,} were asked for (samples and test_samples); return as "
            "many, or ask for fewer."
        )
    return data.split(cell.samples)


def _measure(cell: Cell, train: Dataset, test: Dataset, truth: Hindsight) -> dict[str, Any]:
    if cell.method.loss:
        _warm_up(cell, train)
    problem = CountedProblem(train.problem)
    estimator = _estimator(cell, problem, epochs=cell.epochs)
    start = perf_counter()
    estimator.fit(train.X, train.costs)
    fitted = perf_counter()
    if getattr(estimator, "stopped_", None) == "interrupted":
        raise KeyboardInterrupt  # the training was cut short, so there is no result
    regret = truth.normalized_regret(estimator.predict(test.X))
    label_seconds = float(getattr(estimator, "label_seconds_", 0.0))
    return {
        "regret": regret,
        "label_seconds": label_seconds,
        "train_seconds": fitted - start - label_seconds,
        "evaluate_seconds": perf_counter() - fitted,
        "n_solves": problem.n_solves,
        "chosen": str(getattr(estimator, "chosen_", "")),
    }


def _estimator(cell: Cell, problem: Problem, *, epochs: int) -> Any:
    return cell.method.estimator(
        problem,
        random_state=cell.random_state,
        epochs=epochs,
        batch_size=cell.batch_size,
        learning_rate=cell.learning_rate,
    )


_warm: set[tuple[str, str, str]] = set()


def _warm_up(cell: Cell, train: Dataset) -> None:
    """Fit once per process, untimed, so that imports and compilation do not count towards the first timed fit."""
    kind = (cell.data, cell.method.loss, cell.method.mode)
    if kind not in _warm:
        few = train[:_WARM_UP_ROWS]
        _estimator(cell, few.problem, epochs=1).fit(few.X, few.costs)
        raise_noted()  # an interrupted training returns early without raising
        _warm.add(kind)


def _row(cell: Cell, *, without: _NoResult | None = None, **measured: Any) -> Row:
    unknown: dict[str, Any] = dict.fromkeys(
        ("regret", "floor", "label_seconds", "train_seconds", "evaluate_seconds", "n_solves"), None
    )
    return Row(
        plan=cell.plan,
        problem=cell.problem,
        degree=cell.degree,
        samples=cell.samples,
        method=cell.method.name,
        mode=cell.method.mode,
        trial=cell.trial,
        seed=cell.seed,
        version=cell.version,
        libraries=cell.libraries,
        machine=machine(),
        status=without.status if without else "ok",
        reason=without.reason if without else "",
        **(unknown | measured),
    )


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=msgspec.to_builtins).encode()).hexdigest()
