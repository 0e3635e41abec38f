"""
My model is in Pyomo
====================

Pass the model and the variables whose costs are predicted. Costs of other variables in the objective stay as they are:
here, what it takes to open a depot.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyomo.environ as pyo

from decidewise import WiseRegressor, decide, normalized_regret
from decidewise.problems import from_pyomo

depots, customers = ["north", "south"], ["A", "B", "C"]
model = pyo.ConcreteModel()
model.ship = pyo.Var(depots, customers, domain=pyo.NonNegativeReals)
model.open = pyo.Var(depots, domain=pyo.Binary)
model.need = pyo.Constraint(customers, rule=lambda m, c: sum(m.ship[d, c] for d in depots) == 10)
model.room = pyo.Constraint(depots, rule=lambda m, d: sum(m.ship[d, c] for c in customers) <= 30 * m.open[d])
model.cost = pyo.Objective(expr=40 * sum(model.open.values()) + sum(model.ship.values()))
problem = from_pyomo(model, model.ship)
print(problem, problem.names)

# %%
rng = np.random.default_rng(1)
X = pd.DataFrame(rng.normal(size=(400, 2)), columns=["fuel", "rain"])
lanes = [f"{depot} to {customer}" for depot in depots for customer in customers]
freight = 5 * np.exp(0.6 * X.to_numpy() @ rng.normal(size=(2, 6))) * rng.gamma(9, 1 / 9, size=(400, 6))
fitted = WiseRegressor(lifted=True).fit(X[:200], freight[:200])  # costs in EUR, since opening has a price in EUR
print(f"regret {normalized_regret(problem, fitted.predict(X[200:]), freight[200:]):.1f} %")
shipped = pd.DataFrame(decide(fitted, problem, X[200:]), columns=lanes)

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
axes.barh(lanes, shipped.mean())
axes.set(xlabel="tons per day", title="What the Pyomo model ships")
plt.show()

# %%
# *"My Pyomo model did not change. Only the freight rates are predicted now; the price of a depot is still mine."*
