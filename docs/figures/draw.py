"""Draw the figures of the README and of the site: `python docs/figures/draw.py [NAME ...]`, by default all of them.

Each figure is written twice, `NAME.svg` for a light page and `NAME-dark.svg` for a dark one. All is computed when it is
drawn, `field` from a file of results; `methods`, which trains, and the three figures of the paper take a minute or two.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from exact_fits import SETTINGS, draw_exact_fits
from matplotlib.figure import Figure
from methods import draw_methods
from places import draw_places
from tree import draw_tree
from words import WORDS

from decidewise.app.pages import DARK, INK, LIGHT
from decidewise_bench.paper.illustrations import ILLUSTRATIONS
from decidewise_bench.report.matplotlib_charts import render

IMAGES = Path(__file__).parents[1] / "images"
#: What becomes of the colours of a light page on a dark one; the last two are those of the page itself.
ON_DARK = dict(zip(LIGHT, DARK, strict=True)) | {INK: "#cfd6de", "#ffffff": "#131416"}


def figures() -> dict[str, Callable[[], Figure]]:
    """Return what draws each figure, by name."""
    drawn: dict[str, Callable[[], Figure]] = {"choose": draw_tree, "methods": draw_methods, "field": draw_places}
    drawn |= {f"paper_{name.replace(' ', '_')}": partial(draw_exact_fits, name) for name in SETTINGS}
    drawn |= {f"word_{name}": draw for name, draw in WORDS.items()}
    for drawing in ILLUSTRATIONS:  # those of the paper, panel by panel, so that a phone shows them one below the other
        for k in range(len(drawing.panels)):
            drawn[f"{drawing.name}_{k + 1}"] = partial(drawing.draw, k)
    return drawn


def main(wanted: list[str]) -> None:
    """Write the wanted figures; the same figure is the same file."""
    drawn = figures()
    unknown = set(wanted) - set(drawn)
    if unknown:
        raise SystemExit(f"no figure is named {', '.join(sorted(unknown))}; there are {', '.join(drawn)}.")
    for name in wanted or drawn:
        light = render(drawn[name], name)["svg"].decode()
        dark = light
        for color, other in ON_DARK.items():
            dark = dark.replace(color, other)
        (IMAGES / f"{name}.svg").write_text(light, encoding="utf-8")
        (IMAGES / f"{name}-dark.svg").write_text(dark, encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
