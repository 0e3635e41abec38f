"""
Adding a loss
=============

A loss is one class with one method. It works in ``DecisionRegressor``, in torch and in jax, and in plans.
``check_loss`` says whether it keeps the contract.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt

from decidewise import DecisionRegressor, compare
from decidewise.data import make_shortest_path
from decidewise.losses import Loss, registry, row_dot
from decidewise.testing import check_loss


@dataclass(frozen=True)
class Perceptron(Loss):
    """The structured perceptron: p·w - min p·z, with w the best decision in hindsight."""

    gradient = "subgradient"

    def evaluate(self, prediction, target, rng):
        gap = target.decisions - target.minimize(prediction)
        return row_dot(prediction, gap), gap


train, test = make_shortest_path(1_200, degree=6, seed=2).split(200)
check_loss(Perceptron(), train.problem)
registry["perceptron"] = Perceptron

# %%
losses = ("mse", "perceptron", "spo+", "wise")
models = {name: DecisionRegressor(train.problem, name, epochs=30, random_state=0) for name in losses}
predictions = {name: model.fit(train.X, train.costs).predict(test.X) for name, model in models.items()}
comparison = compare(test.problem, predictions, test.costs, baseline="mse")
print(comparison)

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3))
axes.barh([row.name for row in comparison.rows], [row.regret.estimate for row in comparison.rows])
axes.set(xlabel="regret, %")
plt.show()
