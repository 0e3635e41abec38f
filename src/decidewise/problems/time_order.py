"""Costs in the order of time, for problems that need it: columns and items of a table may come in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from decidewise.kit.checks import listed
from decidewise.problems.contract import Problem
from decidewise.rows.columns import ColumnRoles, pattern_parts
from decidewise.rows.long_tables import own_order


def check_in_time(problem: Problem, columns: ColumnRoles, pattern: Any) -> None:
    """Raise if the costs of a source of rows may not be in the order of time, and the problem takes it for that."""
    if columns.items is None:
        check_columns_in_time(problem, columns.costs, pattern)
    else:
        check_items_in_time(problem, columns.items, columns.item_names, "Number them in the order of time.")


def check_items_in_time(problem: Problem, title: str, items: Sequence[str], how: str) -> None:
    """Raise if items have no order of their own, and the problem takes theirs for that of time."""
    if problem.in_time and own_order(np.array(items)) is None:
        raise ValueError(
            f"{problem!r} takes the order of its costs for that of time, and {title!r} has names, {listed(items)}, "
            f"which have no order of their own. {how}"
        )


def check_columns_in_time(problem: Problem, columns: Sequence[str], pattern: Any) -> None:
    """Raise if a pattern selects columns in another order than their own, and the problem takes it for that of time."""
    parts = pattern_parts(columns, pattern)
    order = own_order(np.array(parts)) if problem.in_time and parts != tuple(columns) else None
    if order is not None and (order != np.arange(len(order))).any():
        raise ValueError(
            f"{problem!r} takes the order of its costs for that of time, and the table has {listed(columns)} in "
            "another order. Name each of these columns, in the order of time."
        )
