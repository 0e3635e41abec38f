"""
My model is in CVXPY
====================

Name the parameter that is predicted. ``from_cvxpy`` compiles the model once; then it is a problem like any other,
solved for many rows at once.
"""

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from decidewise import WiseRegressor, compare, decide
from decidewise.problems import from_cvxpy

returns, share = cp.Parameter(5), cp.Variable(5)
limits = [cp.sum(share) == 1, share >= 0, share <= 0.4, cp.norm(share - 0.2) <= 0.35]  # near equal shares
problem = from_cvxpy(cp.Problem(cp.Maximize(returns @ share), limits), returns)
print(problem)

# %%
rng = np.random.default_rng(0)
names = ["stocks", "bonds", "gold", "land", "cash"]
X = rng.normal(size=(500, 3))
came = pd.DataFrame(1 + np.exp(X @ rng.normal(scale=0.5, size=(3, 5))) * rng.gamma(4, 1 / 4, (500, 5)), columns=names)
model = WiseRegressor().fit(X[:200], came[:200])
predictions = {"mean of the past": came[200:] * 0 + came[:200].mean(), "WISE": model.predict(X[200:])}
print(compare(problem, predictions, came[200:]))

# %%
shares = pd.DataFrame(decide(model, problem, X[200:230]), columns=names)
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
axes.stackplot(shares.index, shares.T, labels=names)
axes.set(xlabel="month", ylabel="share", title="What the CVXPY model decides")
figure.legend(loc="outside right center")
plt.show()

# %%
# *"I kept my CVXPY model. One line made it a problem that models can be judged by."*
