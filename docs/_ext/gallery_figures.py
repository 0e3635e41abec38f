"""Figures of the gallery in the colours of the house; they fit light and dark pages.

They have no background, lines and letters of a grey between both, and colours between those of the two pages.
"""

from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler

from decidewise.app.pages import DARK, LIGHT
from decidewise.kit.compilation import watch

#: On white and on the dark page, its contrast is at least 4 to 1.
GREY = "#767c85"
COLORS = [
    mpl.colors.to_hex(np.mean([mpl.colors.to_rgb(light), mpl.colors.to_rgb(dark)], axis=0))
    for light, dark in zip(LIGHT, DARK, strict=True)
]


def prepare(gallery: Any, script: Any) -> None:
    """Draw what comes next in the colours of the house, and without words on compiling; called before each script."""
    watch.silent = True
    parts = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color")
    backgrounds = ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")
    mpl.rcParams.update(dict.fromkeys(parts, GREY) | dict.fromkeys(backgrounds, "none"))
    mpl.rcParams.update({"axes.prop_cycle": cycler(color=COLORS), "legend.frameon": False, "axes.titlesize": "medium"})
    mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
