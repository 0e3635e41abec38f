"""MOM, the maximum optimality margin: every edge that leaves the optimal vertex must cost at least the margin.

Sun, Liu & Li, "Maximum Optimality Margin: A Unified Approach for Contextual Linear Programming and Inverse Linear
Programming", ICML 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.checks import FloatArray
from decidewise.losses.lava import EdgeTarget, Lava
from decidewise.scaling import unit_largest


@dataclass(frozen=True)
class Mom(Lava):
    """The sum over edges `η` of the optimal vertex of `max(0, threshold - p·η)`; it needs no solver in training.

    An edge `η` leads towards a neighbour, and its largest entry is 1. At a vertex of a non-degenerate program in
    standard form whose variables move by 0 or 1, `p·η` is the reduced cost of the variable that enters, as in the
    paper; at degenerate vertices the paper's bases depend on the solver, and the edges do not.

    Parameters
    ----------
    threshold : float
        The margin, in units of the prediction.
    max_neighbors : int
        The largest number of neighbours to use per vertex.

    Notes
    -----
    These are the edges of LAVA on another scale. The value is convex in `p`, never negative, and 0 if every edge costs
    at least the margin, which makes the vertex the only optimal one. For an integer problem, vertices and edges are
    those of its linear relaxation.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Mom()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> loss.value_and_grad([[1.0, 1.5, 4.0]], target, np.random.default_rng(0))
    (array([0.5]), array([[ 1., -1.,  0.]]))
    """

    threshold: float = 1.0

    def scaled(self, differences: FloatArray) -> FloatArray:
        """Return the differences (k, d) with a largest absolute entry of 1."""
        return unit_largest(differences)

    def evaluate(
        self, prediction: FloatArray, target: EdgeTarget, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return values and subgradient."""
        values, gradient = super().evaluate(prediction, target, rng)  # of max(-p·η, -threshold)
        n_edges = np.diff(target.edges.starts)[target.vertex]
        return values + self.threshold * n_edges, gradient
