"""A cell is one method on one draw of data: everything that decides its result, and the result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

from threadpoolctl import threadpool_limits

from decidewise.data import Dataset
from decidewise.evaluate import Truth
from decidewise.experiments.methods import Method
from decidewise.experiments.names import load, resolve
from decidewise.experiments.plan import Plan
from decidewise.experiments.rows import Row, machine
from decidewise.problems import CountedProblem

#: Trained on once before anything is timed: enough rows for every code path of a loss.
_WARM_UP_ROWS = 64


@dataclass(frozen=True)
class Cell:
    """All that decides a row, and nothing else: two cells with the same `key` have the same result."""

    plan: str
    problem: str
    degree: int
    samples: int
    trial: int
    method: Method
    data: str
    options: Mapping[str, Any]
    seed: int
    test_samples: int
    epochs: int
    batch_size: int
    learning_rate: float
    modules: tuple[str, ...]
    version: str

    @cached_property
    def key(self) -> str:
        """A hash of every field."""
        return _hash(asdict(self))

    @property
    def draw(self) -> tuple[str, str, int, int, int]:
        """What cells have in common that are computed together: the same data for every method."""
        return self.plan, self.problem, self.degree, self.samples, self.trial

    @property
    def random_state(self) -> int:
        """The seed of training, from names: the same start and batches for every method, whatever else runs."""
        return int(_hash([self.problem, self.degree, self.samples, self.seed])[:7], 16)


def cells_of(plan: Plan, version: str) -> list[Cell]:
    """Return all cells of a plan, trial after trial."""
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
            learning_rate=learning_rate,
            modules=plan.modules,
            version=version,
        )
        for trial in range(plan.trials)
        for problem in plan.problems
        for degree in problem.degrees
        for samples, learning_rate in problem.learning_rates.items()
        for method in problem.methods
    ]


def compute(cells: Sequence[Cell]) -> Iterator[Row]:
    """Yield the row of each cell, all of one draw; a method that fails yields a row that says why."""
    with threadpool_limits(1):  # so that seconds can be compared, and workers do not fight for cores
        try:
            for module in cells[0].modules:
                load(module)
            train, test = _draw(cells[0])
            truth = Truth.of(test.problem, test.costs)
            floor = truth.normalized_regret(test.mean_costs)
        except Exception as error:  # data may come from anyone's code
            for cell in cells:
                yield _row(cell, reason=_sentence(error))
            return
        for cell in cells:
            try:
                yield _row(cell, floor=floor, **_measure(cell, train, test, truth))
            except Exception as error:  # and so may methods: the others go on
                yield _row(cell, floor=floor, reason=_sentence(error))


def _draw(cell: Cell) -> tuple[Dataset, Dataset]:
    """Draw train and test in one call, as the paper does: the first `samples` rows and the rest."""
    data: Dataset = resolve(cell.data)(
        cell.samples + cell.test_samples, degree=cell.degree, seed=cell.seed, **cell.options
    )
    return data.split(cell.samples)


def _measure(cell: Cell, train: Dataset, test: Dataset, truth: Truth) -> dict[str, Any]:
    if cell.method.loss:
        _warm_up(cell, train)
    problem = CountedProblem(train.problem)
    estimator = _estimator(cell, problem, epochs=cell.epochs)
    start = perf_counter()
    estimator.fit(train.X, train.costs)
    fitted = perf_counter()
    history = getattr(estimator, "history_", None)  # it counts relaxations too; anyone else's model is only watched
    solver_calls = history[-1].solver_calls if history else problem.n_solves
    if getattr(estimator, "stopped_", None) == "interrupted":
        raise KeyboardInterrupt  # a model half trained is no result
    regret = truth.normalized_regret(estimator.predict(test.X))
    label_seconds = getattr(estimator, "label_seconds_", 0.0)
    return {
        "regret": regret,
        "label_seconds": label_seconds,
        "train_seconds": fitted - start - label_seconds,
        "evaluate_seconds": perf_counter() - fitted,
        "solver_calls": solver_calls,
    }


def _estimator(cell: Cell, problem: Any, *, epochs: int) -> Any:
    return cell.method.estimator(
        problem,
        random_state=cell.random_state,
        epochs=epochs,
        batch_size=cell.batch_size,
        learning_rate=cell.learning_rate,
    )


_warm: set[tuple[str, str, str]] = set()


def _warm_up(cell: Cell, train: Dataset) -> None:
    """Load and compile, once in a process, what the first fit would otherwise be charged for."""
    kind = (cell.data, cell.method.loss, cell.method.mode)
    if kind not in _warm:
        _estimator(cell, train.problem, epochs=1).fit(train.X[:_WARM_UP_ROWS], train.costs[:_WARM_UP_ROWS])
        _warm.add(kind)


def _row(cell: Cell, *, reason: str = "", **measured: Any) -> Row:
    unknown = dict.fromkeys(
        ("regret", "floor", "label_seconds", "train_seconds", "evaluate_seconds", "solver_calls"), None
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
        machine=machine(),
        status="failed" if reason else "ok",
        reason=reason,
        **(unknown | measured),
    )


def _sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".strip()


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
