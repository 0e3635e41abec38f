"""Select models of scikit-learn by the decisions they lead to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest

from decidewise.evaluate.hindsight import normalized_regret
from decidewise.kit.checks import check_same_names, column_names
from decidewise.problems.contract import Problem, as_problem


@dataclass(frozen=True)
class RegretScorer:
    """A scorer for scikit-learn: minus the normalised regret of an estimator, so that greater is better.

    Examples
    --------
    >>> from decidewise import WiseRegressor
    >>> from decidewise.problems import TopK
    >>> X, costs = [[0.0], [1.0], [2.0]], [[1.0, 3.0], [2.0, 2.5], [3.0, 2.0]]
    >>> RegretScorer(TopK(2, 1, sense="min"))(WiseRegressor().fit(X, costs), X, costs)  # every decision is the best
    -0.0
    """

    problem: Problem

    def __call__(self, estimator: Any, X: Any, y: Any, *, rows: Any = None) -> float:
        """Score a fitted estimator on features `X` and realised costs `y` of shape (n, d).

        If the problem differs by row, `rows` are the rows of the problem that `X` and `y` belong to; by default all.
        """
        check_in_units(estimator, self.problem)
        names = getattr(estimator, "cost_names_in_", None)
        check_same_names(names, column_names(y), of="y", expected="the costs that the estimator was fitted with")
        problem = self.problem if rows is None else self.problem.take(rows)
        return -normalized_regret(problem, estimator.predict(X), y)

    def get_metadata_routing(self) -> MetadataRequest:
        """Ask scikit-learn for the rows, if the problem differs by row and its metadata routing is on."""
        request = MetadataRequest(owner=self)
        if self.problem.n_rows is not None:
            request.score.add_request(param="rows", alias=True)
        return request


def check_in_units(model: Any, problem: Problem) -> None:
    """Raise if the problem has known costs and the model says, by `predicts_directions`, that it predicts directions.

    The last step of a pipeline and the best model of a search are asked too.

    Examples
    --------
    >>> from decidewise import GeneralizedLinear, WiseRegressor
    >>> from decidewise.problems import KnownCosts, TopK
    >>> problem = KnownCosts(TopK(2, 1, sense="min"), [0.5, 0.0])
    >>> check_in_units(GeneralizedLinear(), problem)
    >>> check_in_units(WiseRegressor(), problem)
    Traceback (most recent call last):
    ValueError: WiseRegressor() predicts directions, which cannot be added to the known costs of KnownCosts...
    """
    if problem.has_known and predicts_directions(model):
        raise ValueError(
            f"{_inner(model)!r} predicts directions, which cannot be added to the known costs of "
            f"{type(problem).__name__}. Use a model that estimates the costs themselves, such as "
            "WiseRegressor(lifted=True) or WiseRegressorCV(problem)."
        )


def predicts_directions(model: Any) -> bool:
    """Whether a model says so by an attribute of this name; the last step of a pipeline and the best of a search may.

    >>> from decidewise import GeneralizedLinear, WiseRegressor
    >>> predicts_directions(GeneralizedLinear()), predicts_directions(WiseRegressor())
    (False, True)
    """
    return bool(getattr(_inner(model), "predicts_directions", False))


def _inner(model: Any) -> Any:
    """Return the model that says what it predicts, in a pipeline or a search; otherwise the last one inside."""
    while not hasattr(model, "predicts_directions"):
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model = model.steps[-1][1]
        else:
            break
    return model


def regret_scorer(problem: Problem) -> RegretScorer:
    """Return a scorer for `scoring=` in scikit-learn, which selects models by their decisions.

    A problem that differs by row needs scikit-learn's metadata routing, which passes the rows of each fold:
    `cross_val_score(..., params={"rows": np.arange(n)})`, or `GridSearchCV(...).fit(X, y, rows=np.arange(n))`.
    `WiseRegressorCV` needs nothing of the kind.

    Raises
    ------
    ValueError
        If the problem differs by row, and metadata routing is off: scikit-learn would turn the error of every fold into
        NaN.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> from decidewise.data import make_shortest_path
    >>> data = make_shortest_path(200, degree=4, seed=0)
    >>> search = GridSearchCV(Ridge(), {"alpha": [0.1, 1e4]}, scoring=regret_scorer(data.problem))
    >>> search.fit(data.X, data.costs).best_params_
    {'alpha': 0.1}
    """
    if as_problem(problem).n_rows is not None and not get_config()["enable_metadata_routing"]:
        raise ValueError(
            f"{type(problem).__name__} differs by row, and scikit-learn does not tell a scorer which rows it scores. "
            "Use WiseRegressorCV; or call sklearn.set_config(enable_metadata_routing=True) first, and pass "
            "rows=np.arange(len(X)) to the search, or in params to cross_val_score. To score rows yourself, use "
            "RegretScorer(problem)."
        )
    return RegretScorer(problem)
