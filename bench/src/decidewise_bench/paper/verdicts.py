"""The rules by which a published cell counts as reproduced, or as explained by another setting.

The first compares our mean under the paper's protocol with the published mean:

- in general they may differ by `2 * sqrt(s_ours² / n_ours + s_paper² / 20) + 0.25` points, where `s` is the standard
  deviation over trials and `n_ours` the number of trials in our rows;
- on the portfolio, whose regrets are all below one percent, they may differ by 0.12 points. If the published means of
  MSE and WISE differ by more than 0.02, ours must also be in the published order; otherwise *both* cells are missed,
  because the order concerns both. As long as one of the two has not been run, only the difference counts.

The report shows each miss with its difference.

The second looks at the misses alone. Other settings, such as a twentieth of the learning rate, are tried by the plan
`explained`. A setting is chosen for a *group*, all degrees of one method on one problem with one number of samples, as
the paper states its rates, and never for a single cell:

- the setting of a group is the one that brings most of its cells within the tolerance above, in at least as many trials
  as under the paper's setting; of several it is the one that the plan lists first;
- it explains the group if these are more cells than under the paper's setting, and more than half of the group;
- then the missed cells that it brings within the tolerance are explained. They are still not reproduced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan, sqrt
from typing import Literal

from decidewise_bench.report.results import DEFAULT_MODE, Board, Column, Setting, Summary, Trials, Verdict

Outcome = Literal["reproduced", "explained", "missed", "failed", "not run"]
MARKS: dict[Outcome, str] = {"reproduced": "✓", "explained": "†", "missed": "✗", "failed": "!", "not run": "–"}
#: The mode that follows the paper's protocol.
PROTOCOL = DEFAULT_MODE

#: Trials behind every published mean.
PAPER_TRIALS = 20
#: The tolerance in points, for problems whose tolerance does not depend on the standard deviations.
FIXED_TOLERANCE = {"portfolio": 0.12}
#: The order of MSE and WISE is compared if their published means differ by more than this, in points.
ORDER_GAP = {"portfolio": 0.02, "shortest_path": 0.3}
#: The problems in which a wrong order makes both cells misses; elsewhere wrong orders are only counted.
ORDER_DECIDES = {"portfolio"}
_ROUNDING = 1e-9  # published means have two decimals; in binary their difference may exceed 0.02 by rounding alone


@dataclass(frozen=True)
class Judgement:
    """One published cell and ours; `difference` is ours minus published, None if ours has no finished trial.

    If the cell is explained, `other` is the setting that explains it and `under_other` its trials.
    """

    setting: Setting
    method: str
    published: Summary
    ours: Trials | None
    outcome: Outcome
    difference: float | None = None
    tolerance: float | None = None
    wrong_order: bool = False
    other: str = ""
    under_other: Trials | None = None


@dataclass(frozen=True)
class Group:
    """The cells of one method with one number of samples, and the other settings tried for them.

    `met` has, by setting in the order of the plan, our trials of those cells that it brings within the tolerance.
    """

    method: str
    samples: int
    cells: Sequence[Judgement]
    met: Mapping[str, Mapping[Setting, Trials]]

    @property
    def n_reproduced(self) -> int:
        """The number of cells that the paper's setting brings within the tolerance."""
        return sum(cell.outcome == "reproduced" for cell in self.cells)

    @property
    def setting(self) -> str:
        """The setting that meets most cells, the first of several."""
        return max(self.met, key=lambda setting: len(self.met[setting]))

    @property
    def is_explained(self) -> bool:
        """Whether this setting meets more cells than the paper's, and more than half."""
        return len(self.met[self.setting]) > max(self.n_reproduced, len(self.cells) / 2)


@dataclass(frozen=True)
class Order:
    """The numbers of rows whose published gap of MSE and WISE exceeds `gap`: in published order, judged, and all."""

    gap: float
    kept: int
    judged: int
    rows: int


def tolerance(problem: str, ours: Summary, n_trials: int, published: Summary) -> float:
    """Return how far our mean may be from the published one, in points.

    >>> round(tolerance("knapsack", Summary(12.4, 0.3), 20, Summary(12.43, 0.4)), 4)
    0.4736
    >>> tolerance("portfolio", Summary(0.9, 0.02), 20, Summary(0.85, 0.02))
    0.12
    """
    if problem in FIXED_TOLERANCE:
        return FIXED_TOLERANCE[problem]
    return 2 * sqrt(ours.std**2 / n_trials + published.std**2 / PAPER_TRIALS) + 0.25


def judge(board: Board, tried: Board | None = None) -> dict[tuple[Setting, str], Judgement]:
    """Judge every published cell of a board.

    Parameters
    ----------
    tried : Board, optional
        The same problem under other settings. A column is named after the method and the setting: "DBB, rate/20".
    """
    judged = {(setting, method): _judge(board, setting, method) for setting, method in board.published}
    for group in groups(board, tried):
        met = group.met[group.setting] if group.is_explained else {}
        for cell in group.cells:
            if cell.setting in met and cell.outcome == "missed" and not cell.wrong_order:
                judged[cell.setting, cell.method] = replace(
                    cell, outcome="explained", other=group.setting, under_other=met[cell.setting]
                )
    return judged


def groups(board: Board, tried: Board | None) -> list[Group]:
    """Return the groups of cells for which settings were tried and some cell is missed; `tried` as in `judge`."""
    settings: dict[str, list[str]] = {}
    for column in tried.columns if tried else ():
        method, _, setting = column.method.partition(", ")
        settings.setdefault(method, []).append(setting)
    cells: dict[tuple[str, int], list[Judgement]] = {}
    for at, method in board.published:
        if method in settings:
            cells.setdefault((method, at.samples), []).append(_judge(board, at, method))
    return [
        Group(method, samples, group, {setting: _met(tried, group, setting) for setting in settings[method]})
        for (method, samples), group in sorted(cells.items())
        if tried and any(cell.outcome == "missed" for cell in group)
    ]


def with_verdicts(board: Board, tried: Board | None = None) -> Board:
    """Return the board with a verdict on every published cell, which tables and figures show; `tried` as in `judge`."""
    tones: dict[Outcome, Literal["good", "bad"]] = {"reproduced": "good", "explained": "bad", "missed": "bad"}
    verdicts = {
        key: Verdict(
            f"explained by {judgement.other}" if judgement.other else judgement.outcome,
            MARKS[judgement.outcome],
            tones.get(judgement.outcome, ""),
            nan if judgement.tolerance is None else judgement.tolerance,
        )
        for key, judgement in judge(board, tried).items()
    }
    return replace(board, verdicts=verdicts)


def count(judgements: Iterable[Judgement]) -> dict[Outcome, int]:
    """Return how many cells have each outcome, zeros included."""
    found = Counter(judgement.outcome for judgement in judgements)
    return {outcome: found[outcome] for outcome in MARKS}


def order(board: Board) -> Order | None:
    """Compare the order of MSE and WISE row by row; None if the published gap is wide enough in no row."""
    gap = ORDER_GAP.get(board.problem)
    if gap is None:
        return None
    kept = [_order_kept(board, setting) for setting in board.settings if abs(_gap(board, setting)) > gap + _ROUNDING]
    judged = [answer for answer in kept if answer is not None]
    return Order(gap, sum(judged), len(judged), len(kept)) if kept else None


def _judge(board: Board, setting: Setting, method: str) -> Judgement:
    published = board.published[setting, method].regret
    ours = board.cells.get((setting, Column(method, PROTOCOL)))
    if ours is None or not ours.trials:
        return Judgement(setting, method, published, ours, "failed" if ours and ours.failures else "not run")
    difference = ours.regret.mean - published.mean
    within = tolerance(board.problem, ours.regret, len(ours.trials), published)
    wrong_order = (
        board.problem in ORDER_DECIDES
        and method in ("MSE", "WISE")
        and abs(_gap(board, setting)) > ORDER_GAP[board.problem] + _ROUNDING
        and _order_kept(board, setting) is False
    )
    outcome: Outcome = "reproduced" if abs(difference) <= within and not wrong_order else "missed"
    return Judgement(setting, method, published, ours, outcome, difference, within, wrong_order)


def _met(tried: Board, cells: Iterable[Judgement], setting: str) -> dict[Setting, Trials]:
    """Return our trials under another setting, of those cells that it brings within the tolerance."""
    met = {}
    for cell in cells:
        ours = tried.cells.get((cell.setting, Column(f"{cell.method}, {setting}", PROTOCOL)))
        n_paper = len(cell.ours.trials) if cell.ours else 0
        if ours and len(ours.trials) >= max(n_paper, 1):  # with fewer trials the tolerance would be wider
            within = tolerance(tried.problem, ours.regret, len(ours.trials), cell.published)
            if abs(ours.regret.mean - cell.published.mean) <= within:
                met[cell.setting] = ours
    return met


def _gap(board: Board, setting: Setting) -> float:
    """Return published MSE minus published WISE, zero if one is not published."""
    pair = [board.published.get((setting, method)) for method in ("MSE", "WISE")]
    return pair[0].regret.mean - pair[1].regret.mean if pair[0] and pair[1] else 0.0


def _order_kept(board: Board, setting: Setting) -> bool | None:
    """Return whether our means are in the published order, None if one is missing."""
    pair = [board.cells.get((setting, Column(method, PROTOCOL))) for method in ("MSE", "WISE")]
    if not all(cell and cell.trials for cell in pair):
        return None
    mse, wise = (cell.regret.mean for cell in pair if cell)
    return (mse - wise) * _gap(board, setting) > 0
