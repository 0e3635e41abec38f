"""Compare models by their regret on held-out rows, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from decidewise.checks import FloatArray
from decidewise.evaluate import Hindsight
from decidewise.models.estimator.traits import as_regressor
from decidewise.models.selection.out_of_fold import OutOfFold
from decidewise.progress import tracked


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


def _listed(names: Sequence[str], most: int = 4) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} others"


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
        NaN for a candidate that failed.
    errors : tuple of str
        Why each candidate failed; empty if it did not.
    seconds : tuple of float
        The time that each candidate took.
    solves : tuple of int
        The solver calls for each candidate.
    """

    truth: Hindsight
    names: tuple[str, ...]
    regrets: FloatArray
    errors: tuple[str, ...]
    seconds: tuple[float, ...]
    solves: tuple[int, ...]

    @classmethod
    def run(cls, held_out: OutOfFold, candidates: Mapping[str, Any]) -> CandidateScores:
        """Score every candidate; record candidates that fail, and raise only if all of them do."""
        regrets = np.full((len(candidates), len(held_out.rows)), np.nan)
        errors, seconds = [], []
        for row, candidate in zip(regrets, tracked(candidates.values(), "Scoring candidates"), strict=True):
            begin = perf_counter()
            try:
                row[:] = held_out.regret(candidate)
                errors.append("")
            except Exception as reason:  # a user's learner may raise anything: report it in its row
                errors.append(f"{type(reason).__name__}: {reason}")
                last = reason
            seconds.append(perf_counter() - begin)
        if all(errors):
            why = "\n".join(f"- {line}" for line in reasons(candidates, errors))
            raise ValueError(f"none of the {len(candidates)} candidates could be fitted and scored.\n{why}") from last
        calls = tuple(0 if error else held_out.n_solves for error in errors)
        return cls(held_out.truth, tuple(candidates), regrets, tuple(errors), tuple(seconds), calls)

    @property
    def n_solves(self) -> int:
        """The total number of solver calls, including those for the best decisions."""
        return len(self.truth.best) + sum(self.solves)

    @cached_property
    def results(self) -> dict[str, Any]:
        """Arrays with one entry per candidate, like those of scikit-learn's searches; see `WiseRegressorCV`."""
        regret = 100 * self.regrets.sum(axis=1) / self.truth.scale
        lowest = int(np.nanargmin(regret))
        return {
            "candidate": np.array(self.names, dtype=object),
            "regret": regret,
            "standard_error": self._standard_errors(self.regrets),
            "difference": regret - regret[lowest],
            # Far smaller than the standard error of either regret: rows that are hard for all models cancel.
            "difference_standard_error": self._standard_errors(self.regrets - self.regrets[lowest]),
            "rank": np.argsort(np.argsort(regret, kind="stable")) + 1,  # failed candidates come last
            "seconds": np.array(self.seconds),
            "n_solves": np.array(self.solves),
            "error": np.array(self.errors, dtype=object),
        }

    @property
    def choice(self) -> int:
        """The index of the first candidate whose regret exceeds the lowest by at most one standard error."""
        within = self.results["difference"] <= self.results["difference_standard_error"]
        return int(within.argmax())

    def regret_of_choosing(self, n_parts: int, rng: np.random.Generator) -> FloatArray:
        """Return the regrets (n,) of choosing: the rows of each of some random parts get the choice on the other parts.

        The regret of the chosen candidate itself is biased downwards: it was chosen for a low regret on these rows.
        """
        regrets = np.empty(self.regrets.shape[1])
        order = rng.permutation(len(regrets))
        for part in np.array_split(order, n_parts):
            others = np.delete(np.arange(len(regrets)), part)
            truth = self.truth.take(others)
            regrets[part] = self.regrets[replace(self, truth=truth, regrets=self.regrets[:, others]).choice, part]
        return regrets

    def _standard_errors(self, regrets: FloatArray) -> FloatArray:
        """Return the standard errors of normalised regrets, or of their differences: (k, n) -> (k,).

        These are the standard errors, to first order, of the ratio `100 · Σ regret / Σ |best|`.
        """
        ratios = regrets.sum(axis=1, keepdims=True) / self.truth.scale
        residuals = regrets - ratios * np.abs(self.truth.best)
        return 100 * np.sqrt(regrets.shape[1]) * residuals.std(axis=1, ddof=1) / self.truth.scale


def table(results: Mapping[str, Any], chosen: int) -> Table:
    """Return the results as a table, with the lowest regret first and the chosen candidate in bold."""
    shown = Table()
    shown.add_column("candidate")
    for heading in ("regret %", "± s.e.", "over lowest", "± s.e.", "seconds"):
        shown.add_column(heading, justify="right")
    keys = ("regret", "standard_error", "difference", "difference_standard_error", "seconds")
    for i in np.argsort(results["rank"]):
        cells = ["failed"] if results["error"][i] else [f"{results[key][i]:.2f}" for key in keys]
        style = "bold" if i == chosen else "dim" if results["error"][i] else None
        shown.add_row(Text(results["candidate"][i]), *cells, style=style)
    return shown
