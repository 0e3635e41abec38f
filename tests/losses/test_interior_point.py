"""Each step must be Clarabel's own, and they must end well whatever the scale and the number of them."""

import clarabel
import numpy as np
import pytest
from scipy import sparse

from decidewise.losses.parts.interior_point import interior_projection


def as_rows(matrix):
    rows = sparse.csr_array(matrix)
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data


def clarabel_projection(point, normals, max_iter):
    settings = clarabel.DefaultSettings()
    settings.verbose = settings.presolve_enable = settings.equilibrate_enable = False
    settings.max_iter = max_iter
    m = len(normals)
    quadratic = sparse.csc_matrix(sparse.triu(2 * normals @ normals.T))
    orthant = clarabel.NonnegativeConeT(m)
    solver = clarabel.DefaultSolver(
        quadratic, -2 * normals @ point, sparse.csc_matrix(-sparse.eye(m)), np.zeros(m), [orthant], settings
    )
    return np.array(solver.solve().x) @ normals


def signed(normals, binding):
    """Return the chosen normals one by one, as the docstring of `interior_projection` reads."""
    signs = {0: [], 1: [1], -1: [-1], 2: [1, -1]}
    return np.array([sign * normal for normal, how in zip(normals, binding, strict=True) for sign in signs[how]])


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("max_iter", [1, 2, 3, 4])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_every_step_is_that_of_clarabel(max_iter, scale):
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(9, 6)) * (rng.random((9, 6)) < 0.6)
    binding = rng.choice([-1, 0, 1, 2], size=(12, 9)).astype(np.int8)
    points = scale * rng.normal(size=(12, 6))

    found = interior_projection(points, binding, as_rows(normals), max_iter)

    expected = [
        clarabel_projection(point, signed(normals, how), max_iter) for point, how in zip(points, binding, strict=True)
    ]
    # Directions only: Clarabel scales its answer differently where it suspects an unbounded problem.
    np.testing.assert_allclose(unit(found), unit(np.array(expected)), atol=1e-7)


@pytest.mark.parametrize("scale", [0.0, 1e-12, 1.0, 1e8])
@pytest.mark.parametrize("max_iter", [20, 1000])
def test_many_steps_end_near_the_projection(scale, max_iter):
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(50, 4))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    orthant = np.ones((50, 4), dtype=np.int8)

    found = interior_projection(scale * directions, orthant, as_rows(np.eye(4)), max_iter)

    np.testing.assert_allclose(found, scale * np.maximum(directions, 0), atol=1e-5 * max(scale, 1))


def test_without_normals_the_cone_is_its_apex():
    none = np.zeros((2, 3), dtype=np.int8)
    np.testing.assert_array_equal(interior_projection(np.ones((2, 3)), none, as_rows(np.eye(3)), 3), np.zeros((2, 3)))
