"""Charts as plain data, which `matplotlib_charts` draws into files and the page's script on the screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from decidewise.report.results import Column

#: The layers of a chart besides our training modes: published numbers, and the floor.
PUBLISHED, FLOOR = "published", "floor"


@dataclass(frozen=True)
class Mark:
    """A point, with the note that is shown when it is pointed at."""

    x: float
    y: float
    spread: float
    note: str
    size: float = 1.0


@dataclass(frozen=True)
class Series:
    """The marks of one method in one layer, in the order in which they are joined; the floor has no method."""

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
    """An axis; `symlog` is linear below `unit` and logarithmic above, for counts that may be zero.

    With `names`, the axis lists them at 0, 1, 2, ...
    """

    label: str
    scale: Literal["linear", "log", "symlog"] = "linear"
    unit: float = 1.0
    ticks: tuple[float, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chart:
    """Panels of one kind side by side."""

    name: str
    title: str
    caption: str
    x: Axis
    y: Axis
    panels: tuple[Panel, ...]
    kind: Literal["chart"] = "chart"

    @property
    def methods(self) -> list[str]:
        """The methods that are drawn."""
        return list(dict.fromkeys(series.method for panel in self.panels for series in panel.series if series.method))


@dataclass(frozen=True)
class Matrix:
    """How often each column beats each other one: `shares[i][j]` in percent, None where they never met."""

    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    labels: tuple[str, ...]
    shares: tuple[tuple[float | None, ...], ...]
    meetings: tuple[tuple[int, ...], ...]
    kind: Literal["matrix"] = "matrix"

    @property
    def methods(self) -> list[str]:
        """The methods that are compared."""
        return list(dict.fromkeys(column.method for column in self.columns))
