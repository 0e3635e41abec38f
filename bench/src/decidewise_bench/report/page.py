"""Render a report as one self-contained HTML page: styles, script and data are inside, and nothing is downloaded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from markupsafe import Markup

from decidewise.app.pages import DARK, FLOOR, INK, LIGHT, Chart, Style, chart_data, render_template, source_of
from decidewise_bench.report.results import MODES, PUBLISHED, Matrix, in_order
from decidewise_bench.report.sections import PACKAGE, Report


def render_page(report: Report, looks: Mapping[str, Style]) -> str:
    """Return the page as HTML; `looks` holds the style of each method in its charts."""
    return render_template(
        "report.html.j2",
        package=PACKAGE,
        report=report,
        looks=looks,
        layers=_layers(report.charts),
        light=LIGHT,
        dark=DARK,
        css=source_of("page.css"),
        js=source_of("page.js"),
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
