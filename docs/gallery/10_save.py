"""
How do I save and load a model?
===============================

One file holds a fitted model. Loading it runs no code, so a file from someone else cannot harm you. The loaded model
predicts the same to the last bit.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from decidewise import WiseRegressor, decide, load_model, read_model_summary, save_model
from decidewise.data import make_storage

history, new = make_storage(201, degree=2, seed=0, spike_rate=0).split(200)
model = WiseRegressor().fit(history.X, history.costs)

path = Path(tempfile.mkdtemp()) / "battery.dw"
save_model(model, path)
summary = read_model_summary(path)  # without building the model
print(f"{summary.model}: {summary.n_features} features, {summary.n_costs} costs, {path.stat().st_size:,} bytes")

# %%
# Tomorrow, in another program:
loaded = load_model(path)
print("the same predictions:", np.array_equal(loaded.predict(new.X), model.predict(new.X)))
plan = decide(loaded, new.problem, new.X)[0]
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
axes.bar(range(24), plan)
axes.axhline(0, color="gray", linewidth=1)
axes.set(xlabel="hour", ylabel="MWh sold (+), bought (-)", title="Tomorrow's plan, from the loaded model")
plt.show()

# %%
# *"The model is one small file. We mail it, load it and get the same plan."*
