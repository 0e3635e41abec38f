"""
How sure is that saving?
========================

A saving on a few days may be luck. The interval says what the saving could be on other days like these. If it contains
zero, collect more days before you change anything.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.linear_model import LinearRegression

from decidewise import GeneralizedLinear, WiseRegressor, compare
from decidewise.data import make_storage

train, test = make_storage(6_200, degree=4, seed=1, tail=4).split(200)
old = LinearRegression().fit(train.X, train.costs).predict(test.X)
new = WiseRegressor(GeneralizedLinear("gamma")).fit(train.X, train.costs).predict(test.X)

savings = {}
for days in (30, 100, 300, 1_000, 3_000, 6_000):
    found = compare(test.problem, {"old": old[:days], "new": new[:days]}, test.costs[:days])
    savings[days] = found[1].difference.scaled(-1)
table = pd.DataFrame(savings, index=["saving", "high", "low"]).T[["saving", "low", "high"]]
print(table.rename_axis("days").round(1))

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
days = [f"{n:,}" for n in table.index]
axes.vlines(days, table.low, table.high)
axes.plot(days, table.saving, "o")
axes.axhline(0, color="gray", linewidth=1)
axes.set(xlabel="days measured", ylabel="saving, points of regret", title="More days, narrower intervals")
plt.show()

# %%
# If neighbouring days are alike, pass ``blocks="auto"`` to ``compare``: the intervals become wider, and honest.
#
# *"After a month we could not tell. After a year we are sure that it saves something, and we know about how much."*
