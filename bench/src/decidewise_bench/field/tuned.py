"""A random search over the parameters of any method, by the regret on training rows set aside."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any, Self

import numpy as np

from decidewise.evaluate import Hindsight
from decidewise.kit.checks import FloatArray, as_integer
from decidewise.kit.errors import NotForProblemError, TrainingWarning
from decidewise.kit.interrupts import attempt, reason_of
from decidewise.models.estimator.scored_by_regret import set_aside
from decidewise.problems.contract import Problem
from decidewise_bench.field.ranges import Range, draws


class TunedRegressor:
    """Fit a method with the parameters that decide best on rows set aside.

    Parameters
    ----------
    problem : Problem
    build : callable
        Called as `build(problem, **values)`; returns an estimator with `fit` and `predict`.
    ranges : mapping of str to Range
        What to search. If it is empty there is nothing to choose: the method is fitted once, on all rows.
    tries : int
        The number of draws from the ranges.
    random_state : int
        Sets rows aside and draws values: the same rows for all methods with the same state.
    refuses : callable, optional
        Called as `refuses(costs)` before the first fit. A `ValueError` is the method's own word that it is not for such
        a problem, and is raised as a `NotForProblemError`. A fit that raises one itself refuses too; any other
        exception, such as after too large a step, loses its try and not the method.
    refit : bool
        Whether to fit the chosen parameters again on all rows; otherwise the model of the search is kept.
    validation_fraction : float
        The part of the rows that is set aside.

    Attributes
    ----------
    chosen_ : str
        The chosen values as JSON, with the number of "lost_tries" if some failed, and why the "lost_refit" did, if so:
        then the model of the search is kept. Empty without a choice.
    tries_ : list of (dict, float)
        The values of each try, and the regret on the rows set aside in percent; infinite for a lost try.

    Examples
    --------
    >>> from functools import partial
    >>> from decidewise.data import make_shortest_path
    >>> from decidewise.models import SpoTreeRegressor
    >>> train, test = make_shortest_path(120, degree=4, seed=0).split(100)
    >>> depth = {"max_depth": Range(1, 4, "a small tree", whole=True)}
    >>> tree = partial(SpoTreeRegressor, random_state=0)
    >>> model = TunedRegressor(train.problem, tree, depth, tries=3, random_state=0)
    >>> model.fit(train.X, train.costs).chosen_
    '{"max_depth": 3}'
    """

    def __init__(
        self,
        problem: Problem,
        build: Callable[..., Any],
        ranges: Mapping[str, Range],
        *,
        tries: int,
        random_state: int,
        refuses: Callable[[FloatArray], None] | None = None,
        refit: bool = True,
        validation_fraction: float = 0.25,
    ) -> None:
        self.problem = problem
        self.build = build
        self.ranges = ranges
        self.tries = as_integer(tries, name="tries")
        self.random_state = random_state
        self.refuses = refuses
        self.refit = refit
        self.validation_fraction = validation_fraction

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Search, and fit the best on features X and costs y."""
        self.label_seconds_ = 0.0
        self.tries_: list[tuple[dict[str, Any], float]] = []
        if self.refuses is not None:
            try:
                self.refuses(y)
            except ValueError as refusal:
                raise NotForProblemError(str(refusal)) from refusal
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrainingWarning)  # that the start was better is a result like any other
            self._search(X, y)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Return predicted costs (n, d)."""
        return np.asarray(self.model_.predict(X))

    def _search(self, X: FloatArray, y: FloatArray) -> None:
        every = np.arange(len(X))
        if not self.ranges:
            self.model_, self.chosen_ = self._fit(X, y, every, {}), ""
            return
        rng = np.random.default_rng(self.random_state)
        kept, held = set_aside(len(X), self.validation_fraction, "random", rng, otherwise="another method")
        held_out = Hindsight.of(self.problem.take(held), y[held])
        best, chosen, lost, refit = inf, {}, None, None

        def scored(values: Mapping[str, Any]) -> tuple[float, Any]:
            model = self._fit(X, y, kept, values)
            return held_out.normalized_regret(model.predict(X[held])), model

        for values in draws(self.ranges, self.tries, rng):
            found = _unless_refused(attempt(partial(scored, values)))
            regret, model = (inf, None) if isinstance(found, Exception) else found
            lost = found if isinstance(found, Exception) else lost
            self.tries_.append((values, regret))
            if regret < best:
                best, chosen, self.model_ = regret, values, model
        if lost is not None and not chosen:
            raise lost
        if self.refit:
            refit = _unless_refused(attempt(lambda: self._fit(X, y, every, chosen)))
            self.model_ = self.model_ if isinstance(refit, Exception) else refit
        n_lost = sum(regret == inf for _, regret in self.tries_)
        said: dict[str, Any] = {"lost_tries": n_lost} if n_lost else {}
        said |= {"lost_refit": reason_of(refit)} if isinstance(refit, Exception) else {}
        self.chosen_ = json.dumps(chosen | said)

    def _fit(self, X: FloatArray, y: FloatArray, rows: Any, values: Mapping[str, Any]) -> Any:
        model = self.build(self.problem.take(rows), **values)
        model.fit(X[rows], y[rows])
        if getattr(model, "stopped_", None) == "interrupted":
            raise KeyboardInterrupt
        self.label_seconds_ += float(getattr(model, "label_seconds_", 0.0))
        return model


def _unless_refused(found: Any) -> Any:
    if isinstance(found, NotForProblemError):
        raise found
    return found
