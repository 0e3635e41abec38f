"""
My model is a torch network
===========================

Every loss is a torch module: labels are prepared once, then it takes a batch of predictions.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from decidewise.data import make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.frontends.torch import loss_module

train, test = make_shortest_path(1_300, degree=6, seed=0).split(300)
X, costs, test_X = (torch.tensor(array, dtype=torch.float32) for array in (train.X, train.costs, test.X))


def curve(name, epochs=30):
    """Train a network, and return the regret on the test rows after every third epoch."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(X.shape[1], 32), nn.ReLU(), nn.Linear(32, costs.shape[1]))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    criterion = loss_module(name, train.problem)
    target = criterion.prepare(costs)
    regrets = []
    for epoch in range(epochs):
        for rows in torch.randperm(len(X)).split(32):
            optimizer.zero_grad()
            criterion(network(X[rows]), costs[rows], target[rows]).backward()
            optimizer.step()
        if epoch % 3 == 2:
            with torch.no_grad():
                regrets.append(normalized_regret(test.problem, network(test_X), test.costs))
    return regrets


curves = {name: curve(name) for name in ("mse", "wise", "spo+", "pfy")}
print({name: round(regrets[-1], 2) for name, regrets in curves.items()})

# %%
figure, axes = plt.subplots(layout="constrained")
for name, regrets in curves.items():
    axes.plot(range(3, 31, 3), regrets, marker="o", label=name)
axes.set(xlabel="epoch", ylabel="regret on test rows, %", ylim=(0, None))
axes.legend()
plt.show()

# %%
# *"I kept my network and my loop, and changed the loss."*
