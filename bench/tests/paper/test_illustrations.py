import numpy as np
import pytest

from decidewise_bench.paper.illustrations import COVARIANCE, ILLUSTRATIONS, MEAN, direction_density, estimators
from decidewise_bench.report.matplotlib_charts import render


def test_the_projected_density_is_that_of_weighted_samples():
    costs = np.random.default_rng(0).multivariate_normal(MEAN, COVARIANCE, size=400_000)
    weights = np.linalg.norm(costs, axis=1)
    edges = np.linspace(-np.pi, np.pi, 25)
    heights, _ = np.histogram(np.arctan2(costs[:, 1], costs[:, 0]), edges, weights=weights, density=True)
    centres = (edges[:-1] + edges[1:]) / 2
    np.testing.assert_allclose(direction_density(centres), heights, atol=0.008)


def test_the_mean_direction_survives_the_change_of_measure():
    angles = np.linspace(0, 2 * np.pi, 2001)
    directions = np.stack([np.cos(angles), np.sin(angles)])
    mean = np.trapezoid(direction_density(angles) * directions, angles, axis=1)
    assert mean[0] * MEAN[1] == pytest.approx(mean[1] * MEAN[0], abs=1e-9)
    assert mean @ MEAN > 0


def test_counterexample_has_the_numbers_of_the_paper():
    found = {name: estimate.tolist() for name, estimate in estimators().items()}
    assert found["mean"] == [2.0, 0.5]
    assert found["reweighted only"] == pytest.approx([16 / 5, 1 / 5])
    assert found["projected only"] == [0.5, 0.5]
    assert found["both (WISE)"] == pytest.approx([4 / 5, 1 / 5])


@pytest.mark.parametrize("drawing", ILLUSTRATIONS, ids=lambda drawing: drawing.name)
def test_drawings(drawing):
    whole = render(drawing.draw, drawing.name)
    assert whole["png"].startswith(b"\x89PNG")
    assert whole["svg"].count(b"<path") > 5
