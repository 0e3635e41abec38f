"""What a choice has tried, and what it chose, for a terminal and for a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from decidewise.kit.notebook import html_table

_HEADINGS = ("candidate", "regret %", "± s.e.", "over", "± s.e.", "seconds", "weight %")
_KEYS = ("regret", "standard_error", "difference", "difference_standard_error", "seconds")


@dataclass(frozen=True, repr=False)
class ChoiceSummary:
    """The candidates of a choice, the lowest regret first; `print` shows a table, and so does a notebook.

    Attributes
    ----------
    results : mapping
        As `WiseRegressorCV.cv_results_`.
    weights : dict of str to float
        Of the chosen candidates, which stand out.
    chosen : str
        What was chosen, in a sentence.
    notes : tuple of str
        Why families of candidates were tried or not, and why candidates failed.
    """

    results: Mapping[str, Any]
    weights: Mapping[str, float]
    chosen: str
    notes: tuple[str, ...]

    def __str__(self) -> str:
        shown = Table()
        for place, heading in enumerate(_HEADINGS):
            shown.add_column(heading, justify="right" if place else "left")
        for line, is_chosen in self._lines():
            failed = len(line) < len(_HEADINGS)
            shown.add_row(Text(line[0]), *line[1:], style="bold" if is_chosen else "dim" if failed else None)
        console = Console(file=StringIO())
        console.print(shown)
        console.print("\n".join([self.chosen, *self.notes]), markup=False, highlight=False, soft_wrap=True)
        return str(console.file.getvalue()).rstrip()  # type: ignore[attr-defined]  # it is a StringIO

    __repr__ = __str__

    def _repr_html_(self) -> str:
        lines = self._lines()
        bold = {place for place, (_, is_chosen) in enumerate(lines) if is_chosen}
        return html_table(_HEADINGS, [line for line, _ in lines], bold=bold, below=[self.chosen], folded=self.notes)

    def _lines(self) -> list[tuple[list[str], bool]]:
        """Return the cells of each candidate that was scored or failed, and whether it was chosen."""
        lines, results = [], self.results
        for i in np.argsort(results["rank"]):
            name, status = str(results["candidate"][i]), results["status"][i]
            if status in ("scored", "baseline"):
                weight = self.weights.get(name)
                numbers = [f"{results[key][i]:.2f}" for key in _KEYS]
                label = name + " (baseline)" * (status == "baseline")
                lines.append(([label, *numbers, "" if weight is None else f"{100 * weight:.1f}"], weight is not None))
            elif status == "failed":
                lines.append(([name, "failed"], False))
        return lines
