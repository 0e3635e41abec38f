"""What all pages share: templates, the style sheet, the script, and the data of charts.

A page is one self-contained HTML file: styles, script and data are inside, and nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from decidewise.app.pages.chart import DEFAULT_MODE, Chart, Lanes, Matrix, Style


def render_template(template: str, *, package: str, shared: Sequence[str] = (), **context: Any) -> Markup:
    """Return the HTML of a template in the folder `templates` of a package; it may include those of `shared`."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, *shared))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}  # keep the order of the methods for the legend
    return Markup(environment.get_template(template).render(context))


def source_of(name: str, *, package: str = "decidewise.app.pages") -> Markup:
    """Return a style sheet or a script among the templates of a package, to be put into a page."""
    return Markup((files(package) / "templates" / name).read_text(encoding="utf-8"))


def chart_data(looks: Mapping[str, Style], charts: Sequence[Chart | Lanes | Matrix]) -> dict[str, Any]:
    """Return the data for the script that draws charts.

    Marks are short arrays, and a note shared by several charts is stored once.
    """
    notes: dict[str, int] = {}

    def encode(chart: Chart | Lanes | Matrix) -> dict[str, Any]:
        encoded = asdict(chart)
        if isinstance(chart, Matrix):
            return encoded | {"columns": [{"method": method, "layer": mode} for method, mode in chart.columns]}
        if isinstance(chart, Lanes):
            return encoded
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
