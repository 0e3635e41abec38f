"""
I come from PyEPO
=================

``from_pyepo`` takes your ``optModel`` as it is. Training loop, data loader and labels are no longer needed: a loss is a
name, and a model has ``fit`` and ``predict``.
"""

from copy import copy

import matplotlib.pyplot as plt
import numpy as np

from decidewise import DecisionRegressor, WiseRegressor, compare
from decidewise.data import make_shortest_path
from decidewise.problems import from_pyepo


class CheapestHours:  # yours derives from pyepo.model.opt.optModel; this page does without PyEPO
    """Run in the six cheapest of 40 hours."""

    modelSense, num_cost, copy = 1, 40, copy  # 1: minimise

    def setObj(self, costs):
        self.costs = np.asarray(costs)

    def solve(self):
        chosen = np.zeros(self.num_cost)
        chosen[np.argsort(self.costs, kind="stable")[:6]] = 1
        return chosen, self.costs @ chosen


problem = from_pyepo(CheapestHours())
train, test = make_shortest_path(500, degree=6, seed=0).split(200)  # the same numbers as PyEPO's genData
models = {
    "least squares": WiseRegressor(exponent=0),
    "SPO+": DecisionRegressor(problem, "spo+", epochs=10, random_state=0),  # was: SPOPlus(optmodel) and a loop
    "WISE, no solver": WiseRegressor(),
}
predictions = {name: model.fit(train.X, train.costs).predict(test.X) for name, model in models.items()}
comparison = compare(problem, predictions, test.costs)  # was: pyepo.metric.regret(network, optmodel, loader)
print(comparison)

# %%
regrets = [row.regret for row in comparison]
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3))
axes.barh([row.name for row in comparison], [regret.estimate for regret in regrets])
axes.invert_yaxis()
axes.set(xlabel="regret, %", title="Your PyEPO model, three ways to train")
plt.show()

# %%
# *"My PyEPO models still work, and the training script is ten lines now."*
