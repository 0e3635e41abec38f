"""Projections on cones against SciPy's non-negative least squares."""

import numpy as np
import pytest
from scipy.optimize import nnls

from decidewise.losses.parts.nonnegative_least_squares import nonnegative_projection


def project(points, binding, generators):
    return nonnegative_projection(points, binding, generators, generators @ generators.T)


@pytest.mark.parametrize(("r", "m"), [(1, 1), (3, 2), (3, 12), (8, 8), (8, 40), (20, 60)])
def test_random_and_degenerate_cones(r, m):
    rng = np.random.default_rng(0)
    generators = rng.normal(size=(m, r))
    generators[rng.random(m) < 0.3] = generators[0]  # the same one several times
    generators[rng.random(m) < 0.1] = 0
    generators[1 : m // 3] = rng.integers(-1, 2, size=(max(m // 3 - 1, 0), r))  # and small integers, which often depend
    lengths = np.linalg.norm(generators, axis=1, keepdims=True)
    generators /= np.where(lengths > 0, lengths, 1)
    binding = rng.choice([-1, 0, 1], size=(60, m)).astype(np.int8)
    points = rng.normal(size=(60, r)) * 10.0 ** rng.integers(-6, 6, size=(60, 1))

    found = project(points, binding, generators)

    for point, how, projection in zip(points, binding, found, strict=True):
        span = how[:, None] * generators
        expected = nnls(span.T, point)[0] @ span
        np.testing.assert_allclose(projection, expected, atol=1e-9 * np.linalg.norm(point), rtol=0)


def test_nearly_parallel_generators():
    angles = np.array([0.0, 1e-4, 1e-6, 1e-9])
    generators = np.column_stack([np.cos(angles), np.sin(angles)])
    points = np.array([[1.0, 1.0], [1.0, 5e-5], [-1.0, 1.0], [1.0, -1.0]])

    found = project(points, np.ones((4, 4), dtype=np.int8), generators)

    edge = generators[1]
    np.testing.assert_allclose(found, [(edge @ points[0]) * edge, points[1], [0, 0], [1.0, 0.0]], atol=1e-8)


def test_what_is_not_chosen_plays_no_part():
    binding = np.array([[0, 1, 2]], dtype=np.int8)
    found = project(np.ones((1, 3)), binding, np.eye(3))
    np.testing.assert_array_equal(found, [[0.0, 1.0, 0.0]])
