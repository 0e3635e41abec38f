"""Score predictions by the decisions they lead to.

>>> import numpy as np
>>> from decidewise.problems import TopK
>>> problem = TopK(3, 1, sense="max")
>>> costs = np.array([[1.0, 2.0, 3.0], [5.0, 1.0, 4.0]])
>>> prediction = np.array([[1.0, 3.0, 2.0], [5.0, 1.0, 4.0]])  # the first row picks the second best item
>>> decision_regret(problem, prediction, costs)
array([1., 0.])
>>> normalized_regret(problem, prediction, costs)
12.5
>>> print(compare(problem, {"honest": prediction, "perfect": costs}, costs))
model    regret %             minus honest
honest   12.50 [0.00, 75.00]
perfect  0.00 [0.00, 0.00]    -12.50 [-75.00, 0.00]
95 % bootstrap intervals over 2 rows.
"""

from decidewise.evaluate.comparison import (
    Comparison,
    ComparisonRow,
    compare,
    compare_regrets,
    compare_sums,
    regret_interval,
)
from decidewise.evaluate.hindsight import Hindsight, decision_regret, normalized_regret
from decidewise.evaluate.intervals import Interval
from decidewise.evaluate.scorer import RegretScorer, check_in_units, regret_scorer

__all__ = [
    "Comparison",
    "ComparisonRow",
    "Hindsight",
    "Interval",
    "RegretScorer",
    "check_in_units",
    "compare",
    "compare_regrets",
    "compare_sums",
    "decision_regret",
    "normalized_regret",
    "regret_interval",
    "regret_scorer",
]
