"""
How much should I stock?
========================

The demand is known only afterwards, and a unit too few costs four times as much as one too many. What each level would
have cost is a table, and a decision is linear in it.
"""

import matplotlib.pyplot as plt
import numpy as np

from decidewise import WiseRegressorCV, compare, decide
from decidewise.models import GeneralizedLinear, ResidualScenarios
from decidewise.problems import Levels, newsvendor

rng = np.random.default_rng(0)
X = rng.normal(size=(1_000, 2))  # the weather, and the price of a rival
demand = rng.gamma(2.0, 10 * np.exp(X @ [[0.5, -0.4, 0.2], [0.2, 0.4, 0.5]]) / 2)
shops = Levels([np.arange(0, 61, 5)] * 3, budget=90, cost=newsvendor(over=1, under=4))

train, test = slice(400), slice(400, None)
models = {"forecast": GeneralizedLinear(), "with past errors": ResidualScenarios()}
models["choice"] = WiseRegressorCV(shops, cv=3, max_solves=20_000, random_state=0)
fitted = {name: model.fit(X[train], demand[train]) for name, model in models.items()}
print(compare(shops, {name: model.predict(X[test]) for name, model in fitted.items()}, demand[test]))

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
for name in ("forecast", "choice"):
    levels = shops.levels_of(decide(fitted[name], shops, X[test]))
    axes.plot(np.sort((levels - demand[test]).sum(axis=1)), label=name)
axes.axhline(0, color="gray", linewidth=1)
axes.set(
    xlabel="days, from the shortest to the fullest", ylabel="stock less demand", title="Too few is dearer than too many"
)
axes.legend()
plt.show()

# %%
# *"The forecast was right on average, and sold out every other day."*
