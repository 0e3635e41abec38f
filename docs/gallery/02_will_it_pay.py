"""
Will it pay on my table?
========================

``diagnose`` tries the usual ways on your rows and says what each loses, on rows that its models have not seen. It ends
with advice and the call that follows it.
"""

import matplotlib.pyplot as plt
import pandas as pd

from decidewise import diagnose
from decidewise.data import make_storage

data = make_storage(200, degree=4, seed=3, tail=4)  # 200 days of features and prices, and a battery
diagnosis = diagnose(data.problem, data.X, data.costs, max_solves=20_000, random_state=0)
print(diagnosis)

# %%
ways = {
    "the mean of the past": diagnosis.training_mean,
    "least squares": diagnosis.least_squares,
    "the best candidate": diagnosis.best,
    "with unlimited rows": diagnosis.floor,
}
table = pd.DataFrame(ways, index=["regret", "low", "high"]).T
figure, axes = plt.subplots(layout="constrained", figsize=(7, 3))
axes.hlines(table.index, table.low, table.high)
axes.plot(table.regret, table.index, "o")
axes.invert_yaxis()
axes.set(
    xlabel="regret, %, with 95 % intervals", title="What is lost, and what more rows could still gain", xlim=(0, None)
)
plt.show()

# %%
# *"Yes: another model saves money on our own rows, and we know which one to fit."*
