"""
One model for all items
=======================

Hours, edges or assets often follow one law: features of each item go in, its cost comes out. A model that all items
share has a few coefficients instead of a few per item, so that it needs far fewer rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from decidewise import WiseRegressor, normalized_regret
from decidewise.problems import TopK

rng = np.random.default_rng(0)
n_items, n_features, n_test = 24, 4, 1_000
truth = np.array([1.0, -0.7, 0.4, 0.0])
problem = TopK(n_items, 4, sense="min")


def draw(n):
    X = rng.normal(size=(n, n_items, n_features))
    return X, 5 + X @ truth + rng.normal(scale=1.0, size=(n, n_items))


test_X, test_costs = draw(n_test)
sizes = [10, 20, 40, 80, 160, 320]
regrets = {"shared by all items": [], "coefficients per item": []}
for n in sizes:
    X, costs = draw(n)
    shared = WiseRegressor().fit(X, costs)  # X of shape (rows, items, features)
    regrets["shared by all items"].append(normalized_regret(problem, shared.predict(test_X), test_costs))
    wide = WiseRegressor().fit(X.reshape(n, -1), costs)  # every feature of every item, for every cost
    prediction = wide.predict(test_X.reshape(n_test, -1))
    regrets["coefficients per item"].append(normalized_regret(problem, prediction, test_costs))
print({name: np.round(values, 2).tolist() for name, values in regrets.items()})

# %%
figure, axes = plt.subplots(layout="constrained")
for name, values in regrets.items():
    axes.loglog(sizes, values, marker="o", label=name)
axes.set(xlabel="training rows", ylabel="regret, %")
axes.legend()
plt.show()
