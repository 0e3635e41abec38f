"""The names of the costs that a model was fitted with, so that swapped columns do not go unnoticed."""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.checks import check_same_names, column_names


def read_cost_names(estimator: Any, y: Any, *, reset: bool) -> None:
    """Keep the column names of the costs as `cost_names_in_` if `reset`, otherwise raise if they differ from those.

    Costs without names, such as arrays, are never refused.
    """
    names = column_names(y)
    if not reset:
        known = getattr(estimator, "cost_names_in_", None)
        check_same_names(known, names, of="y", expected=f"the costs that {type(estimator).__name__} was fitted with")
        return
    estimator.__dict__.pop("cost_names_in_", None)
    if names is not None:
        estimator.cost_names_in_ = np.array(names, dtype=object)
