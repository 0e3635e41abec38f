"""Score candidates on held-out rows: in parallel, with costly ones on trial first, and failures as rows."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter, time
from typing import Any

import numpy as np

from decidewise.evaluate import Hindsight
from decidewise.kit.batches import check_time, time_limit
from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import TimeLimitReached, collected, doubt
from decidewise.kit.interrupts import attempt, reason_of
from decidewise.kit.machine import spread_calls
from decidewise.kit.progress import tracked
from decidewise.models.linear.blocks import one_library_thread
from decidewise.models.selection.out_of_fold import OutOfFold, Scored
from decidewise.models.selection.ridge_path import ridge_paths
from decidewise.models.selection.scores import CandidateScores, is_clearly_higher

# A candidate on trial is dropped if its regret on one fold exceeds the best so far by more than this many
# standard errors of the difference. One that is only as good is often dropped, but would hardly be chosen anyway:
# simpler candidates come first.
_STANDARD_ERRORS = 0.5
# A quicker version decides a little worse, so only one that is far worse speaks against the candidate itself.
_STANDARD_ERRORS_OF_PREVIEWS = 2.0
# The share of the candidates on trial for whose full scores a budget of solver calls has to suffice.
_SHARE_ADMITTED = 0.25


@dataclass(frozen=True)
class Outcome:
    """What came of one candidate: how it decides if it was scored, and otherwise why not.

    `doubt` is a warning that the problem does not return optimal decisions. It comes back from the process that scored
    the candidate, since a warning there would not reach the caller.
    """

    status: str
    scored: Scored | None = None
    note: str = ""
    seconds: float = 0.0
    n_solves: int = 0
    doubt: str = ""

    @property
    def regrets(self) -> FloatArray | None:
        """The regrets (n,), if it was scored."""
        return None if self.scored is None else self.scored.regrets

    @property
    def total(self) -> float:
        """The sum of the regrets; infinite if there are none."""
        return np.inf if self.regrets is None else float(self.regrets.sum())

    def after(self, trial: Outcome) -> Outcome:
        """Return this outcome with the time and the solver calls of the trial before it."""
        return replace(self, seconds=self.seconds + trial.seconds, n_solves=self.n_solves + trial.n_solves)


_UNAFFORDABLE = Outcome("not tried", note="max_solves were spent")


def n_models_to_score(candidates: Mapping[str, Any], n_folds: int) -> float:
    """Return for how many models a budget of solver calls has to suffice: those on trial count in part."""
    leads = _leads(candidates)
    if n_folds == 1:
        return len(candidates)
    one_fold = (len(leads) + len(_previews(candidates, leads))) / n_folds
    return len(candidates) - len(leads) + one_fold + len(leads) * _SHARE_ADMITTED * (1 - 1 / n_folds)


def race(
    held_out: OutOfFold,
    candidates: Mapping[str, Any],
    *,
    n_jobs: int | None = None,
    deadline: float = np.inf,
    at_least_one: bool = True,
    max_solves: int | None = None,
    baselines: Mapping[str, FloatArray] | None = None,
) -> CandidateScores:
    """Score candidates, and record those that fail.

    Parameters
    ----------
    candidates : mapping of str to estimator
        From the simplest to the most complex; `Candidates.leads` says which are on trial.
    n_jobs : int, optional
        As in scikit-learn. It does not change the result.
    deadline : float
        A time of `time.time`. What is not scored by then is not tried, or stopped.
    at_least_one : bool
        Whether one must be scored: then the first is, whatever the time.
    max_solves : int, optional
        The largest number of solver calls; candidates on trial are admitted, the best first, as far as it allows.
    baselines : mapping of str to array of shape (n, d), optional
        Predictions of all rows to score beside the candidates, which cannot be chosen.
    """
    leads = _leads(candidates)
    simple = _those(candidates, set(candidates) - set(leads))
    outcomes = _run(held_out, simple, n_jobs, deadline, at_least_one=at_least_one)
    if leads:
        spent = (1 + len(baselines or {})) * len(held_out.rows) + sum(each.n_solves for each in outcomes.values())
        left = None if max_solves is None else max_solves - spent
        outcomes |= _try_out(held_out, candidates, leads, outcomes, n_jobs, deadline, left)
    known = {
        name: Outcome("baseline", held_out.scored_as_known(prediction), n_solves=len(held_out.rows))
        for name, prediction in (baselines or {}).items()
    }
    return assembled(held_out.truth, {name: outcomes[name] for name in candidates} | known)


def assembled(truth: Hindsight, outcomes: Mapping[str, Outcome]) -> CandidateScores:
    """Return the outcomes of candidates as scores; those without regrets have NaN."""
    missing = np.full(len(truth.best), np.nan)
    return CandidateScores(
        truth,
        tuple(outcomes),
        np.array([missing if outcome.regrets is None else outcome.regrets for outcome in outcomes.values()]),
        tuple(outcome.status for outcome in outcomes.values()),
        tuple(outcome.note for outcome in outcomes.values()),
        tuple(outcome.seconds for outcome in outcomes.values()),
        tuple(outcome.n_solves for outcome in outcomes.values()),
        tuple(None if outcome.scored is None else outcome.scored.predictions for outcome in outcomes.values()),
    )


def _try_out(
    held_out: OutOfFold,
    candidates: Mapping[str, Any],
    leads: Mapping[str, str],
    outcomes: Mapping[str, Outcome],
    n_jobs: int | None,
    deadline: float,
    max_solves: int | None,
) -> dict[str, Outcome]:
    """Score the candidates on trial that are not clearly worse on one fold than the best so far."""
    best = min((each.regrets for each in outcomes.values() if each.regrets is not None), key=np.sum, default=None)
    left = sys.maxsize if max_solves is None else max(0, max_solves)
    if best is None or len(held_out.splits) == 1:
        some = _those(candidates, list(leads)[: left // held_out.n_solves])
        found = _run(held_out, some, n_jobs, deadline, at_least_one=best is None)
        return {name: found.get(name, _UNAFFORDABLE) for name in leads}
    fold, others = held_out.trial_fold()
    to_beat = best[np.searchsorted(held_out.rows, fold.rows)]

    def tried_on_fold(some: Mapping[str, Any]) -> dict[str, Outcome]:
        nonlocal left
        names = list(some)[: left // fold.n_solves]
        left -= len(names) * fold.n_solves
        return _run(fold, _those(some, names), n_jobs, deadline)

    previews = tried_on_fold(_previews(candidates, leads))
    tried = {
        name: _dropped(preview, to_beat, fold, "a preview on one fold")
        for name, preview in previews.items()
        if preview.regrets is not None and not _is_promising(preview, to_beat, fold, _STANDARD_ERRORS_OF_PREVIEWS)
    }
    for name, outcome in tried_on_fold(_those(candidates, set(leads.values()) - set(tried))).items():
        tried[name] = outcome.after(previews[name]) if name in previews else outcome
    promising = {name for name, outcome in tried.items() if _is_promising(outcome, to_beat, fold)}
    tried |= tried_on_fold(_those(candidates, [k for k in leads if k not in tried and leads[k] in promising]))
    admitted = [name for name, outcome in tried.items() if _is_promising(outcome, to_beat, fold)]
    admitted = sorted(admitted, key=lambda name: tried[name].total)[: left // others.n_solves]
    found = _run(others, _those(candidates, admitted), n_jobs, deadline)
    for name in leads:
        if name not in tried and leads[name] in tried and leads[name] not in promising:
            found[name] = Outcome("dropped", None, f"not tried, since {leads[name]!r} was not good enough on one fold")
        elif name not in tried:
            found[name] = _UNAFFORDABLE
        elif name not in found:
            found[name] = _dropped(tried[name], to_beat, fold, "one fold")
        else:
            found[name] = found[name].after(tried[name])
            if (rest := found[name].scored) is not None and (first := tried[name].scored) is not None:
                found[name] = replace(found[name], scored=held_out.together([(fold, first), (others, rest)]))
    return found


def _dropped(tried: Outcome, to_beat: FloatArray, fold: OutOfFold, after: str) -> Outcome:
    """Return the outcome on one fold of a candidate that goes no further; why it failed there, or why it is dropped."""
    if tried.status != "scored":
        return tried
    regret, lowest = (100 * regrets / fold.truth.scale for regrets in (tried.total, to_beat.sum()))
    note = f"dropped after {after}, with {regret:.2f} % regret where the best so far had {lowest:.2f} %"
    return Outcome("dropped", None, note, tried.seconds, tried.n_solves)


def _is_promising(
    outcome: Outcome, to_beat: FloatArray, fold: OutOfFold, standard_errors: float = _STANDARD_ERRORS
) -> bool:
    if outcome.regrets is None:
        return False
    return not is_clearly_higher(outcome.regrets - to_beat, fold.truth, standard_errors=standard_errors)


def _run(
    held_out: OutOfFold,
    candidates: Mapping[str, Any],
    n_jobs: int | None,
    deadline: float,
    *,
    at_least_one: bool = False,
) -> dict[str, Outcome]:
    """Score candidates on all rows of `held_out`, those of one ridge path together."""
    paths = ridge_paths(candidates)
    tasks = [
        ([candidates[name] for name in names], np.inf if at_least_one and not place else deadline)
        for place, names in enumerate(paths)
    ]
    found = spread_calls(_score, held_out, tasks, n_jobs=n_jobs)
    outcomes: dict[str, Outcome] = {}
    for names, scored in zip(tracked(paths, "Scoring candidates"), found, strict=True):
        outcomes |= zip(names, scored, strict=True)
    for outcome in outcomes.values():
        if outcome.doubt:
            doubt(outcome.doubt, stacklevel=2)
    return {name: outcomes[name] for name in candidates}


def _score(held_out: OutOfFold, path: Sequence[Any], deadline: float) -> list[Outcome]:
    begin = perf_counter()
    if time() > deadline:
        return [Outcome("not tried", note="max_seconds was reached")] * len(path)
    try:
        # One thread, so that rounding does not depend on the number of jobs.
        with one_library_thread(), collected() as doubts, time_limit(begin + deadline - time()):
            scored = attempt(lambda: held_out.scored(path))
    except TimeLimitReached:
        check_time()  # the limit may be one that the caller set
        seconds = (perf_counter() - begin) / len(path)
        return [Outcome("not tried", note="stopped when max_seconds was reached", seconds=seconds)] * len(path)
    if isinstance(scored, Exception):  # a user's learner may raise anything: report it in its row
        if len(path) > 1:  # some ridges of a path may still be possible
            return [outcome for each in path for outcome in _score(held_out, [each], deadline)]
        return [Outcome("failed", None, reason_of(scored), perf_counter() - begin)]
    seconds = (perf_counter() - begin) / len(path)
    first = doubts[0] if doubts else ""
    return [Outcome("scored", row, "", seconds, held_out.n_solves, first) for row in scored]


def _leads(candidates: Mapping[str, Any]) -> dict[str, str]:
    """Return the candidates on trial with their leads; one whose lead was removed leads itself."""
    leads = getattr(candidates, "leads", {})
    return {name: leads[name] if leads[name] in candidates else name for name in candidates if name in leads}


def _previews(candidates: Mapping[str, Any], leads: Mapping[str, str]) -> dict[str, Any]:
    """Return the quicker versions of leads that have one."""
    return _those(getattr(candidates, "previews", {}), leads.values())


def _those(candidates: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    chosen = set(names)
    return {name: candidate for name, candidate in candidates.items() if name in chosen}
