"""The colour and the marker of each method, the same in every figure.

The colours are those of Okabe and Ito (2008), which colour-blind readers can tell apart. On a light background the pale
ones are darkened; on a dark background the dark ones are lightened. Markers distinguish the methods without colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from decidewise.app.pages.chart import in_order

#: The colour of text and axes. The page replaces it by its own text colour, which follows the light or dark theme.
INK = "#1f2a37"
LIGHT = ("#0072b2", "#d55e00", "#00805c", "#b5588f", "#b07a00", "#3a97cf", "#4b5563")
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
