"""The vertices of a polyhedron that are joined to a given vertex by an edge.

The directions from a vertex into the polyhedron form a cone, and its extreme rays are the edges. The double description
method finds them: start from a simplicial cone and impose the other binding constraints one by one. Each constraint
cuts off some rays, and new rays appear where it cuts two-dimensional faces. Degenerate vertices (more binding
constraints than dimensions) and redundant constraints need no special treatment.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr

from decidewise.kit.checks import BoolArray, FloatArray
from decidewise.kit.kernels import kernel
from decidewise.losses.parts.cones import NormalCones

_ZERO = 1e-9  # products of a unit normal and a ray whose largest entry is 1 count as zero below this


def adjacent_vertices(cones: NormalCones, vertex: FloatArray, max_neighbors: int) -> FloatArray:
    """Return the vertices (k, d) adjacent to `vertex` (d,), each of them once.

    Parameters
    ----------
    cones : NormalCones
        The cones of the polyhedron, with a tolerance that fits the precision of the vertex.
    vertex : ndarray of shape (d,)
    max_neighbors : int
        The largest number of rays to keep at any time, and so of neighbours to return. If the method needs more, only
        some of the neighbours are returned.

    Examples
    --------
    The apex of a pyramid over a square is degenerate: four facets meet in three dimensions.

    >>> from types import SimpleNamespace
    >>> from scipy.sparse import csr_array
    >>> pyramid = SimpleNamespace(
    ...     A_ub=csr_array([[1.0, 0, 1], [-1, 0, 1], [0, 1, 1], [0, -1, 1]]), b_ub=np.ones(4),
    ...     A_eq=csr_array((0, 3)), b_eq=np.zeros(0), lower=np.array([-np.inf, -np.inf, 0]), upper=np.full(3, np.inf),
    ... )
    >>> corners = adjacent_vertices(NormalCones(pyramid), np.array([0.0, 0.0, 1.0]), max_neighbors=100)
    >>> corners[np.lexsort(corners.T)].round(6) + 0.0
    array([[-1., -1.,  0.],
           [ 1., -1.,  0.],
           [-1.,  1.,  0.],
           [ 1.,  1.,  0.]])
    """
    directions = edge_directions(cones, vertex, max_neighbors)
    lengths = _edge_lengths(cones, vertex, directions)
    bounded = np.isfinite(lengths)  # an unbounded edge has no vertex at its end
    return vertex + lengths[bounded, None] * directions[bounded]


def edge_directions(cones: NormalCones, vertex: FloatArray, max_edges: int) -> FloatArray:
    """Return the directions (k, d) of the edges that leave `vertex` (d,), bounded or not, each of them once."""
    binding = cones.binding(vertex[None])[0]
    normals = (binding[:, None] * cones.generators)[(np.abs(binding) == 1) & cones.generators.any(axis=1)]
    if normals.shape[1] == 0:
        return np.empty((0, len(vertex)))  # the polyhedron is a point
    if _rank(normals) < normals.shape[1]:
        raise ValueError(
            f"the decision is not a vertex of the polyhedron: {len(normals)} binding constraints leave it free to move "
            "both ways. Solve the problem by a method that ends at vertices, such as the simplex method."
        )
    return extreme_rays(normals, max_edges) @ cones.directions.T


def extreme_rays(normals: FloatArray, max_rays: int) -> FloatArray:
    """Return the extreme rays (k, r) of the pointed cone `{u : normals u <= 0}` of unit normals (m, r).

    At most `max_rays` are kept at any time; if the method never needs more, all extreme rays are returned.
    """
    m, r = normals.shape
    order = qr(normals.T, mode="r", pivoting=True)[1]
    imposed = np.zeros(m, dtype=np.bool_)
    imposed[order[:r]] = True
    rays = -np.linalg.inv(normals[order[:r]]).T
    complete = True
    while True:
        rays /= np.abs(rays).max(axis=1, keepdims=True)
        values = rays @ normals.T
        values[np.abs(values) < _ZERO] = 0
        if len(rays) > max_rays:
            complete = False
            # Keep the rays that the fewest constraints cut off; a ray that none cuts off is in the result already.
            kept = np.argsort((values > 0).sum(axis=1), kind="stable")[:max_rays]
            rays, values = rays[kept], values[kept]
        n_cut, n_inside = (values > 0).sum(axis=0), (values < 0).sum(axis=0)
        imposed |= n_cut == 0
        if imposed.all():
            break
        # Imposing the constraint with the fewest pairs of rays to examine keeps the number of rays small.
        row = np.argmin(np.where(imposed, np.inf, n_cut * (n_inside + 1.0)))
        heights = values[:, row]
        cut, inside = _adjacent_pairs(_pack_bits((values == 0) & imposed), heights, r - 2)
        crossings = heights[cut, None] * rays[inside] - heights[inside, None] * rays[cut]
        rays = np.vstack([rays[heights <= 0], crossings])
        imposed[row] = True
    if complete:
        return rays
    # If rays were left out, some pairs may wrongly have counted as adjacent, so check that each ray is extreme.
    return rays[[_rank(normals[touched]) == r - 1 for touched in values == 0]]


def _rank(rows: FloatArray) -> int:
    """Return the rank of a matrix, by elimination, which is much faster than LAPACK on hundreds of small matrices."""
    return int(_eliminate(rows.copy()))


@kernel(error_model="numpy")
def _eliminate(rows):  # type: ignore[no-untyped-def]
    """Bring a matrix into echelon form, in place, and return its rank."""
    rank = 0
    for column in range(rows.shape[1]):
        if rank == len(rows):
            break
        pivot = rank
        for i in range(rank + 1, len(rows)):
            if abs(rows[i, column]) > abs(rows[pivot, column]):
                pivot = i
        if abs(rows[pivot, column]) <= _ZERO:
            continue
        for k in range(column, rows.shape[1]):
            rows[rank, k], rows[pivot, k] = rows[pivot, k], rows[rank, k]
        for i in range(rank + 1, len(rows)):
            factor = rows[i, column] / rows[rank, column]
            if factor != 0:
                for k in range(column, rows.shape[1]):
                    rows[i, k] -= factor * rows[rank, k]
        rank += 1
    return rank


def _pack_bits(mask: BoolArray) -> npt.NDArray[np.uint64]:
    """Pack each row of booleans into 64-bit words."""
    n, m = mask.shape
    padded = np.zeros((n, m + -m % 64), dtype=np.bool_)
    padded[:, :m] = mask
    return np.packbits(padded, axis=1).view(np.uint64)


@kernel
def _adjacent_pairs(touched, heights, least):  # type: ignore[no-untyped-def]
    """Return all pairs of a ray with positive and a ray with negative height that span a two-dimensional face.

    A pair spans one exactly if no third ray lies on all the constraints that both rays lie on; those must be at least
    `least` constraints.
    """
    cut, inside = [], []
    common = np.empty(touched.shape[1], dtype=np.uint64)
    for a in range(len(heights)):
        if heights[a] <= 0:
            continue
        for b in range(len(heights)):
            if heights[b] >= 0:
                continue
            size = 0
            for word in range(len(common)):
                common[word] = touched[a, word] & touched[b, word]
                size += _count_bits(common[word])
            if size >= least and _count_covers(common, touched) == 2:
                cut.append(a)
                inside.append(b)
    return np.array(cut, dtype=np.int64), np.array(inside, dtype=np.int64)


@kernel
def _count_covers(common, touched):  # type: ignore[no-untyped-def]
    """Return how many rays lie on all the constraints in `common`; stop counting at three."""
    count = 0
    for ray in range(len(touched)):
        covers = True
        for word in range(len(common)):
            covers &= common[word] & ~touched[ray, word] == 0
        count += covers
        if count > 2:
            break
    return count


@kernel
def _count_bits(word):  # type: ignore[no-untyped-def]
    count = 0
    while word:
        word &= word - np.uint64(1)
        count += 1
    return count


def _edge_lengths(cones: NormalCones, vertex: FloatArray, directions: FloatArray) -> FloatArray:
    """Return how far one can go in each direction until a constraint that does not bind at the vertex binds."""
    units, offsets = cones.upper_rows
    slacks = np.concatenate([offsets - units @ vertex, vertex - cones.polyhedron.lower])
    rates = np.hstack([directions @ units.T, -directions])
    stops = (rates > _ZERO) & (slacks > cones.tolerance)
    return np.divide(slacks, rates, out=np.full_like(rates, np.inf), where=stops).min(axis=1, initial=np.inf)
