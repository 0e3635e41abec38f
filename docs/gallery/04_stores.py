"""
Which stores get the team?
==========================

Each week three of twelve stores get a promotion team. The table has one line for each week and store, with what the
team would have brought. One model serves all stores.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from decidewise import WiseRegressorCV, compare, decide
from decidewise.data import read_table
from decidewise.problems import TopK

rng = np.random.default_rng(3)
weeks, stores = 160, [f"store {letter}" for letter in "ABCDEFGHIJKL"]
table = pd.DataFrame([(week, store) for week in range(weeks) for store in stores], columns=["week", "store"])
table[["stock", "footfall", "days_since_visit"]] = rng.uniform(size=(len(table), 3)).round(2)
pull = 2 * table.footfall + table.days_since_visit * (table.stock > 0.5)
table["uplift"] = (100 * np.exp(pull) * rng.gamma(3, 1 / 3, size=len(table))).round()
print(table.head(3))

data = read_table(
    table, problem=TopK(12, 3), rows="week", items="store", costs="uplift",
    features=["stock", "footfall", "days_since_visit"],
)  # fmt: skip
train, test = data.split(100)
model = WiseRegressorCV(data.problem, cv=3, max_solves=10_000, random_state=0).fit(train.X, train.costs)
predictions = {
    "the busiest stores": test.X[:, :, 1],  # what is done today
    "the choice": model.predict(test.X),
}
print(compare(test.problem, predictions, test.costs).in_units("uplift missed per week"))

# %%
visits = pd.DataFrame(decide(model, test.problem, test.X), index=test.row_names, columns=stores)
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
week, store = visits.to_numpy().nonzero()
axes.plot(week, store, "s", markersize=5)
axes.set(yticks=range(12), yticklabels=stores, xlabel="week of the test", title="Where the team goes")
plt.show()

# %%
# *"Next week the team goes to the stores that the model names. Sending it to the busiest ones costs us more."*
