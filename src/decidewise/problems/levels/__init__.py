"""One level for each item, under budgets; and the table of what each level would have cost for a realised demand."""

from decidewise.problems.levels.demand import (
    DemandCost,
    level_costs,
    lost_sales,
    newsvendor,
    overtime,
    service_level,
)
from decidewise.problems.levels.features import level_features
from decidewise.problems.levels.problem import Levels

__all__ = [
    "DemandCost",
    "Levels",
    "level_costs",
    "level_features",
    "lost_sales",
    "newsvendor",
    "overtime",
    "service_level",
]
