import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from decidewise.kit.scaling import norms
from decidewise.measure import project, resample, reweight, transform

# The clock of a busy machine is no reason to fail.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# Extreme sizes have a test of their own: here NumPy's norm, the reference, must be exact.
numbers = st.just(0.0) | st.floats(1e-100, 1e3) | st.floats(-1e3, -1e-100)
costs_tables = arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=numbers)


@given(costs_tables)
def test_norms_are_euclidean(costs):
    np.testing.assert_allclose(norms(costs), np.linalg.norm(costs, axis=1), rtol=1e-12)


@given(costs_tables.filter(np.any))
def test_weights_are_proportional_to_the_norm_with_mean_one(costs):
    weights = reweight(costs)
    assert weights.mean() == pytest.approx(1)
    np.testing.assert_allclose(weights * norms(costs).mean(), norms(costs), rtol=1e-9, atol=1e-300)


@given(costs_tables)
def test_directions_have_length_one_or_are_zero(costs):
    directions = project(costs)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), np.where(costs.any(axis=1), 1.0, 0.0), atol=1e-12)
    np.testing.assert_allclose(directions * norms(costs)[:, None], costs, rtol=1e-12, atol=1e-300)


@given(costs_tables, st.sampled_from([0.5, 0.75, 1.0, 1.5]))
def test_weight_times_target_is_the_cost_at_every_exponent(costs, exponent):
    weights, targets = transform(costs, exponent)
    np.testing.assert_allclose(weights, norms(costs) ** exponent)
    np.testing.assert_allclose(weights[:, None] * targets, costs, rtol=1e-9, atol=1e-290)


def test_exponent_zero_leaves_the_data_alone():
    costs = np.array([[3.0, 4.0], [0.0, 0.0]])
    weights, targets = transform(costs, 0)
    np.testing.assert_array_equal(weights, [1, 1])
    np.testing.assert_array_equal(targets, costs)


@pytest.mark.parametrize("size", [1e200, 1e-200, 1e-310, 1e300])
def test_extreme_costs_neither_overflow_nor_vanish(size):
    costs = size * np.array([[3.0, 4.0], [0.0, 0.0], [5.0, 12.0]])
    np.testing.assert_allclose(norms(costs), size * np.array([5.0, 0.0, 13.0]), rtol=1e-9)
    np.testing.assert_allclose(reweight(costs), np.array([5.0, 0.0, 13.0]) / 6, rtol=1e-9)
    np.testing.assert_allclose(project(costs), [[0.6, 0.8], [0, 0], [5 / 13, 12 / 13]], rtol=1e-9)
    weights, targets = transform(costs)
    np.testing.assert_allclose(weights, norms(costs))
    np.testing.assert_allclose(targets, project(costs))


def test_rows_of_very_different_sizes_keep_their_own_norms():
    np.testing.assert_allclose(norms(np.array([[3e200, 4e200], [3.0, 4.0], [3e-200, 4e-200]])), [5e200, 5, 5e-200])


def test_a_resample_has_the_moments_of_the_changed_measure():
    rng = np.random.default_rng(0)
    X, costs = rng.normal(size=(50, 2)), rng.normal(size=(50, 3)) * rng.exponential(size=(50, 1))
    costs[3] = 0.0
    size = 200_000
    drawn_X, targets = resample(X, costs, size, rng)
    weights = reweight(costs)
    for drawn, original in ((drawn_X, X), (targets, project(costs)), (drawn_X**2, X**2)):
        mean = np.average(original, axis=0, weights=weights)
        error = np.sqrt(np.average((original - mean) ** 2, axis=0, weights=weights) / size)
        assert (np.abs(drawn.mean(0) - mean) < 5 * error).all()
    assert not (drawn_X == X[3]).all(axis=1).any()


def test_a_resample_keeps_the_frame_and_is_reproducible():
    X, costs = pd.DataFrame({"a": [1.0, 2.0, 3.0]}), np.eye(3)
    drawn, targets = resample(X, costs, 7, np.random.default_rng(1))
    assert isinstance(drawn, pd.DataFrame)
    np.testing.assert_array_equal(targets.argmax(1) + 1, drawn["a"])
    again, _ = resample(X, costs, 7, np.random.default_rng(1))
    pd.testing.assert_frame_equal(drawn, again)


def test_inputs_are_never_modified():
    costs = np.array([[3.0, 4.0], [1.0, 0.0]])
    before = costs.copy()
    reweight(costs), project(costs), transform(costs), resample(costs, costs, 3, np.random.default_rng(0))
    np.testing.assert_array_equal(costs, before)


@pytest.mark.parametrize("function", [reweight, project, transform])
def test_bad_costs_are_named(function):
    with pytest.raises(ValueError, match=r"costs must be finite; row 1, column 0 has \+inf \(1 such"):
        function([[1.0, 2.0], [np.inf, 1.0]])
    with pytest.raises(ValueError, match=r"two-dimensional.*got costs.shape=\(2,\)"):
        function([1.0, 2.0])
    with pytest.raises(ValueError, match=r"costs is empty: costs.shape=\(0, 3\)"):
        function(np.empty((0, 3)))
    with pytest.raises(ValueError, match="real numbers"):
        function([["a", "b"]])


def test_all_zero_costs_and_bad_arguments_are_errors():
    with pytest.raises(ValueError, match="all 2 rows have weight zero"):
        reweight(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="all 2 rows have weight zero"):
        resample(np.zeros((2, 1)), np.zeros((2, 3)), 5, np.random.default_rng(0))
    with pytest.raises(ValueError, match="size must be at least 1"):
        resample(np.zeros((2, 1)), np.eye(2), 0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="X has 3 rows, costs has 2 rows"):
        resample(np.zeros((3, 1)), np.eye(2), 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="exponent must be a number at least 0; got exponent=nan"):
        transform(np.eye(2), float("nan"))
