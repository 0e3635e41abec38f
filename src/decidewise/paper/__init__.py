"""One paper: its plans, its published numbers, and how ours compare with them.

- `plans/`: what to run, as `decidewise paper run` does; `published/`: the numbers of the paper's tables
- `verdicts`, `misses`: which published cells are reproduced, and what is known about the others
- `contest`: rows of models that are to decide better than any published one
- `illustrations`: the paper's drawings
- `text_figure`: the figure of the paper's text
- `report`: the report of the rows with all of that
- `same_model`: SPO+ on the model that the contest's choice ends with
"""

from __future__ import annotations

from pathlib import Path

PLANS = Path(__file__).parent / "plans"
PUBLISHED = Path(__file__).parent / "published"
#: The plans that repeat a table of the paper.
TABLES = ("shortest_path", "knapsack", "portfolio")
#: The plans that do not repeat published cells but are measured against the best of them, row by row.
CONTESTS = ("better", "travelling_salesman")
#: The problems by their titles in the paper, in its order.
TITLES = {
    "shortest_path": "Shortest path",
    "knapsack": "2D knapsack",
    "portfolio": "Portfolio",
    "travelling_salesman": "Travelling salesman",
}
#: The methods in the order of the paper's tables.
METHODS = ("MSE", "WISE", "SPO+", "PFY", "DBB", "CaVE", "LAVA")
