"""The losses as jax functions: the values and gradients of the NumPy losses, under `jit`, `grad` and `vmap`."""

import importlib
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from decidewise.evaluate import normalized_regret
from decidewise.losses import Loss, Target, registry
from decidewise.problems import Ball, Knapsack, ShortestPath, TopK

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

from decidewise.frontends.jax import labelled_loss_function, loss_function  # noqa: E402

PROBLEMS = {
    "path": ShortestPath(3, 3),
    "knapsack": Knapsack([[3.0, 4.0, 5.0, 6.0, 7.0], [4.0, 2.0, 6.0, 3.0, 5.0]], [12.0, 10.0]),
}
#: `implicit` and `compact` refuse paths, and `egl` needs features; the last two are tried on their own.
ON_POLYTOPES = [name for name in registry if name not in ("implicit", "compact", "egl")]
PAIRS = [
    *(
        pytest.param(name, problem, id=f"{name}-{where}")
        for name in ON_POLYTOPES
        for where, problem in PROBLEMS.items()
    ),
    pytest.param("implicit", Ball(5), id="implicit-ball"),
    pytest.param("compact", PROBLEMS["knapsack"], id="compact-knapsack"),
]
RANDOM = ["pfy", "dpo", "imle", "aimle"]
N, N_FEATURES = 20, 4


def draw(problem, dtype=np.float32):
    """Return features, costs and weights with predictions so close to each other that every loss has a slope."""
    rng = np.random.default_rng(1)
    X = rng.normal(scale=0.3, size=(N, N_FEATURES))
    costs = rng.uniform(0.5, 2.0, size=(N, problem.n_costs))
    weights = rng.uniform(-0.5, 0.5, size=(N_FEATURES, problem.n_costs))
    return (array.astype(dtype) for array in (X, costs, weights))


def numpy_loss(name, problem, prediction, costs, step=0):
    """Return what the NumPy loss says of the same batch and noise."""
    loss = registry[name]()
    rng = np.random.default_rng((0, step))
    target = loss.prepare(problem, costs, rng=rng.spawn(1)[0])
    return loss.value_and_grad(prediction, target, rng)


@pytest.mark.parametrize(("name", "problem"), PAIRS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_gradient_of_a_model_follows_from_the_loss_by_the_chain_rule(name, problem, dtype):
    with jax.enable_x64(dtype is np.float64):
        X, costs, weights = draw(problem, dtype)
        loss = loss_function(name, problem)
        value, gradient = jax.jit(jax.value_and_grad(lambda w: 3 * loss(X @ w, costs)))(weights)

        values, prediction_gradient = numpy_loss(name, problem, X @ weights, costs)
    tolerance = {"rtol": 1e-12, "atol": 1e-12} if dtype is np.float64 else {"rtol": 1e-4, "atol": 1e-5}
    assert value.dtype == gradient.dtype == dtype
    assert prediction_gradient.any()
    np.testing.assert_allclose(value, 3 * values.mean(), **tolerance)
    np.testing.assert_allclose(gradient, 3 * X.T @ prediction_gradient / N, **tolerance)


@pytest.mark.parametrize("name", ON_POLYTOPES)
def test_jit_changes_nothing(name):
    problem = PROBLEMS["path"]
    X, costs, weights = draw(problem)
    prediction = X @ weights
    differentiate = jax.value_and_grad(loss_function(name, problem))

    value, gradient = differentiate(prediction, costs, 3)
    compiled_value, compiled_gradient = jax.jit(differentiate)(prediction, costs, 3)

    np.testing.assert_allclose(compiled_value, value, rtol=1e-6)
    np.testing.assert_allclose(compiled_gradient, gradient, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ON_POLYTOPES)
def test_vmap_over_batches_equals_a_loop(name):
    problem = PROBLEMS["knapsack"]
    X, costs, weights = draw(problem)
    batches = (X @ weights).reshape(4, 5, -1), costs.reshape(4, 5, -1), np.arange(4)
    differentiate = jax.jit(jax.value_and_grad(loss_function(name, problem)))

    values, gradients = jax.vmap(differentiate)(*batches)

    for k, batch in enumerate(zip(*batches, strict=True)):
        value, gradient = differentiate(*batch)
        np.testing.assert_allclose(values[k], value, rtol=1e-5)
        np.testing.assert_allclose(gradients[k], gradient, rtol=1e-5, atol=1e-7)


def test_vmap_over_models_shares_the_costs():
    problem = PROBLEMS["path"]
    X, costs, weights = draw(problem)
    loss = loss_function("spo+", problem)
    models = np.stack([weights, 2 * weights, -weights])

    values = jax.vmap(lambda w: loss(X @ w, costs))(models)

    np.testing.assert_allclose(values, [loss(X @ w, costs) for w in models], rtol=1e-6)


@pytest.mark.parametrize("name", [*ON_POLYTOPES, "egl"])
def test_labels_can_be_prepared_once(name):
    problem = PROBLEMS["path"]
    X, costs, weights = draw(problem)
    rows = np.array([4, 0, 7, 5])
    loss = registry[name]()
    target = loss.prepare(problem, costs, X=X)[rows]
    expected, gradient = loss.value_and_grad(X[rows] @ weights, target, np.random.default_rng((0, 2)))

    labelled = labelled_loss_function(name, problem, costs, X=X)
    value, prediction_gradient = jax.jit(jax.value_and_grad(labelled))(X[rows] @ weights, rows, 2)

    np.testing.assert_allclose(value, expected.mean(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(prediction_gradient, gradient / 4, rtol=1e-4, atol=1e-5)


def test_prepared_labels_are_not_solved_again(monkeypatch):
    problem = ShortestPath(3, 3)
    X, costs, weights = draw(problem)
    labelled, plain = labelled_loss_function("spo+", problem, costs), loss_function("spo+", problem)
    solved, minimize = [], problem.minimize
    monkeypatch.setattr(problem, "minimize", lambda rows: solved.append(len(rows)) or minimize(rows))

    labelled(X @ weights, np.arange(N)).block_until_ready()
    assert sum(solved) == N
    plain(X @ weights, costs).block_until_ready()
    assert sum(solved) == 3 * N


@pytest.mark.parametrize("name", RANDOM)
def test_noise_depends_on_the_seed_and_the_step_alone(name):
    problem = PROBLEMS["path"]
    X, costs, weights = draw(problem)

    def value(seed, step):
        return jax.jit(loss_function(name, problem, seed=seed))(X @ weights, costs, step).item()

    assert value(1, 2) == value(1, 2)
    assert value(1, 2) != value(1, 3)
    assert value(1, 2) != value(2, 2)


@pytest.mark.parametrize("name", ["mse", "wise"])
def test_native_losses_are_differentiable_twice_and_in_the_costs(name, monkeypatch):
    problem = TopK(6, 2)
    monkeypatch.setattr(problem, "minimize", lambda costs: pytest.fail("solved"))
    with jax.enable_x64(True):
        X, costs, weights = draw(problem, np.float64)
        loss = jax.jit(loss_function(name, problem))
        hessian = jax.jit(jax.hessian(lambda row: loss(row[None], costs[:1])))(X[0] @ weights)
        check_grads(loss, (X @ weights, costs), order=1, modes=["rev"])
    curvature = 2 / 6 if name == "mse" else 2 * np.linalg.norm(costs[0])
    np.testing.assert_allclose(hessian, curvature * np.eye(6), atol=1e-12)


@pytest.mark.parametrize("name", ["ltr-pointwise", "ltr-listwise"])
def test_smooth_losses_pass_jax_s_own_check(name):
    problem = PROBLEMS["path"]
    with jax.enable_x64(True):
        X, costs, weights = draw(problem, np.float64)
        labelled = labelled_loss_function(name, problem, costs)
        check_grads(lambda p: labelled(p, np.arange(N)), (X @ weights,), order=1, modes=["rev"])


@pytest.mark.parametrize("name", ["wise", "spo+"])
def test_reductions(name):
    problem = PROBLEMS["path"]
    X, costs, weights = draw(problem)
    mean, total, values = (
        loss_function(name, problem, reduction=reduction)(X @ weights, costs) for reduction in ("mean", "sum", "none")
    )
    assert values.shape == (N,)
    np.testing.assert_allclose(total, values.sum(), rtol=1e-6)
    np.testing.assert_allclose(mean, values.mean(), rtol=1e-6)


def test_large_batches_do_not_hang():
    # A callback that waits for a copy made by the thread it occupies would: small arrays are copied at once.
    problem = PROBLEMS["path"]
    costs = jnp.asarray(np.random.default_rng(0).uniform(size=(100_000, problem.n_costs)))
    differentiate = jax.jit(jax.grad(loss_function("spo+", problem)))
    gradients = [differentiate(k * costs, costs) for k in (1.0, 2.0, 3.0)]
    assert not gradients[0].any()  # a perfect prediction is at the minimum of SPO+


@pytest.mark.parametrize(("name", "learning_rate"), [("wise", 0.005), ("spo+", 0.05)])
def test_training_reduces_the_regret(name, learning_rate):
    problem = PROBLEMS["path"]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, N_FEATURES))
    costs = np.exp(X @ rng.normal(size=(N_FEATURES, problem.n_costs)) / 2)
    X = jnp.asarray(np.column_stack([X, np.ones(300)]))
    loss = labelled_loss_function(name, problem, costs[:200])
    gradient = jax.jit(jax.grad(lambda weights, rows: loss(X[rows] @ weights, rows)))

    weights = jnp.asarray(rng.normal(size=(N_FEATURES + 1, problem.n_costs)))
    before = normalized_regret(problem, X[200:] @ weights, costs[200:])
    for _ in range(40):
        for rows in rng.permutation(200).reshape(4, 50):
            weights -= learning_rate * gradient(weights, rows)
    assert normalized_regret(problem, X[200:] @ weights, costs[200:]) < before / 3


def test_bad_arguments():
    problem = PROBLEMS["path"]
    X, costs, weights = draw(problem)
    prediction = X @ weights
    loss = loss_function("wise", problem)

    with pytest.raises(ValueError, match=r"loss must be one of .*got 'spo'"):
        loss_function("spo", problem)
    with pytest.raises(ValueError, match="reduction must be one of 'mean', 'sum', 'none'; got 'max'"):
        loss_function("wise", problem, reduction="max")
    with pytest.raises(ValueError, match="Rfwo needs a region with flat faces, and Ball"):
        loss_function("rfwo", Ball(3))
    shapes = r"must both have the shape \(batch, 12\).*prediction\.shape=\(20, 12\) and costs\.shape=\(20, 1\)"
    with pytest.raises(ValueError, match=shapes):
        jax.jit(loss)(prediction, costs[:, :1])
    with pytest.raises(ValueError, match=r"prediction\.shape=\(20, 12\) and rows\.shape=\(3,\)"):
        labelled_loss_function("wise", problem, costs)(prediction, np.arange(3))
    spo_plus = loss_function("spo+", problem)
    not_finite = "prediction must be finite; row 0, column 0 has NaN"
    with pytest.raises(jax.errors.JaxRuntimeError, match=not_finite):
        jax.jit(spo_plus)(prediction * np.nan, costs).block_until_ready()
    for eager in (spo_plus, jax.grad(spo_plus)):
        with pytest.raises(ValueError, match=f"^{not_finite}"):
            eager(prediction * np.nan, costs)


@pytest.mark.parametrize("name", ["mse", "pfy"])
def test_what_is_no_array_no_step_or_no_seed_is_refused(name):
    problem = PROBLEMS["path"]
    X, costs, weights = draw(problem)
    prediction = X @ weights
    loss = loss_function(name, problem)

    for bad in ("x", None, [["1"] * 12] * N):
        with pytest.raises(ValueError, match="prediction must be an array of real numbers"):
            loss(bad, costs)
        with pytest.raises(ValueError, match="costs must be an array of real numbers"):
            loss(prediction, bad)
    with pytest.raises(TypeError, match="prediction must be an array of floats"):
        loss(jnp.ones((N, 12), dtype=int), costs)
    for bad in (-1, "x", None):
        with pytest.raises(ValueError, match="seed must be"):
            loss_function(name, problem, seed=bad)
    with pytest.raises(TypeError, match="problem must be a decidewise problem"):
        loss_function(name, None)
    if name == "pfy":
        for bad in (-1, 1.5, np.array(-1)):
            with pytest.raises(ValueError, match="step must be"):
                loss(prediction, costs, bad)
        with pytest.raises(TypeError, match="step must be an integer"):
            loss(prediction, costs, jnp.ones(()))


@dataclass(frozen=True)
class Cubic(Loss):
    """A loss of one's own with a native form that has a parameter, and labels from the features without it."""

    scale: float = 2.0
    gradient = "exact"
    solves = False
    requires = frozenset({"features"})
    target_type = Target

    def native(self, prediction, costs):
        return self.scale * ((prediction - costs) ** 3).sum(-1)

    def evaluate(self, prediction, target, rng):
        residual = prediction - target.costs
        return self.scale * (residual**3).sum(axis=1), 3 * self.scale * residual**2


@dataclass(frozen=True)
class CubicOnHost(Cubic):
    native = None


def test_a_loss_of_ones_own_runs_natively_where_it_has_a_native_form():
    problem = PROBLEMS["path"]
    X, costs, weights = draw(problem)
    native = loss_function(Cubic(), problem)
    second = jax.grad(lambda prediction: jax.grad(native)(prediction, costs).sum())(X @ weights)
    np.testing.assert_allclose(second, 12 * (X @ weights - costs) / N, rtol=1e-5, atol=1e-6)
    on_host = labelled_loss_function(CubicOnHost(), problem, costs, X=X)
    np.testing.assert_allclose(on_host(X @ weights, np.arange(N)), native(X @ weights, costs), rtol=1e-5)
    with pytest.raises(ValueError, match="CubicOnHost computes its labels from the features; pass them as X"):
        labelled_loss_function(CubicOnHost(), problem, costs)


@pytest.mark.parametrize("name", ["mse", "wise", "spo+"])
def test_rows_that_do_not_exist_are_refused(name):
    problem = PROBLEMS["path"]
    X, costs, weights = draw(problem)
    prediction = (X @ weights)[:2]
    loss = labelled_loss_function(name, problem, costs)

    for rows in ([0, N], [0, 2**32], [-N - 1, 0], jnp.array([0, N])):
        with pytest.raises(ValueError, match=f"rows must be numbers of rows of the costs, from 0 to {N - 1}; got"):
            loss(prediction, rows)
    with pytest.raises(TypeError, match="rows must be an array of integers"):
        loss(prediction, [0.0, 1.0])
    assert loss(prediction, [0, -1]) == loss(prediction, [0, N - 1])
    try:
        value = jax.jit(loss)(prediction, jnp.array([0, N])).block_until_ready()
    except jax.errors.JaxRuntimeError as error:
        assert "rows must be numbers of rows" in str(error)  # noqa: PT017
    else:
        assert np.isnan(value)


def test_without_jax_the_error_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "decidewise.frontends.jax")
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match=r'needs jax: pip install "decidewise\[jax\]"'):
        importlib.import_module("decidewise.frontends.jax")
