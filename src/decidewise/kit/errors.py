"""Errors and warnings other than those for bad arguments.

That a problem does not return optimal decisions is said once by work that would repeat it. A choice scores many models
with one problem, some of them in other processes, where a warning would not reach the caller. Python's own way to
collect warnings changes all threads of a process, so it is not used.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any


class InputError(ValueError):
    """A file, a plan or a name given by the user cannot be used.

    Do what the message says: it names the file, the place in it, and what is allowed there. The command line prints it
    without a traceback; any other `ValueError` there is a bug, and keeps its traceback.
    """


class OtherCodeError(InputError):
    """The code or the libraries of a worker differ from those of the process that sends it work.

    Install the same versions on both sides, and start the worker again.
    """


class NotForProblemError(InputError):
    """A method says that it is not for such a problem, and why: its row in an experiment is "refused", not "failed".

    Take another method, or do what the message says.
    """


class SolverError(RuntimeError):
    """A solver ended without an optimal decision: the row is infeasible or unbounded, or a limit was reached.

    Look at row `row` of the batch: check the constraints of that row, bound its variables, or raise the limit of the
    solver.

    Attributes
    ----------
    row : int
        The row of the batch that could not be solved.

    Examples
    --------
    >>> from decidewise.problems import LinearProgram
    >>> shop = LinearProgram([[2.0, 3.0]], [6.0], upper=2).by_row(b_ub=[[6.0], [-1.0]])
    >>> try:
    ...     shop.solve([[-1.0, -2.0], [-1.0, -2.0]])
    ... except SolverError as error:
    ...     error.row
    1
    """

    def __init__(self, message: str, *, row: int) -> None:
        super().__init__(f"row {row}: {message}")
        self.message = message
        self.row = row

    def at(self, row: int) -> SolverError:
        """Return the same error with another row number: the row in the whole batch, if only a part was solved."""
        return type(self)(self.message, row=row)

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an exception is unpickled from its positional arguments, which do not include the row.
        return partial(type(self), row=self.row), (self.message,)


@contextmanager
def at_rows(rows: Any) -> Iterator[None]:
    """Let a `SolverError` of row `k` in this context be one of `rows[k]`: that in the whole batch.

    >>> with at_rows(range(100, 200)):
    ...     raise SolverError("no luck.", row=3)
    Traceback (most recent call last):
    decidewise.kit.errors.SolverError: row 103: no luck.
    """
    try:
        yield
    except SolverError as error:
        raise error.at(int(rows[error.row])) from error


class InfeasibleError(SolverError):
    """A row has no decision that keeps all constraints.

    Look for the constraint of row `row` that was added last, or for a bound that is too tight.
    """


class TimeLimitReached(Exception):  # noqa: N818  (not an error: the caller asked for the limit)
    """The time for a solve is up; see `decidewise.kit.batches.time_limit`.

    Catch it, and go on with what has been solved, or allow more seconds.
    """


class SolveLimitReached(Exception):  # noqa: N818  (not an error: the caller asked for the limit)
    """The next batch would take more solver calls than `CountedProblem.limit` allows.

    Catch it, and go on with what has been solved, or allow more calls.
    """


class CalibrationWarning(UserWarning):
    """A learner's loss is not calibrated to the conditional mean, so its decisions need not be optimal.

    Choose a loss that the mean minimises, such as squared error, Poisson or gamma; or keep the learner if its regret on
    held-out rows is lower all the same.
    """


class OptimalityWarning(UserWarning):
    """A problem's decision for other costs is better than the one it returned as optimal.

    Fix the solver, or tighten its gap: until then regrets are too low.
    `decidewise.testing.check_problem` shows a row on which it fails.
    """


class FeasibilityWarning(UserWarning):
    """No decision keeps all constraints exactly, but one misses them by less than rounding: 1e-7 of a constraint.

    Write the numbers of the constraint that it names with more digits, or leave some room in it.
    """


class TrainingWarning(UserWarning):
    """Training did not improve the model, so the initial model is kept.

    Use the initial model as it is, or train with more epochs, a smaller learning rate or another loss.
    """


class DivergenceError(ArithmeticError):
    """Training diverged: the loss is NaN, or far above its initial value.

    Lower `learning_rate`, or scale the features and costs nearer 1.

    Attributes
    ----------
    epoch : int
        The epoch in which training diverged, counted from 1.
    """

    def __init__(self, message: str, *, epoch: int) -> None:
        super().__init__(f"epoch {epoch}: {message}")
        self.message = message
        self.epoch = epoch

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(DivergenceError, epoch=self.epoch), (self.message,)


@contextmanager
def as_input_errors() -> Iterator[None]:
    """Turn errors about arguments and solvers into an `InputError`: what is passed on comes from a user's files."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, TypeError, ArithmeticError, SolverError) as error:
        raise InputError(str(error) or type(error).__name__) from error


_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)


def doubt(message: str, *, stacklevel: int) -> None:
    """Warn by an `OptimalityWarning` or, in a context of `collected`, only collect the message."""
    heard = _heard.get()
    if heard is None:
        warnings.warn(message, OptimalityWarning, stacklevel=stacklevel + 1)
    else:
        heard.append(message)


@contextmanager
def collected() -> Iterator[list[str]]:
    """Collect the doubts of this context.

    >>> with collected() as messages:
    ...     doubt("the sense is wrong", stacklevel=1)
    >>> messages
    ['the sense is wrong']
    """
    messages: list[str] = []
    token = _heard.set(messages)
    try:
        yield messages
    finally:
        _heard.reset(token)


@contextmanager
def said_once() -> Iterator[None]:
    """Say only the first doubt of this context, or of the function that this decorates; an error gets it as a note."""
    messages: list[str] = []
    try:
        with collected() as messages:
            yield
    except BaseException as error:
        if messages:
            error.add_note(messages[0])  # which may be the reason
        raise
    if messages:
        doubt(messages[0], stacklevel=4)  # in the line that called the function
