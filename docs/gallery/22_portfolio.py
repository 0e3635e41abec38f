"""
Does it always pay?
===================

No. In this portfolio the returns are linear in the features and the set of decisions is round. All three models have
about the same regret, and least squares is ahead by a fiftieth of a point.
"""

import matplotlib.pyplot as plt

from decidewise import DecisionRegressor, GeneralizedLinear, WiseRegressor, compare
from decidewise.data import make_portfolio

train, test = make_portfolio(1_500, degree=1, seed=7).split(300)
models = {
    "least squares": GeneralizedLinear(),
    "WISE": WiseRegressor(),
    "SPO+": DecisionRegressor(train.problem, "spo+", epochs=20, random_state=0),
}
predictions = {name: model.fit(train.X, train.costs).predict(test.X) for name, model in models.items()}
comparison = compare(test.problem, predictions, test.costs)
print(comparison)

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3))
for place, row in enumerate(comparison.rows):
    axes.plot([row.regret.low, row.regret.high], [place, place], color="C0")
    axes.plot(row.regret.estimate, place, "o", color="C0")
axes.set(yticks=range(len(comparison.rows)), yticklabels=[row.name for row in comparison.rows])
axes.set(xlabel="regret, %, with 95 % intervals", title="Three models that decide alike")
plt.show()

# %%
# *"Here nothing wins, so we keep least squares."*
