"""LAVA, a loss of adjacent vertices: under the prediction, the optimal vertex must cost less than its neighbours.

`LAVA(p) = sum over the neighbours v of w of max(p·w - p·v, -ε)`. A vertex is optimal if no neighbour is better, so the
neighbours are enough. They do not depend on the prediction, so training needs no solver (Berden, Mahmutoğulları,
Tsouros & Guns, "Solver-Free Decision-Focused Learning for Linear Optimization Problems", 2025).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array, vstack

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.kit.progress import tracked
from decidewise.losses.base import Loss, count, positive
from decidewise.losses.parts.adjacent_vertices import adjacent_vertices
from decidewise.losses.parts.cones import NormalCones
from decidewise.losses.parts.target import SHARED, Target, ValueAndGrad, solve_labels
from decidewise.problems.contract import Problem


@dataclass(frozen=True)
class EdgeTarget(Target):
    """Costs, the index `(n,)` of the optimal vertex of each row, and the edges of all these vertices.

    The edges are the differences `w - v` of vertices `w` and their neighbours `v`, as sparse rows. Those of vertex `i`
    are the rows from `starts[i]` up to, but not including, `starts[i + 1]`.
    """

    vertex: IntArray
    edges: csr_array = field(metadata=SHARED)
    starts: IntArray = field(metadata=SHARED)


@dataclass(frozen=True)
class Lava(Loss):
    """The sum over adjacent vertices of `max(p·w - p·v, -threshold)`.

    Neighbours are computed once for each distinct optimal vertex. For an integer problem, vertices and neighbours are
    those of its linear relaxation.

    Parameters
    ----------
    threshold : float
        The margin `ε`: a neighbour that costs more than the optimal vertex by at least `ε` has no gradient.
    max_neighbors : int
        The largest number of neighbours to use per vertex. Very degenerate vertices, such as those of large
        assignments, have more neighbours than can be listed.
    """

    threshold: float = positive(0.1)
    max_neighbors: int = count(1000)

    gradient = "subgradient"
    target_type = EdgeTarget
    solves = False
    requires = frozenset({"polyhedron"})

    def label(self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator) -> EdgeTarget:
        """Find the optimal vertex of each row, and the neighbours of each distinct vertex."""
        decisions = solve_labels(problem, costs, relaxed=True)
        _, first, vertex = np.unique(decisions.round(9), axis=0, return_index=True, return_inverse=True)
        cones = NormalCones(problem.polyhedron, tolerance=1e-7)
        differences = [
            _sparse(self.differences(cones, decisions[row])) for row in tracked(first, "Finding adjacent vertices")
        ]
        starts = np.cumsum([0, *(edges.shape[0] for edges in differences)])
        return EdgeTarget(problem, costs, vertex.ravel(), csr_array(vstack(differences, format="csr")), starts)

    def differences(self, cones: NormalCones, vertex: FloatArray) -> FloatArray:
        """Return `w - v` (k, d) for all neighbours `v` of the vertex `w` (d,)."""
        return vertex - adjacent_vertices(cones, vertex, self.max_neighbors)

    def evaluate(self, prediction: FloatArray, target: EdgeTarget, rng: np.random.Generator) -> ValueAndGrad:
        """Return values and the sum of the `w - v` with `p·w - p·v > -threshold`."""
        edges = target.edges
        return _hinges(
            prediction, target.vertex, target.starts, edges.indptr, edges.indices, edges.data, self.threshold
        )


def _sparse(differences: FloatArray) -> csr_array:
    """Return the differences as sparse rows; entries below 1e-9 of the largest are rounding and become zero."""
    size = np.abs(differences)
    return csr_array(np.where(size < 1e-9 * size.max(axis=1, keepdims=True), 0, differences))


@kernel
def _hinges(prediction, vertex, starts, indptr, indices, data, threshold):  # type: ignore[no-untyped-def]
    values, gradient = np.zeros(len(prediction)), np.zeros_like(prediction)
    for row in range(len(prediction)):
        for edge in range(starts[vertex[row]], starts[vertex[row] + 1]):
            excess = 0.0
            for k in range(indptr[edge], indptr[edge + 1]):
                excess += data[k] * prediction[row, indices[k]]
            values[row] += max(excess, -threshold)
            if excess > -threshold:
                for k in range(indptr[edge], indptr[edge + 1]):
                    gradient[row, indices[k]] += data[k]
    return values, gradient
