"""
How much would a better forecast be worth?
==========================================

Before you pay for a better forecast, pretend that you have it. Move your forecast a part of the way to the prices that
came, and count what the decisions then earn.
"""

import matplotlib.pyplot as plt
import pandas as pd

from decidewise import WiseRegressor, compare
from decidewise.data import make_storage

train, test = make_storage(1_300, degree=2, seed=1, spike_rate=0).split(300)  # a battery, days of prices
forecast = WiseRegressor().fit(train.X, train.costs).predict(test.X)
better = {f"{part:.0%}": forecast + part * (test.costs - forecast) for part in (0, 0.1, 0.25, 0.5, 0.75, 1)}
comparison = compare(test.problem, better, test.costs)

worth = pd.DataFrame({row.name: row.mean_difference for row in comparison[1:]}, index=["EUR", "most", "least"])
worth = -365 * worth.T  # less regret is money earned
print(worth.rename_axis("error removed").round(0))

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
axes.bar(worth.index, worth["EUR"] / 1_000, yerr=(worth["EUR"] - worth["least"]) / 1_000, capsize=4, ecolor="gray")
axes.set(
    xlabel="part of the error that is removed", ylabel="thousand EUR per year", title="What a better forecast earns"
)
plt.show()

# %%
# No forecast removes all of the error, since some of it nobody can know.
#
# *"A forecast with a quarter less error would earn us about 16,000 EUR a year. We should not pay more for it."*
