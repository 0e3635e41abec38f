"""
Which of my features matter for decisions?
==========================================

A feature may explain the prices and still change no decision. Shuffle one feature at a time, and see how much the
decisions lose: the permutation importance of scikit-learn, scored by regret.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.inspection import permutation_importance

from decidewise import WiseRegressor
from decidewise.evaluate import regret_scorer
from decidewise.problems import TopK

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(900, 4)), columns=["gas price", "sun", "wind", "noise"])
by_hour = pd.DataFrame(0.0, index=X.columns, columns=range(24))
by_hour.loc["gas price"] = 25  # raises all hours alike
by_hour.loc["sun"] = -12 * np.sin(np.pi * np.arange(24) / 24) ** 4
by_hour.loc["wind"] = 5 * np.cos(np.pi * np.arange(24) / 12)
prices = 100 + X @ by_hour + rng.normal(scale=5, size=(900, 24))

problem = TopK(24, 4, sense="min")  # run in the four cheapest hours
model = WiseRegressor(exponent=0).fit(X[:400], prices[:400])
scores = {"decisions": regret_scorer(problem), "squared error": "r2"}
table = pd.DataFrame(index=X.columns)
for name, scoring in scores.items():
    found = permutation_importance(model, X[400:], prices[400:], scoring=scoring, n_repeats=5, random_state=0)
    table[name] = found.importances_mean
print(table.round(2))

# %%
share = 100 * table / table.sum()
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
for shift, name in ((-0.2, "squared error"), (0.2, "decisions")):
    axes.barh(np.arange(4) + shift, share[name], height=0.4, label=f"for the {name}")
axes.set(yticks=range(4), yticklabels=share.index, xlabel="importance, % of the sum", title="What the features are for")
axes.legend()
plt.show()

# %%
# *"The gas price explains the bill, but not when to run. For decisions we need the sun and the wind."*
