"""
What does the average consist of?
=================================

``WiseRegressorCV`` tries many models and averages those that decide best on held-out rows. Look at what it tried, what
each model's decisions cost, and which of them are in the average.
"""

import matplotlib.pyplot as plt
import pandas as pd

from decidewise import WiseRegressorCV
from decidewise.data import make_shortest_path
from decidewise.models import family_shares

data = make_shortest_path(300, degree=6, seed=0)
choice = WiseRegressorCV(data.problem, cv=3, random_state=0).fit(data.X, data.costs)

tried = pd.DataFrame(choice.cv_results_).set_index("candidate").sort_values("regret")
tried["weight"] = pd.Series(choice.weights_)
print(tried.loc[tried.status == "scored", ["regret", "standard_error", "weight"]].head(8).round(2))
print(pd.Series(family_shares(choice), name="share").round(2))

# %%
shown = tried.loc[[*choice.members_, "wise", "least squares"]].sort_values("regret")
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3.6))
for label, part in (("in the average", shown[shown.weight > 0]), ("not in it", shown[shown.weight.isna()])):
    axes.errorbar(part.regret, part.index, xerr=part.standard_error, fmt="o", capsize=3, label=label)
axes.set(xlabel="regret on held-out rows, %", title="The members of the average, and two others")
axes.invert_yaxis()
axes.legend()
plt.show()

# %%
# For one model instead of an average, pass ``rule="minimum"``.
#
# *"It is an average of eight log-linear models. Least squares was tried too, and its decisions cost more."*
