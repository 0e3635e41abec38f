"""Decisions for the rows of a table, with names, and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        by_row = {"predicted_objective": self.objective}
        if self.regret is not None and self.realised is not None and self.best is not None:
            by_row |= {"objective": self.realised, "best_objective": self.best, "regret": self.regret}
        if self.items is None:
            return columns_like(self.samples, None, {"decision": self.decisions}, by_row)
        by_item = {"prediction": self.predictions, "decision": self.decisions}
        return columns_like(self.samples, self.items, by_item, by_row)


def columns_like(
    samples: TableSamples, items: str | None, by_item: Mapping[str, FloatArray], by_row: Mapping[str, FloatArray] = {}
) -> dict[str, Any]:
    """Return numbers (n, d) and (n,) by name as a table of the shape of the input, long if it has a column of items."""
    names = samples.cost_names
    if items is None:
        wide = {f"{what}_{name}": values[:, j] for what, values in by_item.items() for j, name in enumerate(names)}
        return {samples.title: samples.keys, **wide, **by_row}
    return {
        samples.title: np.repeat(samples.keys, len(names)),
        in_words(items): np.tile(_item_keys(names), len(samples)),
        **{what: values.ravel() for what, values in by_item.items()},
        **{what: np.repeat(values, len(names)) for what, values in by_row.items()},
    }


def _item_keys(names: Sequence[str]) -> Any:
    """Return names of items as they were in the table: whole numbers if all are."""
    whole = all(name.lstrip("-").isdigit() and name == str(int(name)) for name in names)
    return np.array(names, dtype=np.int64) if whole else names
