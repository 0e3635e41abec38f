"""Another loss for the chosen model, to separate the effect of the model from that of the loss."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from decidewise.checks import FloatArray
from decidewise.losses import Loss
from decidewise.models import DecisionRegressor, GeneralizedLinear, WiseRegressorCV
from decidewise.problems.base import Problem


class SameModel(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Train the model that `WiseRegressorCV` chooses on a loss with the solver in the loop.

    The link and the feature steps of the chosen candidate are kept; its deviance and exponent are not. Training starts
    at least squares with that link and the candidate's ridge, not at the fit that was chosen, so that nothing of the
    change of measure remains.

    Parameters
    ----------
    problem : Problem
    loss : str or Loss
        As in `DecisionRegressor`, like `epochs`, `batch_size` and `learning_rate`.
    max_solves : int, optional
        The most solver calls that choosing may take; training comes on top.
    random_state : int, RandomState instance or None
        With the same integer `WiseRegressorCV` makes the same choice.

    Attributes
    ----------
    choice_ : WiseRegressorCV
        Whose model was taken.
    model_ : Pipeline
        Its feature steps and the trained `DecisionRegressor`.
    stopped_ : str
        Why training ended, as in `DecisionRegressor`.

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> train, test = make_shortest_path(300, degree=6, seed=0).split(200)
    >>> fair = SameModel(train.problem, epochs=2, random_state=0).fit(train.X, train.costs)
    >>> "gamma" in fair.choice_.best_name_, fair.model_[-1].link
    (True, 'log')
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
        """Choose on features X (n, p) and costs y (n, d), and train."""
        choice = WiseRegressorCV(self.problem, max_solves=self.max_solves, random_state=self.random_state)
        self.choice_ = choice.fit(X, y)
        learner = self.choice_.best_estimator_.estimator_
        steps, last = (
            (clone(learner[:-1]), learner[-1]) if isinstance(learner, Pipeline) else (FunctionTransformer(), learner)
        )
        if not isinstance(last, GeneralizedLinear):
            raise ValueError(
                f"the choice is {self.choice_.best_name_!r}, and only models that are linear behind their feature "
                "steps can be trained on another loss. Use fewer rows, for which no trees are tried."
            )
        link = last.effective_link
        predictor = DecisionRegressor(
            self.problem,
            self.loss,
            protocol="paper",  # its rates were chosen in the units of the costs
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
