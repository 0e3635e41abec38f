"""Rows that a search of ours gives up after so many steps, and hands over to a solver with limits and bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.kit.batches import Search, search_in_parts
from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.gaps import some_rows
from decidewise.problems.contract import Problem

#: Seconds for a hard row where no `time_limit` is given.
SECONDS = 60.0


def search_or_hand_over(
    search: Search,
    costs: FloatArray,
    *by_row: npt.NDArray[Any],
    steps: int,
    max_steps: int,
    hand_over: Callable[[IntArray], FloatArray],
) -> FloatArray:
    """Return the decisions of a search as of `search_in_parts`; rows that it gives up are those of `hand_over(rows)`.

    It notes the gaps of these rows; all others have none.
    """
    decisions, left, start = np.zeros_like(costs), list[int](), 0
    while start < len(costs):
        own = (values[start:] for values in by_row)
        found, stuck = search_in_parts(search, costs[start:], *own, steps=steps, max_steps=max_steps)
        end = len(costs) if stuck < 0 else start + stuck
        decisions[start:end] = found[: end - start]
        left += [end] * (stuck >= 0)
        start = end + 1
    if left:
        with some_rows(np.array(left), len(costs)):
            decisions[left] = hand_over(np.array(left))
    return decisions


def limits_of(problem: Problem) -> dict[str, Any]:
    """Return the limits of a problem as arguments of the program that takes its hard rows."""
    seconds = SECONDS if problem.time_limit is None else problem.time_limit
    return {"time_limit": seconds, "gap": problem.gap, "on_limit": problem.on_limit, "on_error": problem.on_error}


def steps_before(problem: Problem, per_second: int) -> int:
    """Return the steps of a search before a row is handed over: those of a second, or of a quarter of the limit."""
    return max(1, int(per_second * min(1.0, (problem.time_limit or np.inf) / 4)))
