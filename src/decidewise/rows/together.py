"""Several fits that pass over the same rows together: each pass serves all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from decidewise.errors import InputError
from decidewise.rows.source import Rows, RowSource
from decidewise.rows.tree import Combine, Sums, add
from decidewise.runtime.interrupts import attempt


def pass_together(source: RowSource, fits: Sequence[Callable[[RowSource], Any]]) -> list[Any]:
    """Return the result of each fit, or the exception that it ended with, in their order.

    A fit is called with a source of the same rows. It runs until it asks for a pass. Once all fits that are not
    finished have asked, one pass over the rows does what they asked for. So many fits take as many passes as the one
    that needs most. The fits only wait for each other, and one runs at a time: the pass itself is what is parallel.

    >>> import numpy as np
    >>> from decidewise.rows import ArrayRows
    >>> source = ArrayRows(np.ones((5, 2)), np.ones((5, 3)))
    >>> count, total = (lambda rows: (np.array(len(rows)),)), (lambda rows: (rows.costs.sum(),))
    >>> pass_together(source, [lambda rows: rows.reduce(count), lambda rows: rows.reduce(total)])
    [(array(5),), (array(15.),)]
    """
    turns = [_Turn(source, fit) for fit in fits]
    for turn in turns:
        turn.proceed()
    while waiting := [turn for turn in turns if turn.wish is not None]:
        try:
            _serve(source, waiting)
        except BaseException:
            for turn in waiting:
                turn.answer = _GivenUpError()  # ends the thread of the fit
                turn.proceed()
            raise
        for turn in waiting:
            turn.proceed()
    for turn in turns:
        if turn.ended is not None:
            raise turn.ended
    return [turn.result for turn in turns]


class _GivenUpError(Exception):
    """Another fit, or the source, ended all of them."""


@dataclass
class _Turn(RowSource):
    """One of the fits, and the source that it sees."""

    source: RowSource
    fit: Callable[[RowSource], Any]
    wish: tuple[Callable[[Rows], Sums], Combine] | None = None
    answer: Sums | Exception | None = None
    result: Any = None
    ended: BaseException | None = None
    _go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _stopped: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _thread: threading.Thread | None = None

    def proceed(self) -> None:
        """Let the fit run until it asks for the next pass, or is finished."""
        self.wish = None
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="decidewise-fit")
            self._thread.start()
        self._go.release()
        self._stopped.acquire()

    def _run(self) -> None:
        self._go.acquire()
        try:
            self.result = attempt(lambda: self.fit(self))
        except BaseException as error:  # an interrupt or a time limit: raised by the caller, in its own thread
            self.ended = error
        self._stopped.release()

    def first(self) -> Rows:
        """Return some of the first rows."""
        return self.source.first()

    def reduce(self, function: Callable[[Rows], Sums], combine: Combine = add) -> Sums:
        """Ask for a pass, and return its result."""
        self.wish = function, combine
        self._stopped.release()
        self._go.acquire()
        if isinstance(self.answer, Exception):
            raise self.answer
        assert self.answer is not None  # the pass was served
        return self.answer


def _serve(source: RowSource, turns: Sequence[_Turn]) -> None:
    """Do what fits ask for in one pass; if something is wrong with it, in one pass each, to find out with which."""
    wishes = [turn.wish for turn in turns if turn.wish is not None]
    try:
        functions, combines = tuple(wish[0] for wish in wishes), tuple(wish[1] for wish in wishes)
        together = Several(functions)
        lengths = together.lengths(source.first())
        answers = _divided(source.reduce(together, SeveralCombined(combines, lengths)), lengths)
    except InputError:
        raise  # the rows cannot be read, whichever fit asks for them
    except (ValueError, ArithmeticError) as error:
        if len(turns) == 1:
            turns[0].answer = error
            return
        for turn in turns:
            _serve(source, [turn])
        return
    for turn, answer in zip(turns, answers, strict=True):
        turn.answer = answer


@dataclass(frozen=True)
class Several:
    """The sums of several functions of a block, one after the other."""

    functions: tuple[Callable[[Rows], Sums], ...]

    def __call__(self, rows: Rows) -> Sums:
        """Return the sums of all functions."""
        return tuple(array for function in self.functions for array in function(rows))

    def lengths(self, rows: Rows) -> tuple[int, ...]:
        """Return how many arrays each function returns."""
        return tuple(len(function(rows)) for function in self.functions)


@dataclass(frozen=True)
class SeveralCombined:
    """Combines the sums of several functions, each in its own way."""

    combines: tuple[Combine, ...]
    lengths: tuple[int, ...]

    def __call__(self, left: Sums, right: Sums) -> Sums:
        """Return the combined sums of all functions."""
        pairs = zip(self.combines, _divided(left, self.lengths), _divided(right, self.lengths), strict=True)
        return tuple(array for combine, own, other in pairs for array in combine(own, other))


def _divided(sums: Sums, lengths: Sequence[int]) -> list[Sums]:
    divided, begin = [], 0
    for length in lengths:
        divided.append(sums[begin : begin + length])
        begin += length
    return divided
