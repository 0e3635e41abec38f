"""
A forest or a linear model?
===========================

Try both, and compare their decisions on rows that neither has seen. Here the value of an item depends on a product of
two of its features, which a linear model cannot see.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestRegressor

from decidewise import WiseRegressor, compare
from decidewise.problems import Knapsack

rng = np.random.default_rng(2)
n, n_items = 500, 20
weights = rng.uniform(1, 5, size=(2, n_items))
problem = Knapsack(weights, weights.sum(axis=1) / 3)
X = rng.uniform(-1, 1, size=(n, n_items, 3))  # three features of each item
values = np.exp(1.2 * X[..., 0] * np.sign(X[..., 1])) * rng.gamma(6, 1 / 6, size=(n, n_items))

train, test = slice(0, 150), slice(150, n)
forest = RandomForestRegressor(n_estimators=30, min_samples_leaf=10, random_state=0)
models = {"a linear model": WiseRegressor(), "a forest": WiseRegressor(forest)}
predictions = {name: model.fit(X[train], values[train]).predict(X[test]) for name, model in models.items()}
print(compare(problem, predictions, values[test]))

# %%
figure, panels = plt.subplots(1, 2, sharey=True, layout="constrained", figsize=(7, 3.6))
for axes, (name, prediction) in zip(panels, predictions.items(), strict=True):
    axes.plot(prediction.ravel()[::4], values[test].ravel()[::4], ".", markersize=2)
    axes.set(title=name, xlabel="predicted value", ylim=(0, 8))
panels[0].set_ylabel("realised value")
plt.show()

# %%
# If you do not want to try, ``WiseRegressorCV`` does: linear models and trees are among its candidates.
#
# *"The forest decides better, and the interval says that it is no luck."*
