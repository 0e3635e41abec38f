"""A function that solves as a problem: a constraint solver, a heuristic, a service; or a problem by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any, Literal

import numpy as np

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray, all_finite, as_array, as_flag, as_integer, shown
from decidewise.kit.errors import InputError, SolverError
from decidewise.kit.importable import find
from decidewise.problems.contract import Problem, Sense, as_n_costs, as_problem, sign_of


def from_function(
    function: Callable[[FloatArray], Any],
    n_costs: int,
    *,
    sense: Sense,
    batch: bool = False,
    is_integer: bool = False,
    on_error: Literal["raise", "nan"] = "raise",
) -> Problem:
    """Wrap a function from costs to a decision as a problem.

    The function gets the costs as they are, neither negated nor scaled: one that maximises gets what to maximise. Ties
    are up to the function, which should decide them by the costs alone; so `decidewise.testing.check_problem` is worth
    a call. A function that a module defines can be pickled, and the problem with it: then other processes can solve
    too. Threads call it one after another, since it may keep a model that they would share.

    Parameters
    ----------
    function : callable
        Takes costs of shape (n_costs,) and returns an optimal decision of the same shape. Whatever it raises is a
        `SolverError` of the row.
    n_costs : int
    sense : {"min", "max"}
        What the function does.
    batch : bool
        Whether it takes and returns many rows, (n, n_costs), in one call.
    is_integer : bool
        Whether its decisions are whole numbers.
    on_error : {"raise", "nan"}
        Whether a row that fails is an error, or a decision of NaN beside the decisions of all others.

    Examples
    --------
    >>> def cheapest(costs):
    ...     return costs == costs.min()
    >>> problem = from_function(cheapest, 3, sense="min", is_integer=True)
    >>> problem.solve([[3.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
    array([[0., 1., 0.],
           [1., 0., 0.]])
    """
    if not callable(function):
        raise TypeError(f"from_function needs a function from costs to a decision; got {shown(function)}.")
    return FunctionProblem(function, n_costs, sense=sense, batch=batch, is_integer=is_integer, on_error=on_error)


class FunctionProblem(Problem):
    """A function as a problem; see `from_function`."""

    def __init__(
        self, function: Callable[[FloatArray], Any], n_costs: int, *, batch: bool, is_integer: bool, **options: Any
    ) -> None:
        super().__init__(**options)
        self.n_costs = as_n_costs(as_integer(n_costs, name="n_costs"))
        self.is_integer = as_flag(is_integer, name="is_integer")
        self._batch = as_flag(batch, name="batch")
        self._function, self._turns, self._sign = function, Turns(), sign_of(self)

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Call the function, for all rows at once or for each of them."""
        costs = self._sign * costs
        if self._batch:
            return self._call(costs, 0)
        decisions = np.empty_like(costs)
        for row in range(len(costs)):
            check_time()
            decisions[row] = self._call(costs[row], row)
        return decisions

    def _call(self, costs: FloatArray, row: int) -> FloatArray:
        name = getattr(self._function, "__name__", type(self._function).__name__)
        try:
            with self._turns:
                decision = as_array(self._function(costs.copy()), name="its decision")
            if decision.shape != costs.shape:  # a number would be broadcast
                raise ValueError(f"its decision has the shape {decision.shape} for costs of shape {costs.shape}.")
            if not (self._batch or all_finite(decision)):
                raise ValueError(f"its decision is {decision}, which is not finite.")
        except Exception as reason:
            if self.on_error == "nan":
                return np.full_like(costs, np.nan)
            raise SolverError(f"{name} failed: {reason}", row=row) from reason
        return decision


class Turns:
    """One caller at a time, for code of others that threads cannot share.

    It can be pickled and copied; a copy is a lock of its own.

    >>> from copy import deepcopy
    >>> turns = Turns()
    >>> with turns:
    ...     deepcopy(turns) is turns
    False
    """

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return Turns, ()


def import_problem(object: str, arguments: Mapping[str, Any] | None = None, *, folder: str = "") -> Problem:
    """Import a problem, or a function that returns one. This executes the module: name only modules you trust.

    Parameters
    ----------
    object : str
        `"package.module:name"`, a problem or a function that returns one.
    arguments : table, optional
        What the function is called with.
    folder : str
        Where the module may be, if it is not installed; in a file, relative to the folder of that file, and by default
        that folder.

    Examples
    --------
    >>> import_problem("decidewise.problems:TopK", {"n": 3, "k": 1})
    TopK(n=3, k=1, sense='max')
    """
    if not isinstance(object, str):
        raise InputError(f'object must be an importable name such as "my_problem:build"; got {shown(object)}.')
    if arguments is not None and not isinstance(arguments, Mapping):
        raise InputError(f"arguments must be a table, such as {{ hours = 24 }}; got {shown(arguments)}.")
    found = find(object, folder, file="problem file")
    if isinstance(found, Problem):
        if arguments:
            raise InputError(f"object {object!r} is a problem already, and takes no arguments.")
        return as_problem(found)
    if not callable(found):
        raise InputError(f"object {object!r} must be a problem, or a function that returns one; got {shown(found)}.")
    try:
        return as_problem(found(**(arguments or {})))
    except (Exception, SystemExit) as error:  # user code may raise anything
        raise InputError(f"object {object!r} failed: {type(error).__name__}: {error}") from error
