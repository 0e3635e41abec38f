"""Pages: charts as plain data, which the script of a page draws, the style of each method, and templates.

A page is one self-contained HTML file: styles, script and data are inside, and nothing is downloaded. The colours are
those of Okabe and Ito (2008), which colour-blind readers can tell apart. On a light background the pale ones are
darkened; on a dark background the dark ones are lightened. Markers distinguish the methods without colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, Literal, Protocol

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from decidewise.kit.notebook import COLORS


class Drawn(Protocol):
    """What the script of a page draws."""

    @property
    def name(self) -> str:
        """Its name in the page."""

    def data(self, notes: dict[str, int]) -> dict[str, Any]:
        """Return it as plain data; `notes` numbers the notes that charts share."""


#: The mode of a method if the plan gives none. Labels omit it, and published numbers are compared with it.
DEFAULT_MODE = "adam"
#: The layer of a chart for the floor, in addition to the modes.
FLOOR = "floor"


@dataclass(frozen=True)
class Mark:
    """A point, with the note that the page shows when the mouse is over it."""

    x: float
    y: float
    spread: float
    note: str
    size: float = 1.0


@dataclass(frozen=True)
class Series:
    """The marks of one method in one layer, in the order in which a line joins them; the floor has no method."""

    method: str
    layer: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Axis:
    """An axis; "symlog" is linear below `unit` and logarithmic above, for counts that may be zero.

    If there are `names`, they label the positions 0, 1, 2, ... What is above `top` is cut off.
    """

    label: str
    scale: Literal["linear", "log", "symlog"] = "linear"
    unit: float = 1.0
    ticks: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    top: float | None = None


@dataclass(frozen=True)
class Chart:
    """Panels side by side, with the same axes."""

    name: str
    title: str
    caption: str
    x: Axis
    y: Axis
    panels: tuple[Panel, ...]
    kind: Literal["chart"] = "chart"

    @property
    def methods(self) -> list[str]:
        """The methods in the chart."""
        return list(dict.fromkeys(series.method for panel in self.panels for series in panel.series if series.method))

    def data(self, notes: dict[str, int]) -> dict[str, Any]:
        """Return the chart for the script, with short arrays as marks; `notes` numbers their notes."""
        encoded = asdict(self)
        for panel in encoded["panels"]:
            for series in panel["series"]:
                series["marks"] = [
                    [*(float(f"{mark[name]:.6g}") for name in ("x", "y", "spread")),
                     notes.setdefault(mark["note"], len(notes)), mark["size"]]
                    for mark in series["marks"]
                ]  # fmt: skip
        return encoded


@dataclass(frozen=True)
class Lane:
    """How much of each item a method takes; a lane without a method has no colour of its own."""

    method: str
    label: str
    amounts: tuple[float, ...]


@dataclass(frozen=True)
class Decision:
    """What was decided in one row: the values of its items, and a lane for each method."""

    title: str
    values: tuple[float, ...]
    lanes: tuple[Lane, ...]


@dataclass(frozen=True)
class Lanes:
    """Decisions side by side: the values of the items as a stepped line, and below it the lanes."""

    name: str
    title: str
    caption: str
    x: Axis
    y: Axis
    panels: tuple[Decision, ...]
    kind: Literal["lanes"] = "lanes"

    def data(self, notes: dict[str, int]) -> dict[str, Any]:
        """Return the lanes for the script; they have no notes."""
        return asdict(self)


def in_order(names: Iterable[str], first: Sequence[str]) -> list[str]:
    """Return the distinct names: those in `first` in its order, then the others in their own order.

    >>> in_order(["mine", "LAVA", "WISE", "mine"], first=("MSE", "WISE", "LAVA"))
    ['WISE', 'LAVA', 'mine']
    """
    known = [name.casefold() for name in first]
    distinct = dict.fromkeys(names)
    return sorted(distinct, key=lambda name: known.index(name.casefold()) if name.casefold() in known else len(known))


#: The colour of text and axes. The page replaces it by its own text colour, which follows the light or dark theme.
INK = "#1f2a37"
LIGHT = COLORS
DARK = ("#4da3dd", "#ff8a3d", "#2fc79a", "#e39ac4", "#f0b429", "#8fd0f5", "#c3cad4")
#: Matplotlib's markers: circle, square, diamond, two triangles, plus, cross, star; all can be filled or hollow.
MARKERS = "osD^vPX*"


@dataclass(frozen=True)
class Style:
    """The style of a method: an index into the palettes, and a marker."""

    color: int
    marker: str


def styles(methods: Iterable[str], first: Sequence[str] = ()) -> dict[str, Style]:
    """Return the style of each method; a method in `first` has the same style in every report.

    >>> styles(["WISE", "mine"], first=("MSE", "WISE"))
    {'WISE': Style(color=1, marker='s'), 'mine': Style(color=2, marker='D')}
    """
    known = [method.casefold() for method in first]
    names = in_order(methods, first)
    others = [name for name in names if name.casefold() not in known]
    index = {name: known.index(name.casefold()) for name in names if name not in others}
    index |= {name: len(known) + position for position, name in enumerate(others)}
    return {name: Style(i % len(LIGHT), MARKERS[i % len(MARKERS)]) for name, i in index.items()}


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


def chart_data(looks: Mapping[str, Style], charts: Sequence[Drawn]) -> dict[str, Any]:
    """Return the data for the script that draws charts.

    Marks are short arrays, and a note shared by several charts is stored once.
    """
    notes: dict[str, int] = {}

    drawn = {chart.name: chart.data(notes) for chart in charts}
    styles = {method: asdict(style) for method, style in looks.items()}
    return {"default": DEFAULT_MODE, "styles": styles, "charts": drawn, "notes": list(notes)}
