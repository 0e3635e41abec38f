"""Errors and warnings other than those for bad arguments."""

from __future__ import annotations

from functools import partial
from typing import Any


class InputError(ValueError):
    """A file, a plan or a name given by the user cannot be used; the message says why and what to do.

    The command line prints the message without a traceback. Any other `ValueError` is a bug, and keeps its traceback.
    """


class OtherCodeError(InputError):
    """The code or the libraries of a worker differ from those of the process that sends it work."""


class SolverError(RuntimeError):
    """A solver ended without an optimal decision.

    Attributes
    ----------
    row : int
        The row of the batch that could not be solved.
    """

    def __init__(self, message: str, *, row: int) -> None:
        super().__init__(f"row {row}: {message}")
        self.message = message
        self.row = row

    def at(self, row: int) -> SolverError:
        """Return the same error with another row number: the row in the whole batch, if only a part was solved."""
        return SolverError(self.message, row=row)

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an exception is unpickled from its positional arguments, which do not include the row.
        return partial(SolverError, row=self.row), (self.message,)


class TimeLimitReached(Exception):  # noqa: N818  (not an error: the caller asked for the limit)
    """The time for a solve is up; see `decidewise.runtime.batches.time_limit`."""


class CalibrationWarning(UserWarning):
    """A learner's loss is not calibrated to the conditional mean, so its decisions need not be optimal."""


class OptimalityWarning(UserWarning):
    """A problem's decision for other costs is better than the one it returned as optimal."""


class TrainingWarning(UserWarning):
    """Training did not improve the model, so the initial model is kept."""


class DivergenceError(ArithmeticError):
    """Training diverged: the loss is NaN, or far above its initial value.

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
