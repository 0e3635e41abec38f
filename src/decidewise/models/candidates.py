"""The models that `WiseRegressorCV` chooses among by default: a menu, family by family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from decidewise.checks import FloatArray, as_matrix, check_same_rows
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.learners.clipped_wise import ClippedWise
from decidewise.models.learners.floored import FlooredRegressor
from decidewise.models.learners.given_forecast import GivenForecast
from decidewise.models.learners.smooth_features import SmoothFeatures
from decidewise.models.wise_regressor import WiseRegressor

# The ridges of an exact linear fit share one decomposition, up to one that all but shrinks to the mean.
_RIDGES = (0.01, 0.1, 1.0, 10.0, 100.0)
# Log-linear fits are iterative: fewer of them.
_LOG_RIDGES = (0.01, 0.1, 1.0)
# A log link admits a few costs at or below zero, raised to a floor, but it suits only costs that are mostly positive.
_LARGEST_SHARE_BELOW_ZERO = 0.05
# The time of a log-linear fit grows with the square of the number of features.
_MAX_QUADRATIC_FEATURES = 200
_MAX_FEATURES_FOR_SMOOTH = 100
_MIN_ROWS_FOR_SMOOTH = 60
# Bandwidths with their ridges: the more wiggly the features, the stronger the ridge.
_SMOOTH = {1.0: (0.03, 0.3), 0.5: (0.3,)}
# With fewer rows, a forest decides better than boosted trees. With more costs, both are slow: each has its own trees.
_MIN_ROWS_FOR_BOOSTING = 300
_MIN_ROWS_FOR_FOREST = 60
_MAX_COSTS_FOR_TREES = 100


class Candidates(dict[str, Any]):
    """Candidates by name, from the simplest to the most complex: a dictionary that can be changed.

    Attributes
    ----------
    notes : dict of str to str
        For each family of models, why it is among the candidates or why not.
    leads : dict of str to str
        Candidates that are costly or rarely best, each with the lead of its family. They are first tried on one fold:
        the lead, and the others if the lead is not clearly worse than the best so far.
    """

    def __init__(self, candidates: Mapping[str, Any] | None = None) -> None:
        super().__init__(candidates or {})
        self.notes: dict[str, str] = {}
        self.leads: dict[str, str] = {}

    def serve(self, family: str, note: str, *groups: Mapping[str, Any], on_trial: bool = False) -> None:
        """Add a family of models, with the reason; on trial, the first member of a group is the lead of the group."""
        self.notes[family] = note
        for group in groups:
            self |= group
            if on_trial:
                self.leads |= dict.fromkeys(group, next(iter(group)))

    def renewed(self, candidates: Mapping[str, Any]) -> Candidates:
        """Return other candidates with the same notes, and the same candidates on trial as far as they are there."""
        menu = Candidates(candidates)
        menu.notes, menu.leads = dict(self.notes), dict(self.leads)
        return menu


def default_candidates(X: Any, costs: Any, *, rescale: bool = False, forecast: Any = None) -> Candidates:
    """Return solver-free models that suit the data, by name, from the simplest to the most complex.

    A name without "wise", such as "gamma", is the plain fit (exponent 0); "wise 0.75 gamma" and "wise gamma" are fits
    under the change of measure with exponents 0.75 and 1; "directions" have equal weights and "wise clipped" clipped
    ones (`ClippedWise`). The families, in this order:

    - the training mean, and the forecasts that are given;
    - least squares; log-linear models with the gamma, Poisson and squared deviances, if at most 5 % of the costs are at
      or below zero; least squares under the change of measure;
    - models for outliers, and for sizes that are unrelated to the direction: directions, clipped weights, least squares
      of logarithms;
    - all of these with a ridge, up to one that shrinks the model to the mean;
    - quadratic features, if there are at most 200 of them and at least three rows for each;
    - smooth features, from 60 rows on and with at most 100 features;
    - boosted trees from 300 rows on (LightGBM if it is installed), below that a random forest; at most 100 costs.

    The last three are first tried on one fold (`Candidates.leads`). `Candidates.notes` says why a family is there, or
    why not.

    Parameters
    ----------
    X : array-like or frame of shape (n, p)
    costs : array-like or frame of shape (n, d)
    rescale : bool
        Whether all candidates predict in the units of the costs, as a problem with known costs needs.
    forecast : list of columns, callable, or mapping of str to these, optional
        Forecasts of the costs that are already there, one or several by name; see `GivenForecast`.

    Examples
    --------
    Add candidates to the dictionary, or remove some:

    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> candidates = default_candidates(np.zeros((9, 4)), -np.ones((9, 2)))
    >>> candidates["neighbours"] = WiseRegressor(KNeighborsRegressor())
    >>> list(candidates)[:4]
    ['training mean', 'least squares', 'wise 0.75', 'wise']
    >>> candidates.notes["log links"]
    'left out: 100 % of the costs are at or below zero, and a log link predicts positive costs'
    """
    costs = as_matrix(costs)
    check_same_rows(X=X, costs=costs)
    n_rows, n_costs = costs.shape
    n_features = np.shape(X)[1]
    squared, log_linear, why_log = _linear_learners(costs)
    gamma = dict(list(log_linear.items())[:1])
    ridged = {"least squares": squared, **gamma}

    menu = Candidates()
    menu.serve("training mean", "every row gets the mean costs", {"training mean": DummyRegressor()})
    given = given_forecasts(forecast)
    menu.serve("forecasts", f"{len(given)} given" if given else "left out: none was given (forecast=)", given)
    menu.serve("least squares", "the common choice", _variants("least squares", squared, (0.0,)))
    # These models have equally many parameters. The log link comes first, since it suits positive costs more often.
    menu.serve("log links", why_log, _all(log_linear, (0.0, 0.75, 1.0)))
    menu.serve("change of measure", "weights large rows", _variants("least squares", squared, (0.75, 1.0)))
    menu.serve("outliers", "costs with outliers, or sizes unrelated to direction", _robust(ridged, rescale=rescale))
    ridges = {
        f"{name}, ridge {ridge:g}": model
        for label, learner in ridged.items()
        for exponent in (0.0, 1.0)
        for ridge in (_RIDGES if label == "least squares" else _LOG_RIDGES)
        # A ridge penalises all coefficients equally, so the features are scaled to the same variance.
        for name, model in _variants(label, _behind((), learner, ridge), (exponent,)).items()
    }
    menu.serve("ridge", "from almost none to the mean", ridges)

    n_quadratic = n_features * (n_features + 3) // 2
    if n_quadratic <= min(n_rows / 3, _MAX_QUADRATIC_FEATURES):
        steps = (StandardScaler(), PolynomialFeatures(2, include_bias=False))
        quadratic = _expanded([Expansion(", quadratic", steps, (0.1, 0.01))], ridged, rescale=rescale)
        menu.serve("quadratic features", f"{n_quadratic} of them, for {n_rows} rows", *quadratic, on_trial=True)
    else:
        most = f"at most {_MAX_QUADRATIC_FEATURES}, with three rows for each"
        menu.serve("quadratic features", f"left out: there would be {n_quadratic} for {n_rows} rows ({most})")
    n_waves = 60 if n_rows < 2000 else 100
    if n_rows >= _MIN_ROWS_FOR_SMOOTH and n_features <= _MAX_FEATURES_FOR_SMOOTH:
        learners = {"least squares": squared, **dict(list(log_linear.items())[:2])}
        expansions = [
            Expansion(
                f", smooth {bandwidth:g}", (StandardScaler(), SmoothFeatures(n_waves, bandwidth=bandwidth)), ridges
            )
            for bandwidth, ridges in _SMOOTH.items()
        ]
        smooth = _expanded(expansions, learners, rescale=rescale)
        menu.serve("smooth features", f"{n_waves} random waves", *smooth, on_trial=True)
    else:
        needs = f"{_MIN_ROWS_FOR_SMOOTH} rows and at most {_MAX_FEATURES_FOR_SMOOTH} features"
        menu.serve("smooth features", f"left out: they need {needs}")
    trees, why_trees = _trees(n_rows, n_costs)
    menu.serve("trees", why_trees, *trees, on_trial=True)
    if rescale:
        for candidate in menu.values():
            if isinstance(candidate, WiseRegressor):
                candidate.rescale = candidate.exponent > 0  # with exponent 0 predictions are in units already
    return menu


def given_forecasts(forecast: Any) -> dict[str, GivenForecast]:
    """Return given forecasts by name.

    >>> given_forecasts({"yesterday": [0, 1]})
    {'yesterday': GivenForecast(columns=[0, 1], name='yesterday')}
    """
    if forecast is None:
        return {}
    if not isinstance(forecast, Mapping):
        forecast = {"forecast": forecast}
    return {str(name): GivenForecast(columns, name=str(name)) for name, columns in forecast.items()}


def _linear_learners(costs: FloatArray) -> tuple[GeneralizedLinear, dict[str, Any], str]:
    """Return the learner of least squares, those with a log link that the costs admit, and why these."""
    squared = GeneralizedLinear()
    below = float((costs <= 0).mean())
    log_linear: dict[str, Any] = {
        "gamma": GeneralizedLinear("gamma"),
        "poisson": GeneralizedLinear("poisson"),
        "log squared": GeneralizedLinear(link="log"),
    }
    if below == 0:
        return squared, log_linear, "all costs are positive"
    if below > _LARGEST_SHARE_BELOW_ZERO:
        share = f"{100 * below:.3g} % of the costs are at or below zero"
        return squared, {}, f"left out: {share}, and a log link predicts positive costs"
    floored = ["gamma"] if costs.min() == 0 else list(log_linear)  # the other two deviances admit zeros
    for name in floored:
        log_linear[name] = FlooredRegressor(log_linear[name])
    return squared, log_linear, f"{(costs <= 0).sum():,} costs at or below zero are raised to a floor where needed"


def _robust(learners: Mapping[str, Any], *, rescale: bool) -> dict[str, Any]:
    robust: dict[str, Any] = {}
    for label, learner in learners.items():
        suffix = "" if label == "least squares" else f" {label}"
        robust[f"directions{suffix}"] = ClippedWise(learner, clip=0.0)
        robust[f"wise clipped{suffix}"] = ClippedWise(learner, clip=0.5)
    if len(learners) > 1 and not rescale:  # logarithms have a bias, which known costs would not share
        robust["logarithms"] = _logarithms(GeneralizedLinear())
        robust["logarithms, ridge 0.1"] = _logarithms(_behind((), GeneralizedLinear(), 0.1))
    return robust


class Expansion(NamedTuple):
    """More features, made by steps, and the ridges that suit them."""

    detail: str
    steps: tuple[Any, ...]
    ridges: tuple[float, ...]


def _expanded(expansions: Sequence[Expansion], learners: Mapping[str, Any], *, rescale: bool) -> list[dict[str, Any]]:
    """Return models of more features: one group for each learner."""
    groups = []
    for label, learner in learners.items():
        group: dict[str, Any] = {}
        for detail, steps, ridges in expansions:
            for ridge in ridges:
                for name, model in _variants(label, _behind(steps, learner, ridge), (0.0, 1.0)).items():
                    group[f"{name}{detail}, ridge {ridge:g}"] = model
            if label == "gamma":
                pipeline = _behind(steps, learner, 0.1)
                group[f"directions gamma{detail}, ridge 0.1"] = ClippedWise(pipeline, clip=0.0)
                if not rescale:
                    group[f"logarithms{detail}, ridge 0.1"] = _logarithms(_behind(steps, GeneralizedLinear(), 0.1))
        groups.append(group)
    return groups


def _trees(n_rows: int, n_costs: int) -> tuple[list[dict[str, Any]], str]:
    if n_costs > _MAX_COSTS_FOR_TREES:
        return [], f"left out: {n_costs} costs need as many sets of trees (at most {_MAX_COSTS_FOR_TREES})"
    if n_rows < _MIN_ROWS_FOR_FOREST:
        return [], f"left out: fewer than {_MIN_ROWS_FOR_FOREST} rows"
    if n_rows < _MIN_ROWS_FOR_BOOSTING:
        forest = RandomForestRegressor(100, min_samples_leaf=2, max_features=0.5, random_state=0)
        return [_variants("forest", forest, (0.0,))], f"a forest, with fewer than {_MIN_ROWS_FOR_BOOSTING} rows"
    kind = "LightGBM" if find_spec("lightgbm") else "scikit-learn, since LightGBM is not installed"
    return [_variants("trees", _boosted_trees(), (0.0, 1.0))], f"boosted trees ({kind})"


def _boosted_trees() -> Any:
    if not find_spec("lightgbm"):
        return HistGradientBoostingRegressor(max_iter=100, max_leaf_nodes=15, early_stopping=False, random_state=0)
    # Imported by name, since it is an optional dependency and known to be installed only here.
    lightgbm = import_module("lightgbm")
    return lightgbm.LGBMRegressor(
        n_estimators=100, learning_rate=0.1, num_leaves=15, random_state=0, n_jobs=1, verbosity=-1
    )


def _behind(steps: Sequence[Any], learner: Any, ridge: float) -> Any:
    """Return the learner with a ridge, behind feature steps and a scaler."""
    learner = clone(learner)
    (learner.estimator if isinstance(learner, FlooredRegressor) else learner).set_params(alpha=ridge)
    return make_pipeline(*steps, StandardScaler(), learner)


def _logarithms(learner: Any) -> Any:
    """Return least squares of the logarithms of floored costs: robust, but for the geometric mean."""
    logs = TransformedTargetRegressor(learner, func=np.log, inverse_func=np.exp, check_inverse=False)
    return FlooredRegressor(logs, floor=0.01)


def _all(learners: Mapping[str, Any], exponents: tuple[float, ...]) -> dict[str, Any]:
    return {
        name: model for label, each in learners.items() for name, model in _variants(label, each, exponents).items()
    }


def _variants(label: str, learner: Any, exponents: tuple[float, ...]) -> dict[str, Any]:
    return {_name(label, exponent): WiseRegressor(learner, exponent=exponent) for exponent in exponents}


def _name(label: str, exponent: float) -> str:
    if exponent == 0:
        return label
    wise = "wise" if exponent == 1 else f"wise {exponent:g}"
    return wise if label == "least squares" else f"{wise} {label}"
