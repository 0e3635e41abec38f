"""The contract of `Loss`, checked on every registered loss and several problems."""

import warnings
from dataclasses import is_dataclass

import numpy as np
import pytest

from decidewise import DecisionRegressor, normalized_regret
from decidewise.kit.errors import TrainingWarning
from decidewise.losses import Loss, Target, registry
from decidewise.problems import (
    Assignment,
    Ball,
    Ellipsoid,
    Knapsack,
    KnownCosts,
    Portfolio,
    ShortestPath,
    TopK,
    TravellingSalesman,
)
from decidewise.testing import check_loss

PROBLEMS = {
    "path": ShortestPath(3, 3),
    "knapsack": Knapsack([[3.0, 4.0, 5.0, 6.0, 7.0], [4.0, 2.0, 6.0, 3.0, 5.0]], [12.0, 10.0]),
    "top": TopK(6, 2),
    "ball": Ball(4),
    "curved top": Portfolio(np.diag([1.0, 2.0, 3.0, 1.0, 2.0, 3.0]), 0.2),
    "tour": TravellingSalesman(6),
    "tolls": KnownCosts(ShortestPath(3, 3), np.linspace(-1, 1, 12) ** 2),
    "tolls, max": KnownCosts(TopK(6, 2, sense="max"), np.linspace(-1, 1, 6)),
    "tolls by row": KnownCosts(TopK(6, 2), np.sin(np.arange(20 * 6)).reshape(20, 6)),
}
N = 20


def accepts(loss, problem):
    try:
        loss.check(problem)
    except ValueError:
        return False
    return True


PAIRS = [
    pytest.param(cls(), problem, id=f"{name}-{where}")
    for name, cls in registry.items()
    for where, problem in PROBLEMS.items()
    if accepts(cls(), problem) and (where != "curved top" or name == "implicit")
]
LOSSES = [pytest.param(cls(), id=name) for name, cls in registry.items()]
on_every_pair = pytest.mark.parametrize(("loss", "problem"), PAIRS)
on_every_loss = pytest.mark.parametrize("loss", LOSSES)


def draw(problem):
    """Return generic predictions and positive costs; read-only, since no loss may write to them."""
    rng = np.random.default_rng(1)  # not the seed of `evaluate`, whose noise must be independent
    prediction = rng.normal(scale=0.3, size=(N, problem.n_costs))
    costs = rng.uniform(0.5, 2.0, size=(N, problem.n_costs))
    prediction.flags.writeable = costs.flags.writeable = False
    return prediction, costs


def six_costs(loss):
    """A problem of six costs that the loss accepts."""
    return next(PROBLEMS[name] for name in ("top", "curved top") if accepts(loss, PROBLEMS[name]))


def prepare(loss, problem, costs):
    """Return the target, with features for the loss that needs them."""
    return loss.prepare(problem, costs, X=np.random.default_rng(2).normal(size=(len(costs), 3)))


def evaluate(loss, problem, prediction, costs):
    return loss.value_and_grad(prediction, prepare(loss, problem, costs), np.random.default_rng(0))


@on_every_loss
def test_a_loss_is_a_frozen_dataclass_that_accepts_a_polyhedron_or_a_curved_region(loss):
    assert isinstance(loss, Loss)
    assert is_dataclass(loss)
    assert loss == type(loss)()
    assert loss.gradient in {"exact", "subgradient", "surrogate"}
    assert accepts(loss, PROBLEMS["path"]) != (type(loss) in (registry["implicit"], registry["compact"]))
    assert accepts(loss, PROBLEMS["top"]) or accepts(loss, Ellipsoid(np.eye(3)))


@on_every_pair
def test_the_contract(loss, problem):
    check_loss(loss, problem)


@on_every_pair
def test_gradients_teach_something(loss, problem):
    _, gradient = evaluate(loss, problem, *draw(problem))

    assert gradient.any()


@on_every_loss
def test_what_is_no_target_or_no_generator_is_refused(loss):
    problem = six_costs(loss)
    prediction, costs = draw(problem)
    target, rng = prepare(loss, problem, costs), np.random.default_rng(0)
    assert isinstance(target, loss.target_type)

    name = type(loss).__name__
    for wrong in (None, costs, loss):
        with pytest.raises(TypeError, match=rf"target must be what {name}\(\)\.prepare\(problem, costs\) returns; got"):
            loss.value_and_grad(prediction, wrong, rng)
    if loss.target_type is not Target:
        with pytest.raises(TypeError, match="got an object of type Target"):
            loss.value_and_grad(prediction, Target(target.problem, target.costs), rng)
    if loss.random:
        with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
            loss.value_and_grad(prediction, target, None)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.values[0].solves and loss.id != "implicit"])
def test_numbers_that_overflow_on_the_way_are_refused(loss):
    problem = Assignment(2)  # whose kernel would never return from an infinite cost
    costs = np.array([[1.0, 2.0, 3.0, 4.0], [-1e308, 1e308, 1.0, 1.0]])
    prediction = np.array([[1.0, 1.0, 1.0, 1.0], [1.7e308, -1.7e308, 1.7e308, 1.7e308]])

    def evaluate_both():
        for sign in (1, -1):  # some losses add the costs to the prediction, and others subtract them
            evaluate(loss, problem, sign * prediction, costs)

    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match="left the range of float64"):
        evaluate_both()


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.values[0].requires & {"polyhedron", "relaxation"}])
def test_a_wrong_pairing_is_an_error_with_a_sentence(loss):
    with pytest.raises(ValueError, match=r"needs linear constraints, and Ball has no polyhedron\. Choose a loss"):
        loss.prepare(Ball(3), np.ones((2, 3)))


@on_every_loss
def test_wrong_shapes_are_refused(loss):
    problem = six_costs(loss)
    prediction, costs = draw(problem)
    target = prepare(loss, problem, costs)

    with pytest.raises(ValueError, match=r"(TopK|Portfolio) needs 6 columns of costs.*costs\.shape=\(20, 5\)"):
        loss.prepare(problem, costs[:, :5])
    with pytest.raises(ValueError, match="costs must be two-dimensional"):
        loss.prepare(problem, costs[0])
    with pytest.raises(ValueError, match="the target needs 6 columns of prediction"):
        loss.value_and_grad(prediction[:, :5], target, None)
    with pytest.raises(ValueError, match="prediction has 4 rows and the target 20"):
        loss.value_and_grad(prediction[:4], target, None)
    with pytest.raises(ValueError, match="prediction must be finite; row 0, column 0 has NaN"):
        loss.value_and_grad(np.full_like(prediction, np.nan), target, None)


def test_mse_and_wise_never_touch_the_solver(monkeypatch):
    problem = TopK(6, 2)
    monkeypatch.setattr(problem, "minimize", lambda costs: pytest.fail("solved"))
    for name in ("mse", "wise"):
        evaluate(registry[name](), problem, *draw(problem))


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.id not in ("implicit", "compact")])
def test_every_loss_trains_where_predictions_have_negative_cycles(loss):
    """On a grid with roads both ways; PFY, SPO+ and others solve for what is below zero even if no prediction is."""
    nodes = np.arange(9).reshape(3, 3)
    tails, heads = np.append(nodes[:, :-1], nodes[:-1]), np.append(nodes[:, 1:], nodes[1:])
    roads = ShortestPath.from_edges(np.append(tails, heads), np.append(heads, tails), source=0, target=8)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 3))
    costs = np.exp(X @ rng.normal(scale=0.5, size=(3, 24))) * rng.uniform(0.5, 1.5, size=(30, 24))
    value, gradient = evaluate(loss, roads, rng.normal(size=(30, 24)), costs)
    assert np.isfinite(value).all()
    assert gradient.any()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # two epochs need not improve
        model = DecisionRegressor(roads, loss, epochs=2, random_state=0).fit(X, costs)
    assert normalized_regret(roads, model.predict(X), costs) < 30
