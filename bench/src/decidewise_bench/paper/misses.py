"""Reasons why cells were not reproduced. The last reason is that none is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from decidewise_bench.paper.verdicts import Judgement
from decidewise_bench.report.results import Board


@dataclass(frozen=True)
class Reason:
    """A reason for a group of misses, and a test of whether it applies to a miss."""

    title: str
    text: str
    applies: Callable[[Board, Judgement], bool]


def _is_lower(miss: Judgement) -> bool:
    return miss.difference is not None and miss.difference < 0


#: Each miss gets the first reason that applies. Add new findings here.
REASONS = (
    Reason(
        "Portfolio: the order of MSE and WISE is reversed",
        "The order concerns both cells, so both count as missed even if each mean is close to the published one.",
        lambda board, miss: miss.wrong_order,
    ),
    Reason(
        "Portfolio: PFY's noise and DBB's step are large for returns of 0.2",
        "The noise of PFY has size 1. With many samples DBB suffers from its λ of 100 in the same way. With 1/30 of σ "
        "and 1/10 of λ both methods reach the published numbers (`decidewise paper run explained`). The plan uses the "
        "values in the paper's text; which values its trainings used is not known.",
        lambda board, miss: board.problem == "portfolio" and miss.method in ("PFY", "DBB"),
    ),
    Reason(
        "Portfolio: the learning rate is not known",
        "The plan uses the rates of the shortest path, which has the same numbers of samples. At 400 samples the rate "
        "is too large for SPO+: with half of it, it reaches its published numbers (`decidewise paper run explained`). "
        "The rates were not tuned to match the published cells.",
        lambda board, miss: board.problem == "portfolio",
    ),
    Reason(
        "DBB ends below its published regret",
        "Our implementation, with the paper's λ, decides better than published: with few samples at every degree, and "
        "on the shortest path from degree 4 on with any number of samples. There the published numbers are those of "
        "1/20 to 1/25 of the stated learning rate (`decidewise paper run explained`): too little training.",
        lambda board, miss: miss.method == "DBB" and _is_lower(miss),
    ),
    Reason(
        "DBB does not gain from more samples",
        "Its gradient is that of an interpolation of fixed width λ, which is not consistent: with more samples it "
        "converges to a predictor that is not the best one. The published regret falls with more samples; ours stays "
        "the same. Which detail of the paper's training makes the difference is not known.",
        lambda board, miss: board.problem != "portfolio" and miss.method == "DBB",
    ),
    Reason(
        "Shortest path: LAVA ends below its published regret with few samples",
        "With 200 samples the published numbers are those of 1/5 of the stated learning rate (`decidewise paper run "
        "explained`): too little training. All adjacent vertices are used here (22 to 69 per vertex of the grid).",
        lambda board, miss: board.problem == "shortest_path" and miss.method == "LAVA" and _is_lower(miss),
    ),
    Reason(
        "2D knapsack: LAVA ends above its published regret",
        "Here vertices and neighbours are those of the linear relaxation, and the margin is 0.1, the default of LAVA's "
        "authors; the paper states neither. The difference shrinks with more samples, and with twice the learning rate "
        "(`decidewise paper run explained`).",
        lambda board, miss: board.problem == "knapsack" and miss.method == "LAVA" and not _is_lower(miss),
    ),
    Reason(
        "2D knapsack: CaVE ends below its published regret",
        "The paper does not say which variant of CaVE it used. We tried the variants of PyEPO and the exact "
        "projection, each on the cones at the integer optimum and at the optimum of the relaxation. The exact "
        "projection at the relaxation's optimum is by far the closest (docs/notes/paper_protocol.md), but it still "
        "decides better at degree 1 with 800 samples.",
        lambda board, miss: board.problem == "knapsack" and miss.method == "CaVE" and _is_lower(miss),
    ),
    Reason(
        "2D knapsack, degree 4, 400 samples: the published row stands out",
        "From 400 to 800 samples the published regret of PFY does not fall, and that of SPO+ rises. Ours fall, and "
        "agree with the published regrets at 200 and at 800 samples.",
        lambda board, miss: (
            board.problem == "knapsack"
            and miss.method in ("PFY", "SPO+")
            and (miss.setting.degree, miss.setting.samples) == (4, 400)
        ),
    ),
    Reason(
        "2D knapsack: published MSE is under-trained at low degrees",
        "The given number of Adam steps is too small to move the intercept from 0 to the mean value of an item, so the "
        "cell measures how far the optimiser got. The exact columns show the regret of the minimised losses.",
        lambda board, miss: board.problem == "knapsack" and miss.method == "MSE" and miss.setting.degree in (1, 2),
    ),
    Reason(
        "No reason known",
        "The protocol is that of the paper, as far as the paper states it. These means are outside the tolerance for "
        "an unknown reason.",
        lambda board, miss: True,
    ),
)


def group_misses(
    judged: Iterable[tuple[Board, Iterable[Judgement]]],
) -> list[tuple[Reason, list[tuple[Board, Judgement]]]]:
    """Return the missed cells, each under the first reason that applies to it; reasons without cells are omitted."""
    groups: list[tuple[Reason, list[tuple[Board, Judgement]]]] = [(reason, []) for reason in REASONS]
    for board, judgements in judged:
        for miss in judgements:
            if miss.outcome == "missed":
                next(cells for reason, cells in groups if reason.applies(board, miss)).append((board, miss))
    return [(reason, cells) for reason, cells in groups if cells]
