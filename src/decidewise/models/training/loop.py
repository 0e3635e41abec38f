"""The training loop: epochs within a budget, validation, history, and the choice of the model to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from math import isfinite
from time import perf_counter
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from decidewise.evaluate import Hindsight
from decidewise.kit.batches import check_time, time_limit
from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import DivergenceError, SolveLimitReached, TimeLimitReached
from decidewise.kit.progress import watched
from decidewise.models.linear.deviances import Link, linear_predictor, respond
from decidewise.models.training.step import Training
from decidewise.problems.contract import Problem
from decidewise.problems.wrappers import CountedProblem

# The share of the remaining solver calls and seconds that one evaluation of the loss may take.
_SHARE_OF_ONE = 0.05
# A loss is proven to be higher if the mean difference exceeds this many of its standard errors. One or two do not
# prove much here: the result of training was fitted to these rows.
_STANDARD_ERRORS = 3.0
_HALF, _QUARTER = 0.5, 0.25
# A loss above this many times its first value has diverged.
_DIVERGED = 1e8
# No warning if the score is higher than that of the start by less than this, relative to scores above one.
_ROUNDING = 1e-9
#: The rows set aside, in the units of training: their problem, whose solver calls are counted, features and costs.
HeldOut = tuple[Problem, FloatArray, FloatArray]


class Budget:
    """The problem of a fit, which counts solves up to a limit, and a deadline by `perf_counter`, infinite for none.

    What is set aside for the end lowers both for now.
    """

    def __init__(self, problem: Problem, max_solves: int | None, deadline: float) -> None:
        self.problem = CountedProblem(problem)
        self.problem.limit = self.max_solves = np.inf if max_solves is None else max_solves
        self.deadline = deadline

    @property
    def n_solves(self) -> int:
        """The solver calls so far."""
        return self.problem.n_solves

    def set_aside(self, n_solves: int, seconds: float = 0.0) -> None:
        """Keep solver calls and seconds for later; negative numbers release them."""
        self.problem.limit -= n_solves
        self.deadline -= seconds


class StartingLoss:
    """The loss of the starting parameters over the training rows, to compare with that of the last ones.

    All losses use the target at the start of training. If solver calls or seconds are limited, evaluating the start
    takes about a twentieth of those left at most, on a random part of the rows if necessary, and the same amount is
    reserved for each evaluation at the end: three for `draw_back`, otherwise one.
    """

    def __init__(self, training: Training, budget: Budget, rng: np.random.Generator, *, draw_back: bool) -> None:
        self.training, self.budget, self.seed = training, budget, int(rng.integers(2**32))
        self.start = training.result.copy()
        self.target = training.target
        self.order = rng.permutation(len(training.design))
        calls, begin = budget.n_solves, perf_counter()
        last_call = calls + _SHARE_OF_ONE * (budget.max_solves - calls)
        last_second = begin + _SHARE_OF_ONE * (budget.deadline - begin)
        values = []
        for some in training.losses(self.start, self.target, self.order, self.seed):
            values.append(some)
            if budget.n_solves > last_call or perf_counter() > last_second:
                break
        self.values = np.concatenate(values)
        self.loss = float(self.values.mean())
        self.order = self.order[: len(self.values)]
        n_evaluations = 3 if draw_back else 1
        self._calls, self._seconds = budget.n_solves - calls, perf_counter() - begin
        budget.set_aside(n_evaluations * self._calls, n_evaluations * self._seconds)

    def values_at(self, parameters: FloatArray) -> FloatArray:
        """Return the losses of other parameters, on the same rows with the same random numbers."""
        self.budget.set_aside(-self._calls, -self._seconds)
        with time_limit(self.budget.deadline):
            return np.concatenate(list(self.training.losses(parameters, self.target, self.order, self.seed)))

    def drawn_back(self, result: FloatArray, values: FloatArray) -> FloatArray:
        """Return parameters between the start and the result of training, which has these losses.

        A loss that sees decisions has more variance than the fit at the start, so that its minimum on few rows is
        noisy. Of the points a quarter, a half and three quarters of the way, and the result itself, this is the nearest
        to the start whose mean loss is not proven to be higher than that of the result. With many rows, a difference
        that matters is proven, and the result stays as it is.
        """

        def at(share: float) -> FloatArray:
            return self.start + share * (result - self.start)

        share = 1 - _QUARTER if _is_higher(self.values_at(at(_HALF)), values) else _QUARTER
        if _is_higher(self.values_at(at(share)), values):
            share += _QUARTER
        return at(share)


def _is_higher(values: FloatArray, others: FloatArray) -> bool:
    """Whether some losses are proven to be higher than others of the same rows, by the mean of the differences."""
    differences = values - others
    error = float(differences.std()) / np.sqrt(max(1, len(differences) - 1))
    return bool(differences.mean() > _STANDARD_ERRORS * error)


class Epoch(NamedTuple):
    """One pass over the data; solver calls and seconds are counted from the start of the fit, labels included.

    Examples
    --------
    >>> from decidewise import DecisionRegressor
    >>> from decidewise.data import make_shortest_path
    >>> data = make_shortest_path(60, degree=2, seed=0)
    >>> model = DecisionRegressor(data.problem, "spo+", epochs=2).fit(data.X, data.costs)
    >>> last = model.history_[-1]
    >>> last.epoch, last.n_solves > 60, last.loss == last.score
    (2, True, True)
    """

    epoch: int
    loss: float
    validation_regret: float | None
    n_solves: int
    seconds: float

    @property
    def score(self) -> float:
        """The validation regret if there is one, otherwise the loss."""
        return self.loss if self.validation_regret is None else self.validation_regret


class Validation(NamedTuple):
    """The rows set aside: their features, their costs and the optimal values."""

    X: FloatArray
    truth: Hindsight

    def regret(self, parameters: FloatArray, link: Link) -> float:
        """Return the normalised regret of a linear predictor, in percent."""
        return self.truth.normalized_regret(respond(link, linear_predictor(self.X, parameters[1:].T, parameters[0])))


@dataclass
class TrainingLoop:
    """Run the epochs of one fit and choose the model to keep.

    Parameters
    ----------
    start : ndarray of shape (p + 1, d)
        The parameters before training; not changed.
    clock : float
        The time of `perf_counter` when the fit began.
    safe : bool
        Whether to keep the start if training did not lower its loss; only if no rows are held out.
    draw_back : bool
        Whether to draw the result back to the start as far as its loss does not speak against it; only if `safe`, and
        if no rows are held out.

    Attributes
    ----------
    parameters : ndarray of shape (p + 1, d)
        The parameters to keep.
    stopped, remark : str
        Why training ended, and the text of a warning for the caller, or empty.
    """

    budget: Budget
    start: FloatArray
    clock: float
    _: KW_ONLY
    epochs: int
    n_iter_no_change: int
    safe: bool
    draw_back: bool
    verbose: bool

    def __post_init__(self) -> None:
        self.parameters = self.start
        self.history: list[Epoch] = []
        self.stopped = "epochs"
        self.remark = ""
        self.first_loss: float | None = None

    def run(self, training: Training, held_out: HeldOut | None, rng: np.random.Generator) -> None:
        """Train, and leave the model to keep in `parameters`."""
        self.training = training
        try:
            # An overflow shows in the loss, which is checked.
            with np.errstate(over="ignore", invalid="ignore"), self._progress() as show:
                self._begin(held_out, rng)
                self._train(show)
                self._end()
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        except SolveLimitReached:
            self.stopped = "max_solves"
        except TimeLimitReached:
            self.stopped = "max_seconds"

    def _begin(self, held_out: HeldOut | None, rng: np.random.Generator) -> None:
        """Score the start: by its regret on the rows held out, if any, otherwise by its loss if `safe`."""
        self.validation: Validation | None = None
        self.starting_loss: StartingLoss | None = None
        self.score_of_start = np.inf
        if held_out is not None:
            problem, X, costs = held_out
            self.validation = Validation(X, Hindsight.of(problem, costs))
            self.score_of_start = self.validation.regret(self.start, self.training.link)
        elif self.safe:
            self.starting_loss = StartingLoss(self.training, self.budget, rng, draw_back=self.draw_back)
            self.score_of_start = self.starting_loss.loss
            self._check(self.starting_loss.loss)

    def _train(self, show: Callable[[Epoch], None]) -> None:
        best, stale = self.score_of_start, 0
        while self.stopped == "epochs" and len(self.history) < self.epochs:
            refresh = self.training.refresh_is_due(len(self.history))
            loss = self._epoch(refresh=refresh)
            if loss is None:
                break
            epoch = self._record(loss)
            show(epoch)
            stale += 1
            if refresh and not self.validation:
                best = np.inf  # losses of different targets cannot be compared
            if epoch.score < best:
                self.parameters, best, stale = self.training.result.copy(), epoch.score, 0
            if self.validation and stale >= self.n_iter_no_change:
                self.stopped = "no change"

    def _end(self) -> None:
        """Choose the model to keep; until now it was the best by validation regret or by the loss of its epoch."""
        if not self.history:
            return
        if self.validation is not None:
            if self.parameters is self.start and self.history[-1].score > self.score_of_start:
                self._keep_start("regret on the rows held out", self.history[-1].score)
            return
        if self.starting_loss is None:
            self.parameters = self.training.result
            return
        values = self.starting_loss.values_at(self.training.result)
        loss = float(values.mean())
        if not loss <= self.score_of_start:
            self._keep_start("mean loss", loss)
            return
        self.parameters = self.training.result
        if self.draw_back:
            self.parameters = self.starting_loss.drawn_back(self.training.result, values)

    def _keep_start(self, name: str, score: float) -> None:
        self.parameters = self.start
        if not score <= self.score_of_start + _ROUNDING * max(1.0, abs(self.score_of_start)):
            self.remark = (
                f"training ended with a {name} of {score:.6g}, and started with one of {self.score_of_start:.6g}, so "
                "the start is kept. Lower learning_rate, or do not train: a start that is already optimal cannot "
                "improve."
            )

    def _epoch(self, *, refresh: bool) -> float | None:
        """Train for one epoch, as far as the budget allows; return the mean loss, or None if no step was taken."""
        loss = None
        # Reserve the solver calls of the validation at the end of the epoch.
        n_validation = len(self.validation.X) if self.validation else 0
        self.budget.set_aside(n_validation)
        try:
            with time_limit(self.budget.deadline):
                if refresh:
                    self.training.refresh()
                    check_time()
                for loss in self.training.epoch():
                    self._check(loss)
                    check_time()
        except SolveLimitReached:
            self.stopped = "max_solves"
        except TimeLimitReached:
            self.stopped = "max_seconds"
        self.budget.set_aside(-n_validation)
        return loss

    def _check(self, loss: float) -> None:
        if self.first_loss is None:
            self.first_loss = loss
        if isfinite(loss) and abs(loss) <= _DIVERGED * max(1.0, abs(self.first_loss)):
            return
        self.stopped = "diverged"
        raise DivergenceError(
            f"the loss became {loss:g} (in the first step it was {self.first_loss:g}). The best model so far is kept; "
            "lower learning_rate" + ("." if self.safe else " or scale the features."),
            epoch=len(self.history) + 1,
        )

    def _record(self, loss: float) -> Epoch:
        regret = self.validation and self.validation.regret(self.training.result, self.training.link)
        seconds = perf_counter() - self.clock
        self.history.append(Epoch(len(self.history) + 1, loss, regret, self.budget.n_solves, seconds))
        return self.history[-1]

    @contextmanager
    def _progress(self) -> Iterator[Callable[[Epoch], None]]:
        if not self.verbose:
            yield lambda epoch: None
            return
        columns = (
            TextColumn("epoch"),
            MofNCompleteColumn(),
            BarColumn(),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
        )
        with watched(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task("", total=self.epochs, status="")

            def show(epoch: Epoch) -> None:
                regret = "" if epoch.validation_regret is None else f"  regret {epoch.validation_regret:.2f} %"
                progress.update(task, completed=epoch.epoch, status=f"loss {epoch.loss:.4g}{regret}")

            yield show
