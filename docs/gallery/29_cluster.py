"""
Can a cluster fit it?
=====================

The exact fit is a sum over rows, so partitions can be summed wherever they are. Here the workers of a small Dask
cluster are threads; with the address of a real one, nothing else changes.
"""

import matplotlib.pyplot as plt
import numpy as np
from dask import array
from distributed import Client

from decidewise import WiseRegressor
from decidewise.data import make_shortest_path
from decidewise.operate import distributed

data = make_shortest_path(40_000, degree=4, seed=0)
X, costs = (array.from_array(rows, chunks=(4_000, -1)) for rows in (data.X, data.costs))  # in practice, from files

with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"):
    X, costs = X.persist(), costs.persist()  # one copy, on the workers
    model = distributed.fit(WiseRegressor(), X, costs)
    print(distributed.evaluate(model, data.problem, X, costs))

in_memory = WiseRegressor().fit(data.X, data.costs)
difference = np.abs(model.predict(data.X) - in_memory.predict(data.X)).max()
print(f"largest difference from the fit in memory: {difference:.1e}")

# %%
plt.figure(figsize=(5, 5), layout="constrained")
some = slice(0, 200)
plt.plot(in_memory.predict(data.X[some]).ravel(), model.predict(data.X[some]).ravel(), ".", ms=2)
plt.xlabel("predicted, fitted in memory")
plt.ylabel("predicted, fitted on the cluster")
plt.show()

# %%
# *"The cluster gives the same model as one machine."*
