"""One sentence for each method, made of its numbers alone, so that none says more than the rows do."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from decidewise_bench.field.standings import REFERENCE, Standings
from decidewise_bench.report.results import Board


def sentence_of(standings: Standings, method: str) -> str:
    """Return what the rows say about a method: against least squares, where it is the lowest, its price, its limits."""
    ran = [board for board in standings.boards if standings.cell(method, board).trials]
    parts = []
    if ran and method != REFERENCE:
        parts.append(_against_reference(standings, method, ran))
    if first := [board for board in ran if standings.lowest(board) == method]:
        parts.append(f"the lowest mean of all on {_titles(first)}")
    if method in standings.ranks.mean and isfinite(standings.ranks.mean[method]):
        ranks = list(standings.ranks.mean)
        parts.append(
            f"average rank {standings.ranks.mean[method]:.1f}, number {ranks.index(method) + 1} of {len(ranks)}"
        )
    if ran:
        parts.append(_price(standings, method))
    for board in standings.boards:
        cell = standings.cell(method, board)
        if cell.failures:
            parts.append(f"{len(cell.failures)} failed on {board.problem_title}")
    if refused := [board for board in standings.boards if standings.cell(method, board).refusals]:
        parts.append(f"not for {_titles(refused)}, as it says itself")
    return f"{'; '.join(parts)}." if parts else "No row yet."


def _against_reference(standings: Standings, method: str, ran: Sequence[Board]) -> str:
    """Count the problems on which the method is lower or higher; with few trials, by the means alone."""
    known = [verdict for board in ran if (verdict := standings.verdict(method, board))]
    if not known:
        below = sum(standings.difference(method, board).mean < 0 for board in ran)
        return f"lower mean than {REFERENCE} on {below} of {len(ran)} problems, in too few trials to be sure"
    lower, higher = known.count("lower"), known.count("higher")
    if lower == higher == 0:
        return f"statistically indistinguishable from {REFERENCE} on any of {len(known)} problems"
    counts = [f"{word} on {n}" for word, n in (("lower", lower), ("higher", higher)) if n]
    return f"regret {' and '.join(counts)} of {len(known)} problems than {REFERENCE} by more than two standard errors"


def _price(standings: Standings, method: str) -> str:
    seconds, solves = standings.seconds(method), standings.n_solves(method)
    calls = "no solver calls" if solves == 0 else f"{solves:,.0f} solver calls"
    return f"{seconds:.2g} s and {calls} on average, search included"


def _titles(boards: Sequence[Board]) -> str:
    """Return the titles of the problems in words.

    >>> _titles([Board("p", "knapsack", {}), Board("p", "tours", {}), Board("p", "paths", {})])
    'Knapsack, Tours and Paths'
    """
    *most, last = [board.problem_title for board in boards]
    return f"{', '.join(most)} and {last}" if most else last
