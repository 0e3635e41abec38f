"""
Can I repeat the paper?
=======================

``make paper`` repeats all 264 published cells. This page repeats a few of one row: shortest paths of degree 4, by exact
fits, for growing numbers of samples.
"""

import matplotlib.pyplot as plt
import numpy as np

from decidewise import GeneralizedLinear, WiseRegressor, normalized_regret
from decidewise.data import make_shortest_path

sizes, trials = [100, 400, 1_600], 8
models = {"MSE": GeneralizedLinear(), "WISE": WiseRegressor()}
regrets = {name: np.zeros((len(sizes), trials)) for name in [*models, "floor"]}
for trial in range(trials):
    data = make_shortest_path(sizes[-1] + 2_000, degree=4, seed=100 + trial)
    train, test = data.split(sizes[-1])
    for k, n in enumerate(sizes):
        for name, model in models.items():
            prediction = model.fit(train.X[:n], train.costs[:n]).predict(test.X)
            regrets[name][k, trial] = normalized_regret(test.problem, prediction, test.costs)
        regrets["floor"][k, trial] = normalized_regret(test.problem, test.mean_costs, test.costs)
for name, values in regrets.items():
    print(name, " ".join(f"{mean:.2f} ± {error:.2f}" for mean, error in
                         zip(values.mean(axis=1), values.std(axis=1) / trials**0.5, strict=True)))  # fmt: skip

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
for name, values in regrets.items():
    error = values.std(axis=1) / trials**0.5
    axes.errorbar(sizes, values.mean(axis=1), yerr=error, marker="o", capsize=3, label=name)
axes.set(xscale="log", xticks=sizes, xticklabels=sizes)
axes.minorticks_off()
axes.set(xlabel="training samples", ylabel="regret, %", ylim=(0, None), title="Shortest paths of degree 4")
axes.legend()
plt.show()

# %%
# *"The published order holds on our own machine: WISE is below MSE at every size."*
