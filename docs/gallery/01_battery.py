"""
A battery and its spikes
========================

A battery buys in cheap hours and sells in expensive ones. Rare, violent spikes make most of the money, whatever the
model: it takes many days to distinguish two regrets, and the intervals say how many are not enough.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from decidewise import GeneralizedLinear, WiseRegressor, compare, decide
from decidewise.data import make_storage

train, test = make_storage(20_500, degree=4, seed=3).split(500)
models = {
    "least squares": LinearRegression(),
    "WISE": WiseRegressor(),
    "WISE, log-linear": WiseRegressor(GeneralizedLinear("gamma")),
}
predictions = {name: model.fit(train.X, train.costs).predict(test.X) for name, model in models.items()}
print(compare(test.problem, {name: rows[:500] for name, rows in predictions.items()}, test.costs[:500]))

# %%
# 500 days leave all open. 20,000 days do not:
print(compare(test.problem, predictions, test.costs))

# %%
# The day with the highest price of the first 500 test rows: what each model would have sold (up) and bought (down).
day = int(test.costs[:500].max(axis=1).argmax())
figure, (above, below) = plt.subplots(2, 1, sharex=True, layout="constrained", figsize=(8, 5))
above.step(np.arange(24), test.costs[day], where="mid", color="tab:gray")
above.set(ylabel="price", title="the day with the largest spike")
for k, (name, model) in enumerate(models.items()):
    plan = decide(model, test.problem, test.X[day : day + 1])[0]
    below.bar(np.arange(24) + 0.27 * (k - 1), plan, width=0.27, label=name)
below.set(xlabel="hour", ylabel="sold (+) or bought (-)")
below.legend()
plt.show()
