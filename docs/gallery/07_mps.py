"""
Your own model, from an MPS file
================================

Any tool can write its model as MPS or LP. ``read_problem`` reads it, once you say which variables have predicted costs;
whole numbers, other costs and the sense stay as they are in the file.
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
path = Path(tempfile.mkdtemp()) / "shifts.lp"
path.write_text(MODEL)
problem = read_problem(path, costs="run_*")
print(problem, problem.names)

# %%
# From here on it is a problem like any other.
rng = np.random.default_rng(0)
X = rng.normal(size=(800, 4))
prices = np.exp(0.3 * X @ rng.normal(size=(4, 6)) + 0.2 * rng.normal(size=(800, 6)))
model = WiseRegressor(lifted=True).fit(X[:200], prices[:200])  # costs, since starting a crew has a known one
print(f"regret {normalized_regret(problem, model.predict(X[200:]), prices[200:]):.2f} %")
solution = problem.solution(model.predict(X[200:201])[0])
print({name: float(value) for name, value in solution.items() if value})

# %%
shifts = decide(model, problem, X[200:])
plt.figure(figsize=(7, 3), layout="constrained")
plt.bar(problem.names[:6], shifts.mean(axis=0))
plt.ylabel("share of days")
plt.show()
