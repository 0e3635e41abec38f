"""
Shall I do nothing?
===================

If you may leave things as they are, a model must beat that. The choice has "do nothing" among its candidates, and moves
towards it as long as no model is proven to earn more.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

from decidewise import WiseRegressorCV, decide
from decidewise.problems import Knapsack

problem = Knapsack(np.ones(10), 3.0)  # accept up to three of ten orders, or none


def profits(signal, n=600):
    """Return features and profits of orders, negative on average; the features say more or less about them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    return X, -1 + signal * X @ rng.normal(size=(8, 10)) + rng.normal(scale=6, size=(n, 10))


earned = {}
for signal in (0.0, 0.3, 1.5):
    X, y = profits(signal)
    choice = WiseRegressorCV(problem, cv=3, max_solves=10_000, random_state=0)
    models = {"least squares": LinearRegression(), "the choice": choice}
    plans = {name: decide(model.fit(X[:100], y[:100]), problem, X[100:]) for name, model in models.items()}
    earned[signal] = {"do nothing": 0.0} | {name: (y[100:] * plan).sum(axis=1).mean() for name, plan in plans.items()}
    print(f"signal {signal}: {choice.notes_['null model']}")
table = pd.DataFrame(earned).T
print(table.round(2))

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
for shift, name in ((-0.2, "least squares"), (0.2, "the choice")):
    axes.bar(np.arange(3) + shift, table[name], width=0.4, label=name)
axes.axhline(0, color="gray", linewidth=1)
axes.set(xticks=range(3), xticklabels=["nothing", "a little", "much"], xlabel="what the features say about profits")
axes.set(ylabel="EUR per day", title="The line at zero is to do nothing")
axes.legend()
plt.show()

# %%
# *"With these features we would lose money by acting. So we wait until we have better ones."*
