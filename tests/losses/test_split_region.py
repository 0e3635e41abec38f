import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack

from decidewise.losses.parts import split_region
from decidewise.losses.parts.split_region import SplitRegion
from decidewise.problems import Assignment, Knapsack, ShortestPath, TopK
from decidewise.solvers import Polyhedron

PROBLEMS = [ShortestPath(4, 5), TopK(6, 2), Assignment(4), Knapsack([[3.0, 4.0, 5.0], [1.0, 0.0, 2.0]], [7.0, 2.0])]


def nearest(region, points):
    """Project on the affine space by the pseudo-inverse."""
    rows = region.rows.toarray()
    return points - (points @ rows.T - region.right) @ np.linalg.pinv(rows).T


@pytest.mark.parametrize("few", [split_region._FEW_ENTRIES, 0], ids=["dense", "sparse"])
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_it_projects_on_the_affine_space(problem, few, monkeypatch):
    """Also with redundant equations: paths and assignments have one, and here all problems have all of them twice."""
    monkeypatch.setattr(split_region, "_FEW_ENTRIES", few)
    once = problem.polyhedron
    A_eq = csr_array(vstack([once.A_eq, 2 * once.A_eq]))
    twice = Polyhedron(once.A_ub, once.b_ub, A_eq, np.concatenate([once.b_eq, 2 * once.b_eq]), once.lower, once.upper)
    for polyhedron in (once, twice):
        region = SplitRegion.of(polyhedron)
        points = np.random.default_rng(0).normal(size=(7, len(region.lower)))
        np.testing.assert_allclose(region.origin + region.along(points), nearest(region, points), atol=1e-10)
        np.testing.assert_allclose(region.origin, nearest(region, np.zeros(len(region.lower))), atol=1e-10)
        again = pickle.loads(pickle.dumps(region))  # noqa: S301
        np.testing.assert_array_equal(again.along(points), region.along(points))
