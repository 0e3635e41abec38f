"""Compact surrogates: QPTL in a few variables `y`, of which the decision is a learnt combination `P y`.

Wang, Wilder, Perrault & Tambe, "Automatically Learning Compact Quality-aware Surrogates for Optimization Problems",
NeurIPS 2020.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from scipy.sparse import csr_array, vstack
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from decidewise.kit.checks import FloatArray, IndexArray
from decidewise.kit.errors import SolverError
from decidewise.losses.base import count
from decidewise.losses.parts.smoothed import Smoothed
from decidewise.losses.parts.target import SHARED, DecisionTarget, ValueAndGrad, row_dot, solve_labels
from decidewise.problems.contract import Problem
from decidewise.solvers import Polyhedron
from decidewise.solvers.highs import Solver
from decidewise.solvers.program import Program

# Fewer columns leave too little to choose.
_LEAST = 3
# Steps of the factorisation.
_MOST_STEPS = 500


@dataclass(frozen=True)
class CompactTarget(DecisionTarget):
    """Costs, optimal decisions and values of the relaxation, the columns `P` (d, m), and a solver in `y`."""

    columns: FloatArray = field(metadata=SHARED)
    solver: Solver = field(metadata=SHARED)

    def minimize(self, costs: FloatArray, rows: IndexArray | None = None) -> FloatArray:
        """Return an optimal `y` (b, m) for each row of costs (b, m)."""
        return self.solver.minimize(costs)


@dataclass(frozen=True)
class Compact(Smoothed):
    """The regret `c·P y(p) - c·w` of `y(p) = argmin_y p·P y + λ/2 ‖y‖²` over `y >= 0` with `P y` in the relaxation.

    The m columns of `P` are not negative and of unit length. They are the factors of the optimal decisions of all rows:
    the ones of which non-negative combinations come nearest to these decisions.

    Parameters
    ----------
    n_columns : int, optional
        The number m of columns; by default a tenth of the number of costs, as in the paper, and at least 3.
    lambd : float
        The strength `λ` of the quadratic term, in units of costs over `y`.
    max_iter, tol
        As for `Qptl`.

    Notes
    -----
    The gradient is `-P F Pᵀc / λ`, where `F` projects on the directions of the face of `y(p)`. The paper moves columns
    of `P` in training; here `P` comes from the decisions, before it. Each equation of the region takes one of the m
    variables away, so there must be fewer equations than columns: not so on a grid of paths, and that is an error. The
    method was made for objectives that are not linear; here it saves little, and decides within the span of `P`.

    Examples
    --------
    >>> from decidewise.problems import Knapsack
    >>> costs = np.array([[3.0, 3.0, 1.0, 1.0], [1.0, 1.0, 3.0, 3.0]])
    >>> loss = Compact(n_columns=2)
    >>> target = loss.prepare(Knapsack([[1.0, 1.0, 1.0, 1.0]], [2.0]), costs)
    >>> np.sort(target.columns.T, axis=0).round(4) + 0.0  # the first two items, or the last two
    array([[0.    , 0.    , 0.    , 0.    ],
           [0.7071, 0.7071, 0.7071, 0.7071]])
    >>> loss.value_and_grad(costs[::-1], target, np.random.default_rng(0))[0].round(6)  # the wrong ones
    array([4., 4.])
    """

    n_columns: int | None = count(None)

    target_type = CompactTarget
    gradient = "exact"
    solves = False
    requires = frozenset({"polyhedron"})

    def check(self, problem: Problem) -> None:
        """Raise if the region has too many equations for so few columns, or decisions below zero."""
        super().check(problem)
        region = cast("Polyhedron", self._seen(problem).polyhedron)
        n_columns, its = self._n_columns(len(region.lower)), type(problem).__name__
        n_equations = int(np.linalg.matrix_rank(region.A_eq.toarray())) if region.A_eq.shape[0] else 0
        if n_equations >= n_columns:
            raise ValueError(
                f"Compact has {n_columns} columns, and the {n_equations} equations of {its} leave no combination of "
                f"them to choose. Set n_columns to {n_equations + 2} or more, or choose Qptl, which has all variables."
            )
        if not (region.lower >= 0).all():
            raise ValueError(
                f"Compact combines columns that are not negative, and decisions of {its} may be. Move the variables so "
                "that their lower bounds are zero, or choose Qptl."
            )

    def _n_columns(self, n_costs: int) -> int:
        return max(_LEAST, n_costs // 10) if self.n_columns is None else self.n_columns

    def label(
        self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator
    ) -> CompactTarget:
        """Solve the linear relaxation of every row, and factor its decisions."""
        decisions = solve_labels(problem, costs, relaxed=True)
        columns = factors(decisions, self._n_columns(costs.shape[1]), rng)
        region = combinations(cast("Polyhedron", problem.polyhedron), columns)
        solver = Solver(Program.of(region))
        try:
            solver.minimize(np.ones((1, columns.shape[1])))
        except SolverError as error:
            raise ValueError(
                f"no combination of {columns.shape[1]} columns is feasible for {type(problem).__name__}. Raise "
                "n_columns, or choose Qptl, which has all variables."
            ) from error
        return CompactTarget(problem, costs, decisions, row_dot(costs, decisions), columns, solver)

    def evaluate(self, prediction: FloatArray, target: CompactTarget, rng: np.random.Generator) -> ValueAndGrad:
        costs = target.costs @ target.columns
        smoothed = self.smoothed(prediction @ target.columns, target)
        values = row_dot(costs, smoothed.points) - target.values
        return values, smoothed.along_face(costs / -self.lambd) @ target.columns.T


def factors(decisions: FloatArray, n_columns: int, rng: np.random.Generator) -> FloatArray:
    """Return unit columns (d, m), none negative, whose combinations come near to the decisions (n, d)."""
    seed = int(rng.integers(2**31))
    factorisation = NMF(n_columns, init="random", max_iter=_MOST_STEPS, tol=1e-6, random_state=seed)
    distinct, counts = np.unique(np.maximum(decisions, 0), axis=0, return_counts=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it need not be the best factorisation
        columns = factorisation.fit(distinct * np.sqrt(counts)[:, None]).components_.T
    lengths = np.linalg.norm(columns, axis=0)
    return np.where(lengths > 0, columns / np.where(lengths > 0, lengths, 1.0), len(columns) ** -0.5)


def combinations(region: Polyhedron, columns: FloatArray) -> Polyhedron:
    """Return the `y >= 0` for which `columns @ y` lies in the region."""
    below, above = region.lower > 0, np.isfinite(region.upper)
    return Polyhedron(
        A_ub=csr_array(
            vstack([csr_array(region.A_ub @ columns), csr_array(columns[above]), csr_array(-columns[below])])
        ),
        b_ub=np.concatenate([region.b_ub, region.upper[above], -region.lower[below]]),
        A_eq=csr_array(region.A_eq @ columns),
        b_eq=region.b_eq,
        lower=np.zeros(columns.shape[1]),
        upper=np.full(columns.shape[1], np.inf),
    )
