"""A random search over the parameters of any method, by the regret on training rows set aside."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from typing import Any, Self

import numpy as np

from decidewise.checks import FloatArray, as_integer
from decidewise.errors import DivergenceError, SolverError, TrainingWarning
from decidewise.evaluate import Hindsight
from decidewise.experiments import NotForProblemError
from decidewise.field.ranges import Range, draws
from decidewise.losses import Loss
from decidewise.models.estimator.scored_by_regret import set_aside
from decidewise.problems.base import Problem

#: What a bad draw leads to, such as too large a step or too weak a barrier: a try is lost, not the method.
_LOST = (DivergenceError, SolverError)


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
        a problem, and is raised as a `NotForProblemError`.
    loss : Loss, optional
        The loss of the method. A `ValueError` of a fit whose sentence begins with its name is a refusal too.
    refit : bool
        Whether to fit the chosen parameters again on all rows; otherwise the model of the search is kept.
    validation_fraction : float
        The part of the rows that is set aside.

    Attributes
    ----------
    chosen_ : str
        The chosen values as JSON, with the number of "lost_tries" if some diverged; empty without a choice.
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
        loss: Loss | None = None,
        refit: bool = True,
        validation_fraction: float = 0.25,
    ) -> None:
        self.problem = problem
        self.build = build
        self.ranges = ranges
        self.tries = as_integer(tries, name="tries")
        self.random_state = random_state
        self.refuses = refuses
        self.loss = loss
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
        best, chosen, lost = inf, {}, None
        for values in draws(self.ranges, self.tries, rng):
            try:
                model = self._fit(X, y, kept, values)
                regret = held_out.normalized_regret(model.predict(X[held]))
            except _LOST as error:
                lost, regret = error, inf
            self.tries_.append((values, regret))
            if regret < best:
                best, chosen, self.model_ = regret, values, model
        if lost is not None and not chosen:
            raise lost
        if self.refit:
            with suppress(*_LOST):  # then the model of the search is kept
                self.model_ = self._fit(X, y, every, chosen)
        n_lost = sum(regret == inf for _, regret in self.tries_)
        self.chosen_ = json.dumps(chosen | ({"lost_tries": n_lost} if n_lost else {}))

    def _fit(self, X: FloatArray, y: FloatArray, rows: Any, values: Mapping[str, Any]) -> Any:
        try:
            model = self.build(self.problem.take(rows), **values)
            model.fit(X[rows], y[rows])
        except ValueError as error:
            if self.loss is not None and str(error).startswith(f"{type(self.loss).__name__} "):
                raise NotForProblemError(str(error)) from error
            raise
        if getattr(model, "stopped_", None) == "interrupted":
            raise KeyboardInterrupt
        self.label_seconds_ += float(getattr(model, "label_seconds_", 0.0))
        return model
