"""What is paid or earned, and where the savings of the challenger come from, in numbers and in charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from decidewise.app.pages import DEFAULT_MODE, FLOOR, Axis, Chart, Decision, Lane, Lanes, Mark, Panel, Series
from decidewise.app.tables.comparison import TableComparison
from decidewise.app.tables.headline import in_unit, saves_word
from decidewise.app.tables.samples import shown_key
from decidewise.evaluate.intervals import number
from decidewise.kit.checks import FloatArray, listed
from decidewise.kit.scaling import spread
from decidewise.problems.contract import sign_of

_WEEKDAYS = np.array(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"])
_MOST_PARTS = 28
_N_ROWS = 5
#: The name of decisions that know the costs.
FORESIGHT = "perfect foresight"


class Bill(NamedTuple):
    """What decisions cost or gain per row, and what they save on those of the baseline (0 for the baseline itself)."""

    name: str
    value: float
    saving: float


def bills(result: TableComparison) -> list[Bill]:
    """Return what is paid or earned with the baseline, the challenger, the advised model and perfect foresight."""
    sign, regrets = sign_of(result.truth.problem), {name: float(own.mean()) for name, own in result.regrets.items()}
    names = dict.fromkeys([result.baseline, result.challenger, result.chosen])
    best, before = float(result.truth.best.mean()), regrets[result.baseline]
    found = [Bill(name, best + sign * regrets[name], before - regrets[name]) for name in names]
    return [*found, Bill(FORESIGHT, best, before)]


@dataclass(frozen=True)
class Part:
    """What is saved on one part of the rows or items, with the standard error for independent rows.

    The saving of an item is its contribution to the mean saving per row, to which those of all items add up; that of a
    kind of rows is the mean saving of these rows.
    """

    name: str
    saving: float
    error: float
    n_rows: int


def saved_per_row(result: TableComparison) -> FloatArray:
    """Return what the challenger saves on the baseline in each held-out row, in units of the costs."""
    return result.regrets[result.baseline] - result.regrets[result.challenger]


def by_item(result: TableComparison) -> list[Part]:
    """Return the contribution of each cost: what the baseline pays for it less what the challenger pays, per row.

    Items are in their own order; of many, those that matter most, and the rest is one part. Known costs are a part of
    their own.
    """
    sign, change = (
        sign_of(result.truth.problem),
        result.decisions[result.baseline] - result.decisions[result.challenger],
    )
    paid = result.by_item(sign * result.truth.costs[:, : change.shape[1]] * change)
    named = dict(zip(result.samples.cost_names, paid.T, strict=True))
    if result.truth.problem.has_known:
        named["known costs"] = saved_per_row(result) - paid.sum(axis=1)
    most = set(sorted(named, key=lambda name: -abs(float(named[name].sum())))[:_MOST_PARTS])
    parts = [_part(name, saved) for name, saved in named.items() if name in most]
    others = [saved for name, saved in named.items() if name not in most]
    return [*parts, _part(f"{len(others)} others", np.sum(others, axis=0))] if others else parts


def by_kind_of_row(result: TableComparison) -> dict[str, list[Part]]:
    """Return the mean savings of days of the week, months or hours, and of groups, as far as the table has them."""
    found: dict[str, list[Part]] = {}
    for title, labels in _labels(result).items():
        names = list(dict.fromkeys(labels.tolist()))
        if title == "day of the week":
            names.sort(key=_WEEKDAYS.tolist().index)
        elif title != "group":
            names.sort()
        if not 1 < len(names) <= _MOST_PARTS:
            continue
        saved = saved_per_row(result)
        found[title] = [_part(str(name), saved[labels == name]) for name in names]
    return found


def extreme_rows(result: TableComparison) -> list[tuple[str, float, float]]:
    """Return the rows with the largest savings and those with the largest losses: key, saving, its share in percent."""
    saved = saved_per_row(result)
    order = np.argsort(-saved, kind="stable")
    chosen = list(dict.fromkeys([*order[:_N_ROWS], *order[-_N_ROWS:]]))
    total = saved.sum()
    keys = result.samples.keys[result.rows]
    return [
        (shown_key(keys[row]), float(saved[row]), float(100 * saved[row] / total) if total else 0.0)
        for row in chosen
        if saved[row] != 0
    ]


def _labels(result: TableComparison) -> dict[str, Any]:
    labels: dict[str, Any] = {}
    times = None if result.samples.times is None else result.samples.times[result.rows]
    if times is not None and times.dtype.kind == "M":
        days = times.astype("datetime64[D]")
        hours = ((times - days) / np.timedelta64(1, "h")).astype(int)
        if len(np.unique(hours)) > 1:
            labels["hour of the day"] = np.array([f"{hour:02d}:00" for hour in hours])
        labels["day of the week"] = _WEEKDAYS[(days.astype(np.int64) + 3) % 7]
        labels["month"] = times.astype("datetime64[M]").astype(str)
    if result.samples.groups is not None:
        labels["group"] = result.samples.groups[result.rows]
    return labels


def _part(name: str, saved: FloatArray) -> Part:
    n = len(saved)
    error = float(spread(saved[:, np.newaxis], ddof=1)[0] / np.sqrt(n)) if n > 1 else float("nan")
    return Part(name, float(saved.mean()), error, n)


_MOST_STRETCHES, _MOST_BINS, _MOST_ITEMS = 20, 12, 60
#: So much of the axis is left free above the models that matter.
_ABOVE = 1.15


def charts_of_comparison(result: TableComparison) -> list[Chart | Lanes]:
    """Return the charts: two rows, the regret over time if there are times, predictions against realised costs."""
    over_time = [] if result.samples.times is None else [regret_over_time(result)]
    return [best_and_worst_row(result), *over_time, predicted_against_realised(result)]


def best_and_worst_row(result: TableComparison) -> Lanes:
    """Return what was decided in the row where the challenger saves most, and where it loses most.

    If it is the baseline, the row with the least and with the most regret. Of many items, those with most at stake.
    """
    names, noun = dict.fromkeys([result.baseline, result.challenger]), result.samples.noun
    saved = saved_per_row(result) if len(names) > 1 else -result.regrets[result.baseline]
    rows = [int(saved.argmax()), int(saved.argmin())]
    d, observed = len(result.samples.cost_names), result.samples.observed
    assert observed is not None
    ideal = result.truth.problem.take(rows).lifted.solve(result.truth.costs[rows])
    costs, ideal = observed[result.rows[rows]], ideal[:, : result.decisions[result.baseline].shape[1]]
    decided = {name: result.amounts(result.decisions[name][rows]) for name in names}
    decided |= {FORESIGHT: result.amounts(ideal)}
    stake = np.max([np.abs(costs * own).sum(axis=0) for own in decided.values()], axis=0)
    items = np.sort(np.argsort(-stake, kind="stable")[:_MOST_ITEMS])
    sign, best = sign_of(result.truth.problem), result.truth.best[rows]
    pays = "pays" if sign > 0 else "earns"
    panels = []
    for i, row in enumerate(rows):
        lanes = []
        for name, own in decided.items():
            value = best[i] + (sign * result.regrets[name][row] if name in names else 0.0)
            label = f"{name} {pays} {number(float(value))}{in_unit(result)}"
            lanes.append(Lane(name if name in names else "", label, tuple(own[i, items].tolist())))
        what = f"{number(abs(float(saved[row])))}{in_unit(result)}"
        word = (f"{saves_word(result)}s" if saved[row] >= 0 else "loses") if len(names) > 1 else "has a regret of"
        title = f"{shown_key(result.samples.keys[result.rows][row])}: {result.challenger} {word} {what}"
        panels.append(Decision(title, tuple(costs[i, items].tolist()), tuple(lanes)))
    word, bars = "cost", "how much of it each model takes"
    if result.samples.demand is not None:
        word, bars = "demand", "the level that each model takes"
    shown = f" Of {d:,} items, the {len(items)} with most at stake." if len(items) < d else ""
    return Lanes(
        name="rows",
        title=f"The best and the worst {noun}",
        caption=f"The line is the realised {word} of each item; the bars are {bars}.{shown}",
        x=_names_below([result.samples.cost_names[item] for item in items], 12),
        y=Axis(f"realised {word}{(result.samples.unit and word == 'cost' and ', ' + result.samples.unit) or ''}"),
        panels=tuple(panels),
    )


def regret_over_time(result: TableComparison) -> Chart:
    """Return the mean regret of each model in consecutive stretches of the held-out rows."""
    n = len(result.rows)
    parts = np.array_split(np.arange(n), max(1, min(_MOST_STRETCHES, n // 5)))
    keys = result.samples.keys[result.rows]
    names = tuple(shown_key(keys[part[0]]) for part in parts)
    unit, title = in_unit(result), result.samples.noun
    means = {model: [float(own[part].mean()) for part in parts] for model, own in result.regrets.items()}
    top = _ABOVE * max(max(means[model]) for model in (result.baseline, result.challenger, result.chosen))
    cut = [model for model, own in means.items() if max(own) > top]
    series = []
    for model, own in means.items():
        marks = tuple(
            Mark(
                i,
                own[i],
                0.0,
                f"{model}\n{names[i]} to {shown_key(keys[part[-1]])}\nregret {number(own[i])}{unit} per {title}",
            )
            for i, part in enumerate(parts)
        )
        series.append(Series(model, DEFAULT_MODE, marks))
    return Chart(
        name="over_time",
        title="Regret over time",
        caption=f"Mean regret per {title} in consecutive stretches of the held-out rows, named by their first {title}. "
        f"Lower is better.{f' Beyond the axis: {listed(cut)}.' if cut else ''}",
        x=_names_below(names, 10),
        y=Axis(f"regret per {title}{unit and ',' + unit}", top=top if cut else None),
        panels=(Panel("", tuple(series)),),
    )


def _names_below(names: Sequence[str], most: int) -> Axis:
    """Return an axis with about so many of the names, the last one among them unless it is too close to another."""
    every, last = max(1, round(len(names) / most)), len(names) - 1
    ticks = [float(tick) for tick in range(0, len(names), every)]
    return Axis(
        "",
        ticks=tuple(ticks if last - ticks[-1] <= every / 2 else [*ticks, float(last)]),
        names=tuple(names),
    )


def predicted_against_realised(result: TableComparison) -> Chart:
    """Return mean realised costs against mean predictions, in bins of equal size: of the baseline and challenger."""
    costs = result.truth.costs[:, : result.predictions[result.baseline].shape[1]].ravel()
    panels = [
        _calibration(model, result.predictions[model].ravel(), costs)
        for model in dict.fromkeys((result.baseline, result.challenger))
    ]
    return Chart(
        name="predicted",
        title="Predicted against realised costs",
        caption="Held-out costs, sorted by prediction into bins of equal size. On the dashed line, predictions are "
        "right on average. A model of directions decides well off the line too.",
        x=Axis("mean prediction"),
        y=Axis("mean realised"),
        panels=tuple(panels),
    )


def _calibration(model: str, predicted: FloatArray, realised: FloatArray) -> Panel:
    order = np.argsort(predicted, kind="stable")
    bins = np.array_split(order, max(1, min(_MOST_BINS, len(order) // 5)))
    marks = tuple(
        Mark(
            float(predicted[part].mean()),
            float(realised[part].mean()),
            float(1.96 * spread(realised[part, np.newaxis])[0] / np.sqrt(len(part))),
            f"{model}\npredicted {number(float(predicted[part].mean()))}\n"
            f"realised {number(float(realised[part].mean()))}\n{len(part):,} costs",
        )
        for part in bins
    )
    ends = [marks[0].x, marks[-1].x]
    line = tuple(Mark(end, end, 0.0, "predicted = realised") for end in ends)
    return Panel(model, (Series("", FLOOR, line), Series(model, DEFAULT_MODE, marks)))
