"""Every loss as a jax function, under `jit`, `grad` and `vmap`: see `loss_function` and `labelled_loss_function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from decidewise.frontends import Reduction, check_batch, check_reduction, reduce
from decidewise.kit.checks import as_array, as_integer
from decidewise.losses import Loss, Target, as_loss
from decidewise.problems.contract import Problem

try:
    import jax
    import jax.numpy as jnp
except ImportError as reason:
    raise ImportError('decidewise.frontends.jax needs jax: pip install "decidewise[jax]".') from reason


def loss_function(
    loss: str | Loss, problem: Problem, *, seed: int = 0, reduction: Reduction = "mean", **parameters: Any
) -> Callable[..., jax.Array]:
    """Return a loss as a function `(prediction, costs, step=0) -> value`.

    Parameters
    ----------
    loss : str or Loss
        A name in `decidewise.losses.registry`, or a loss.
    problem : Problem
        The problem whose costs are predicted. MSE and WISE do not solve it.
    seed : int
        Seed of the noise of losses that are random.
    reduction : {"mean", "sum", "none"}
        Whether to return the mean of the values of a batch, their sum, or the values `(batch,)`.
    **parameters
        The parameters of the loss, if `loss` is a name: `loss_function("pfy", problem, sigma=0.5)`.

    Returns
    -------
    function : callable
        It takes `prediction` and `costs`, arrays of shape (batch, n_costs) in the problem's own sense, and `step`, an
        integer from 0. The function is pure: its noise depends only on the seed and the step. For new noise in each
        call, pass the number of the training step, or an integer drawn from a key.

    Notes
    -----
    A loss that has a `native` form, as MSE and WISE do, is jax code and can be differentiated any number of times. All
    others run as a host callback, in float64 whatever the precision of the prediction. They can be differentiated once,
    in reverse mode, and only in the prediction. `vmap` calls them once per batch, with the noise of that call.

    Under `jit` or `vmap`, an error in the callback, such as a prediction that is not finite, is raised as jax's own
    exception with the message at its end. Otherwise there is no callback, and the error is raised as it is.

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> data = make_shortest_path(100, degree=4, seed=0)
    >>> spo_plus = loss_function("spo+", data.problem)
    >>> def training_loss(weights, X, costs):
    ...     return spo_plus(X @ weights, costs)
    >>> jax.jit(jax.grad(training_loss))(np.zeros((5, 40)), data.X, data.costs).shape
    (5, 40)
    """
    loss = as_loss(loss, **parameters)
    loss.check(problem)
    check_reduction(reduction)
    on_host = _on_host(loss, lambda costs, rng: loss.prepare(problem, costs, rng=rng), seed)

    def function(prediction: Any, costs: Any, step: Any = 0) -> jax.Array:
        prediction, costs = _as_prediction(prediction), _as_jax(costs, "costs")
        check_batch(prediction, costs, problem.n_costs)
        if loss.native is not None:
            return reduce(loss.native(prediction, costs.astype(prediction.dtype)), reduction)
        return reduce(on_host(prediction, costs, _as_step(step)), reduction)

    return function


def labelled_loss_function(
    loss: str | Loss,
    problem: Problem,
    costs: Any,
    *,
    X: Any = None,
    seed: int = 0,
    reduction: Reduction = "mean",
    **parameters: Any,
) -> Callable[..., jax.Array]:
    """Return a loss as a function `(prediction, rows, step=0) -> value`; all costs are labelled here, once.

    `loss_function` labels each batch in each call, so data that samples share (the pool of decisions of `nce`, `cmap`
    and `ltr`) come from that batch only. Here they come from all the costs.

    Parameters
    ----------
    costs : array-like of shape (n, n_costs)
        The true costs of all samples; each call takes `rows` (batch,), an integer array of their row numbers. Under
        `jit` rows cannot be checked beforehand: a row that does not exist gives NaN or an error.
    X : array-like of shape (n, p), optional
        The features of all samples, for a loss that computes its labels from them.
    loss, problem, seed, reduction, **parameters
        As for `loss_function`.

    Notes
    -----
    `aimle` changes its step in every evaluation, so its function is not pure: call it in a plain loop.

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> data = make_shortest_path(100, degree=4, seed=0)
    >>> spo_plus = labelled_loss_function("spo+", data.problem, data.costs)
    >>> rows = np.arange(32)
    >>> spo_plus(data.X[rows] @ np.zeros((5, 40)), rows).shape
    ()
    """
    loss = as_loss(loss, **parameters)
    target = loss.prepare(problem, costs, X=X, rng=np.random.default_rng(as_integer(seed, name="seed", minimum=0)))
    on_costs = loss_function(loss, problem, reduction=reduction)
    on_host = _on_host(loss, lambda rows, rng: target[_checked_rows(rows, len(target))], seed)

    def function(prediction: Any, rows: Any, step: Any = 0) -> jax.Array:
        prediction = _as_prediction(prediction)
        rows = jnp.asarray(rows if isinstance(rows, jax.core.Tracer) else _checked_rows(rows, len(target)))
        if rows.ndim != 1 or prediction.shape != (len(rows), problem.n_costs):
            raise ValueError(
                f"prediction must have the shape (batch, {problem.n_costs}) and rows the shape (batch,); got "
                f"prediction.shape={prediction.shape} and rows.shape={rows.shape}."
            )
        if loss.native is not None:
            # By default jax replaces a row out of range by the last row.
            return on_costs(
                prediction, jnp.asarray(as_array(costs, name="costs")).at[rows].get(mode="fill", fill_value=jnp.nan)
            )
        return reduce(on_host(prediction, rows, _as_step(step)), reduction)

    return function


def _on_host(
    loss: Loss, target_of: Callable[[Any, np.random.Generator], Target], seed: int
) -> Callable[..., jax.Array]:
    """Return `(prediction, labels, step) -> values (batch,)`, differentiable in the prediction."""
    seed = as_integer(seed, name="seed", minimum=0)

    def evaluate(prediction: Any, labels: Any, step: Any) -> tuple[Any, Any]:
        rng = np.random.default_rng((seed, as_integer(int(step), name="step", minimum=0)))
        target = target_of(np.asarray(labels), rng.spawn(1)[0])
        values, gradient = loss.value_and_grad(prediction, target, rng)
        return values.astype(prediction.dtype), gradient.astype(prediction.dtype)

    def call(prediction: jax.Array, labels: jax.Array, step: jax.Array) -> tuple[jax.Array, jax.Array]:
        if not any(isinstance(array, jax.core.Tracer) for array in (prediction, labels, step)):
            values, gradient = evaluate(prediction, labels, step)  # so that an error is raised as it is
            return jnp.asarray(values), jnp.asarray(gradient)
        shapes = (
            jax.ShapeDtypeStruct(prediction.shape[:1], prediction.dtype),
            jax.ShapeDtypeStruct(prediction.shape, prediction.dtype),
        )
        # Under vmap, call once per batch, so that noise, pools and norms over a batch are the same as in a loop.
        return jax.pure_callback(evaluate, shapes, prediction, labels, step, vmap_method="sequential")

    @jax.custom_vjp
    def values(prediction: jax.Array, labels: jax.Array, step: jax.Array) -> jax.Array:
        return call(prediction, labels, step)[0]

    def backward(gradient: jax.Array, upstream: jax.Array) -> tuple[jax.Array, None, None]:
        return upstream[:, None] * gradient, None, None

    values.defvjp(call, backward)
    return values


def _as_jax(values: Any, name: str) -> jax.Array:
    """Return the values as a jax array; the precision of a NumPy array is kept."""
    if isinstance(values, jax.Array):
        return values
    floats = as_array(values, name=name)
    return jnp.asarray(values if isinstance(values, np.ndarray) and values.dtype != object else floats)


def _as_prediction(prediction: Any) -> jax.Array:
    prediction = _as_jax(prediction, "prediction")
    if not jnp.issubdtype(prediction.dtype, jnp.floating):
        raise TypeError(
            f"prediction must be an array of floats: integers would round the losses; got {prediction.dtype}."
        )
    return prediction


def _as_step(step: Any) -> jax.Array:
    if not isinstance(step, jax.Array | np.ndarray):
        step = as_integer(step, name="step", minimum=0)
    elif not jnp.issubdtype(step.dtype, jnp.integer):
        raise TypeError(f"step must be an integer from 0, the number of the training step; got {step.dtype}.")
    return jnp.asarray(step)


def _checked_rows(rows: Any, n: int) -> Any:
    """Return row numbers as an array; negative numbers count from the end, as in NumPy."""
    rows = np.asarray(rows)
    if rows.dtype.kind not in "iu":
        raise TypeError(f"rows must be an array of integers, the numbers of rows of the costs; got {rows.dtype}.")
    if rows.size and not -n <= rows.min() <= rows.max() < n:
        worst = rows.max() if rows.max() >= n else rows.min()
        raise ValueError(f"rows must be numbers of rows of the costs, from 0 to {n - 1}; got {worst}.")
    return rows
