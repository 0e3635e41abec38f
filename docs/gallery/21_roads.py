"""
Does it work on a road network?
===============================

Yes. The roads are a directed graph with cycles, travel times are predicted from the hour and the weather, and one trip
is planned on each day.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

from decidewise import GeneralizedLinear, WiseRegressor, decide, normalized_regret
from decidewise.problems import ShortestPath

rng = np.random.default_rng(4)
places = rng.uniform(size=(120, 2))
distance = np.linalg.norm(places[:, None] - places[None], axis=2)
near = np.argsort(distance, axis=1)[:, 1:6]  # roads to the five nearest places
tails, heads = np.repeat(np.arange(120), 5), near.ravel()
tails, heads = np.concatenate([tails, heads]), np.concatenate([heads, tails])  # both ways
start, goal = int(places.sum(axis=1).argmin()), int(places.sum(axis=1).argmax())
problem = ShortestPath.from_edges(tails, heads, start, goal, lower=0)  # no time is negative, whatever is predicted

length = distance[tails, heads]
X = rng.normal(size=(700, 3))  # the hour, the weather, the day, in some units
effect = rng.normal(scale=0.35, size=(3, len(tails)))
times = length * np.exp(X @ effect) * rng.gamma(8, 1 / 8, size=(700, len(tails)))
train, test = slice(0, 300), slice(300, 700)
models = {"least squares": GeneralizedLinear(), "WISE, log-linear": WiseRegressor(GeneralizedLinear("gamma"))}
for name, model in models.items():
    model.fit(X[train], times[train])
    print(f"{name}: regret {normalized_regret(problem, model.predict(X[test]), times[test]):.1f} %")

# %%
# The routes of one trip, and what each took. One trip proves nothing; the regrets above are those of 400.
trip = 0
routes = {"in hindsight": problem.solve(times[test][trip])}
routes |= {name: decide(model, problem, X[test][[trip]])[0] for name, model in models.items()}
figure, axes = plt.subplots(figsize=(6, 5.5), layout="constrained")
roads = np.stack([places[tails], places[heads]], axis=1)
axes.add_collection(LineCollection(roads, colors="gray", alpha=0.4, linewidths=0.8))
for (name, route), (color, width) in zip(routes.items(), (("C2", 6), ("C1", 3.5), ("C0", 1.5)), strict=True):
    took = f"{name}: {times[test][trip] @ route:.2f}"
    axes.add_collection(LineCollection(roads[route > 0.5], colors=color, linewidths=width, label=took))
axes.plot(*places[[start, goal]].T, "o", color="C2")
axes.set_axis_off()
axes.set_title("One trip")
figure.legend(loc="outside lower center", ncols=3)
plt.show()

# %%
# *"On our own roads, not on a grid: the log-linear model loses a third less time."*
