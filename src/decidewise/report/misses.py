"""What is known about the cells that were not reproduced. A miss without a reason says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from decidewise.report.boards import Board
from decidewise.report.verdicts import Comparison


@dataclass(frozen=True)
class Reason:
    """Something known about a group of misses."""

    title: str
    text: str
    applies: Callable[[Board, Comparison], bool]


#: The first that applies is given. A new finding is one more entry.
REASONS = (
    Reason(
        "Portfolio: MSE and WISE are in the other order",
        "The order belongs to the pair, so both cells count as missed even where each mean is close to the published "
        "one. It can depend on the instance, which the paper does not give.",
        lambda board, miss: miss.wrong_order,
    ),
    Reason(
        "Portfolio: the instance is not known",
        "One instance serves all of the paper's trials (its means spread by 0.02), and neither its seed nor the "
        "learning rate is given. Across instances the exact fit alone moves between 0.88 and 0.98 at degree 1, where "
        "the paper has 0.85 to 0.89.",
        lambda board, miss: board.problem == "portfolio",
    ),
    Reason(
        "Shortest path: DBB ends below its published regret from degree 4 on",
        "A sound implementation with the paper's λ decides better than published here. The published standard "
        "deviations, up to 28 points, suggest that some of those trainings did not settle. Nothing was tuned to bring "
        "the two together.",
        lambda board, miss: (
            board.problem == "shortest_path"
            and miss.method == "DBB"
            and miss.setting.degree >= 4
            and miss.difference is not None
            and miss.difference < 0
        ),
    ),
    Reason(
        "2D knapsack: published MSE is under-trained at low degrees",
        "The given number of Adam steps cannot carry the intercept from 0 to the mean value of an item, so the cell "
        "measures how far the optimiser came. The exact columns show where the losses lead when they are minimised.",
        lambda board, miss: board.problem == "knapsack" and miss.method == "MSE" and miss.setting.degree <= 2,
    ),
    Reason(
        "No reason known",
        "The protocol is the paper's as far as it is written down. These means are outside the tolerance, and why is "
        "an open question.",
        lambda board, miss: True,
    ),
)


def group_misses(
    judged: Iterable[tuple[Board, Iterable[Comparison]]],
) -> list[tuple[Reason, list[tuple[Board, Comparison]]]]:
    """Return the missed cells under the first reason that applies to each; reasons without a cell are left out."""
    groups: list[tuple[Reason, list[tuple[Board, Comparison]]]] = [(reason, []) for reason in REASONS]
    for board, comparisons in judged:
        for miss in comparisons:
            if miss.verdict == "missed":
                next(cells for reason, cells in groups if reason.applies(board, miss)).append((board, miss))
    return [(reason, cells) for reason, cells in groups if cells]
