"""Fits in passes over rows: each says what it adds up next, and many of them share the passes.

A fit is a generator. It yields a `Pass`, is sent the sums over all rows, and goes on: with the next pass, or with its
result. Whoever runs it decides where the rows are: in memory, in files, or on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from decidewise.kit.errors import InputError
from decidewise.kit.interrupts import attempt
from decidewise.rows.source import Combine, Rows, RowSource, Sums
from decidewise.rows.source import add as add_sums

Result = TypeVar("Result")


@dataclass(frozen=True)
class Pass:
    """What is added up over all rows: the sums over a block, and how those of two blocks are merged."""

    add: Callable[[Rows], Sums]
    merge: Combine = add_sums


#: Yields passes, is sent their sums, and returns a result.
Passes: TypeAlias = Generator[Pass, Sums, Result]


def run(passes: Passes[Result], source: RowSource) -> Result:
    """Return the result of a fit on the rows of a source.

    >>> from decidewise.rows import ArrayRows
    >>> def mean():
    ...     count, total = yield Pass(lambda rows: (np.array(len(rows)), rows.costs.sum(axis=0)))
    ...     return total / count
    >>> run(mean(), ArrayRows(np.ones((5, 2)), np.ones((5, 3))))
    array([1., 1., 1.])
    """
    with closing(passes):
        found: Sums | Exception | None = None
        while isinstance(state := _state(passes, found), Pass):
            try:
                found = source.reduce(state.add, state.merge)
            except Exception as error:
                found = error
    return state.value


def in_memory(passes: Passes[Result]) -> Result:
    """Return the result of a fit that needs no pass, since its rows are in memory."""
    state = _state(passes, None)
    if isinstance(state, Pass):
        raise TypeError("rows that are not in memory need `run`.")
    return state.value


def changed(passes: Passes[Result], change: Callable[[Pass], Pass]) -> Passes[Result]:
    """Return the same fit with other passes: `change` returns the one to do in place of each."""
    found: Sums | Exception | None = None
    with closing(passes):
        while isinstance(state := _state(passes, found), Pass):
            try:
                found = yield change(state)
            except Exception as error:
                found = error
    return state.value


def together(fits: Sequence[Passes[Any]]) -> Passes[list[Any]]:
    """Return the result of each fit, or the exception that it ended with, in their order.

    Once all fits that are not finished have asked for a pass, one pass does what they asked for. So many fits take as
    many passes as the one that needs most. If something is wrong with it, each gets one of its own, to find out which.

    >>> from decidewise.rows import ArrayRows
    >>> def total(add):
    ...     return (yield Pass(add))
    >>> fits = [total(lambda rows: (np.array(len(rows)),)), total(lambda rows: (rows.costs.sum(),))]
    >>> run(together(fits), ArrayRows(np.ones((5, 2)), np.ones((5, 3))))
    [(array(5),), (array(15.),)]
    """
    results: list[Any] = [None] * len(fits)
    found: dict[int, Sums | Exception | None] = dict.fromkeys(range(len(fits)))
    try:
        while True:
            wanted: dict[int, Pass] = {}
            for place, sums in found.items():
                state = attempt(lambda fit=fits[place], sums=sums: _state(fit, sums))  # type: ignore[misc]
                if isinstance(state, Pass):
                    wanted[place] = state
                else:
                    results[place] = state.value if isinstance(state, _Done) else state
            if not wanted:
                return results
            found = dict(zip(wanted, (yield from _served(list(wanted.values()))), strict=True))
    finally:
        for fit in fits:
            fit.close()


@dataclass(frozen=True)
class _Done(Generic[Result]):
    value: Result


def _state(passes: Passes[Result], found: Sums | Exception | None) -> Pass | _Done[Result]:
    """Return the next pass of a fit or its result, after the sums of the last pass, or what was wrong with it."""
    try:
        if isinstance(found, Exception):
            return passes.throw(found)
        return next(passes) if found is None else passes.send(found)
    except StopIteration as done:
        return _Done(done.value)


def _served(passes: list[Pass]) -> Passes[list[Sums | Exception]]:
    """Return the sums of some passes, from one pass over the rows if nothing is wrong."""
    try:
        if len(passes) == 1:
            return [(yield passes[0])]
        several = Several(tuple(passes))
        return list(several.divided((yield Pass(several, several.merge))))
    except InputError:
        raise  # the rows cannot be read, whichever fit asks for them
    except (ValueError, ArithmeticError) as error:
        if len(passes) == 1:
            return [error]
    found: list[Sums | Exception] = []
    for each in passes:
        found += yield from _served([each])
    return found


@dataclass(frozen=True)
class Several:
    """The sums of several passes, one after the other; the first array says how many each of them has."""

    passes: tuple[Pass, ...]

    def __call__(self, rows: Rows) -> Sums:
        """Return the sums over a block."""
        found = [each.add(rows) for each in self.passes]
        return np.array([len(sums) for sums in found]), *(array for sums in found for array in sums)

    def merge(self, left: Sums, right: Sums) -> Sums:
        """Return the sums over two blocks, each merged in its own way."""
        pairs = zip(self.passes, self.divided(left), self.divided(right), strict=True)
        return left[0], *(array for each, own, other in pairs for array in each.merge(own, other))

    @staticmethod
    def divided(sums: Sums) -> list[Sums]:
        """Return the sums of each pass."""
        divided, begin = [], 1
        for length in sums[0].astype(int):
            divided.append(sums[begin : begin + length])
            begin += length
        return divided
