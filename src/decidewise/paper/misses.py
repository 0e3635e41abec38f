"""What is known about the cells that were not reproduced. A miss without a reason says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from decidewise.paper.verdicts import Judgement
from decidewise.report.results import Board


@dataclass(frozen=True)
class Reason:
    """Something known about a group of misses."""

    title: str
    text: str
    applies: Callable[[Board, Judgement], bool]


def _is_lower(miss: Judgement) -> bool:
    return miss.difference is not None and miss.difference < 0


#: The first that applies is given. A new finding is one more entry.
REASONS = (
    Reason(
        "Portfolio: MSE and WISE are in the other order",
        "The order belongs to the pair, so both cells count as missed even where each mean is close to the published "
        "one.",
        lambda board, miss: miss.wrong_order,
    ),
    Reason(
        "Portfolio: PFY's noise and DBB's step are large for returns of 0.2",
        "The noise of PFY has size 1, and with many samples DBB suffers from its λ of 100 in the same way: with a "
        "hundredth of either both come close to the published numbers (`decidewise paper run perturbations`). DBB does "
        "so also with 400 samples and a smaller learning rate (`decidewise paper run portfolio_rates`). What the "
        "paper's trainings had is not known; the plan keeps to the text.",
        lambda board, miss: board.problem == "portfolio" and miss.method in ("PFY", "DBB"),
    ),
    Reason(
        "Portfolio: the learning rate is not known",
        "The plan has the rates of the shortest path, whose numbers of samples are the same. At 400 samples that is "
        "too much for SPO+: with 0.002 in place of 0.005 it has its published numbers (`decidewise paper run "
        "portfolio_rates`). The rates were not chosen by the cells.",
        lambda board, miss: board.problem == "portfolio",
    ),
    Reason(
        "DBB ends below its published regret",
        "A sound implementation with the paper's λ decides better than published: with few samples at every degree, "
        "and on the shortest path from degree 4 on with any number. The published standard deviations, up to 28 "
        "points, suggest that some of those trainings did not settle. Nothing was tuned to bring the two together.",
        lambda board, miss: miss.method == "DBB" and _is_lower(miss),
    ),
    Reason(
        "DBB does not gain from more samples",
        "Its gradient is that of an interpolation whose width λ is fixed, and it is not consistent: with more samples "
        "it converges to another predictor than the best one. The published regret falls with the samples, ours stays "
        "where it was. Which detail of the paper's training makes the difference is not known.",
        lambda board, miss: board.problem != "portfolio" and miss.method == "DBB",
    ),
    Reason(
        "Shortest path: LAVA ends below its published regret with few samples",
        "All adjacent vertices are listed here (22 to 69 of a vertex of the grid); a search that stops early finds a "
        "part of them. Training on the neighbours of a single basis raises the regret in these cells, but as much at "
        "degree 1, where all neighbours give the published number. So this can be a part of the reason only.",
        lambda board, miss: board.problem == "shortest_path" and miss.method == "LAVA" and _is_lower(miss),
    ),
    Reason(
        "2D knapsack: LAVA ends above its published regret",
        "Vertices and neighbours are those of the linear relaxation, and the margin is 0.1, its authors' default; the "
        "paper states neither. The difference shrinks with the samples.",
        lambda board, miss: board.problem == "knapsack" and miss.method == "LAVA" and not _is_lower(miss),
    ),
    Reason(
        "2D knapsack: CaVE ends below its published regret",
        "The paper does not say which variant of CaVE it used. Of those in PyEPO and the exact projection, on the "
        "cones at the integer optimum and at that of the relaxation, the exact projection at the relaxation's optimum "
        "is by far the nearest (docs/experiments.md); at degree 1 with 800 samples it still decides better.",
        lambda board, miss: board.problem == "knapsack" and miss.method == "CaVE" and _is_lower(miss),
    ),
    Reason(
        "2D knapsack, degree 4, 400 samples: the published row stands out",
        "From 400 to 800 samples the published regret of PFY does not fall and that of SPO+ rises. Ours fall, and "
        "agree with the published ones at 200 and at 800 samples.",
        lambda board, miss: (
            board.problem == "knapsack"
            and miss.method in ("PFY", "SPO+")
            and (miss.setting.degree, miss.setting.samples) == (4, 400)
        ),
    ),
    Reason(
        "2D knapsack: published MSE is under-trained at low degrees",
        "The given number of Adam steps cannot carry the intercept from 0 to the mean value of an item, so the cell "
        "measures how far the optimiser came. The exact columns show where the losses lead when they are minimised.",
        lambda board, miss: board.problem == "knapsack" and miss.method == "MSE" and miss.setting.degree in (1, 2),
    ),
    Reason(
        "No reason known",
        "The protocol is the paper's as far as it is written down. These means are outside the tolerance, and why is "
        "an open question.",
        lambda board, miss: True,
    ),
)


def group_misses(
    judged: Iterable[tuple[Board, Iterable[Judgement]]],
) -> list[tuple[Reason, list[tuple[Board, Judgement]]]]:
    """Return the missed cells under the first reason that applies to each; reasons without a cell are left out."""
    groups: list[tuple[Reason, list[tuple[Board, Judgement]]]] = [(reason, []) for reason in REASONS]
    for board, judgements in judged:
        for miss in judgements:
            if miss.outcome == "missed":
                next(cells for reason, cells in groups if reason.applies(board, miss)).append((board, miss))
    return [(reason, cells) for reason, cells in groups if cells]
