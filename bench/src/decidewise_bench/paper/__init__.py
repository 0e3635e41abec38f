"""The paper: its plans, its published numbers, and how our results compare with them.

- `plans/`: the plans of `decidewise paper run`; `published/`: the numbers of the paper's tables
- `verdicts`, `misses`: which published cells are reproduced, which another setting explains, and what is known about
  the others
- `contest`: our models against the best published method of each row
- `illustrations`: the paper's drawings
- `text_figure`: the figure in the paper's text
- `report`: the report that shows all of these
- `same_model`: the model that WISE CV chooses, trained on SPO+
"""

from __future__ import annotations

from pathlib import Path

PLANS = Path(__file__).parent / "plans"
PUBLISHED = Path(__file__).parent / "published"
#: The plans that repeat a table of the paper.
TABLES = ("shortest_path", "knapsack", "portfolio")
#: The plans that repeat no published cells; each of their rows is compared with its best published method.
CONTESTS = ("better", "travelling_salesman")
#: The plan that tries other settings on cells that are missed.
EXPLAINED = "explained"
#: The titles of the problems, in the order of the paper.
TITLES = {
    "shortest_path": "Shortest path",
    "knapsack": "2D knapsack",
    "portfolio": "Portfolio",
    "travelling_salesman": "Travelling salesman",
}
#: The methods in the order of the paper's tables.
METHODS = ("MSE", "WISE", "SPO+", "PFY", "DBB", "CaVE", "LAVA")
