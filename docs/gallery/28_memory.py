"""
My table is larger than memory
==============================

``fit_files`` reads files block by block and adds up what the fit needs. The result is that of a fit in memory.
``decide_files`` and ``evaluate_files`` read in the same way.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from decidewise import WiseRegressor, decide_files, evaluate_files
from decidewise.problems import TopK

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
effects = rng.normal(scale=0.5, size=(2, 6))
for month in range(1, 5):  # in practice, files that you have
    X = pd.DataFrame(rng.normal(size=(5_000, 2)), columns=["wind", "load"])
    prices = 40 * np.exp(X.to_numpy() @ effects) * rng.gamma(8, 1 / 8, size=(5_000, 6))
    X.join(pd.DataFrame(prices, columns=[f"price_{hour}" for hour in range(6)])).to_parquet(folder / f"{month}.parquet")

problem = TopK(6, 2, sense="min")  # run in the two cheapest hours
model = WiseRegressor().fit_files(folder / "[1-3].parquet", features=["wind", "load"], costs="price_*")
print(evaluate_files(model, problem, folder / "4.parquet"))
written = decide_files(model, problem, folder / "4.parquet", folder / "plan.parquet")
plan = pd.read_parquet(folder / "plan.parquet")
print(plan.head(3))

# %%
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3))
axes.bar(plan.columns, 100 * plan.mean())
axes.set(ylabel="% of the rows", title=f"The hours of {written:,} decisions, read from a file")
plt.show()

# %%
# *"The table stays on the disk. A laptop fits it."*
