"""What every other candidate must beat: the forecast at hand or the training mean, and doing nothing where possible."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.dummy import DummyRegressor

from decidewise.kit.checks import FloatArray
from decidewise.kit.interrupts import attempt
from decidewise.models.candidate_menu import Candidates
from decidewise.models.learners.given_forecast import GivenForecast
from decidewise.problems.contract import Problem

#: The name of the candidate with whose costs nothing is done.
DO_NOTHING = "do nothing"
# The largest entry of a decision that counts as none: what an iterative solver leaves.
_NOTHING = 1e-6


class NullModels(NamedTuple):
    """The names of candidates that take nothing to have.

    Attributes
    ----------
    names : tuple of str
        Those that the average is drawn to: the given forecasts, or without any the training mean; and doing nothing.
    constant : tuple of str
        Candidates that predict the same for every row.
    beaten : tuple of str
        The training mean where there is a forecast: for comparison, and never chosen. On a season that was easy it may
        look as good as the forecast.
    """

    names: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()
    beaten: tuple[str, ...] = ()

    @classmethod
    def of(cls, candidates: Mapping[str, Any]) -> Self:
        """Return those among some candidates.

        >>> NullModels.of({"mean": DummyRegressor(), "forecast": GivenForecast([0])})
        NullModels(names=('forecast',), constant=('mean',), beaten=('mean',))
        """
        constant = [name for name, model in candidates.items() if isinstance(model, DummyRegressor)]
        means = [name for name in constant if candidates[name].strategy != "constant"]
        forecasts = [
            name for name, model in candidates.items() if isinstance(getattr(model, "learner", model), GivenForecast)
        ]
        fixed = [name for name in constant if name not in means]
        return cls((*(forecasts or means), *fixed), tuple(constant), tuple(means if forecasts else ()))


def with_nothing(menu: Candidates, problem: Problem, costs: FloatArray) -> tuple[Candidates, int]:
    """Return the menu with doing nothing behind its other null models, if that is possible, and the solver calls.

    >>> from decidewise.problems import Storage
    >>> menu = Candidates({"mean": DummyRegressor(), "median": DummyRegressor(strategy="median"), "other": None})
    >>> list(with_nothing(menu, Storage(3, 1.0, 1.0, efficiency=0.9), np.array([[1.0, 2.0, 6.0]]))[0])
    ['mean', 'median', 'do nothing', 'other']
    """
    idle, n_solves = doing_nothing(problem, costs)
    if idle is None or DO_NOTHING in menu:
        return menu, n_solves
    null = NullModels.of(menu)
    first = {name: menu[name] for name in menu if name in (*null.names, *null.beaten)}
    served = menu.renewed(first | {DO_NOTHING: idle} | menu)
    served.families[DO_NOTHING] = DO_NOTHING
    served.notes[DO_NOTHING] = "the decision zero is possible, and another must be proven better than it"
    return served, n_solves


def doing_nothing(problem: Problem, costs: FloatArray) -> tuple[DummyRegressor | None, int]:
    """Return a model by whose predictions nothing is decided in any row, and the solver calls to find it.

    Flat costs are tried, of the mean size of the costs and of either sign; None if both lead to some decision.

    >>> from decidewise.problems import TopK, Storage
    >>> doing_nothing(Storage(3, 1.0, 1.0, efficiency=0.9), np.array([[1.0, 2.0, 6.0]]))
    (DummyRegressor(constant=array([3., 3., 3.]), strategy='constant'), 2)
    >>> doing_nothing(TopK(3, 1), np.array([[1.0, 2.0, 6.0]]))
    (None, 2)
    """
    size, n_solves = float(np.abs(costs).mean()), 0
    if size == 0:
        return None, 0
    first, every = np.zeros(1, dtype=np.intp), np.arange(len(costs))
    for flat in (size, -size) if problem.sense == "min" else (-size, size):
        # One row says no in most cases; the others are asked only if the problem differs by row.
        for rows in (first,) if problem.n_rows is None else (first, every):
            n_solves += len(rows)
            decisions = attempt(partial(problem.take(rows).solve, np.full((len(rows), costs.shape[1]), flat)))
            if isinstance(decisions, Exception) or np.abs(decisions).max() > _NOTHING:  # it may be unbounded
                break
        else:
            return DummyRegressor(strategy="constant", constant=np.full(costs.shape[1], flat)), n_solves
    return None, n_solves
