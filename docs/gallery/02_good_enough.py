"""
Is the forecast I have good enough?
===================================

You have a forecast of every cost. The choice keeps it unless a model decides better on held-out rows, and an interval
says how sure that is.
"""

import matplotlib.pyplot as plt
import numpy as np

from decidewise import WiseRegressorCV, compare
from decidewise.data import make_shortest_path

data = make_shortest_path(1_200, degree=4, seed=5)
n, d = data.costs.shape
columns = list(range(data.X.shape[1], data.X.shape[1] + d))


def regrets_with(noise):
    """Return the regrets of a forecast of this noise, and of the choice that may use it."""
    rng = np.random.default_rng(0)
    forecast = data.mean_costs * np.exp(noise * rng.normal(size=(n, d)))
    X = np.hstack([data.X, forecast])
    choice = WiseRegressorCV(data.problem, forecast=columns, cv=3, max_solves=30_000, random_state=0)
    choice.fit(X[:400], data.costs[:400])
    predictions = {"your forecast": forecast[400:], "the choice": choice.predict(X[400:])}
    return compare(data.problem, predictions, data.costs[400:])


noises = [0.05, 0.3, 0.8]
found = {noise: regrets_with(noise) for noise in noises}
for noise, comparison in found.items():
    print(f"forecast with errors of {noise:.0%}\n{comparison}\n")

# %%
# A good forecast is kept; a poor one is replaced.
figure, axes = plt.subplots(layout="constrained")
for name, marker in (("your forecast", "o"), ("the choice", "s")):
    rows = [next(row for row in comparison.rows if row.name == name).regret for comparison in found.values()]
    errors = [[row.estimate - row.low for row in rows], [row.high - row.estimate for row in rows]]
    axes.errorbar(noises, [row.estimate for row in rows], yerr=errors, marker=marker, capsize=4, label=name)
axes.set(xlabel="relative error of the forecast", ylabel="regret, % of the best cost", ylim=(0, None))
axes.legend()
plt.show()
