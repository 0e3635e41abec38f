"""The weights of an average: equal ones, fitted ones, and the share of what ignores the features."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize

from decidewise.evaluate import Hindsight
from decidewise.kit.scaling import unit_rows
from decidewise.models.selection.null_models import NullModels
from decidewise.models.selection.scores import CandidateScores
from decidewise.models.selection.weights import (
    average_weights,
    comparable,
    fitted_weights,
    null_share,
    places_to_fit,
    weighted_products,
)
from decidewise.problems import Ball


def scored(regrets):
    k, n = regrets.shape
    names = tuple(f"model {i}" for i in range(k))
    truth = Hindsight(Ball(1), np.ones((n, 1)), np.ones(n))
    return CandidateScores(truth, names, regrets, ("scored",) * k, ("",) * k, (0.0,) * k, (n,) * k)


def drawn(seed, n=60, d=5, k=4):
    """Return costs of very different sizes, and predictions that know something of them."""
    rng = np.random.default_rng(seed)
    costs = rng.normal(1, 1, (n, d)) * np.exp(rng.normal(size=(n, 1)))
    noise = rng.normal(size=(k, n, d)) * np.arange(1, k + 1)[:, None, None]
    return costs, [costs + 0.5 * np.linalg.norm(costs, axis=1, keepdims=True) * own for own in noise]


def null_model(*names):
    return NullModels(names, names)


def weights_of(predictions, costs, *, in_units=False):
    predictions = [comparable(prediction, in_units=in_units) for prediction in predictions]
    return fitted_weights(weighted_products(predictions, costs, in_units=in_units), in_units=in_units)


@pytest.mark.parametrize("seed", range(5))
def test_fitted_weights_have_the_lowest_wise_loss_of_all_that_are_at_least_zero(seed):
    costs, predictions = drawn(seed)
    # The WISE loss of a row is the norm of its costs times the squared distance of the prediction to their direction.
    roots = np.sqrt(np.linalg.norm(costs, axis=1, keepdims=True))
    matrix = np.stack([np.ravel(roots * unit_rows(p)) for p in predictions], axis=1)
    best = lsq_linear(matrix, np.ravel(roots * unit_rows(costs)), bounds=(0, np.inf), tol=1e-12).x
    best[best < 0.02 * best.sum()] = 0
    found = weights_of(predictions, costs)
    np.testing.assert_allclose(found, best / best.sum(), atol=1e-3)
    assert found[0] == found.max()


@pytest.mark.parametrize("seed", range(5))
def test_in_units_they_have_the_lowest_squared_error_of_all_that_sum_to_one(seed):
    costs, predictions = drawn(seed)
    predictions[1] = 3 * costs  # the right direction and the wrong size
    found = weights_of(predictions, costs, in_units=True)

    def error(weights):
        return np.sum((np.tensordot(weights, predictions, axes=1) - costs) ** 2)

    best = minimize(
        error,
        np.full(4, 0.25),
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-12},
    )
    assert found.sum() == pytest.approx(1)
    assert error(found) <= 1.001 * best.fun


def test_in_units_a_row_of_tiny_costs_does_not_decide():
    costs, predictions = drawn(0)
    usual = weights_of(predictions, costs, in_units=True)
    for size in (1e-2, 1e-6, 0.0):
        costs[0] = size
        np.testing.assert_allclose(weights_of(predictions, costs, in_units=True), usual, atol=0.05)
    assert list(weights_of([2 * costs, costs], costs, in_units=True)) == [0, 1]


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_the_unit_of_predictions_does_not_matter_for_directions(factor):
    costs, predictions = drawn(0)
    np.testing.assert_allclose(weights_of([factor * p for p in predictions], costs), weights_of(predictions, costs))


@pytest.mark.parametrize("in_units", [False, True])
def test_near_copies_share_and_useless_predictions_get_nothing(in_units):
    costs, (good, *_) = drawn(0)
    predictions = [good, good * (1 + 1e-12), np.zeros_like(good), -costs, np.full_like(good, np.inf)]
    with np.errstate(invalid="ignore"):
        found = weights_of(predictions, costs, in_units=in_units)
    if in_units:  # zeros shrink an average, which pays here
        assert found[2] > 0
        found = np.delete(found, 2) / (1 - found[2])
    else:
        assert found[2] == 0
        found = np.delete(found, 2)
    np.testing.assert_allclose(found, [0.5, 0.5, 0, 0], atol=1e-6)


def test_without_a_useful_prediction_no_weight_is_fitted():
    costs, _ = drawn(0)
    assert not weights_of([-costs], costs).any()
    assert not len(weights_of([], costs))
    for in_units in (False, True):
        assert not weights_of([costs], np.zeros_like(costs), in_units=in_units).any()


def test_half_of_the_weight_is_equal_and_half_is_fitted():
    signs = np.resize([1.0, -1.0], 400)
    results = scored(np.vstack([np.full(400, 5.0), 5.01 + signs, 5.08 + signs, 9 + signs])).results
    assert places_to_fit(results, ["model 1"]) == [0, 2]  # the last is far worse
    assert average_weights(results) == pytest.approx({"model 0": 0.5, "model 1": 0.5})
    found = average_weights(results, {"model 0": 0.2, "model 2": 0.8})
    assert found == pytest.approx({"model 0": 0.35, "model 1": 0.25, "model 2": 0.4})
    # What ignores the features draws both halves to it.
    name, share = null_share(results, null_model("model 2"))
    assert name == "model 2"
    assert 0 < share < 1
    drawn_to_it = average_weights(results, {"model 0": 1.0}, null_model("model 2"))
    assert drawn_to_it == pytest.approx(
        {"model 0": 0.75 * (1 - share), "model 1": 0.25 * (1 - share), "model 2": share}
    )


@pytest.mark.parametrize(
    ("standard_errors", "constant", "expected"),
    [
        (2.5, ["model 0"], {"model 1": 1.0}),
        (1.5, ["model 0"], {"model 1": 0.75, "model 0": 0.25}),
        (0.5, ["model 0"], {"model 0": 0.75 + 0.125, "model 1": 0.125}),  # which is close, and so has a weight anyway
        (-0.5, ["model 0"], {"model 0": 1.0}),
        (0.5, ["no such model"], {"model 0": 0.5, "model 1": 0.5}),
        (1.5, [], {"model 1": 1.0}),
    ],
)
def test_what_ignores_the_features_has_a_share_until_two_standard_errors_prove_another_better(
    standard_errors, constant, expected
):
    n = 400
    signs = np.resize([1.0, -1.0], n)
    error = 1 / np.sqrt(n - 1)  # of the mean of the signs
    results = scored(np.vstack([5 + signs + standard_errors * error, np.full(n, 5.0)])).results
    found = average_weights(results, null=null_model(*constant))
    assert found == pytest.approx(expected)


def test_of_several_that_ignore_the_features_the_best_has_the_share():
    signs = np.resize([1.0, -1.0], 400)
    results = scored(np.vstack([9 + signs, 5.05 + signs, np.full(400, 5.0)])).results
    found = average_weights(results, null=null_model("model 0", "model 1"))
    assert list(found) == ["model 1", "model 2"]


@pytest.mark.parametrize(("standard_errors", "share"), [(-3.0, 0.5), (0.5, 0.5), (1.5, 0.25), (2.5, 0.0)])
def test_a_forecast_has_at_most_half_by_being_there(standard_errors, share):
    signs = np.resize([1.0, -1.0], 400)
    worse = 5 + signs + standard_errors / np.sqrt(399)
    results = scored(np.vstack([worse, np.full(400, 5.0)])).results
    assert null_share(results, NullModels(("model 0",))) == ("model 0", pytest.approx(share))
