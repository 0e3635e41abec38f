"""The model for a table: what `WiseRegressorCV` chooses on prepared features, or a candidate by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.samples import TableSamples
from decidewise.kit.checks import FloatArray, listed, nearest_names
from decidewise.kit.errors import InputError
from decidewise.models import BlockFolds, WiseRegressorCV, default_candidates
from decidewise.models.candidates import demand_candidates
from decidewise.models.learners.averaged import AveragedRegressor
from decidewise.models.selection.families import SPO_PLUS, shares_of
from decidewise.models.selection.null_models import DO_NOTHING, with_nothing
from decidewise.models.selection.out_of_fold import problems_by_row
from decidewise.models.selection.sums import is_sum_over_rows
from decidewise.problems import Problem
from decidewise.problems.levels.problem import of_demand

MEAN, FORECAST, LEAST_SQUARES = "training mean", "forecast", "least squares"
WISE, ITERATED = "wise", "wise iterated"
#: Why a table of demand is not read block by block.
WHOLE = "a table of demand is read whole: pass --no-stream, or a part of the rows as a file of its own."
#: The name of what `WiseRegressorCV` chooses, an average or one model: where it is fitted anew, it is chosen anew.
CHOICE = "choice"


@dataclass(frozen=True)
class Choice:
    """A model for a table: "choice", or the candidate that was asked for, by its name.

    Attributes
    ----------
    weights : dict of str to float
        The candidates that it averages; one alone if it is a single model.
    candidates : dict of str to estimator
        Not fitted, from the simplest to the most complex.
    families : dict of str to str
        The family of each candidate.
    directions : bool
        Whether an average is one of directions, not of costs.
    search : WiseRegressorCV or None
        What was tried, fitted on the samples; None if nothing was.
    """

    name: str
    weights: dict[str, float]
    candidates: dict[str, Any]
    families: dict[str, str]
    prepared: TableFeatures
    directions: bool
    search: WiseRegressorCV | None
    seconds: float

    @property
    def order(self) -> tuple[str, ...]:
        """The name, and the candidates to take if the model fails, the best first."""
        if self.search is None:
            return (self.name,)
        found = self.search.cv_results_
        scored = [found["candidate"][i] for i in np.argsort(found["rank"]) if found["status"][i] == "scored"]
        return (self.name, *(str(name) for name in scored if self.families.get(name) != SPO_PLUS))  # made by the search

    @property
    def shares(self) -> dict[str, float]:
        """The share of each family in the average, the largest first."""
        return shares_of(self.weights, self.families)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the features, and how many candidates there was no time for."""
        statuses = [] if self.search is None else self.search.cv_results_["status"].tolist()
        if not (n_untried := statuses.count("not tried")):
            return tuple(self.prepared.notes_)
        return (
            *self.prepared.notes_,
            f"Not tried, for lack of time or calls: {n_untried} of {len(statuses)} models.",
        )

    def model(
        self,
        name: str,
        *,
        menu: Mapping[str, Any] | None = None,
        problem: Problem | None = None,
        jobs: int | None = None,
    ) -> Any:
        """Return the choice or a candidate, not fitted.

        For other rows, `menu` has the candidates as these need them, such as with a floor where costs are negative, and
        `problem` is that of these rows.
        """
        members = self.weights if name == CHOICE else {name: 1.0}
        models = {member: clone({**self.candidates, **(menu or {})}[member]) for member in members}
        for model in models.values() if problem is not None else ():
            model.set_params(**dict.fromkeys(problems_by_row(model), problem))
        if len(models) == 1:
            return models.popitem()[1]
        shares = list(members.values())
        return AveragedRegressor(list(models.items()), directions=self.directions, weights=shares, n_jobs=jobs)


def choose(
    samples: TableSamples,
    *,
    categories: tuple[str, ...] = (),
    gap: Any = None,
    one_model: bool = False,
    train_solves: int | Literal["auto"] = 0,
    max_solves: int | None = None,
    max_seconds: float | None = None,
    jobs: int | None = None,
    seed: int = 0,
    name: str = CHOICE,
    weights: Mapping[str, float] | None = None,
    in_blocks: bool = False,
) -> Choice:
    """Return what `WiseRegressorCV` chooses on samples, fitted on them; or a candidate by its name, without a search.

    `weights` are those of a choice that was made before, and `gap` lies between training rows and held-out ones. With
    `one_model`, the candidate with the lowest regret is taken instead of an average. `in_blocks` tries only sums over
    rows, for a table that is read block by block. All else is as for `WiseRegressorCV`.
    """
    begin = perf_counter()
    costs, problem = complete(samples)
    if in_blocks and train_solves:
        raise InputError("--train-solves: SPO+ needs all rows in memory, and the table is read block by block.")
    if in_blocks and samples.demand is not None:
        raise InputError(WHOLE)
    prepared = TableFeatures(list(samples.lines), categories=categories, kept=samples.forecast).fit(samples.lines)
    X = samples.features(prepared, of_levels=True)
    forecast = samples.forecast_columns(prepared)
    menu = candidates_of(samples, X, forecast=forecast, every=name != CHOICE)
    if DO_NOTHING in (name, *(weights or ())):
        menu, _ = with_nothing(menu, problem, costs)
    if in_blocks:
        _check_name(name, menu)
        menu = menu.renewed({key: own for key, own in menu.items() if is_sum_over_rows(own, per_item=samples.per_item)})
    search, families = None, menu.families
    candidates: dict[str, Any] = menu
    if name != CHOICE:
        _check_name(name, menu, in_blocks=in_blocks)
        weights = {name: 1.0}
    elif weights is None:
        search = WiseRegressorCV(
            problem,
            **({"candidates": menu} if in_blocks else {"forecast": forecast}),
            cv=_folds(samples, gap),
            rule="minimum" if one_model else "average",
            train_solves=train_solves,
            max_solves=max_solves,
            max_seconds=max_seconds,
            n_jobs=jobs,
            random_state=seed,
        ).fit(X, samples.observed, groups=samples.groups if samples.times is None else None, times=samples.times)
        weights, candidates, families = search.weights_, search.candidates_, search.families_
    directions, seconds = not problem.has_known, perf_counter() - begin
    return Choice(name, dict(weights), dict(candidates), dict(families), prepared, directions, search, seconds)


def candidates_of(samples: TableSamples, X: FloatArray, *, forecast: Any, every: bool) -> Any:
    """Return the candidates for samples with features X, those of levels if there is demand."""
    costs, problem = complete(samples)
    if samples.demand is None or not of_demand(problem):
        return default_candidates(X, costs, lifted=problem.has_known, forecast=forecast, every=every)
    menu = default_candidates(X, costs, every=every)
    return demand_candidates(menu, problem.with_demand(samples.demand), forecast=forecast)


def complete(samples: TableSamples) -> tuple[FloatArray, Problem]:
    """Return the costs and the problem of samples that have both."""
    if samples.costs is None or samples.problem is None:
        raise ValueError("samples must have costs and a problem.")
    return samples.costs, samples.problem


def _folds(samples: TableSamples, gap: Any) -> Any:
    """Return five folds, or fewer where there are not enough rows, times or groups."""
    if samples.times is not None:
        return BlockFolds(max(2, min(5, len(np.unique(samples.times)))), gap=0 if gap is None else gap)
    return min(5, len(samples) - 1 if samples.groups is None else len(np.unique(samples.groups)))


def _check_name(name: str, menu: Mapping[str, Any], *, in_blocks: bool = False) -> None:
    """Raise if there is no such candidate; `in_blocks` if the menu has only those for a table read block by block."""
    if name in (*menu, CHOICE):
        return
    if not in_blocks:
        raise InputError(f"--model: there is no candidate {name!r}{nearest_names(name, [*menu, CHOICE])}")
    raise InputError(
        f"--model: {name!r} needs all rows in memory, and the table is read block by block. Take one of "
        f"{listed(list(menu), most=20)}; or, if it fits into memory, pass --no-stream."
    )
