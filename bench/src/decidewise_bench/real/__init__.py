"""Real data: tasks from public data sets, in the order of time, and the methods that are compared on them.

- `files`: where the data are; `windows`: rows in the order of time, and the window that a trial is
- `storage`, `irish_prices`, `scheduling`, `energy_knapsack`, `stocks`, `demand`: the tasks
- `methods`: the methods of the plan, from the training mean to the choice among all
- `plans/`: the plan of `decidewise real run`
- `overview`, `report`: all tasks and methods in one table, and the report that shows it

Nothing here is fitted or chosen on test rows. The data are not part of the package; `docs/real_data.md`
says where they are.
"""

from __future__ import annotations

from pathlib import Path

PLANS = Path(__file__).parent / "plans"
#: The titles of the tasks, in the order of the report.
TITLES = {
    "storage_NP": "Storage, Nord Pool",
    "storage_DE": "Storage, Germany",
    "cheapest_slots": "Cheapest half-hours",
    "scheduling": "Scheduling",
    "energy_knapsack_60": "Energy knapsack 60",
    "energy_knapsack_120": "Energy knapsack 120",
    "energy_knapsack_180": "Energy knapsack 180",
    "portfolios": "Weekly portfolios",
    "bakery": "Bakery demand",
    "restaurant": "Restaurant demand",
    "made_storage": "Storage, synthetic data",
}
#: The methods in the order of the tables.
METHODS = (
    "training mean", "yesterday", "given forecast", "least squares", "WISE", "iterated", "log-linear", "trees",
    "WISE trees", "SPO+", "choice",
)  # fmt: skip
