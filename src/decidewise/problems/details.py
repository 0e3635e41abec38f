"""Decisions with what a solver proved of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.kit.checks import BoolArray, FloatArray


@dataclass(frozen=True)
class SolveDetails:
    """What `problem.solve_details` returns: the decisions, and by row what the solver proved of them.

    Attributes
    ----------
    decisions : ndarray of shape (n, n_costs)
    status : ndarray of str, of shape (n,)
        "optimal", to within the `gap` that the problem allows; "limit" if a limit came first; "failed" if there is no
        decision, which is then NaN.
    objective : ndarray of shape (n,)
        The value of each decision, known costs included, in the problem's own sense.
    bound : ndarray of shape (n,)
        No decision of the row is better than this.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> details = TopK(3, 1).solve_details([[1.0, 2.0, 3.0], [5.0, 1.0, 4.0]])
    >>> details
    SolveDetails(2 rows: 2 optimal)
    >>> details.objective, details.gap
    (array([3., 5.]), array([0., 0.]))
    >>> details.to_frame()
        status  objective  bound  gap
    0  optimal        3.0    3.0  0.0
    1  optimal        5.0    5.0  0.0
    """

    decisions: FloatArray
    status: npt.NDArray[np.str_]
    objective: FloatArray
    bound: FloatArray

    @classmethod
    def of(cls, decisions: FloatArray, objective: FloatArray, gaps: FloatArray, stopped: BoolArray) -> SolveDetails:
        """Return the details of decisions whose objective may be better by `gaps` >= 0, or worse by `-gaps`."""
        failed = ~np.isfinite(decisions).all(axis=1)
        status = np.where(failed, "failed", np.where(stopped, "limit", "optimal"))
        return cls(decisions, status, objective, np.where(failed, np.nan, objective - gaps))

    @property
    def gap(self) -> FloatArray:
        """How far the objective may be from the optimum, relative to its value: (n,), infinite if that is zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.abs(self.objective - self.bound) / np.abs(self.objective)
        return np.where(self.objective == self.bound, 0.0, gap)

    @property
    def n_unproven(self) -> int:
        """The number of decisions that may be improved."""
        return int((self.gap > 0).sum())

    def __repr__(self) -> str:
        counts = [f"{n} {name}" for name in ("optimal", "limit", "failed") if (n := int((self.status == name).sum()))]
        n_rows = len(self.status)
        largest = np.nanmax(self.gap, initial=0.0)
        gap = f", largest gap {100 * largest:.2g} %" if largest > 0 else ""
        return f"SolveDetails({n_rows} row{'s'[: n_rows != 1]}: {', '.join(counts) or 'none'}{gap})"

    @property
    def caution(self) -> str:
        """A sentence if some decisions are not proven optimal; otherwise ""."""
        return caution_of(np.abs(self.objective - self.bound), self.objective)

    def to_frame(self) -> Any:
        """Return status, objective, bound and gap as a pandas frame, one line for each row."""
        from pandas import DataFrame  # noqa: PLC0415 - slow to import

        names = ("status", "objective", "bound", "gap")
        return DataFrame({name: getattr(self, name) for name in names})


def caution_of(gaps: FloatArray, objective: FloatArray) -> str:
    """Return a sentence if decisions, whose objective may be better by `gaps` >= 0, are not proven optimal.

    >>> caution_of(np.array([0.0, 2.0]), np.array([60.0, 40.0]))
    '1 of 2 decisions is not proven optimal: all together may be better by up to 2 %.'
    >>> caution_of(np.zeros(2), np.ones(2))
    ''
    """
    n_unproven = int((gaps > 0).sum())
    if not n_unproven:
        return ""
    total, size = float(np.nansum(gaps)), float(np.nansum(np.abs(objective)))
    amount = f"by up to {100 * total / size:.2g} %" if np.isfinite(total) and size > 0 else "by an amount not known"
    verb = "is" if n_unproven == 1 else "are"
    return f"{n_unproven} of {len(gaps)} decisions {verb} not proven optimal: all together may be better {amount}."
