"""
Can I read the rules?
=====================

An SPO tree splits where decisions change, not where prices change. So it is short, and each of its leaves is one
decision that you can read.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from decidewise import SpoTreeRegressor, compare
from decidewise.problems import TopK

rng = np.random.default_rng(0)
X = pd.DataFrame({"hour": rng.integers(0, 24, 800), "rain_mm": rng.exponential(2, 800), "fuel": rng.normal(size=800)})
routes = ["motorway", "bridge", "old road"]
minutes = pd.DataFrame(30.0, index=X.index, columns=routes)
minutes["motorway"] += 15 * X.hour.between(7, 9)  # the rush hour
minutes["bridge"] += 3 + 10 * (X.rain_mm > 4)  # closed lanes
minutes["old road"] += 8
minutes = minutes.mul(np.exp(0.2 * X.fuel), axis=0) + rng.normal(scale=3, size=(800, 3))  # fuel slows all alike

problem = TopK(3, 1, sense="min")
tree = SpoTreeRegressor(problem, max_depth=3, random_state=0).fit(X[:500], minutes[:500])
print(tree.to_text())
predictions = {"one route for all": minutes[500:] * 0 + minutes[:500].mean(), "the tree": tree.predict(X[500:])}
print(compare(problem, predictions, minutes[500:]).in_units("minutes lost per trip"))

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(8, 4))
tree.plot(axes)
plt.show()

# %%
# *"Take the motorway, except in the rush hour. The fuel price moves all times, and no decision."*
