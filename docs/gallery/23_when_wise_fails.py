"""
When does WISE fail?
====================

WISE is least squares with weights. If the model cannot describe the costs, both fit the wrong thing. Here the value of
an item is a cubic of its one feature, and a line through it has the wrong slope where it counts. A richer model, or a
loss that sees decisions, does not fail.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from decidewise import DecisionRegressor, GeneralizedLinear, WiseRegressor
from decidewise.problems import TopK

rng = np.random.default_rng(0)
n_items, problem = 50, TopK(50, 1)
x = rng.uniform(-1, 1, size=(600, n_items, 1))
values = 10 * (x[..., 0] ** 3 - 0.65 * x[..., 0])
train, test = slice(0, 300), slice(300, 600)


def share_of_best(model):
    """Return the value that the decisions reach, over the best possible."""
    decisions = problem.solve(model.fit(x[train], values[train]).predict(x[test]))
    return float((decisions * values[test]).sum() / values[test].max(axis=1).sum())


models = {
    "least squares": GeneralizedLinear(),
    "WISE": WiseRegressor(),
    "WISE on a cubic": WiseRegressor(make_pipeline(PolynomialFeatures(3, include_bias=False), GeneralizedLinear())),
    "SPO+": DecisionRegressor(problem, "spo+", init="zeros", epochs=30, learning_rate=0.05, random_state=0),
}
found = {}
for name, model in models.items():
    found[name] = share_of_best(model)
    print(f"{name}: {found[name]:.3f} of the best value")

# %%
grid = np.linspace(-1, 1, 50)
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
axes.plot(grid, 10 * (grid**3 - 0.65 * grid), color="gray", label="value of an item")
line = models["least squares"].predict(np.tile(grid[None, :, None], (1, 1, 1)))[0]
axes.plot(grid, line, color="C1", label="least squares")
axes.set(xlabel="the feature", ylabel="value", title="The line slopes the wrong way where the best item is")
axes.legend()
plt.show()

# %%
# *"WISE is no better than its features. With a cubic it finds the best item."*
