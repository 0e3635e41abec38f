"""
Known costs beside predicted ones
=================================

Travel times are predicted, tolls are known. A model that only predicts directions cannot be added to tolls; a lifted
one predicts costs in their own units.
"""

import matplotlib.pyplot as plt
import numpy as np

from decidewise import WiseRegressor, normalized_regret
from decidewise.data import make_shortest_path
from decidewise.problems import KnownCosts

data = make_shortest_path(1_400, degree=4, seed=1)
mean = data.costs.mean()
shares = [0.0, 0.5, 1.0, 2.0]
regrets = {"WISE, lifted": [], "WISE that ignores the tolls": []}
for share in shares:
    tolls = np.random.default_rng(0).uniform(0, 2 * share * mean, size=data.problem.n_costs)
    problem = KnownCosts(data.problem, tolls)
    lifted = WiseRegressor(lifted=True).fit(data.X[:400], data.costs[:400]).predict(data.X[400:])
    regrets["WISE, lifted"].append(normalized_regret(problem, lifted, data.costs[400:]))
    blind = data.problem.solve(lifted)  # the decision as if there were no tolls
    paid = ((data.costs[400:] + tolls) * blind).sum(axis=1).mean()
    best = ((data.costs[400:] + tolls) * data.problem.solve(data.costs[400:] + tolls)).sum(axis=1).mean()
    regrets["WISE that ignores the tolls"].append(100 * (paid - best) / best)
print({name: np.round(values, 1).tolist() for name, values in regrets.items()})

# %%
figure, axes = plt.subplots(layout="constrained")
for name, values in regrets.items():
    axes.plot(shares, values, marker="o", label=name)
axes.set(xlabel="mean toll over mean travel time", ylabel="regret, % of the best total", ylim=(0, None))
axes.legend()
plt.show()
