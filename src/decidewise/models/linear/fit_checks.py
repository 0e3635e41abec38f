"""What a generalized linear model checks before and while it is fitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from decidewise.kit.checks import as_choice, as_flag, as_integer, as_number
from decidewise.kit.kept import are_floats, need
from decidewise.measure import nothing_to_learn
from decidewise.models.linear.blocks import Block
from decidewise.models.linear.deviances import Deviance
from decidewise.models.linear.moments import Moments
from decidewise.models.linear.per_item import ItemMoments
from decidewise.models.linear.wide import WideMoments

AnyMoments = Moments | ItemMoments | WideMoments


def check_parameters(model: Any) -> Deviance:
    """Return the deviance of a generalized linear model; raise if one of its parameters is bad."""
    deviance = Deviance.of(model.deviance, model.power)
    as_choice(model.link, name="link", choices=(None, "identity", "log"))
    if deviance.power > 0 and model.link == "identity":
        raise ValueError(
            f"the {model.deviance} deviance needs positive predictions, which the identity link does not give. "
            'Use link="log", or deviance="squared".'
        )
    as_number(model.alpha, name="alpha", at_least=0)
    as_number(model.tol, name="tol", at_least=0)
    as_integer(model.max_iter, name="max_iter")
    as_flag(model.fit_intercept, name="fit_intercept")
    as_flag(model.warm_start, name="warm_start")
    as_choice(model.per_item, name="per_item", choices=("none", "intercept", "coefficients"))
    if model.per_item == "intercept" and not model.fit_intercept:
        raise ValueError('per_item="intercept" fits an intercept per item; set fit_intercept=True, or per_item="none".')
    return deviance


def check_kept_coefficients(model: Any) -> None:
    """Raise unless the coefficients of a linear or log-linear model, of rows or of items, fit its other attributes."""
    if not hasattr(model, "coef_"):
        return
    as_choice(model.link, name="link", choices=(None, "identity", "log"))
    as_choice(model.per_item, name="per_item", choices=("none", "intercept", "coefficients"))
    n_features = as_integer(model.n_features_in_, name="n_features_in_", minimum=0)
    shape, intercepts = np.shape(model.coef_), np.shape(model.intercept_)
    need(are_floats(model.coef_) and are_floats(model.intercept_), "coef_ and intercept_ must be numbers")
    need(len(shape) in (1, 2) and shape[-1] == n_features, f"coef_ must have {n_features} columns; it has {shape}")
    own = shape[:-1]
    if hasattr(model, "n_items_in_"):
        n_items = as_integer(model.n_items_in_, name="n_items_in_")
        need((len(shape) == 2) == (model.per_item == "coefficients"), f"coef_ of shape {shape} does not fit per_item")
        own = () if model.per_item == "none" else (n_items,)
        need(shape[:-1] in ((), own), f"coef_ of shape {shape} does not fit {n_items} items")
    need(intercepts == own, f"intercept_ must have the shape {own}; it has {intercepts}")


def check_continues(
    model: Any, block: Block, n_dimensions: int, no_rows: Callable[[Block], Moments | ItemMoments]
) -> None:
    """Raise unless the targets of more rows and the parameters fit the rows that a model has seen so far."""
    if isinstance(model.moments_, ItemMoments) or model.per_item != "none":
        sums = no_rows(block)
        if type(sums) is not type(model.moments_) or sums.gram.shape != model.moments_.gram.shape:
            raise ValueError(
                f"the rows so far had sums of shape {model.moments_.gram.shape}; these, with per_item="
                f'"{model.per_item}", have {sums.gram.shape}. Pass the same items, or call fit to start again.'
            )
        return
    seen, now = (
        f"(n, {shape[0]})" if shape else "(n,)"
        for shape in (model.coef_.shape[:-1], block.targets.shape[1:n_dimensions])
    )
    if seen != now:
        raise ValueError(
            f"the rows so far had targets of shape {seen}; these have {now}. Pass the same columns, or call fit to "
            "start again."
        )
    if not model.fit_intercept and model.moments_.shift.any():
        raise ValueError(
            "fit_intercept is False now, but was True for the rows so far. Set it back, or call fit to start again."
        )


def check_weight(moments: AnyMoments) -> None:
    """Raise if no row counts: under the change of measure, a row of zero costs has weight zero."""
    if moments.total_weight <= 0:
        raise nothing_to_learn()
