"""
A knapsack with features per item
=================================

Each item has features of its own, and its value is predicted from them by one model, whatever the learner.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from decidewise import WiseRegressor, compare
from decidewise.problems import Knapsack

rng = np.random.default_rng(2)
n, n_items = 1_000, 20
weights = rng.uniform(1, 5, size=(2, n_items))
problem = Knapsack(weights, weights.sum(axis=1) / 3)
X = rng.uniform(-1, 1, size=(n, n_items, 3))
values = np.exp(1.2 * X[..., 0] * np.sign(X[..., 1])) * rng.gamma(6, 1 / 6, size=(n, n_items))

train, test = slice(0, 250), slice(250, n)
models = {
    "WISE, linear": WiseRegressor(),
    "WISE, boosted trees": WiseRegressor(HistGradientBoostingRegressor(max_iter=80, random_state=0)),
}
predictions = {name: model.fit(X[train], values[train]).predict(X[test]) for name, model in models.items()}
comparison = compare(problem, predictions, values[test])
print(comparison)

# %%
# The value of an item depends on a product of two of its features, which a linear model cannot see.
figure, axes = plt.subplots(1, 2, sharey=True, layout="constrained", figsize=(9, 4))
for panel, (name, prediction) in zip(axes, predictions.items(), strict=True):
    some = rng.choice(prediction.size, 2_000, replace=False)
    panel.plot(prediction.ravel()[some], values[test].ravel()[some], ".", ms=2)
    panel.set(title=name, xlabel="predicted value", ylim=(0, 8))
axes[0].set_ylabel("realised value")
plt.show()
