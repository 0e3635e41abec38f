"""The weights of an average of candidates, from their regrets and from their predictions of held-out rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from decidewise.kit.checks import FloatArray
from decidewise.kit.scaling import norms, unit_rows
from decidewise.models.selection.null_models import NullModels
from decidewise.models.selection.scores import close, lowest

# A candidate is proven to decide better than the null model if the difference is this many standard errors.
_PROVEN = 2.0
# The largest share that a forecast has as the null model; in the rest it takes part like others.
_MOST_OF_A_FORECAST = 0.5
# The part of the average that has fitted weights. The rest has equal ones, which no noise can mislead.
_FITTED = 0.5
# Candidates get a fitted weight if their regret exceeds the lowest by at most this many standard errors.
_STANDARD_ERRORS = 4.0
# A member costs a fit, so fitted weights below this are dropped.
_LEAST_WEIGHT = 0.02
# Relative to the square of a prediction. It makes the weights of near copies unique.
_RIDGE = 1e-5
# Relative to the square of the costs: a smaller squared error cannot be told from rounding.
_LEAST_ERROR = 1e-12
_NONE = NullModels()


class FittedWeights(NamedTuple):
    """Fitted weights by name, none if they decide clearly worse than equal ones, and the solver calls to tell."""

    weights: dict[str, float]
    n_solves: int


def comparable(predictions: FloatArray, *, in_units: bool) -> FloatArray:
    """Return predictions (n, d) that can be averaged: in the units of the costs as they are, otherwise directions."""
    return predictions if in_units else unit_rows(predictions)


def weighted_products(predictions: Sequence[FloatArray], costs: FloatArray, *, in_units: bool) -> FloatArray:
    """Return the products (k + 1, k + 1) of k comparable predictions and of what they predict, the last.

    That is the direction of the costs, with rows weighted by the norms of their costs, as in WISE; in units, it is the
    costs themselves. The products are sums over rows.
    """
    roots = np.ones((len(costs), 1)) if in_units else np.sqrt(norms(costs))[:, None]
    columns = np.stack([np.ravel(roots * each) for each in (*predictions, comparable(costs, in_units=in_units))])
    return columns @ columns.T


def fitted_weights(products: FloatArray, *, in_units: bool) -> FloatArray:
    """Return the weights (k,) of the average of predictions with the lowest loss, from `weighted_products`.

    The loss is that of WISE, in which only the direction of the average counts; in units, it is the squared error. The
    weights are at least zero and sum to one; all are zero if no prediction has anything in common with the costs.

    >>> directions = np.array([[0.6, 0.8], [0.8, 0.6]])
    >>> products = weighted_products([directions, -directions, directions[::-1]], 5 * directions, in_units=False)
    >>> fitted_weights(products, in_units=False)
    array([1., 0., 0.])
    """
    weights, square = np.zeros(len(products) - 1), products[-1, -1]
    squares = np.diag(products)[:-1]
    usable = np.flatnonzero(np.isfinite(squares) & ((squares > 0) | in_units))
    if not len(usable) or square == 0:
        return weights
    gram, right = products[np.ix_(usable, usable)], products[usable, -1]
    if in_units:
        # With weights that sum to one, the error of an average is the average of the errors. Where its square is
        # lowest, the slope is the same for all that have a weight: any slope will do, as the sum is set to one below.
        gram = gram - right[:, None] - right + (1 + _LEAST_ERROR * np.eye(len(usable))) * square
        right = np.ones(len(usable))
    sizes = np.sqrt(np.diag(gram))
    factor = cholesky(gram / np.outer(sizes, sizes) + _RIDGE * np.eye(len(usable)), lower=True)
    weights[usable] = nnls(factor.T, solve_triangular(factor, right / sizes, lower=True))[0] / sizes
    weights[weights < _LEAST_WEIGHT * weights.sum()] = 0.0
    return weights / max(weights.sum(), np.finfo(float).tiny)


def places_to_fit(results: Mapping[str, Any], constant: Iterable[str]) -> list[int]:
    """Return the places of the candidates that get a fitted weight: not far worse than the best, and with features."""
    left_out = set(constant)
    near = close(results, standard_errors=_STANDARD_ERRORS)
    return [int(place) for place in near if results["candidate"][place] not in left_out]


def average_weights(
    results: Mapping[str, Any], fitted: Mapping[str, float] | None = None, null: NullModels = _NONE
) -> dict[str, float]:
    """Return the weights of an average of candidates, by name, from their results; they sum to one.

    Half of the weight is shared equally by all candidates that are close, and half is fitted. Both are drawn to the
    null model by its `null_share`.

    Parameters
    ----------
    results : mapping
        Of `CandidateScores`.
    fitted : mapping of str to float, optional
        Fitted weights, which sum to one. Without them, all of the weight is shared equally.
    null : NullModels
        Candidates that take nothing to have; the best of them is the null model.
    """
    names, places = [str(name) for name in results["candidate"]], close(results)
    own = np.array([(fitted or {}).get(name, 0.0) for name in names])
    weights = np.zeros(len(names))
    weights[places] = 1 / len(places)
    if own.any():
        weights = (1 - _FITTED) * weights + _FITTED * own
    simple, share = null_share(results, null)
    weights *= 1 - share
    if share > 0:
        weights[names.index(simple)] += share
    return {name: float(weight) for name, weight in zip(names, weights, strict=True) if weight > 0}


def null_share(results: Mapping[str, Any], null: NullModels) -> tuple[str, float]:
    """Return the null model, the best of the candidates that take nothing to have, and its share in an average.

    It gets a share as far as the others are not proven to decide better: all if it has the lowest regret of all
    candidates, nothing if the lowest regret is lower by two standard errors of the difference, and in proportion in
    between. A forecast gets at most half: the others know it too, and an average with them is rarely worse.
    """
    ranked = [i for i in np.argsort(results["rank"]) if results["status"][i] == "scored"]
    simple = [i for i in ranked if results["candidate"][i] in set(null.names)][:1]
    if not simple:
        return "", 0.0
    place = simple[0]
    difference, error = results["difference"][place], results["difference_standard_error"][place]
    if place == lowest(results):
        share = 1.0
    else:
        share = float(max(0.0, 1 - difference / (_PROVEN * error))) if error > 0 else float(difference <= 0)
    name = str(results["candidate"][place])
    return name, share if name in null.constant else min(share, _MOST_OF_A_FORECAST)
