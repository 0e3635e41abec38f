"""The figure in the paper's text: regret against training time on the shortest path, in a few settings."""

from __future__ import annotations

from decidewise.app.pages import Axis, Chart, Panel
from decidewise_bench.report.chart_builders import at_seconds, build_chart, series_of
from decidewise_bench.report.results import Board

#: The degrees and the numbers of samples in the figure.
DEGREES, SAMPLES = (1, 4, 8), (400, 1600)


def text_figure(board: Board) -> Chart | None:
    """Return regret against training time for the settings in the paper's text, one panel per number of samples."""
    panels = []
    for samples in SAMPLES:
        settings = [at for at in board.settings if at.samples == samples and at.degree in DEGREES]
        series = series_of(
            board,
            settings,
            lambda at, cell: at_seconds(cell),
            size=lambda at: 1 + 0.3 * DEGREES.index(at.degree or 0),
        )
        panels.append(Panel(f"{samples:,} samples", tuple(series)))
    return build_chart(
        f"regret_time_text_{board.name}",
        "Regret against training time, as in the paper's text",
        "Mean regret against mean seconds of training, labels included. The larger the mark, the higher "
        "the degree (1, 4, 8).",
        Axis("seconds", "log"),
        "regret, %",
        panels,
    )
