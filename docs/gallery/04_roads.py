"""
Routes on a road network
========================

A directed graph with cycles, travel times predicted from the hour and the weather, and one trip.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

from decidewise import GeneralizedLinear, WiseRegressor, normalized_regret
from decidewise.problems import ShortestPath

rng = np.random.default_rng(4)
places = rng.uniform(size=(120, 2))
distance = np.linalg.norm(places[:, None] - places[None], axis=2)
near = np.argsort(distance, axis=1)[:, 1:6]  # roads to the five nearest places
tails, heads = np.repeat(np.arange(120), 5), near.ravel()
tails, heads = np.concatenate([tails, heads]), np.concatenate([heads, tails])  # both ways
start, goal = int(places.sum(axis=1).argmin()), int(places.sum(axis=1).argmax())
problem = ShortestPath.from_edges(tails, heads, start, goal)

length = distance[tails, heads]
X = rng.normal(size=(900, 3))  # the hour, the weather, the day, in some units
effect = rng.normal(scale=0.35, size=(3, len(tails)))
times = length * np.exp(X @ effect) * rng.gamma(8, 1 / 8, size=(900, len(tails)))
train, test = slice(0, 300), slice(300, 900)
models = {"least squares": GeneralizedLinear(), "WISE, log-linear": WiseRegressor(GeneralizedLinear("gamma"))}
predictions = {}
for name, model in models.items():
    model.fit(X[train], times[train])
    predictions[name] = np.maximum(model.predict(X[test]), 0)  # a cycle of negative times would have no shortest path
    print(f"{name}: regret {normalized_regret(problem, predictions[name], times[test]):.1f} %")

# %%
# The routes of the first trip, and what each took: the best in hindsight, and that of each model. One trip proves
# nothing; the regrets above are those of 600.
trip = 0
routes = {"in hindsight": problem.solve(times[test][trip])}
routes |= {name: problem.solve(prediction[trip]) for name, prediction in predictions.items()}
figure, axes = plt.subplots(figsize=(6, 6), layout="constrained")
roads = np.stack([places[tails], places[heads]], axis=1)
axes.add_collection(LineCollection(roads, colors="tab:gray", alpha=0.4, linewidths=0.8))
for (name, route), (color, width) in zip(
    routes.items(), (("tab:green", 6), ("tab:orange", 3.5), ("tab:blue", 1.5)), strict=True
):
    took = f"{name}: {times[test][trip] @ route:.2f}"
    axes.add_collection(LineCollection(roads[route > 0.5], colors=color, linewidths=width, label=took))
axes.plot(*places[[start, goal]].T, "o", color="tab:green")
axes.set(xticks=[], yticks=[], title="one trip")
axes.legend(loc="upper left")
plt.show()
