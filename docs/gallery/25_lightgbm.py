"""
Can I keep my LightGBM?
=======================

Yes: ``WiseRegressor`` wraps the learner that you have. Here costs follow rules, which trees find and lines do not.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMRegressor

from decidewise import GeneralizedLinear, WiseRegressor, compare
from decidewise.problems import ShortestPath

rng = np.random.default_rng(0)
problem = ShortestPath(4, 4)
n, d = 1_600, problem.n_costs
X = rng.uniform(-1, 1, size=(n, 4))
jam = (X[:, [0]] > 0.3) & (X[:, [1]] < 0)  # jams on half of the edges, by a rule
mean = 1 + 6 * jam * (np.arange(d) % 2) + rng.uniform(0, 1, size=d)
costs = mean * rng.gamma(5, 1 / 5, size=(n, d))
trees = {"n_estimators": 60, "num_leaves": 8, "n_jobs": 1, "verbose": -1, "random_state": 0}  # too small to share
models = {
    "least squares": GeneralizedLinear(),
    "LightGBM": WiseRegressor(LGBMRegressor(**trees), exponent=0),  # exponent 0: plain squares
    "LightGBM with WISE": WiseRegressor(LGBMRegressor(**trees)),
}
predictions = {name: model.fit(X[:600], costs[:600]).predict(X[600:]) for name, model in models.items()}
comparison = compare(problem, predictions, costs[600:], baseline="LightGBM")
print(comparison)

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3))
axes.barh([row.name for row in comparison.rows], [row.regret.estimate for row in comparison.rows])
axes.invert_yaxis()
axes.set(xlabel="regret, %", title="Trees find rules, and WISE weighs the rows")
plt.show()

# %%
# *"We kept our LightGBM. One line around it made its decisions better."*
