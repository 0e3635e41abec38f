"""
My model is an MPS file
=======================

Any tool can write its model as MPS or LP. ``read_problem`` reads it, once you say which variables have predicted costs.
Whole numbers, other costs and the sense stay as they are in the file.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from decidewise import WiseRegressor, decide, normalized_regret
from decidewise.problems import read_problem

MODEL = """maximize
 profit: 0 run_1 + 0 run_2 + 0 run_3 + 0 run_4 + 0 run_5 + 0 run_6 - 1.5 start
subject to
 crew: run_1 + run_2 + run_3 + run_4 + run_5 + run_6 - 3 start <= 0
 rest_1: run_1 + run_2 + run_3 <= 2
 rest_2: run_4 + run_5 + run_6 <= 2
bounds
 start <= 2
binary
 run_1 run_2 run_3 run_4 run_5 run_6
general
 start
end
"""
path = Path(tempfile.mkdtemp()) / "shifts.lp"  # an .mps file is read in the same way
path.write_text(MODEL)
problem = read_problem(path, costs="run_*")
print(problem, problem.names)

# %%
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))
prices = np.exp(0.3 * X @ rng.normal(size=(4, 6)) + 0.2 * rng.normal(size=(400, 6)))
model = WiseRegressor(lifted=True).fit(X[:200], prices[:200])  # costs in EUR, since starting a crew has a price in EUR
print(f"regret {normalized_regret(problem, model.predict(X[200:]), prices[200:]):.2f} %")
solution = problem.solution(model.predict(X[200:201])[0])
print({name: float(value) for name, value in solution.items() if value})

# %%
shifts = decide(model, problem, X[200:])
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3))
axes.bar(problem.names[:6], shifts.mean(axis=0))
axes.set(ylabel="share of days", title="How often each shift runs")
plt.show()

# %%
# *"The planners keep their tool. They export the model, and I read the file."*
