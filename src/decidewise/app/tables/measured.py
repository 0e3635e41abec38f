"""The models of a comparison on held-out rows: how each decides, or why it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from decidewise.app.tables.choice import Choice, complete
from decidewise.app.tables.samples import TableSamples
from decidewise.evaluate import Hindsight
from decidewise.kit.checks import FloatArray, as_matrix
from decidewise.kit.interrupts import attempt, reason_of
from decidewise.kit.progress import Line
from decidewise.models import default_candidates
from decidewise.models.selection.folds import Splits
from decidewise.models.selection.time_folds import Rows
from decidewise.problems.views import lift


class MeasuredModel(NamedTuple):
    """How a model decides held-out rows: arrays with one entry per row, and the time of its last fit."""

    predictions: FloatArray
    decisions: FloatArray
    regrets: FloatArray
    seconds: float


@dataclass
class Measured:
    """Models by what they decide for held-out rows, fitted on the training rows of each; and why others failed."""

    samples: TableSamples
    choice: Choice
    splits: Splits
    rows: Rows
    truth: Hindsight
    most: int | None
    found: dict[str, MeasuredModel] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    n_solves: int = 0

    def add(self, name: str, line: Line) -> bool:
        """Measure a model unless that is done, or `most` are; return whether it is measured."""
        tried = len(self.found) + len(self.failures)
        if name not in self.found and name not in self.failures and (self.most is None or tried < self.most):
            model = attempt(lambda: self._measure(name))
            if isinstance(model, Exception):
                self.failures[name] = reason_of(model)
            else:
                self.found[name] = model
            line.advance()
        return name in self.found

    def _measure(self, name: str) -> MeasuredModel:
        costs, problem = complete(self.samples)
        jobs = None if self.choice.search is None else self.choice.search.n_jobs
        predictions, seconds = np.empty((len(self.rows), costs.shape[1])), 0.0
        for (train, test), menu in zip(self.splits, self._menus, strict=True):
            held = np.isin(self.rows, test)
            if not held.any():
                continue
            begin = perf_counter()
            model = self.choice.model(name, menu=menu, problem=problem.take(train), jobs=jobs)
            model.fit(self._features[train], costs[train])
            seconds = perf_counter() - begin
            predictions[held] = np.reshape(model.predict(self._features[self.rows[held]]), (held.sum(), -1))
        lifted = self.truth.problem.lifted
        lifted_costs = lift(lifted, as_matrix(predictions, name="the prediction"))
        self.n_solves += len(self.rows)
        decisions = lifted.solve(lifted_costs)
        return MeasuredModel(predictions, decisions, self.truth.regret_of(decisions), seconds)

    @cached_property
    def _features(self) -> FloatArray:
        return self.samples.features(self.choice.prepared)

    @cached_property
    def _menus(self) -> list[Mapping[str, Any]]:
        """The candidates as the training rows of each split need them: a first negative cost may come late."""
        forecast, lifted = self.samples.forecast_columns(self.choice.prepared), self.truth.problem.has_known
        costs, _ = complete(self.samples)
        return [
            default_candidates(self._features[train], costs[train], lifted=lifted, forecast=forecast, every=True)
            for train, _ in self.splits
        ]
