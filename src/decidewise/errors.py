"""What can go wrong that is not a bad argument."""

from __future__ import annotations

from functools import partial
from typing import Any


class InputError(ValueError):
    """A file, a plan or a name that the user gave cannot be used; the message says why and what to do.

    The command line shows the message alone. Any other `ValueError` there is a mistake of ours, with its traceback.
    """


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
        """Return the same error at another row: that of the whole batch, where a part of it was solved."""
        return SolverError(self.message, row=row)

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an exception is unpickled from its arguments alone, which leaves out the row.
        return partial(SolverError, row=self.row), (self.message,)


class TimeLimitReached(Exception):  # noqa: N818  (nothing went wrong)
    """The time for a solve is up; see `decidewise.runtime.batches.time_limit`."""


class CalibrationWarning(UserWarning):
    """A learner's loss is not calibrated to the conditional mean, so its decisions need not be optimal."""


class OptimalityWarning(UserWarning):
    """A problem's decision for other costs is better than the one it returned as optimal."""


class TrainingWarning(UserWarning):
    """Training did not make the model better, so that the one it started from is kept."""


class DivergenceError(ArithmeticError):
    """Training went astray: the loss is not a number any more, or far beyond where it started.

    Attributes
    ----------
    epoch : int
        The epoch in which it happened, counted from 1.
    """

    def __init__(self, message: str, *, epoch: int) -> None:
        super().__init__(f"epoch {epoch}: {message}")
        self.message = message
        self.epoch = epoch

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(DivergenceError, epoch=self.epoch), (self.message,)
