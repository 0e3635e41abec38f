"""Draw charts into PNG and SVG files with Matplotlib, for papers and slides; the page draws its charts by script."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from io import BytesIO
from math import ceil, floor, log10
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis as DrawnAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    Locator,
    LogLocator,
    MaxNLocator,
    NullLocator,
)
from matplotlib.transforms import ScaledTranslation

from decidewise.app.pages import FLOOR, INK, LIGHT, Axis, Chart, Series, Style
from decidewise_bench.report.results import DEFAULT_MODE, MODES, PUBLISHED, Matrix, in_order

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # keep text as text: small files that can be searched and restyled
    "text.parse_math": False,  # show a $ in a name as it is
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "xtick.color": INK,
    "ytick.color": INK,
}
_COLUMNS = 3
#: A panel with more names along its axis has a row of its own, in files and on the page.
_MANY_NAMES = 16
#: The most letters of a label; a longer one is shortened, to leave room for the figure.
_MAX_LABEL = 40


def render(draw: Callable[[], Figure], name: str) -> dict[str, bytes]:
    """Return a figure as `{"png": ..., "svg": ...}`; the same figure gives the same bytes.

    Parameters
    ----------
    draw : callable
        Returns the figure; it is called with the Matplotlib settings of the report.
    name : str
        Makes the identifiers inside the SVG unique, so that several figures fit on one page.
    """
    png, svg = BytesIO(), BytesIO()
    with mpl.rc_context({**_SETTINGS, "svg.hashsalt": name}), warnings.catch_warnings():
        # A font may lack a letter, and a figure may lack room for long labels: the figure is still useful.
        warnings.filterwarnings("ignore", "Glyph|constrained_layout", UserWarning)
        figure = draw()
        figure.dpi = 150
        FigureCanvasAgg(figure).print_png(png)
        figure.set_layout_engine("none")  # the SVG keeps the layout of the PNG
        FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None})
    return {"png": png.getvalue(), "svg": svg.getvalue()}


def draw_chart(chart: Chart, styles: Mapping[str, Style]) -> Figure:
    """Draw the panels in rows of three, with one legend below of the methods that the axis does not name."""
    columns = 1 if len(chart.x.names) > _MANY_NAMES else min(len(chart.panels), _COLUMNS)
    rows = ceil(len(chart.panels) / columns)
    width = max(3.1 * max(columns, 1.6), 0.24 * len(chart.x.names) * columns)  # so that names do not overlap
    styles = {method: style for method, style in styles.items() if method in chart.methods}
    legend_columns = max(int(width / 1.55), 3)
    handles = _legend(chart, {} if styles.keys() <= set(chart.x.names) else styles)
    lines = ceil(len(handles) / legend_columns)
    figure = Figure(figsize=(width, 2.6 * rows + 0.7 + 0.17 * max(lines - 3, 0)), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(chart.panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(grid.flat, chart.panels, strict=False):
        axes.set_xscale(chart.x.scale, **_options(chart.x))
        axes.set_yscale(chart.y.scale, **_options(chart.y))
        for series in panel.series:
            _draw_series(axes, chart, series, styles)
        axes.autoscale_view()
        axes.set_title(panel.title, loc="left")
        _set_ticks(axes.xaxis, chart.x)
        _set_ticks(axes.yaxis, chart.y)
        axes.grid(alpha=0.15)
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=legend_columns, frameon=False)
    return figure


def draw_matrix(matrix: Matrix) -> Figure:
    """Draw wins in blue and losses in orange; the further from 50 %, the stronger the colour."""
    size = len(matrix.labels)
    figure = Figure(figsize=(1.6 + 0.62 * size, 1.2 + 0.5 * size), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5))
    for i, row in enumerate(matrix.shares):
        for j, share in enumerate(row):
            if share is not None:
                color = LIGHT[0] if share >= 50 else LIGHT[1]
                axes.add_patch(_square(j, i, color, abs(share - 50) / 50 * 0.75))
                axes.text(j, i, f"{share:.0f}", ha="center", va="center")
    labels = [_short(label) for label in matrix.labels]
    axes.set_xticks(range(size), labels, rotation=40, ha="right")
    axes.set_yticks(range(size), labels)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def _square(x: int, y: int, color: str, alpha: float) -> Rectangle:
    return Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, facecolor=color, alpha=alpha, linewidth=0)


def _draw_series(axes: Axes, chart: Chart, series: Series, styles: Mapping[str, Style]) -> None:
    x, y, spread = np.array([(mark.x, mark.y, mark.spread) for mark in series.marks]).T
    if series.layer == FLOOR:
        axes.plot(x, y, **_look(series.layer, None), marker="_" if len(x) == 1 else "none", markersize=20)
        return
    look = _look(series.layer, styles[series.method])
    # Shift each method by about a point, so that whiskers at the same number of samples do not overlap.
    step = min(1.6, 16 / len(styles)) / 72 if chart.x.ticks and not chart.x.names else 0.0
    shift = step * (list(styles).index(series.method) - (len(styles) - 1) / 2)
    shifted = axes.transData + ScaledTranslation(shift, 0, axes.figure.dpi_scale_trans)
    low = np.maximum(y - spread, y / 2) if chart.y.scale == "log" else y - spread  # a whisker must stay positive there
    # Add one percent of room on all sides: Matplotlib finds no scale for values that differ only by rounding.
    axes.update_datalim(np.column_stack([[*(0.99 * x), *(1.01 * x)], [*(0.99 * low), *(1.01 * (y + spread))]]))
    axes.plot(x, y, transform=shifted, **look | {"marker": "none"})
    sizes = [(look["markersize"] * mark.size) ** 2 for mark in series.marks]
    filled = look.get("markerfacecolor", look["color"])
    axes.scatter(x, y, sizes, marker=look["marker"], facecolor=filled, edgecolor=look["color"], transform=shifted)
    if series.layer != PUBLISHED:
        axes.vlines(x, low, y + spread, color=look["color"], alpha=0.35, linewidth=1, transform=shifted)


def _look(layer: str, style: Style | None) -> dict[str, Any]:
    if style is None:
        return {"color": INK, "linestyle": (0, (4, 3)), "linewidth": 1, "alpha": 0.7}
    color = LIGHT[style.color]
    look: dict[str, Any] = {"color": color, "marker": style.marker, "markersize": 5, "linewidth": 1.4}
    if layer == PUBLISHED:
        return look | {"linestyle": "none", "markerfacecolor": "none", "markersize": 8, "markeredgewidth": 0.9}
    return look if layer == DEFAULT_MODE else look | {"linestyle": (0, (5, 2)), "markersize": 3.5, "linewidth": 1}


def _options(spec: Axis) -> dict[str, float]:
    return {"linthresh": spec.unit} if spec.scale == "symlog" else {}


def _set_ticks(axis: DrawnAxis, spec: Axis) -> None:
    axis.set_label_text(spec.label)
    if spec.names:
        axis.set_ticks(spec.ticks, [_short(name) for name in spec.names], rotation=40, ha="right")
    elif spec.scale != "linear":
        axis.set_major_locator(_locator(spec, *sorted(axis.get_view_interval())))
        axis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:g}" if value < 10_000 else f"{value / 1000:g}k")
        )
        axis.set_minor_locator(NullLocator())


def _locator(spec: Axis, low: float, high: float) -> Locator:
    if spec.ticks:
        return FixedLocator(spec.ticks)
    if spec.scale == "symlog":
        powers = [10.0**power for power in range(floor(log10(spec.unit)), ceil(log10(high)))]
        factors = (1, 2, 5) if high < 200 * spec.unit else (1,)
        return FixedLocator([0, *(tick for power in powers for f in factors if (tick := f * power) >= spec.unit)])
    if high < 6 * low:
        return MaxNLocator(4)  # the range is too narrow for ticks at 1, 2 and 5 times powers of ten
    return LogLocator(subs=(1, 2, 5) if high < 200 * low else (1,), numticks=6)


def _legend(chart: Chart, styles: Mapping[str, Style]) -> list[Line2D]:
    handles = [Line2D([], [], label=_short(name), **_look(DEFAULT_MODE, style)) for name, style in styles.items()]
    plain = Style(color=len(LIGHT) - 1, marker="o")
    layers = sorted({series.layer for panel in chart.panels for series in panel.series})
    for layer in in_order(layers, first=MODES):
        if layer != DEFAULT_MODE:
            handles.append(Line2D([], [], label=_short(layer), **_look(layer, None if layer == FLOOR else plain)))
    return handles


def _short(label: str) -> str:
    return label if len(label) <= _MAX_LABEL else f"{label[: _MAX_LABEL - 1]}…"
