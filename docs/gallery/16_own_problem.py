"""
How do I add my own problem?
============================

Write a class with ``n_costs`` and one method, ``minimize``: costs in, one best decision per row out. ``check_problem``
says whether it keeps the contract. Then every model, loss and metric works with it.
"""

import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from decidewise import WiseRegressorCV, compare
from decidewise.data import make_storage
from decidewise.problems import Problem
from decidewise.testing import check_problem


class OneBlock(Problem):
    """Charge a car in consecutive hours, without a break."""

    def __init__(self, hours=4):
        super().__init__(sense="min")
        self.hours, self.n_costs = hours, 24

    def minimize(self, costs):
        bills = sliding_window_view(costs, self.hours, axis=1).sum(axis=2)
        tie = 1e-9 * np.abs(costs).max(axis=1, keepdims=True)  # what rounding may change
        starts = (bills <= bills.min(axis=1, keepdims=True) + tie).argmax(axis=1)  # the earliest of the best
        hour = np.arange(self.n_costs)
        return ((hour >= starts[:, None]) & (hour < starts[:, None] + self.hours)).astype(float)


problem = OneBlock()
check_problem(problem)  # silent if all is well

train, test = make_storage(500, degree=2, seed=0, spike_rate=0).split(300)  # prices of days
model = WiseRegressorCV(problem, cv=3, max_solves=5_000, random_state=0).fit(train.X, train.costs)
always_average = np.tile(train.costs.mean(axis=0), (len(test), 1))
print(compare(problem, {"the usual hours": always_average, "the choice": model.predict(test.X)}, test.costs))

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3))
axes.bar(range(24), 100 * problem.solve(model.predict(test.X)).mean(axis=0))
axes.set(xlabel="hour", ylabel="% of the days", title="When the car is charged")
plt.show()

# %%
# *"Our rule was in no list. A few lines of Python added it."*
