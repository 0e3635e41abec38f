"""The charts of a comparison, as plain data."""

from __future__ import annotations

import numpy as np

from decidewise.app.pages.chart import DEFAULT_MODE, FLOOR, Axis, Chart, Mark, Panel, Series
from decidewise.app.tables.comparison import TableComparison
from decidewise.app.tables.headline import in_unit, number
from decidewise.app.tables.savings import shown_key
from decidewise.kit.checks import FloatArray
from decidewise.kit.scaling import spread

_MOST_STRETCHES, _MOST_BINS = 20, 12


def charts_of_comparison(result: TableComparison) -> list[Chart]:
    """Return the charts: the regret over time, if there are times, and predictions against realised costs."""
    over_time = [] if result.samples.times is None else [regret_over_time(result)]
    return [*over_time, predicted_against_realised(result)]


def regret_over_time(result: TableComparison) -> Chart:
    """Return the mean regret of each model in consecutive stretches of the held-out rows."""
    n = len(result.rows)
    parts = np.array_split(np.arange(n), max(1, min(_MOST_STRETCHES, n // 5)))
    keys = result.samples.keys[result.rows]
    names = tuple(shown_key(keys[part[0]]) for part in parts)
    every = max(1, len(parts) // 6)
    ticks = sorted({*range(0, len(parts) - 1, every), len(parts) - 1} - {len(parts) - 2 if every > 1 else -1})
    unit, title = in_unit(result), result.samples.noun
    series = []
    for model, regrets in result.regrets.items():
        marks = tuple(
            Mark(
                i,
                float(regrets[part].mean()),
                0.0,
                f"{model}\n{names[i]} to {shown_key(keys[part[-1]])}\n"
                f"regret {number(float(regrets[part].mean()))}{unit} per {title}",
            )
            for i, part in enumerate(parts)
        )
        series.append(Series(model, DEFAULT_MODE, marks))
    return Chart(
        name="over_time",
        title="Regret over time",
        caption=f"Mean regret per {title} in consecutive stretches of the held-out rows, named by their first {title}. "
        "Lower is better.",
        x=Axis("", ticks=tuple(float(tick) for tick in ticks), names=names),
        y=Axis(f"regret per {title}{unit and ',' + unit}"),
        panels=(Panel("", tuple(series)),),
    )


def predicted_against_realised(result: TableComparison) -> Chart:
    """Return mean realised costs against mean predictions, in bins of equally many: of the baseline and challenger."""
    costs = result.truth.costs[:, : len(result.samples.cost_names)].ravel()
    panels = [
        _calibration(model, result.predictions[model].ravel(), costs)
        for model in dict.fromkeys((result.baseline, result.challenger))
    ]
    return Chart(
        name="predicted",
        title="Predicted against realised costs",
        caption="Held-out costs in bins of equally many, by prediction. On the dashed line, predictions are right on "
        "average. A model of directions decides well off the line too.",
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
