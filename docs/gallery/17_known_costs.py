"""
Half of my costs are known
==========================

Travel times are predicted, tolls are known. ``KnownCosts`` adds the tolls. The model must then predict minutes, not
only which road is faster: ``lifted=True``.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from decidewise import WiseRegressor, decide
from decidewise.data import make_shortest_path
from decidewise.problems import KnownCosts

data = make_shortest_path(1_000, degree=4, seed=1)
train, test = data.split(400)
model = WiseRegressor(lifted=True).fit(train.X, train.costs)  # it needs no tolls

regrets = {}
for share in (0.0, 0.5, 1.0, 2.0):
    tolls = np.random.default_rng(0).uniform(0, 2 * share * data.costs.mean(), size=data.costs.shape[1])
    with_tolls = KnownCosts(data.problem, tolls)
    total = test.costs + tolls
    best = (total * data.problem.solve(total)).sum()
    paid = {name: (total * decide(model, problem, test.X)).sum()
            for name, problem in {"with tolls": with_tolls, "tolls ignored": data.problem}.items()}  # fmt: skip
    regrets[share] = {name: 100 * (spent - best) / best for name, spent in paid.items()}
table = pd.DataFrame(regrets).T
print(table.rename_axis("mean toll over mean time").round(1))

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
for name in table:
    axes.plot(table.index, table[name], marker="o", label=name)
axes.set(xlabel="mean toll over mean travel time", ylabel="regret, % of the best total", ylim=(0, None))
axes.set(title="What it costs to ignore what you know")
axes.legend()
plt.show()

# %%
# *"The tolls are on the bill, so they belong into the decision. The model did not change."*
