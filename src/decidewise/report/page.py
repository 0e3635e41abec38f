"""Render a report as one self-contained HTML page: styles, script and data are inside, and nothing is downloaded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from decidewise.report.chart import FLOOR, PUBLISHED, Chart, Matrix
from decidewise.report.results import DEFAULT_MODE, MODES, in_order
from decidewise.report.sections import Report, render_template
from decidewise.report.style import DARK, INK, LIGHT, Style


def render_page(report: Report, looks: Mapping[str, Style]) -> str:
    """Return the page as HTML; `looks` holds the style of each method in its charts."""
    return render_template(
        "report.html.j2",
        report=report,
        looks=looks,
        layers=_layers(report.charts),
        light=LIGHT,
        dark=DARK,
        css=source_of("report.css"),
        js=source_of("report.js"),
        data=chart_data(looks, report.charts),
    )


def inline_svg(svg: bytes, label: str) -> Markup:
    """Return a Matplotlib SVG as an element of the page: no prologue, no fixed size, colours that follow the theme."""
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # ids such as patch_1 occur in every drawing
    colors = {INK: "currentColor", "#ffffff": "transparent"} | {c: f"var(--c{i})" for i, c in enumerate(LIGHT)}
    for fixed, themed in colors.items():
        text = text.replace(fixed, themed)
    head, body = text.split(">", 1)
    (box,) = re.findall(r'viewBox="[^"]*"', head)
    return Markup('<svg {} role="img" aria-label="{}">{}').format(Markup(box), label, Markup(body))


def source_of(name: str) -> Markup:
    """Return a style sheet or a script of the report, to be put into a page."""
    return Markup((files("decidewise.report") / "templates" / name).read_text(encoding="utf-8"))


def _layers(charts: Iterable[Chart | Matrix]) -> list[str]:
    found = {
        series.layer
        for chart in charts
        if isinstance(chart, Chart)
        for panel in chart.panels
        for series in panel.series
    }
    modes = in_order(sorted(found - {PUBLISHED, FLOOR}), first=MODES)
    return [*modes, *(layer for layer in (PUBLISHED, FLOOR) if layer in found)]


def chart_data(looks: Mapping[str, Style], charts: Sequence[Chart | Matrix]) -> dict[str, Any]:
    """Return the data for the script that draws charts.

    Marks are short arrays, and a note shared by several charts is stored once.
    """
    notes: dict[str, int] = {}

    def encode(chart: Chart | Matrix) -> dict[str, Any]:
        encoded = asdict(chart)
        if isinstance(chart, Matrix):
            return encoded | {"columns": [{"method": method, "layer": mode} for method, mode in chart.columns]}
        for panel in encoded["panels"]:
            for series in panel["series"]:
                series["marks"] = [
                    [*(float(f"{mark[name]:.6g}") for name in ("x", "y", "spread")),
                     notes.setdefault(mark["note"], len(notes)), mark["size"]]
                    for mark in series["marks"]
                ]  # fmt: skip
        return encoded

    drawn = {chart.name: encode(chart) for chart in charts}
    styles = {method: asdict(style) for method, style in looks.items()}
    return {"default": DEFAULT_MODE, "styles": styles, "charts": drawn, "notes": list(notes)}
