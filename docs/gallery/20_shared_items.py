"""
Can all items share one model?
==============================

Hours, roads or stores often follow one law: features of each item go in, its cost comes out. A model that all items
share has a few coefficients instead of a few per item, so it needs far fewer rows.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from decidewise import WiseRegressor, normalized_regret
from decidewise.problems import TopK

rng = np.random.default_rng(0)
n_items, n_features, n_test = 24, 4, 500
truth = np.array([1.0, -0.7, 0.4, 0.0])
problem = TopK(n_items, 4, sense="min")


def draw(n):
    X = rng.normal(size=(n, n_items, n_features))
    return X, 5 + X @ truth + rng.normal(scale=1.0, size=(n, n_items))


test_X, test_costs = draw(n_test)
regrets = {}
for n in (10, 20, 40, 80, 160, 320):
    X, costs = draw(n)
    shared = WiseRegressor().fit(X, costs).predict(test_X)  # X of shape (rows, items, features)
    wide = WiseRegressor().fit(X.reshape(n, -1), costs)  # every feature of every item, for every cost
    predictions = {"shared by all items": shared, "coefficients per item": wide.predict(test_X.reshape(n_test, -1))}
    regrets[n] = {name: normalized_regret(problem, found, test_costs) for name, found in predictions.items()}
table = pd.DataFrame(regrets).T.rename_axis("training rows")
print(table.round(1))

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
for name in table:
    axes.plot(table.index, table[name], marker="o", label=name)
axes.set(xscale="log", xticks=table.index, xticklabels=table.index)
axes.minorticks_off()
axes.set(xlabel="training rows", ylabel="regret, %", ylim=(0, None), title="Sharing saves rows")
axes.legend()
plt.show()

# %%
# *"Ten days of data are enough, since all hours teach the same model."*
