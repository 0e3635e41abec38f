"""The course of one fit: epochs within a budget, validation, history, and the model to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from decidewise.checks import FloatArray
from decidewise.errors import DivergenceError
from decidewise.evaluate import Truth
from decidewise.models.training import Link, Training, respond
from decidewise.problems.counted import CountedProblem

# A loss this many times its first value will not come back.
_DIVERGED = 1e8


class Epoch(NamedTuple):
    """One pass over the data; solver calls and seconds are counted from the start of the fit, labels included."""

    epoch: int
    loss: float
    validation_regret: float | None
    solver_calls: int
    seconds: float


class OutOfBudget(Exception):  # noqa: N818  (it ends training; nothing went wrong)
    """The next batch would take more solver calls than there are left."""


class Budget(CountedProblem):
    """A problem that refuses to be solved more than `max_solves` times, less what is reserved."""

    def __init__(self, problem: Any, max_solves: int | None) -> None:
        super().__init__(problem)
        self.max_solves = np.inf if max_solves is None else max_solves
        self.reserve = 0

    def count(self, n_solves: int) -> None:
        """Count, or raise `OutOfBudget` before anything is solved."""
        if self.n_solves + n_solves > self.max_solves - self.reserve:
            raise OutOfBudget
        super().count(n_solves)


class Validation(NamedTuple):
    """Rows set aside: features and what their costs would have allowed."""

    X: FloatArray
    truth: Truth

    @classmethod
    def of(cls, problem: Any, X: FloatArray, costs: FloatArray) -> Validation:
        """Solve for the best decisions, once."""
        return cls(X, Truth.of(problem, costs))

    def regret(self, parameters: FloatArray, link: Link) -> float:
        """Return the normalised regret of a linear predictor, in percent."""
        return self.truth.normalized_regret(respond(link, parameters[0] + self.X @ parameters[1:]))


class Course:
    """The course of one fit.

    Parameters
    ----------
    settings : DecisionRegressor
        Read only: epochs, budgets and when to stop.
    clock : float
        When the fit began.
    """

    def __init__(
        self,
        settings: Any,
        training: Training,
        problem: Budget,
        validation: Validation | None,
        clock: float,
    ) -> None:
        self.settings, self.training, self.problem = settings, training, problem
        self.validation, self.clock = validation, clock
        self.parameters = training.parameters.copy()
        self.best = np.inf if (regret := self._validate()) is None else regret
        self.history: list[Epoch] = []
        self.first_loss: float | None = None
        self.stopped = "epochs"

    def run(self) -> None:
        """Train, and leave the model to keep in `parameters`."""
        stale = 0
        try:
            with self._progress() as show:
                while self.stopped == "epochs" and len(self.history) < self.settings.epochs:
                    loss = self._epoch()
                    if loss is None:
                        break
                    epoch = self._record(loss)
                    show(epoch)
                    score = loss if epoch.validation_regret is None else epoch.validation_regret
                    stale += 1
                    if score < self.best:
                        self.parameters, self.best, stale = self.training.parameters.copy(), score, 0
                    if self.validation and stale >= self.settings.n_iter_no_change:
                        self.stopped = "no change"
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        if self.validation is None and self.stopped != "interrupted":
            self.parameters = self.training.parameters

    def _epoch(self) -> float | None:
        """Return the mean loss of an epoch, of a part of it, or None if there was no budget for any step."""
        loss = None
        # What the validation at the end of the epoch will take must be left over.
        self.problem.reserve = len(self.validation.X) if self.validation else 0
        try:
            for loss in self.training.epoch():
                self._check(loss)
                if self.settings.max_seconds is not None and perf_counter() - self.clock > self.settings.max_seconds:
                    self.stopped = "max_seconds"
                    break
        except OutOfBudget:
            self.stopped = "max_solves"
        self.problem.reserve = 0
        return loss

    def _check(self, loss: float) -> None:
        if self.first_loss is None:
            self.first_loss = loss
        if isfinite(loss) and abs(loss) <= _DIVERGED * max(1.0, abs(self.first_loss)):
            return
        self.stopped = "diverged"
        raise DivergenceError(
            f"the loss became {loss:g} (in the first step it was {self.first_loss:g}). The best model so far is kept; "
            "lower learning_rate or scale the features.",
            epoch=len(self.history) + 1,
        )

    def _validate(self) -> float | None:
        return self.validation and self.validation.regret(self.training.parameters, self.settings.link)

    def _record(self, loss: float) -> Epoch:
        regret = self._validate()
        seconds = perf_counter() - self.clock
        self.history.append(Epoch(len(self.history) + 1, loss, regret, self.problem.n_solves, seconds))
        return self.history[-1]

    @contextmanager
    def _progress(self) -> Iterator[Callable[[Epoch], None]]:
        if not self.settings.verbose:
            yield lambda epoch: None
            return
        columns = (
            TextColumn("epoch"),
            MofNCompleteColumn(),
            BarColumn(),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task("", total=self.settings.epochs, status="")

            def show(epoch: Epoch) -> None:
                regret = "" if epoch.validation_regret is None else f"  regret {epoch.validation_regret:.2f} %"
                progress.update(task, completed=epoch.epoch, status=f"loss {epoch.loss:.4g}{regret}")

            yield show
