"""
Every row has another capacity
==============================

The van is not the same every day. Pass one capacity per row, and split the data as a whole: the rows of the problem
move with the rows of the table.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from decidewise import WiseRegressorCV, compare, decide
from decidewise.data import Dataset
from decidewise.problems import Knapsack

rng = np.random.default_rng(0)
days = pd.DataFrame({"demand": rng.normal(size=400), "holiday": rng.integers(0, 2, size=400)})
days["van_kg"] = rng.choice([50, 80, 120], size=400)
weights = rng.uniform(5, 30, size=12)
effects = rng.normal(scale=0.6, size=(2, 12))
values = weights * np.exp(days[["demand", "holiday"]].to_numpy() @ effects) * rng.gamma(8, 1 / 8, size=(400, 12))

problem = Knapsack(weights, days[["van_kg"]].to_numpy())  # one capacity per row
data = Dataset(days[["demand", "holiday"]].to_numpy(float), values, problem)
train, test = data.split(200)
model = WiseRegressorCV(train.problem, cv=3, max_solves=5_000, random_state=0).fit(train.X, train.costs)
by_weight = np.tile(train.costs.mean(axis=0), (len(test), 1))
print(compare(test.problem, {"mean values": by_weight, "the choice": model.predict(test.X)}, test.costs))

# %%
packed = pd.DataFrame(decide(model, test.problem, test.X), columns=[f"{weight:.0f} kg" for weight in weights])
share = 100 * packed.groupby(days.van_kg[200:].to_numpy()).mean()
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
share.T.plot.bar(ax=axes, rot=0, width=0.8)
axes.set(xlabel="item, by its weight", ylabel="% of the days", title="What is packed, by the size of the van")
axes.legend([f"van of {size} kg" for size in share.index])
plt.show()

# %%
# *"Each day is planned with its own van, and judged with it."*
