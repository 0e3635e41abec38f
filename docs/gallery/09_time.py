"""
My rows are days: is the future different?
==========================================

Shuffled folds let a model learn from tomorrow. Folds in the order of time do not. If the two disagree, believe the
second: your model will be used on days that come later.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, cross_val_score

from decidewise import WiseRegressor
from decidewise.evaluate import regret_scorer
from decidewise.models import BlockFolds, TimeFolds
from decidewise.problems import TopK

rng = np.random.default_rng(0)
days = pd.date_range("2024-01-01", periods=800, name="day")
X = pd.DataFrame(rng.normal(size=(800, 3)), index=days, columns=["wind", "sun", "load"])
effects = np.cumsum(rng.normal(scale=0.35, size=(800, 3, 24)), axis=0)  # what a feature does changes slowly
prices = 60 + np.einsum("np,npd->nd", X, effects) + rng.normal(scale=3, size=(800, 24))

folds = {
    "shuffled": KFold(5, shuffle=True, random_state=0),
    "blocks": BlockFolds(5),  # earlier and later days
    "the future": TimeFolds(5),  # earlier days alone
    "the future, last 90 days": TimeFolds(5, window=90),
}
scorer, model = regret_scorer(TopK(24, 4, sense="min")), WiseRegressor(exponent=0)
regrets = pd.DataFrame({name: -cross_val_score(model, X, prices, scoring=scorer, cv=cv) for name, cv in folds.items()})
print(regrets.mean().round(1).rename("regret, %"))

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
axes.barh(regrets.columns, regrets.mean())
axes.plot(regrets.to_numpy().T, regrets.columns, "o", color="C1", markersize=4)
axes.invert_yaxis()
axes.set(xlabel="regret, %; a dot is a fold", title="The same model, measured in four ways")
plt.show()

# %%
# *"On shuffled days it looked better than it is. In the order of time, a model of the last 90 days is best."*
