"""Compare models by their regret on held-out rows, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.evaluate import Hindsight
from decidewise.kit.checks import FloatArray
from decidewise.models.estimator.learner import as_regressor


def named(candidates: Any) -> dict[str, Any]:
    """Return candidates by name; candidates in a list are named by position and class.

    >>> from decidewise.models import WiseRegressor
    >>> named([WiseRegressor()])
    {'1 WiseRegressor': WiseRegressor()}
    """
    if hasattr(candidates, "fit") or not isinstance(candidates, Iterable) or isinstance(candidates, str):
        raise TypeError(
            "candidates must be a mapping of names to estimators or a list of estimators, such as [WiseRegressor()]; "
            f"got an object of type {type(candidates).__name__}."
        )
    if not isinstance(candidates, Mapping):
        candidates = {f"{place} {type(model).__name__}": model for place, model in enumerate(candidates, start=1)}
    if not candidates:
        raise ValueError("candidates is empty; pass at least one estimator, or None for the default ones.")
    return {str(name): as_regressor(model, name=f"candidate {name!r}") for name, model in candidates.items()}


def reasons(names: Iterable[str], errors: Iterable[str]) -> list[str]:
    """Return why candidates failed: one line per reason, with the candidates that failed for it.

    >>> for line in reasons(["a", "b", "c, too", "d"], ["no rows", "", "no rows", "no licence"]):
    ...     print(line)
    'a', 'c, too': no rows
    'd': no licence
    """
    failed: dict[str, list[str]] = {}
    for name, error in zip(names, errors, strict=True):
        if error:
            failed.setdefault(error, []).append(name)
    return [f"{_listed(candidates)}: {error}" for error, candidates in failed.items()]


def none_scored(notes: Mapping[str, str]) -> ValueError:
    """Return the error for candidates of which none is left to choose, with the outcome of each."""
    why = "\n".join(f"- {line}" for line in reasons(notes, notes.values()))
    return ValueError(f"none of the {len(notes)} candidates could be fitted and scored.\n{why}")


def _listed(names: Sequence[str], most: int = 4) -> str:
    if len(names) <= most + 1:
        return ", ".join(map(repr, names))
    return f"{', '.join(map(repr, names[:most]))} and {len(names) - most} others"


@dataclass(frozen=True)
class CandidateScores:
    """Candidates scored on the same rows.

    Attributes
    ----------
    truth : Hindsight
        The best decisions for the n rows.
    names : tuple of str
        The names of the k candidates, from the simplest to the most complex.
    regrets : ndarray of shape (k, n)
        NaN for a candidate that was not scored.
    statuses : tuple of str
        What came of each candidate: "scored"; "baseline", scored too, but not to be chosen; "dropped" after a trial on
        one fold; "failed"; or "not tried" for lack of time or of solver calls.
    notes : tuple of str
        Why each candidate was not scored; empty if it was.
    seconds : tuple of float
        The time that each candidate took.
    solves : tuple of int
        The solver calls for each candidate.
    predictions : tuple of ndarray of shape (m, d), or None
        Comparable predictions of a sample of the rows, for candidates that were scored.
    """

    truth: Hindsight
    names: tuple[str, ...]
    regrets: FloatArray
    statuses: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: tuple[float, ...]
    solves: tuple[int, ...]
    predictions: tuple[FloatArray | None, ...] = ()

    @property
    def n_solves(self) -> int:
        """The total number of solver calls, including those for the best decisions."""
        return len(self.truth.best) + sum(self.solves)

    @property
    def errors(self) -> tuple[str, ...]:
        """Why candidates failed; empty for the others."""
        return tuple(note if status == "failed" else "" for status, note in zip(self.statuses, self.notes, strict=True))

    @cached_property
    def results(self) -> dict[str, Any]:
        """Arrays with one entry per candidate, like those of scikit-learn's searches; see `WiseRegressorCV`.

        An error if no candidate was scored: then there is nothing to choose.
        """
        if "scored" not in self.statuses:
            rows = zip(self.names, self.notes, self.statuses, strict=True)
            raise none_scored({name: note for name, note, status in rows if status != "baseline"})
        regret = 100 * self.regrets.sum(axis=1) / self.truth.scale
        status = np.array(self.statuses, dtype=object)
        best = lowest({"status": status, "regret": regret})
        return {
            "candidate": np.array(self.names, dtype=object),
            "regret": regret,
            "standard_error": ratio_errors(self.regrets, self.truth),
            "difference": regret - regret[best],
            # Far smaller than the standard error of either regret: rows that are hard for all models cancel.
            "difference_standard_error": ratio_errors(self.regrets - self.regrets[best], self.truth),
            "rank": np.argsort(np.argsort(regret, kind="stable")) + 1,  # candidates without a score come last
            "seconds": np.array(self.seconds),
            "n_solves": np.array(self.solves),
            "status": status,
            "note": np.array(self.notes, dtype=object),
            "error": np.array(self.errors, dtype=object),
        }

    @property
    def ranked(self) -> list[str]:
        """The names of the candidates that were scored, the lowest regret first."""
        return [self.names[i] for i in np.argsort(self.results["rank"]) if self.statuses[i] == "scored"]

    def plus(self, other: CandidateScores) -> CandidateScores:
        """Return these scores and those of other candidates on the same rows."""
        return CandidateScores(
            self.truth,
            self.names + other.names,
            np.vstack([self.regrets, other.regrets]),
            self.statuses + other.statuses,
            self.notes + other.notes,
            self.seconds + other.seconds,
            self.solves + other.solves,
            self.predictions + other.predictions,
        )

    def beside(self, baselines: Iterable[str]) -> CandidateScores:
        """Return the scores with some candidates as baselines: scored for comparison, and not to be chosen."""
        known = set(baselines)
        statuses = [
            "baseline" if name in known and was == "scored" else was
            for name, was in zip(self.names, self.statuses, strict=True)
        ]
        return replace(self, statuses=tuple(statuses))

    def without(self, failed: Mapping[str, str]) -> CandidateScores:
        """Return the scores with some candidates as failed, by name, with the reasons."""
        gone = np.array([name in failed for name in self.names])
        return replace(
            self,
            regrets=np.where(gone[:, None], np.nan, self.regrets),
            statuses=tuple("failed" if new else was for new, was in zip(gone, self.statuses, strict=True)),
            notes=tuple(failed.get(name, was) for name, was in zip(self.names, self.notes, strict=True)),
        )

    def regret_of_choosing(self, n_parts: int, rng: np.random.Generator) -> FloatArray:
        """Return the regrets (n,) of choosing: the rows of each of some random parts get the choice on the other parts.

        The regret of the chosen candidate itself is biased downwards: it was chosen for a low regret on these rows.
        """
        regrets = np.empty(self.regrets.shape[1])
        order = rng.permutation(len(regrets))
        for part in np.array_split(order, n_parts):
            others = np.delete(np.arange(len(regrets)), part)
            truth = self.truth.take(others)
            chosen = lowest(replace(self, truth=truth, regrets=self.regrets[:, others]).results)
            regrets[part] = self.regrets[chosen, part]
        return regrets


def close(results: Mapping[str, Any], *, standard_errors: float = 1.0) -> npt.NDArray[np.intp]:
    """Return the places of candidates whose regret exceeds the lowest by at most some standard errors, in order."""
    within = results["difference"] <= standard_errors * results["difference_standard_error"]
    return np.flatnonzero(within & (results["status"] == "scored"))


def lowest(results: Mapping[str, Any]) -> int:
    """Return the place of the candidate with the lowest regret of those that can be chosen."""
    return int(np.nanargmin(np.where(results["status"] == "scored", results["regret"], np.nan)))


def is_clearly_higher(more: FloatArray, truth: Hindsight, *, standard_errors: float) -> bool:
    """Whether regrets that differ by `more` (n,) are higher on average by more than some standard errors."""
    error = ratio_errors(more[None], truth)[0]
    return bool(100 * more.sum() / truth.scale > standard_errors * error)


def ratio_errors(regrets: FloatArray, truth: Hindsight) -> FloatArray:
    """Return the standard errors of normalised regrets, or of their differences: (k, n) -> (k,).

    These are the standard errors, to first order, of the ratio `100 · Σ regret / Σ |best|`.
    """
    ratios = regrets.sum(axis=1, keepdims=True) / truth.scale
    residuals = regrets - ratios * np.abs(truth.best)
    spread = residuals.std(axis=1, ddof=1) if regrets.shape[1] > 1 else np.full(len(regrets), np.inf)
    return 100 * np.sqrt(regrets.shape[1]) * spread / truth.scale
