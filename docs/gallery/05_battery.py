"""
When should the battery buy and sell?
=====================================

A battery buys in cheap hours and sells in expensive ones. Rare spikes make much of the money, so a model should be
judged by the plan that it makes, not by its squared error.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.linear_model import LinearRegression

from decidewise import WiseRegressorCV, compare, decide
from decidewise.data import make_storage

train, test = make_storage(2_300, degree=4, seed=3).split(300)
models = {
    "least squares": LinearRegression(),
    "the choice": WiseRegressorCV(train.problem, cv=3, max_solves=10_000, random_state=0),
}
predictions = {name: model.fit(train.X, train.costs).predict(test.X) for name, model in models.items()}
comparison = compare(test.problem, predictions, test.costs)
print(comparison.in_units("EUR lost per day"))

# %%
# One day: the prices, and what each model would have sold (up) and bought (down).
day = int(test.costs[:100].max(axis=1).argmax())
plans = pd.DataFrame({name: decide(model, test.problem, test.X[[day]])[0] for name, model in models.items()})
figure, (above, below) = plt.subplots(2, 1, sharex=True, layout="constrained", figsize=(7, 4.5))
above.step(range(24), test.costs[day], where="mid", color="gray")
above.set(ylabel="EUR per MWh", title="A day with a spike")
for shift, name in ((-0.2, "least squares"), (0.2, "the choice")):
    below.bar(plans.index + shift, plans[name], width=0.4, label=name)
below.set(xlabel="hour", ylabel="MWh sold (+), bought (-)")
below.legend()
plt.show()

# %%
# *"The new plan earns about 40 EUR more per day, give or take 13. That is what counts, not the squared error."*
