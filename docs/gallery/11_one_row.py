"""
How do I decide one row fast?
=============================

A request comes in and wants a decision now. Fit one model instead of an average, pass arrays instead of frames, and
decide once before the first request, so that the solver is compiled.
"""

from timeit import repeat

import matplotlib.pyplot as plt
import pandas as pd

from decidewise import WiseRegressor, WiseRegressorCV, decide
from decidewise.data import make_shortest_path

data = make_shortest_path(200, degree=4, seed=0)
problem, X, costs = data.problem, data.X, data.costs
linear = WiseRegressor().fit(X, costs)
average = WiseRegressorCV(problem, cv=3, max_solves=10_000, random_state=0).fit(X, costs)

ways = {
    "predict, linear model": lambda: linear.predict(X[:1]),
    "decide, linear model": lambda: decide(linear, problem, X[:1]),
    "decide, average": lambda: decide(average, problem, X[:1]),
    "decide, linear, 200 rows": lambda: decide(linear, problem, X),
}
seconds = pd.Series({name: min(repeat(way, number=5, repeat=5)) / 5 for name, way in ways.items()})
seconds["decide, linear, 200 rows"] /= len(X)
print((1e6 * seconds).round(1).rename("microseconds per row"))

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
axes.bar_label(axes.barh(seconds.index, 1e6 * seconds), fmt=" {:,.1f}")
axes.invert_yaxis()
axes.set(xscale="log", xticks=[], xmargin=0.15, xlabel="microseconds per row (log)", title="The time of one decision")
axes.minorticks_off()
plt.show()

# %%
# *"One linear model decides in microseconds, an average in milliseconds. Many rows at once are faster still."*
