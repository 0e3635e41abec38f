"""Where the savings of the challenger come from: which items, which times or groups, which rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from decidewise.app.tables.comparison import TableComparison
from decidewise.kit.checks import FloatArray
from decidewise.kit.scaling import spread
from decidewise.problems.contract import sign_of

_WEEKDAYS = np.array(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"])
_MOST_PARTS = 14
_N_ROWS = 5


@dataclass(frozen=True)
class Part:
    """What one part of the rows or items contributes to the mean saving per row.

    Attributes
    ----------
    name : str
    saving : float
        The contribution; those of all parts add up to the mean saving per row.
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

    The largest come first, and the rest is one part. Known costs are a part of their own.
    """
    d = len(result.samples.cost_names)
    sign = sign_of(result.truth.problem)
    costs = result.truth.costs[:, :d]
    paid = sign * costs * (result.decisions[result.baseline] - result.decisions[result.challenger])
    named = dict(zip(result.samples.cost_names, paid.T, strict=True))
    if result.truth.problem.has_known:
        named["known costs"] = saved_per_row(result) - paid.sum(axis=1)
    order = sorted(named, key=lambda name: -abs(float(named[name].sum())))
    parts = [_part(name, named[name], len(paid)) for name in order[:_MOST_PARTS]]
    if len(order) > _MOST_PARTS:
        rest = np.sum([named[name] for name in order[_MOST_PARTS:]], axis=0)
        parts.append(_part(f"{len(order) - _MOST_PARTS} others", rest, len(paid)))
    return parts


def by_kind_of_row(result: TableComparison) -> dict[str, list[Part]]:
    """Return the contributions of days of the week, months or hours, and of groups, as far as the table has them."""
    found: dict[str, list[Part]] = {}
    for title, labels in _labels(result).items():
        names = list(dict.fromkeys(labels.tolist()))
        if title == "day of the week":
            names.sort(key=_WEEKDAYS.tolist().index)
        elif title != "group":
            names.sort()
        if not 1 < len(names) <= 2 * _MOST_PARTS:
            continue
        saved = saved_per_row(result)
        found[title] = [
            _part(str(name), np.where(labels == name, saved, 0.0), int((labels == name).sum())) for name in names
        ]
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


def _part(name: str, contributions: FloatArray, n_rows: int) -> Part:
    n = len(contributions)
    error = float(spread(contributions[:, np.newaxis], ddof=1)[0] / np.sqrt(n)) if n > 1 else float("nan")
    return Part(name, float(contributions.mean()), error, n_rows)
