"""What is paid or earned, and where the savings of the challenger come from: items, times, groups, rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from decidewise.app.tables.comparison import TableComparison
from decidewise.kit.checks import FloatArray
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
    """What is saved on one part of the rows or items.

    Attributes
    ----------
    name : str
    saving : float
        Of an item: its contribution to the mean saving per row, to which those of all items add up. Of a kind of rows:
        the mean saving of these rows.
    error : float
        Its standard error, for independent rows.
    n_rows : int
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
    d = len(result.samples.cost_names)
    sign = sign_of(result.truth.problem)
    costs = result.truth.costs[:, :d]
    paid = sign * costs * (result.decisions[result.baseline] - result.decisions[result.challenger])
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


def shown_key(key: Any) -> str:
    """Return the key of a row as text; a date without a time of day is shown without one.

    >>> shown_key(np.datetime64("2026-01-31T00:00:00")), shown_key(17)
    ('2026-01-31', '17')
    """
    if isinstance(key, np.datetime64):
        day = key.astype("datetime64[D]")
        return str(day) if key == day else str(key.astype("datetime64[s]")).replace("T", " ")
    return str(key)


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
