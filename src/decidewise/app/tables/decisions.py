"""Decisions for the rows of a table, with names, and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from decidewise.app.tables.columns import in_words
from decidewise.app.tables.samples import TableSamples
from decidewise.kit.checks import FloatArray


@dataclass(frozen=True, eq=False)
class TableDecisions:
    """The decision for each row of a table.

    Attributes
    ----------
    samples : TableSamples
    items : str or None
        The column of the items, if the table is long.
    predictions, decisions : ndarray of shape (n, d)
    objective : ndarray of shape (n,)
        The predicted value of each decision.
    realised, best, regret : ndarray of shape (n,), or None
        If the table has costs: what the decision cost or gained, the best decision in hindsight, and the difference;
        NaN in rows without costs.
    """

    samples: TableSamples
    items: str | None
    predictions: FloatArray
    decisions: FloatArray
    objective: FloatArray
    realised: FloatArray | None
    best: FloatArray | None
    regret: FloatArray | None

    def columns(self) -> dict[str, Any]:
        """Return a table of the shape of the input: wide with a column per item, or long with a line per item."""
        samples, d = self.samples, len(self.samples.cost_names)
        by_row = {"predicted_objective": self.objective}
        if self.regret is not None and self.realised is not None and self.best is not None:
            by_row |= {"objective": self.realised, "best_objective": self.best, "regret": self.regret}
        if self.items is None:
            named = {
                f"decision_{name}": column for name, column in zip(samples.cost_names, self.decisions.T, strict=True)
            }
            return {samples.title: samples.keys, **named, **by_row}
        return {
            samples.title: np.repeat(samples.keys, d),
            in_words(self.items): np.tile(_item_keys(samples.cost_names), len(samples)),
            "prediction": self.predictions.ravel(),
            "decision": self.decisions.ravel(),
            **{name: np.repeat(column, d) for name, column in by_row.items()},
        }


def prediction_columns(samples: TableSamples, predictions: FloatArray, items: str | None) -> dict[str, Any]:
    """Return predictions (n, d) as a table of the shape of the input."""
    if items is None:
        named = {f"prediction_{name}": column for name, column in zip(samples.cost_names, predictions.T, strict=True)}
        return {samples.title: samples.keys, **named}
    return {
        samples.title: np.repeat(samples.keys, len(samples.cost_names)),
        in_words(items): np.tile(_item_keys(samples.cost_names), len(samples)),
        "prediction": predictions.ravel(),
    }


def _item_keys(names: Sequence[str]) -> Any:
    """Return names of items as they were in the table: whole numbers if all are."""
    whole = all(name == str(int(name)) for name in names if name.lstrip("-").isdigit())
    return np.array(names, dtype=np.int64) if whole and all(name.lstrip("-").isdigit() for name in names) else names
