"""Check that your own problems, losses and models keep their contracts: one line for each.

>>> import numpy as np
>>> from decidewise.problems import Problem
>>> from decidewise.testing import check_problem
>>> class Cheapest(Problem):
...     '''Choose the cheapest of three items.'''
...
...     n_costs = 3
...
...     def minimize(self, costs):
...         return np.eye(3)[costs.argmax(axis=1)]  # a mistake: the most expensive one
>>> check_problem(Cheapest())
Traceback (most recent call last):
AssertionError: row 0: the decision that Cheapest returns for row 4 is better for this row than its own, by 0.77.
minimize must return a decision of least cost, whatever the sense. Does it maximise, or stop before the optimum?

Each check raises an `AssertionError` that says what is wrong and what to do. None needs pytest.
"""

from decidewise.testing.losses import check_loss
from decidewise.testing.models import check_model
from decidewise.testing.problems import check_problem

__all__ = ["check_loss", "check_model", "check_problem"]
