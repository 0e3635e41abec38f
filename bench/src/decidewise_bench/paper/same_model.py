"""Train the chosen model on another loss, to separate the effect of the model from that of the loss."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from decidewise.kit.checks import FloatArray
from decidewise.losses import Loss
from decidewise.models import DecisionRegressor, GeneralizedLinear, WiseRegressorCV, default_candidates
from decidewise.models.selection.polish import linear_parts
from decidewise.models.selection.scores import close
from decidewise.problems.contract import Problem


class SameModel(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Take the model that `WiseRegressorCV` chooses, and train it on a loss with the solver in the loop.

    The choice is the simplest of the default candidates within one standard error of the best, among those that are
    linear behind their feature steps: only they can be trained on another loss. The link and the feature steps of the
    chosen candidate are kept; its deviance and exponent are not. Training starts from a least-squares fit with this
    link and the candidate's ridge, not from the chosen fit, so the change of measure has no effect on it.

    Parameters
    ----------
    problem : Problem
    loss : str or Loss
        As in `DecisionRegressor`, like `epochs`, `batch_size` and `learning_rate`.
    max_solves : int, optional
        The largest number of solver calls of the choice; those of training are not limited.
    random_state : int, RandomState instance or None
        With an integer, `WiseRegressorCV` with the same integer makes the same choice.

    Attributes
    ----------
    choice_ : WiseRegressorCV
        The fitted choice.
    model_ : Pipeline
        The feature steps of the chosen model, and the trained `DecisionRegressor`.
    stopped_ : str
        Why training ended, as in `DecisionRegressor`.

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> train, test = make_shortest_path(300, degree=6, seed=0).split(200)
    >>> fair = SameModel(train.problem, epochs=2, random_state=0).fit(train.X, train.costs)
    >>> fair.model_[-1].link
    'log'
    """

    def __init__(
        self,
        problem: Problem,
        loss: str | Loss = "spo+",
        *,
        epochs: int = 100,
        batch_size: int = 32,
        learning_rate: float = 1e-2,
        max_solves: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.problem = problem
        self.loss = loss
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_solves = max_solves
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Choose a model on features X (n, p) and costs y (n, d), and train it."""
        candidates = default_candidates(X, y)
        linear = {name: model for name, model in candidates.items() if linear_parts(model) is not None}
        if not linear:
            raise ValueError(
                f"none of the candidates {list(candidates)} is linear behind its feature steps, and only such models "
                "can be trained on another loss."
            )
        choice = WiseRegressorCV(
            self.problem,
            candidates.renewed(linear),
            rule="minimum",
            max_solves=self.max_solves,
            random_state=self.random_state,
        )
        self.choice_ = choice.fit(X, y)
        simplest = str(self.choice_.cv_results_["candidate"][close(self.choice_.cv_results_)[0]])
        learner = clone(linear[simplest]).fit(X, y).estimator_
        steps, last = (
            (clone(learner[:-1]), learner[-1]) if isinstance(learner, Pipeline) else (FunctionTransformer(), learner)
        )
        link = last.effective_link
        predictor = DecisionRegressor(
            self.problem,
            self.loss,
            protocol="paper",  # the learning rates were chosen for unscaled costs
            init=GeneralizedLinear(link=link, alpha=last.alpha),
            link=link,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            random_state=self.random_state,
        )
        self.model_ = Pipeline([("features", steps), ("predictor", predictor)]).fit(X, y)
        self.stopped_ = predictor.stopped_
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predicted costs (n, d)."""
        return self.model_.predict(X)
