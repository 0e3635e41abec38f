"""Figures of the gallery that fit light and dark pages: no background, and lines and letters of a grey between both."""

from typing import Any

import matplotlib as mpl

from decidewise.kit.compilation import watch

#: On white and on the dark page, its contrast is at least 4 to 1.
GREY = "#767c85"


def prepare(gallery: Any, script: Any) -> None:
    """Draw what comes next with neutral colours, and without words on compiling; called before each script."""
    watch.silent = True
    parts = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color")
    backgrounds = ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")
    mpl.rcParams.update(dict.fromkeys(parts, GREY) | dict.fromkeys(backgrounds, "none"))
    mpl.rcParams["legend.frameon"] = False
