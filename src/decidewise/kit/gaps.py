"""How far decisions may be from the optimum, said beside them by a solver that stopped at a limit.

`minimize` returns decisions alone, through any number of views. What a solver knows besides goes to whoever asks: in a
context of `noted_gaps`, the notes of `note_gaps` are kept, one for each row of each batch, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from decidewise.kit.checks import BoolArray, FloatArray
from decidewise.kit.errors import at_rows


@dataclass
class NotedGaps:
    """The notes of a context."""

    batches: list[tuple[FloatArray, BoolArray]] = field(default_factory=list)

    def by_row(self, n_rows: int) -> tuple[FloatArray, BoolArray]:
        """Return the gap of each row, and whether a limit stopped it; nothing noted means that all are optimal.

        Notes on another number of rows, as of a problem that solves something else to decide, say nothing of a single
        row: if one of them has a gap, no row is proven optimal.
        """
        if not self.batches:
            return np.zeros(n_rows), np.zeros(n_rows, dtype=bool)
        gaps, stopped = (np.concatenate(notes) for notes in zip(*self.batches, strict=True))
        if len(gaps) != n_rows:
            return np.full(n_rows, np.inf if gaps.any() else 0.0), np.full(n_rows, stopped.any())
        return gaps, stopped

    def pass_on(self, n_rows: int, factor: float = 1.0) -> None:
        """Note all this in the context outside, with gaps in another unit."""
        gaps, stopped = self.by_row(n_rows)
        note_gaps(gaps * factor, stopped)


_heard: ContextVar[NotedGaps | None] = ContextVar("noted", default=None)


def note_gaps(gaps: FloatArray, stopped: BoolArray) -> None:
    """Say of each row of a batch how far its objective may be above the optimum, and whether a limit stopped it."""
    heard = _heard.get()
    if heard is not None:
        heard.batches.append((gaps, stopped))


@contextmanager
def some_rows(rows: Any, n_rows: int) -> Iterator[None]:
    """Solve some rows of a batch in this context: notes and a `SolverError` are of these rows; all others are optimal.

    >>> with noted_gaps() as noted, some_rows([2], 3):
    ...     note_gaps(np.array([5.0]), np.array([True]))
    >>> noted.by_row(3)
    (array([0., 0., 5.]), array([False, False,  True]))
    """
    gaps, stopped = np.zeros(n_rows), np.zeros(n_rows, dtype=bool)
    with at_rows(rows), noted_gaps() as noted:
        yield
    gaps[rows], stopped[rows] = noted.by_row(len(rows))
    note_gaps(gaps, stopped)


@contextmanager
def noted_gaps() -> Iterator[NotedGaps]:
    """Keep the notes of this context; a context outside does not hear them.

    >>> with noted_gaps() as noted:
    ...     note_gaps(np.array([0.0, 2.0]), np.array([False, True]))
    >>> noted.by_row(2)
    (array([0., 2.]), array([False,  True]))
    """
    heard = NotedGaps()
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)
