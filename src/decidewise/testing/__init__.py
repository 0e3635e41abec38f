"""The contracts of problems, losses and models, as checks of your own in one line each.

>>> import numpy as np
>>> from decidewise.problems import Problem
>>> from decidewise.testing import check_problem
>>> class Cheapest(Problem):
...     '''Choose the cheapest of three items.'''
...
...     n_costs = 3
...
...     def minimize(self, costs):
...         return np.eye(3)[costs.argmax(axis=1)]  # a mistake: the dearest
>>> check_problem(Cheapest())
Traceback (most recent call last):
AssertionError: row 0: the decision of Cheapest for row 4 is better here than its own, by 0.77. minimize must return a
decision of least cost, whatever the sense. Does it maximise, or stop before the optimum?

Each check raises an `AssertionError` with a sentence that says what is wrong and what to do. None needs pytest.
"""

from decidewise.testing.losses import check_loss
from decidewise.testing.models import check_model
from decidewise.testing.problems import check_problem

__all__ = ["check_loss", "check_model", "check_problem"]
