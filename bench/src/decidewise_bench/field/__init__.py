"""The table of the field: every loss and every estimator, tuned alike, on the same problems.

- `problems`: the problems that only the field has; the others are generators of `decidewise.data`
- `ranges`: what is searched for each method, and why so far
- `tuned`: the search, the same number of tries for every method, by regret on training rows set aside
- `methods`: the methods of the plans
- `plans/`: `quick` (minutes), `field` (an evening), `published` (one setting of which others published numbers)
- `standings`, `ranks`, `sentences`, `report`: one page from the rows

A method that is not for a problem is refused there, with its own reason, which is not a failure. Nothing is chosen on
test rows.
"""

from __future__ import annotations

from pathlib import Path

PLANS = Path(__file__).parent / "plans"
#: Numbers that others published, one CSV file per problem of the plan `published`.
PUBLISHED = Path(__file__).parent / "published"
#: The titles of the problems, in the order of the report.
TITLES = {
    "shortest_path": "Shortest path",
    "knapsack": "Knapsack",
    "portfolio": "Portfolio",
    "tours": "Tours",
    "cubic_top_k": "Cubic top-k",
    "covering": "Covering (MILP)",
    "shortest_path_320": "Shortest path, 320 rows",
}
