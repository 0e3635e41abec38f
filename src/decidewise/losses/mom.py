"""MOM, the maximum optimality margin: every edge that leaves the optimal vertex must cost at least the margin.

Sun, Liu & Li, "Maximum Optimality Margin: A Unified Approach for Contextual Linear Programming and Inverse Linear
Programming", ICML 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.base import positive
from decidewise.losses.lava import EdgeTarget, Lava
from decidewise.losses.parts.adjacent_vertices import edge_directions
from decidewise.losses.parts.cones import NormalCones
from decidewise.losses.parts.target import ValueAndGrad


@dataclass(frozen=True)
class Mom(Lava):
    """The sum over edges `η` of the optimal vertex of `max(0, threshold - p·η)`; it needs no solver in training.

    The edge `η` leaves a constraint by one unit, as that constraint is written, so `p·η` is the reduced cost of the
    slack that enters the basis (of the variable, for a bound). At degenerate vertices an edge leaves several
    constraints at once, and the paper's bases depend on the solver; here the slack that grows fastest grows by one.

    Parameters
    ----------
    threshold : float
        The margin, in units of the prediction.
    max_neighbors : int
        The largest number of edges to use per vertex.

    Notes
    -----
    These are the edges of LAVA on another scale, and those that have no end. The value is convex in `p`, never
    negative, and 0 if every edge costs at least the margin, which makes the vertex the only optimal one. For an integer
    problem, vertices and edges are those of its linear relaxation.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Mom()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0]])
    >>> loss.value_and_grad([[1.0, 1.5, 4.0]], target, np.random.default_rng(0))
    (array([0.5]), array([[ 1., -1.,  0.]]))
    """

    threshold: float = positive(1.0)

    def differences(self, cones: NormalCones, vertex: FloatArray) -> FloatArray:
        """Return `-η` (k, d) for all edges of the vertex (d,)."""
        directions = edge_directions(cones, vertex, self.max_neighbors)
        binding = cones.binding(vertex[None])[0]
        left = np.abs(binding) == 1
        slacks = (cones.normals[left] @ -directions.T).T * binding[left]
        return -directions / slacks.max(axis=1, keepdims=True, initial=0.0)

    def evaluate(self, prediction: FloatArray, target: EdgeTarget, rng: np.random.Generator) -> ValueAndGrad:
        values, gradient = super().evaluate(prediction, target, rng)  # of max(-p·η, -threshold)
        n_edges = np.diff(target.starts)[target.vertex]
        return values + self.threshold * n_edges, gradient
