"""The models that `WiseRegressorCV` chooses among by default: a menu, family by family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from decidewise.kit.checks import FloatArray, as_matrix, check_items, check_same_rows, is_per_item
from decidewise.models.candidate_menu import Candidates
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.learners.given_forecast import GivenForecast
from decidewise.models.learners.one_thread_boosting import FEW_BINS, JointBoosting, OneThreadBoosting
from decidewise.models.learners.scenarios import DemandRegressor, NearestScenarios, ResidualScenarios
from decidewise.models.learners.smooth_features import SmoothFeatures
from decidewise.models.learners.wrappers import ClippedWise, CorrectedRegressor, FlooredRegressor
from decidewise.models.selection.families import NEAREST, POINT, SCENARIOS
from decidewise.models.wise_regressor import WiseRegressor
from decidewise.problems.contract import Problem

_LOG_LINKS = ("gamma", "poisson", "log squared")
# The learners that also come with a ridge, with clipped weights and with more features.
_RIDGED = ("least squares", "gamma")
# The ridges of an exact linear fit share one decomposition, up to one that all but shrinks to the mean.
_RIDGES = (0.01, 0.1, 1.0, 10.0, 100.0)
# Log-linear fits are iterative: fewer of them.
_LOG_RIDGES = (0.01, 0.1, 1.0)
# A log link admits a few costs at or below zero, raised to a floor, but it suits only costs that are mostly positive.
_LARGEST_SHARE_BELOW_ZERO = 0.05
# Of their deviance; decisions do not see more digits.
_TOLERANCE = 1e-6
# The time of a log-linear fit grows with the square of the number of features.
_MAX_QUADRATIC_FEATURES = 200
_MAX_FEATURES_FOR_SMOOTH = 100
# It is not convex, so its fit computes a Hessian for each cost.
_MAX_FEATURES_FOR_LOG_SQUARED = 100
# Below this, models without a ridge are tried however few the rows are.
_MANY_FEATURES = 200
_MIN_ROWS_FOR_SMOOTH = 60
# Bandwidths with their ridges: the more wiggly the features, the stronger the ridge.
_SMOOTH = {1.0: (0.03, 0.3), 0.5: (0.3,)}
# With fewer rows, a forest decides better than boosted trees. With more costs, both are slow: each has its own trees.
_MIN_ROWS_FOR_BOOSTING = 300
_MIN_ROWS_FOR_FOREST = 60
_MAX_COSTS_FOR_TREES = 100
# What the time of growing trees is proportional to: the features that are searched, for each cost. With so many, all
# trees of a choice take about a minute.
_MAX_SEARCHED_FOR_TREES = 6_000


def default_candidates(
    X: Any, costs: Any, *, lifted: bool = False, forecast: Any = None, every: bool = False
) -> Candidates:
    """Return solver-free models that suit the data, by name, from the simplest to the most complex.

    A name without "wise", such as "gamma", is the plain fit (exponent 0); "wise 0.75 gamma" and "wise gamma" are fits
    under the change of measure with exponents 0.75 and 1; "directions" have equal weights and "wise clipped" clipped
    ones (`ClippedWise`). The families, in this order:

    - the training mean, and the forecasts that are given;
    - least squares; log-linear models with the gamma, Poisson and (up to 100 features) squared deviances, if at most
      5 % of the costs are at or below zero; least squares under the change of measure, with the mean and the iterated
      scale;
    - with features of each item, the same with an intercept or with coefficients of each item's own;
    - models for outliers, and for sizes that are unrelated to the direction: directions, clipped weights, least squares
      of logarithms;
    - all of these with a ridge, up to one that shrinks the model to the mean; with at least as many features as rows,
      and more than 200, log links and the iterated scale only with a ridge, since without one they fit any costs;
    - quadratic features, if there are at most 200 of them and at least three rows for each;
    - smooth features, from 60 rows on and with at most 100 features;
    - boosted trees from 300 rows on (LightGBM if it is installed), below that a random forest; with at most 100 costs,
      and 6,000 features times costs;
    - least squares corrected by boosted trees, from 300 rows on and with as many costs and features.

    The last four are first tried on one fold (`Candidates.leads`). `Candidates.notes` says why a family is there, or
    why not.

    Parameters
    ----------
    X : array-like or frame of shape (n, p), or array-like of shape (n, d, q) with features of each item
        With features of each item, the items share one model, except in the candidates named "own".
    costs : array-like or frame of shape (n, d)
    lifted : bool
        Whether all candidates estimate the costs themselves, not only their direction, as a problem with known costs
        needs.
    forecast : list of columns, callable, or mapping of str to these, optional
        Forecasts of the costs that are already there, one or several by name; see `GivenForecast`.
    every : bool
        Whether to return also what does not suit these rows, such as a forest beside boosted trees: for a name that was
        chosen on other rows.

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
    linear, why_log = _linear_learners(costs, every=every)
    size = _Size(len(costs), np.shape(X)[-1], costs.shape[1], every)
    if is_per_item(X):
        check_items(X, costs.shape[1])
        size = _Size(costs.size, size.n_features, 1, every)  # one model for all items: one row per item of each sample
    given = given_forecasts(forecast)
    menu = Candidates()
    if (n_empty := int((costs == 0).all(axis=1).sum())) and not lifted:
        share = f"{n_empty:,} of {len(costs):,}"
        menu.notes["rows of zeros"] = f"{share}; any decision suits them, and WISE gives them no weight"
    menu.serve("training mean", "every row gets the mean costs", groups=[{"training mean": DummyRegressor()}])
    menu.serve("forecasts", f"{len(given)} given" if given else "left out: none was given (forecast=)", groups=[given])
    menu.serve("least squares", "the common choice", groups=[_variants(linear, ["least squares"], (0.0,))])
    # These models have equally many parameters. The log link comes first, since it suits positive costs more often.
    unridged = linear
    if size.is_wide and len(linear) > 1:
        unridged = {"least squares": linear["least squares"]}
        why_log = (
            f"with a ridge only: {size.n_features:,} features fit the costs of {size.n_rows:,} rows, whatever these"
        )
    elif len(linear) > 1 and size.n_features > _MAX_FEATURES_FOR_LOG_SQUARED and not every:
        unridged = {label: learner for label, learner in linear.items() if label != "log squared"}
        why_log = f"{why_log}; without the squared deviance, for more than {_MAX_FEATURES_FOR_LOG_SQUARED} features"
    menu.serve("log links", why_log, groups=[_variants(unridged, _LOG_LINKS, (0.0, 0.75, 1.0))])
    menu.serve("change of measure", "sizes that vary", groups=[_variants(linear, ["least squares"], (0.75, 1.0))])
    menu.serve(
        "iterated scale", "features in the units of the costs", groups=[_iterated(linear["least squares"], size)]
    )
    if is_per_item(X):
        menu.serve("own items", "an intercept, or all coefficients, of each item's own", groups=[_own_items(linear)])
    menu.serve("outliers", "also sizes unrelated to direction", groups=[_robust(linear, unridged, lifted=lifted)])
    menu.serve("ridge", "from almost none to the mean", groups=[_ridges(linear)])
    _serve_quadratic(menu, linear, size, lifted=lifted)
    _serve_smooth(menu, linear, size, lifted=lifted)
    _serve_trees(menu, size)
    for candidate in menu.values():
        if isinstance(candidate, WiseRegressor):
            candidate.lifted = lifted and candidate.exponent > 0  # with exponent 0 they do so already
    return menu


def demand_candidates(menu: Candidates, problem: Problem, *, forecast: Any = None) -> Candidates:
    """Return a menu with models of the demand behind the training mean; `problem` has the demand of the rows.

    >>> from decidewise.problems import Levels, newsvendor
    >>> problem = Levels([[0, 5]], cost=newsvendor(1, 4)).with_demand([[3.0], [4.0]])
    >>> list(demand_candidates(Candidates({"training mean": DummyRegressor()}), problem))
    ['training mean', 'demand forecast', 'demand scenarios', 'similar rows', 'demand scenarios, corrected']
    """
    given = given_forecasts(forecast)
    best: Any = next(iter(given.values()), None)
    correction = WiseRegressor(_behind((), GeneralizedLinear(), 1.0), exponent=0.0)  # which takes features per item too
    found = {name: DemandRegressor(model, problem) for name, model in given.items()} | {
        POINT: DemandRegressor(GeneralizedLinear(), problem),
        SCENARIOS: DemandRegressor(ResidualScenarios(best), problem),
        NEAREST: DemandRegressor(NearestScenarios(), problem),
        f"{SCENARIOS}, corrected": DemandRegressor(ResidualScenarios(best), problem, correction),
    }
    means = {name: model for name, model in menu.items() if isinstance(model, DummyRegressor)}
    served = menu.renewed(means | found | menu)
    served.families |= {name: "forecasts" if name in given else name.split(",")[0] for name in found}
    served.notes["demand"] = "is in the table: forecasts of it, with their past errors, and what followed similar rows"
    return served


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


class _Size(NamedTuple):
    n_rows: int
    n_features: int
    n_costs: int
    every: bool

    @property
    def is_wide(self) -> bool:
        """Whether there are many features, and so many that a fit without a ridge passes through all rows."""
        return self.n_features >= self.n_rows and self.n_features > _MANY_FEATURES and not self.every


class _Expansion(NamedTuple):
    """More features, made by steps, and the ridges that suit them."""

    detail: str
    steps: tuple[Any, ...]
    ridges: tuple[float, ...]


def _linear_learners(costs: FloatArray, *, every: bool) -> tuple[dict[str, Any], str]:
    """Return the learner of least squares, those with a log link that the costs admit, and why these."""
    learners: dict[str, Any] = {"least squares": GeneralizedLinear()}
    below = float((costs <= 0).mean())
    if below > _LARGEST_SHARE_BELOW_ZERO and not every:
        share = f"{100 * below:.3g} % of the costs are at or below zero"
        return learners, f"left out: {share}, and a log link predicts positive costs"
    learners["gamma"] = GeneralizedLinear("gamma", tol=_TOLERANCE)
    learners["poisson"] = GeneralizedLinear("poisson", tol=_TOLERANCE)
    learners["log squared"] = GeneralizedLinear(link="log", tol=_TOLERANCE)
    if below == 0:
        return learners, "all costs are positive"
    floored = ["gamma"] if costs.min() == 0 else _LOG_LINKS  # the other two deviances admit zeros
    learners |= {label: FlooredRegressor(learners[label]) for label in floored}
    return learners, f"{(costs <= 0).sum():,} costs at or below zero are raised to a floor where needed"


def _iterated(learner: Any, size: _Size) -> dict[str, Any]:
    # The other scales decide alike: the fits of all learners here are proportional to their targets.
    ridged = {"wise iterated, ridge 0.1": WiseRegressor(_behind((), learner, 0.1), scale="iterated")}
    # A fit that passes through all rows says nothing about the scale of new ones.
    return ridged if size.is_wide else {"wise iterated": WiseRegressor(learner, scale="iterated")} | ridged


def _own_items(linear: Mapping[str, Any]) -> dict[str, Any]:
    """Return models of features per item in which the items differ; with coefficients of its own, an item is alone."""
    return {
        f"{_name(label, exponent)}, own {kind}": WiseRegressor(
            clone(linear[label]).set_params(per_item=kind), exponent=exponent
        )
        for kind in ("intercept", "coefficients")
        for label in _present(linear, _RIDGED)
        if isinstance(linear[label], GeneralizedLinear)
        for exponent in (0.0, 1.0)
    }


def _robust(linear: Mapping[str, Any], unridged: Mapping[str, Any], *, lifted: bool) -> dict[str, Any]:
    robust: dict[str, Any] = {}
    for label in _present(unridged, _RIDGED):
        suffix = "" if label == "least squares" else f" {label}"
        robust[f"directions{suffix}"] = ClippedWise(linear[label], clip=0.0)
        robust[f"wise clipped{suffix}"] = ClippedWise(linear[label], clip=0.5)
    if "gamma" in linear and not lifted:  # logarithms have a bias, which known costs would not share
        robust["logarithms"] = WiseRegressor(_logarithms(), exponent=0.0)  # which takes features per item too
        robust["logarithms, ridge 0.1"] = WiseRegressor(_behind((), _logarithms(), 0.1), exponent=0.0)
    return robust


def _ridges(linear: Mapping[str, Any]) -> dict[str, Any]:
    # A ridge penalises all coefficients equally, so the features are scaled to the same variance.
    return {
        f"{_name(label, exponent)}, ridge {ridge:g}": WiseRegressor(
            _behind((), linear[label], ridge), exponent=exponent
        )
        for label in _present(linear, _RIDGED)
        for exponent in (0.0, 1.0)
        for ridge in (_RIDGES if label == "least squares" else _LOG_RIDGES)
    }


def _serve_quadratic(menu: Candidates, linear: Mapping[str, Any], size: _Size, *, lifted: bool) -> None:
    n_quadratic = size.n_features * (size.n_features + 3) // 2
    if n_quadratic > min(size.n_rows / 3, _MAX_QUADRATIC_FEATURES) and not size.every:
        most = f"at most {_MAX_QUADRATIC_FEATURES}, with three rows for each"
        menu.serve("quadratic features", f"left out: there would be {n_quadratic} for {size.n_rows} rows ({most})")
        return
    steps = (StandardScaler(), PolynomialFeatures(2, include_bias=False))
    groups = _expanded([_Expansion(", quadratic", steps, (0.1, 0.01))], linear, _RIDGED, lifted=lifted)
    menu.serve("quadratic features", f"{n_quadratic} of them, for {size.n_rows} rows", groups=groups, on_trial=True)


def _serve_smooth(menu: Candidates, linear: Mapping[str, Any], size: _Size, *, lifted: bool) -> None:
    if (size.n_rows < _MIN_ROWS_FOR_SMOOTH or size.n_features > _MAX_FEATURES_FOR_SMOOTH) and not size.every:
        needs = f"{_MIN_ROWS_FOR_SMOOTH} rows and at most {_MAX_FEATURES_FOR_SMOOTH} features"
        menu.serve("smooth features", f"left out: they need {needs}")
        return
    n_waves = 60 if size.n_rows < 2000 else 100
    expansions = [
        _Expansion(f", smooth {width:g}", (StandardScaler(), SmoothFeatures(n_waves, bandwidth=width)), ridges)
        for width, ridges in _SMOOTH.items()
    ]
    groups = _expanded(expansions, linear, (*_RIDGED, "poisson"), lifted=lifted)
    menu.serve("smooth features", f"{n_waves} random waves", groups=groups, on_trial=True)


def _serve_trees(menu: Candidates, size: _Size) -> None:
    if size.every:
        menu.serve("trees", "", groups=[_variants({"forest": _forest(100)}, ["forest"], (0.0,))])
        size = _Size(_MIN_ROWS_FOR_BOOSTING, size.n_features, 1, every=True)
    n_searched = size.n_features * size.n_costs
    if not size.every and size.n_costs <= _MAX_COSTS_FOR_TREES and n_searched > _MAX_SEARCHED_FOR_TREES:
        most = f"at most {_MAX_SEARCHED_FOR_TREES:,} of them"
        note = f"left out: each split would search {n_searched:,} columns, the features for each cost ({most})"
        menu.serve("corrections", note)
        menu.serve("trees", note)
        return
    if size.n_rows < _MIN_ROWS_FOR_BOOSTING or size.n_costs > _MAX_COSTS_FOR_TREES:
        needs = f"{_MIN_ROWS_FOR_BOOSTING} rows and at most {_MAX_COSTS_FOR_TREES} costs"
        menu.serve("corrections", f"left out: boosted trees need {needs}")
    if size.n_costs > _MAX_COSTS_FOR_TREES:
        note = f"left out: {size.n_costs} costs need as many sets of trees (at most {_MAX_COSTS_FOR_TREES})"
        menu.serve("trees", note)
    elif size.n_rows < _MIN_ROWS_FOR_FOREST:
        menu.serve("trees", f"left out: fewer than {_MIN_ROWS_FOR_FOREST} rows")
    elif size.n_rows < _MIN_ROWS_FOR_BOOSTING:
        groups = [_variants({"forest": _forest(100)}, ["forest"], (0.0,))]
        note, quick = f"a forest, with fewer than {_MIN_ROWS_FOR_BOOSTING} rows", {"forest": _forest(20)}
        menu.serve("trees", note, groups=groups, on_trial=True, previews=_variants(quick, quick, (0.0,)))
    else:
        kind = "LightGBM" if find_spec("lightgbm") else "scikit-learn, since LightGBM is not installed"
        groups = [_variants({"trees": _boosted_trees(100, 0.1)}, ["trees"], (0.0, 1.0))]
        note, quick = f"boosted trees ({kind})", {"trees": _quick_trees(0.3)}
        menu.serve("trees", note, groups=groups, on_trial=True, previews=_variants(quick, quick, (0.0,)))
        small = {"n_leaves": 7, "smallest_leaf": 40}  # larger trees fit the noise of real prices
        groups = [_corrected(_boosted_trees(100, 0.05, **small))]
        note, quick = "smaller boosted trees on what least squares leave", _corrected(_quick_trees(0.25, **small))
        menu.serve("corrections", note, groups=groups, on_trial=True, previews=quick)


def _forest(n_trees: int) -> Any:
    return RandomForestRegressor(n_trees, min_samples_leaf=2, max_features=0.5, random_state=0)


def _corrected(trees: Any) -> dict[str, Any]:
    return {"least squares + trees": WiseRegressor(CorrectedRegressor(GeneralizedLinear(), trees), exponent=0.0)}


def _quick_trees(rate: float, **shape: int) -> Any:
    return JointBoosting(rate, **shape) if find_spec("lightgbm") else _boosted_trees(20, rate, **shape)


def _boosted_trees(n_trees: int, rate: float, *, n_leaves: int = 15, smallest_leaf: int = 20) -> Any:
    if not find_spec("lightgbm"):
        return OneThreadBoosting(
            max_iter=n_trees,
            learning_rate=rate,
            max_bins=FEW_BINS,
            max_leaf_nodes=n_leaves,
            min_samples_leaf=smallest_leaf,
            early_stopping=False,
            random_state=0,
        )
    # Imported by name, since it is an optional dependency and known to be installed only here.
    lightgbm = import_module("lightgbm")
    return lightgbm.LGBMRegressor(
        n_estimators=n_trees,
        learning_rate=rate,
        num_leaves=n_leaves,
        min_child_samples=smallest_leaf,
        random_state=0,
        n_jobs=1,
        verbosity=-1,
    )


def _expanded(
    expansions: Sequence[_Expansion], linear: Mapping[str, Any], labels: Sequence[str], *, lifted: bool
) -> list[dict[str, Any]]:
    """Return models of more features: one group for each learner."""
    groups = []
    for label in _present(linear, labels):
        group: dict[str, Any] = {}
        for detail, steps, ridges in expansions:
            for ridge in ridges:
                learner = {label: _behind(steps, linear[label], ridge)}
                for name, model in _variants(learner, [label], (0.0, 1.0)).items():
                    group[f"{name}{detail}, ridge {ridge:g}"] = model
            if label == "gamma":
                learner = _behind(steps, linear[label], 0.1)
                group[f"directions gamma{detail}, ridge 0.1"] = ClippedWise(learner, clip=0.0)
                if not lifted:
                    learner = _behind(steps, _logarithms(), 0.1)
                    group[f"logarithms{detail}, ridge 0.1"] = WiseRegressor(learner, exponent=0.0)
        groups.append(group)
    return groups


def _behind(steps: Sequence[Any], learner: Any, ridge: float) -> Any:
    """Return the learner with a ridge, behind feature steps and a scaler."""
    learner = clone(learner)
    learner.set_params(**{name: ridge for name in learner.get_params() if name.split("__")[-1] == "alpha"})
    return make_pipeline(*steps, StandardScaler(), learner)


def _logarithms() -> Any:
    """Return least squares of the logarithms of floored costs: robust, but for the geometric mean."""
    logs = TransformedTargetRegressor(GeneralizedLinear(), func=np.log, inverse_func=np.exp, check_inverse=False)
    return FlooredRegressor(logs, floor=0.01)


def _variants(learners: Mapping[str, Any], labels: Iterable[str], exponents: Sequence[float]) -> dict[str, Any]:
    return {
        _name(label, exponent): WiseRegressor(learners[label], exponent=exponent)
        for label in _present(learners, labels)
        for exponent in exponents
    }


def _present(learners: Mapping[str, Any], labels: Iterable[str]) -> list[str]:
    return [label for label in labels if label in learners]


def _name(label: str, exponent: float) -> str:
    if exponent == 0:
        return label
    wise = "wise" if exponent == 1 else f"wise {exponent:g}"
    return wise if label == "least squares" else f"{wise} {label}"
