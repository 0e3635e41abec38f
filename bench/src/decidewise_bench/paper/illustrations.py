"""The paper's three drawings, computed from their formulas: pipelines, change of measure, counterexample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from decidewise.app.pages import INK, LIGHT
from decidewise.kit.checks import FloatArray

BLUE, ORANGE, GREEN, PINK = LIGHT[:4]
#: The Gaussian of the paper's figure 2.
MEAN = np.array([0.5, 0.5])
COVARIANCE = np.array([[1.0, -0.3], [-0.3, 1.0]])
#: The two equally likely cost vectors of the paper's counterexample.
OUTCOMES = np.array([[4.0, 0.0], [0.0, 1.0]])


@dataclass(frozen=True)
class Illustration:
    """A drawing of one or more panels; a panel is a function that draws on given axes."""

    name: str
    title: str
    caption: str
    panels: tuple[Callable[[Axes], None], ...]
    size: tuple[float, float] = (3.4, 3.4)

    def draw(self, panel: int | None = None) -> Figure:
        """Draw all panels side by side, or one of them alone."""
        panels = self.panels if panel is None else (self.panels[panel],)
        figure = Figure(figsize=(self.size[0] * len(panels), self.size[1]), layout="constrained")
        for axes, paint in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            paint(axes)
        return figure


def density(points: FloatArray) -> FloatArray:
    """Return the density of the Gaussian at points of shape (..., 2)."""
    centred = points - MEAN
    exponent = -0.5 * np.einsum("...i,ij,...j->...", centred, np.linalg.inv(COVARIANCE), centred)
    return np.exp(exponent) / (2 * np.pi * np.sqrt(np.linalg.det(COVARIANCE)))


def direction_density(angles: FloatArray) -> FloatArray:
    """Return the density of the reweighted and projected measure at angles of shape (n,).

    Along a direction `u` the mass is `∫ ‖ru‖ p(ru) r dr`: the weight, the density, and the length of the arc.
    """
    circle = np.linspace(0, 2 * np.pi, 721)
    return _mass(angles) / float(np.trapezoid(_mass(circle), circle))


def _mass(angles: FloatArray) -> FloatArray:
    radii = np.linspace(0, 8, 801)  # beyond 8 the density is negligible in every direction
    points = radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])[:, None, :]
    return np.asarray(np.trapezoid(radii**2 * density(points), radii, axis=1))


def estimators() -> dict[str, FloatArray]:
    """Return the least-squares estimate under each measure of the counterexample, which is its mean."""
    lengths = np.linalg.norm(OUTCOMES, axis=1)
    directions = OUTCOMES / lengths[:, None]
    weights = lengths / lengths.sum()
    return {
        "mean": OUTCOMES.mean(axis=0),
        "reweighted only": weights @ OUTCOMES,
        "projected only": directions.mean(axis=0),
        "both (WISE)": weights @ directions,
    }


def _paint_density(axes: Axes, *, title: str, weighted: bool) -> None:
    grid = np.stack(np.meshgrid(np.linspace(-3, 4, 71), np.linspace(-3, 4, 71)), axis=-1)
    values = density(grid) * (np.linalg.norm(grid, axis=-1) if weighted else 1.0)
    levels = np.linspace(0.06, 1.0, 9) * values.max()
    # One colour with increasing opacity looks the same on a light and on a dark background.
    shades = [to_rgba(BLUE, alpha) for alpha in np.linspace(0.08, 0.75, len(levels) - 1)]
    axes.contourf(grid[..., 0], grid[..., 1], values, levels, colors=shades)
    _paint_plane(axes, title, (-3, 4))


def _paint_directions(axes: Axes) -> None:
    angles = np.linspace(0, 2 * np.pi, 361)
    outward = 1 + 2.6 * direction_density(angles)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    outer = circle * outward[:, None]
    axes.fill(*np.vstack([outer, circle[::-1]]).T, color=BLUE, alpha=0.45, linewidth=0)
    axes.plot(*circle.T, color=INK, linewidth=1)
    _paint_plane(axes, "3. projected: direction y/‖y‖", (-2.2, 2.2))


def _paint_plane(axes: Axes, title: str, limits: tuple[float, float]) -> None:
    axes.axhline(0, color=INK, linewidth=0.5, alpha=0.4)
    axes.axvline(0, color=INK, linewidth=0.5, alpha=0.4)
    _arrow(axes, np.zeros(2), 1.9 * MEAN / np.linalg.norm(MEAN), ORANGE)
    axes.set(xlim=limits, ylim=limits, aspect="equal", xlabel="y₁", ylabel="y₂")
    axes.set_title(title, loc="left")


def _paint_counterexample(axes: Axes) -> None:
    axes.add_patch(Circle((0, 0), 1, facecolor=to_rgba(INK, 0.10), edgecolor=INK, linewidth=0.8))
    axes.text(0, -0.6, "S: unit ball", ha="center", fontsize=8)
    mean = estimators()["mean"]
    along = mean / np.linalg.norm(mean)
    axes.plot(*np.outer([-1.2, 4.2], along).T, color=BLUE, linewidth=0.8, linestyle=(0, (4, 3)))
    for outcome in OUTCOMES:
        axes.plot(*outcome, "o", color=INK, markersize=5)
        axes.annotate(f"y = ({outcome[0]:g}, {outcome[1]:g})", outcome, (-4, 8), textcoords="offset points", fontsize=8)
    for (name, estimate), color in zip(estimators().items(), (BLUE, ORANGE, GREEN, PINK), strict=True):
        _arrow(axes, np.zeros(2), estimate, color)
        angle = round(np.degrees(np.arctan2(along[0] * estimate[1] - along[1] * estimate[0], along @ estimate)))
        text = f"{name}: ({estimate[0]:g}, {estimate[1]:g}), {angle}°".replace("-", "−")
        axes.plot([], [], color=color, linewidth=2.5, label=text)
    axes.set(xlim=(-1.2, 4.6), ylim=(-1.15, 1.4), aspect="equal", xlabel="y₁", ylabel="y₂")
    axes.figure.legend(frameon=False, loc="outside lower center", ncols=1, fontsize=8)


def _paint_pipeline(axes: Axes, *, title: str, steps: tuple[tuple[str, str], ...], back_to: int) -> None:
    """Draw boxes from top to bottom with arrows between them, and the gradient as an arrow back up on the right."""
    heights = np.linspace(0.88, 0.08, len(steps))
    for (text, color), height in zip(steps, heights, strict=True):
        box = FancyBboxPatch(
            (0.08, height - 0.06), 0.68, 0.12, "round,pad=0.01", facecolor=to_rgba(color, 0.16), edgecolor=color
        )
        axes.add_patch(box)
        axes.text(0.42, height, text, ha="center", va="center", fontsize=8.5)
    for upper, lower in pairwise(heights):
        _arrow(axes, np.array([0.42, upper - 0.075]), np.array([0.42, lower + 0.075]), INK, width=1)
    back = FancyArrowPatch(
        (0.77, heights[-1]), (0.77, heights[back_to]), connectionstyle="arc3,rad=0.35", arrowstyle="-|>",
        mutation_scale=11, color=INK, linestyle=(0, (4, 3)), linewidth=1,
    )  # fmt: skip
    axes.add_patch(back)
    axes.text(0.9, (heights[-1] + heights[back_to]) / 2, "gradient", rotation=90, va="center", fontsize=8)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_axis_off()
    axes.set_title(title, loc="left")


def _arrow(axes: Axes, start: FloatArray, end: FloatArray, color: str, width: float = 2) -> None:
    axes.add_patch(
        FancyArrowPatch(tuple(start), tuple(end), arrowstyle="-|>", mutation_scale=11, color=color, linewidth=width,
                        shrinkA=0, shrinkB=0)
    )  # fmt: skip


_DATA = ("features x, costs y", INK)
_MODEL = ("model: ŷ = f(x)", BLUE)
ILLUSTRATIONS = (
    Illustration(
        "pipelines",
        "Three ways to train",
        "Decision-blind training fits the costs without regard to the decision. WISE changes the measure once, before "
        "training, and then fits a regression, with no solver. Decision-focused training calls the solver in every "
        "step and differentiates through it.",
        (
            partial(_paint_pipeline, title="decision-blind", back_to=1, steps=(_DATA, _MODEL, ("‖ŷ − y‖²", GREEN))),
            partial(
                _paint_pipeline,
                title="WISE",
                back_to=2,
                steps=(_DATA, ("weight ‖y‖, target y/‖y‖", ORANGE), _MODEL, ("‖y‖ · ‖ŷ − y/‖y‖ ‖²", GREEN)),
            ),
            partial(
                _paint_pipeline,
                title="decision-focused",
                back_to=1,
                steps=(_DATA, _MODEL, ("solver: w(ŷ), every step", ORANGE), ("y·w(ŷ) − y·w(y)", GREEN)),
            ),
        ),
    ),
    Illustration(
        "change_of_measure",
        "The change of measure on a two-dimensional Gaussian",
        "Panel 1: the density of the costs y, with mean (0.5, 0.5), unit variances and covariance −0.3. Panel 2: the "
        "same density times ‖y‖, so that costs near zero, where a wrong decision costs little, count little. Panel 3: "
        "the density after projection on the unit circle, drawn as a height above the circle. The arrow is the "
        "direction of the mean of y; the mean of the last density has exactly this direction.",
        (
            partial(_paint_density, title="1. costs y", weighted=False),
            partial(_paint_density, title="2. reweighted by ‖y‖", weighted=True),
            _paint_directions,
        ),
    ),
    Illustration(
        "counterexample",
        "Neither step is enough alone",
        "Two cost vectors, (4, 0) and (0, 1), are equally likely, and the decision is a point of the unit ball, so "
        "only the direction of the estimate matters. Reweighting alone or projecting alone turns the estimate away "
        "from the mean, by the given angle; both together keep its direction.",
        (_paint_counterexample,),
        size=(4.8, 3.3),
    ),
)
