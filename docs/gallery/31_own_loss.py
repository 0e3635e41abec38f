"""
How do I add my own loss?
=========================

A loss is one class with one method. It works in ``DecisionRegressor``, in torch and in jax, and in plans.
``check_loss`` says whether it keeps the contract.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt

from decidewise import DecisionRegressor, compare
from decidewise.data import make_shortest_path
from decidewise.losses import Loss, row_dot
from decidewise.testing import check_loss


@dataclass(frozen=True)
class Hinge(Loss):
    """The structured hinge: p·w - min p·z, with w the best decision in hindsight, made worse by a margin."""

    margin: float = 1.0
    gradient = "subgradient"

    def evaluate(self, prediction, target, rng):
        harder = prediction + self.margin * target.decisions
        gap = target.decisions - target.minimize(harder)
        return row_dot(harder, gap), gap


train, test = make_shortest_path(1_200, degree=6, seed=2).split(200)
check_loss(Hinge(), train.problem)

# %%
losses = {"mse": "mse", "spo+": "spo+", "hinge": Hinge()}
models = {name: DecisionRegressor(train.problem, loss, epochs=30, random_state=0) for name, loss in losses.items()}
predictions = {name: model.fit(train.X, train.costs).predict(test.X) for name, model in models.items()}
comparison = compare(test.problem, predictions, test.costs, baseline="mse")
print(comparison)

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3))
axes.barh([row.name for row in comparison.rows], [row.regret.estimate for row in comparison.rows])
axes.invert_yaxis()
axes.set(xlabel="regret, %", title="A new loss among the others")
plt.show()

# %%
# *"My loss is ten lines, and is compared like any other."*
