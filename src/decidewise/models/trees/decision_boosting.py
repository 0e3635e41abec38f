"""Gradient boosting on any loss: regression trees on its negative gradient."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from decidewise.evaluate import Hindsight
from decidewise.kit.checks import FloatArray, as_integer, as_number
from decidewise.kit.kept import need, need_model
from decidewise.losses import Loss, Target, as_loss
from decidewise.measure import norms
from decidewise.models.estimator.base import all_or_nothing, as_generator, read_features
from decidewise.models.estimator.learner import as_regressor
from decidewise.models.estimator.scored_by_regret import TrainedOnLoss
from decidewise.models.linear.units import Units
from decidewise.models.training.loop import Epoch
from decidewise.models.trees.samples import MAX_TREES, check_samples
from decidewise.problems.contract import Problem
from decidewise.problems.views import in_unit
from decidewise.problems.wrappers import CountedProblem

# After so many halvings a step that still does not lower the loss never will.
_HALVINGS = 30


class DecisionBoostingRegressor(TrainedOnLoss):
    """Boost regression trees on the gradient of a decision-focused loss.

    Round `t` fits one tree of many outputs to minus the gradient of the loss at the present predictions of all rows,
    and adds it: `p ← p + step · tree(x)`. So every registered loss trains a model that is not linear. Each round
    evaluates the loss once on all rows; a loss that calls the solver then solves each row.

    Parameters
    ----------
    problem : Problem
        The feasible region and its sense. If it differs by row, row `i` belongs to row `i` of the data of `fit`.
    loss : str or Loss
        A name from `decidewise.losses.registry`, or a loss with parameters of your own. It sees costs and predictions
        divided by a typical cost.
    init : regressor, optional
        Whose predictions of costs are boosted; it is cloned and fitted on the training rows. By default the mean costs.
    n_estimators : int
        The number of rounds.
    learning_rate : float
        The root mean square of the first tree's targets, in units of the typical cost (of `1/sqrt(d)`, for a loss of
        directions such as `Wise`). Later targets are in the same proportion to the gradient. Where the gradient is
        exact and not random, a step that would raise the mean loss is halved, with all later ones.
    max_depth, min_samples_leaf
        Of the trees, as in scikit-learn. With features per item, samples are items of rows, and one model serves all.
    early_stopping, validation_fraction, validation, n_iter_no_change
        As for `DecisionRegressor`: the rounds up to the lowest regret are kept, which may be none.
    random_state : int, RandomState instance or None

    Attributes
    ----------
    trees_ : list of DecisionTreeRegressor
        Those that `predict` uses.
    steps_ : list of float
        The factors of the trees' predictions.
    start_ : ndarray of shape (d,), or float with features per item, or fitted regressor
        What the first tree is added to.
    history_ : list of Epoch
        Loss, validation regret, solver calls and seconds after each round.
    n_solves_ : int
        The solver calls of the whole fit.

    Notes
    -----
    Butler and Kwon, "Gradient boosting for convex cone predict and optimize problems", 2022 (dboost), boost on the
    gradient through a conic program; here the gradient is that of any loss, through its contract. A loss that refreshes
    its target (`Loss.refresh_every`) does so every so many rounds.

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> train, test = make_shortest_path(300, degree=6, seed=0).split(200)
    >>> model = DecisionBoostingRegressor(train.problem, "spo+", n_estimators=10, random_state=0)
    >>> model.fit(train.X, train.costs).predict(test.X).shape, model.n_solves_  # for labels, start and rounds
    ((100, 40), 2400)
    """

    def __init__(
        self,
        problem: Problem,
        loss: str | Loss = "spo+",
        *,
        init: Any = None,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 3,
        min_samples_leaf: int = 20,
        early_stopping: bool = False,
        validation_fraction: float = 0.2,
        validation: Literal["random", "last"] = "random",
        n_iter_no_change: int = 10,
        random_state: Any = None,
    ) -> None:
        self.problem = problem
        self.loss = loss
        self.init = init
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.validation = validation
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Boost on features X (n, p), or (n, d, q) of each item, and costs y (n, d)."""
        clock = perf_counter()
        with all_or_nothing(self):
            loss = self._check_parameters()
            X, costs = self._read(X, y)
            rng = as_generator(self.random_state)
            kept, held = self._set_aside(len(X), rng)
            problem = CountedProblem(self.problem)
            held_out = Hindsight.of(problem.take(held), costs[held]) if len(held) else None
            held_X, X, costs = X[held], X[kept], costs[kept]
            check_samples(
                len(X) if X.ndim == 2 else costs.size,
                self.min_samples_leaf,
                per_item=X.ndim == 3,
                otherwise="early_stopping=False" if self.early_stopping else "",
            )
            units = Units.of(X.reshape(-1, X.shape[-1]), costs, directions=loss.directions)
            label_rng = rng.spawn(1)[0]  # so that random labels do not change the random numbers of training
            target = loss.prepare(
                in_unit(problem, units.cost).take(kept),
                costs / units.cost,
                X=units.features(X).reshape(len(X), -1),
                rng=label_rng,
            )
            self.start_ = self._start(X, costs, loss)
            self._boost(loss, target, X, units.prediction, held_X, held_out, (rng, label_rng), problem, clock)
            self.n_solves_ = problem.n_solves
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predicted costs (n, d)."""
        check_is_fitted(self)
        X = read_features(self, X, reset=False, dtype=np.float64)
        prediction = self._starting(X)
        for tree, step in zip(self.trees_, self.steps_, strict=True) if len(X) else ():
            prediction = prediction + step * _tree_values(tree, X)
        return prediction

    def _check_parameters(self) -> Loss:
        loss = self._check_training()
        if self.init is not None:
            as_regressor(self.init, name="init")
        as_integer(self.n_estimators, name="n_estimators", maximum=MAX_TREES)
        as_integer(self.min_samples_leaf, name="min_samples_leaf")
        if self.max_depth is not None:
            as_integer(self.max_depth, name="max_depth")
        if loss.directions and self.init is not None:
            raise ValueError(
                f"{type(loss).__name__} trains directions, and init predicts costs. Leave init out, or choose a loss "
                "whose predictions are costs, such as SpoPlus."
            )
        return loss

    def _check_kept(self) -> None:
        as_loss(self.loss)
        if hasattr(self, "trees_"):
            need(isinstance(self.trees_, list) and isinstance(self.steps_, list), "trees_ and steps_ must be lists")
            need(len(self.trees_) == len(self.steps_), "trees_ and steps_ must be as many")
            for tree, step in zip(self.trees_, self.steps_, strict=True):
                need_model(tree, "a tree")
                as_number(step, name="a step")

    def _start(self, X: FloatArray, costs: FloatArray, loss: Loss) -> Any:
        """Return the mean costs, divided by their mean norm if the loss is one of directions; or the fitted `init`."""
        if self.init is not None:
            return clone(self.init).fit(X, costs)
        start = float(costs.mean()) if X.ndim == 3 else costs.mean(axis=0)
        return start / (norms(costs).mean() or 1.0) if loss.directions else start

    def _starting(self, X: FloatArray) -> FloatArray:
        """Return the predictions (n, d) before the first round."""
        if hasattr(self.start_, "predict"):
            return np.asarray(self.start_.predict(X), dtype=np.float64).reshape(len(X), -1)
        n_costs = X.shape[1] if X.ndim == 3 else len(self.start_)
        return np.broadcast_to(self.start_, (len(X), n_costs)).astype(np.float64)

    def _boost(
        self,
        loss: Loss,
        target: Target,
        X: FloatArray,
        unit: float,
        held_X: FloatArray,
        held_out: Hindsight | None,
        rngs: tuple[np.random.Generator, np.random.Generator],
        problem: CountedProblem,
        clock: float,
    ) -> None:
        """Add one tree after another, and keep those up to the lowest regret on the rows held out, if any."""
        rng, label_rng = rngs
        self.trees_: list[DecisionTreeRegressor] = []
        self.steps_: list[float] = []
        self.history_: list[Epoch] = []
        prediction, held_prediction = self._starting(X), np.empty(0)
        lowest, n_best = np.inf, 0
        regret: float | None = None
        if held_out is not None:
            held_prediction = self._starting(held_X)
            lowest = held_out.normalized_regret(held_prediction)
        values, gradient = loss.value_and_grad(prediction / unit, target, rng)
        descends = loss.gradient == "exact" and not loss.random
        size = float(np.sqrt(np.mean(gradient**2)))
        step = self.learning_rate * unit / size if size > 0 else 0.0
        step *= float(prediction.shape[1]) ** -0.5 if loss.directions else 1.0
        while step > 0 and len(self.trees_) < self.n_estimators:
            n_done = len(self.trees_)
            if loss.refresh_every is not None and n_done > 0 and n_done % loss.refresh_every == 0:
                target = loss.refreshed(prediction / unit, target, label_rng)
                values, gradient = loss.value_and_grad(prediction / unit, target, rng)
            tree = self._tree(X, gradient, rng)
            change, before = _tree_values(tree, X), float(values.mean())
            for _ in range(_HALVINGS):
                values, gradient = loss.value_and_grad((prediction + step * change) / unit, target, rng)
                if not descends or values.mean() <= before:
                    break
                step /= 2
            else:
                break  # no step along this tree lowers the loss
            prediction = prediction + step * change
            self.trees_.append(tree)
            self.steps_.append(step)
            if held_out is not None:
                held_prediction = held_prediction + step * _tree_values(tree, held_X)
                regret = held_out.normalized_regret(held_prediction)
                if regret < lowest:
                    lowest, n_best = regret, len(self.trees_)
            seconds = perf_counter() - clock
            self.history_.append(Epoch(n_done + 1, float(values.mean()), regret, problem.n_solves, seconds))
            if held_out is not None and len(self.trees_) - n_best >= self.n_iter_no_change:
                break
        if held_out is not None:
            del self.trees_[n_best:], self.steps_[n_best:]

    def _tree(self, X: FloatArray, gradient: FloatArray, rng: np.random.Generator) -> DecisionTreeRegressor:
        """Return a tree fitted to minus the gradient (n, d)."""
        tree = DecisionTreeRegressor(
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            random_state=int(rng.integers(2**31)),
        )
        return tree.fit(X.reshape(-1, X.shape[-1]), -gradient.reshape(-1) if X.ndim == 3 else -gradient)


def _tree_values(tree: DecisionTreeRegressor, X: FloatArray) -> FloatArray:
    """Return what a tree predicts, (n, d), for features (n, p) or (n, d, q)."""
    values = tree.predict(X.reshape(-1, X.shape[-1]))
    return values.reshape(X.shape[:2] if X.ndim == 3 else (len(X), -1))
