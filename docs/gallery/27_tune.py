"""
Can I tune my own learner by regret?
====================================

Yes: ``regret_scorer`` is a scorer of scikit-learn. Pass it as ``scoring`` to a grid search, and the search prefers the
parameters with the best decisions, which need not have the least squared error.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from decidewise import compare
from decidewise.data import make_storage
from decidewise.evaluate import regret_scorer

train, test = make_storage(1_400, degree=4, seed=2, spike_rate=0).split(400)
learner = make_pipeline(StandardScaler(), KNeighborsRegressor())
key = "kneighborsregressor__n_neighbors"
scoring = {"regret": regret_scorer(train.problem), "squared error": "neg_mean_squared_error"}
search = GridSearchCV(learner, {key: [2, 5, 10, 20, 40, 80, 160]}, scoring=scoring, refit="regret", cv=5).fit(
    train.X, train.costs
)
print(search.best_params_)

results = pd.DataFrame(search.cv_results_)
table = results.set_index(results[f"param_{key}"].astype(int).rename("neighbours"))[
    ["mean_test_regret", "mean_test_squared error"]
]
table = table.set_axis(["regret, %", "squared error"], axis=1).abs()
print(table.round(1))

# %%
figure, panels = plt.subplots(1, 2, layout="constrained", figsize=(7, 3.2))
for axes, name in zip(panels, table, strict=True):
    axes.plot(table.index, table[name], marker="o")
    axes.plot(table[name].idxmin(), table[name].min(), "o", markersize=12, fillstyle="none")
    axes.set(xscale="log", xticks=table.index, xticklabels=table.index, xlabel="neighbours", title=name)
    axes.minorticks_off()
plt.show()

# %%
# What each search would have chosen, on later days:
chosen = {}
for name in ("squared error", "regret, %"):
    learner.set_params(**{key: table[name].idxmin()}).fit(train.X, train.costs)
    chosen[f"by {name}"] = learner.predict(test.X)
print(compare(test.problem, chosen, test.costs))

# %%
# *"I kept my pipeline and my grid search. Only the score is another one."*
