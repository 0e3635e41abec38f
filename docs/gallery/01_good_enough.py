"""
Is my forecast good enough?
===========================

You have a forecast of every price and run machines in the four cheapest hours. The choice keeps your forecast unless a
model decides better, and the interval says how sure that is.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from decidewise import WiseRegressorCV, compare
from decidewise.problems import TopK

rng = np.random.default_rng(0)
days, hours = 500, [f"{hour:02}h" for hour in range(24)]
features = pd.DataFrame(rng.normal(size=(days, 3)), columns=["wind", "sun", "load"])
expected = 50 + features.to_numpy() @ rng.normal(scale=8, size=(3, 24))
prices = pd.DataFrame(expected * rng.gamma(20, 1 / 20, size=(days, 24)), columns=hours)
problem = TopK(24, 4, sense="min")


def regrets_with(error):
    """Return the regrets of a forecast with this error, and of the choice that may use it."""
    forecast = pd.DataFrame(expected + error * rng.normal(size=(days, 24)), columns=hours)
    X = features.join(forecast)  # the forecast is a feature too
    choice = WiseRegressorCV(problem, forecast=range(3, 27), cv=3, max_solves=10_000, random_state=0)
    choice.fit(X[:250], prices[:250])
    return compare(problem, {"your forecast": forecast[250:], "the choice": choice.predict(X[250:])}, prices[250:])


found = {error: regrets_with(error) for error in (1, 4, 16)}
for error, comparison in found.items():
    print(f"A forecast with errors of about {error} EUR\n{comparison}\n")

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
for place, name in enumerate(("your forecast", "the choice")):
    rows = [comparison[place].regret for comparison in found.values()]
    height = [row.high - row.estimate for row in rows]
    axes.errorbar(list(found), [row.estimate for row in rows], yerr=height, marker="o", capsize=4, label=name)
axes.set(title="A good forecast is kept, a poor one replaced", ylim=(0, None))
axes.set(xlabel="error of the forecast, EUR", ylabel="regret, %")
axes.legend()
plt.show()

# %%
# *"Our forecast is good enough as long as it misses by a few EUR. If it misses by 16, a model decides better."*
