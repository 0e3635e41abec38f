"""What is passed by mistake is answered by a sentence of ours that names the argument: a corpus, case by case.

Nothing is guessed, no NaN comes back, and nobody has to read the error of a library he did not call.
"""

from copy import copy
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

import decidewise
from decidewise import data, evaluate, measure
from decidewise.losses import as_loss, mse, registry, wise
from decidewise.problems import (
    Assignment,
    Ball,
    CachedProblem,
    CountedProblem,
    Ellipsoid,
    Knapsack,
    ParallelProblem,
    Portfolio,
    Problem,
    ShortestPath,
    TopK,
    TravellingSalesman,
    from_pyepo,
)

PACKAGE = Path(decidewise.__file__).parent
TOP, RNG, NAN, INF = TopK(4, 2), np.random.default_rng(0), float("nan"), float("inf")
COSTS = np.array([[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0], [1.0, 5.0, 1.0, 5.0]])
SPO_PLUS, PFY = as_loss("spo+"), as_loss("pfy")
TARGET = SPO_PLUS.prepare(TOP, COSTS)

BAD_ARRAYS = {
    "nan": [[NAN, 1, 2, 3]],
    "inf": [[1, INF, 2, 3]],
    "-inf": np.array([[1, -INF, 2, 3]]),
    "float32 inf": np.array([[1, INF, 2, 3]], dtype=np.float32),
    "three axes": np.ones((2, 2, 4)),
    "number": 5.0,
    "no rows": np.ones((0, 4)),
    "no columns": np.ones((3, 0)),
    "empty list": [],
    "ragged": [[1, 2, 3, 4], [1, 2]],
    "None": None,
    "missing": [[None, 1, 2, 3]],
    "str": "abcd",
    "letters": [["a", "b", "c", "d"]],
    "digits": [["1", "2", "3", "4"]],
    "one digit": [[1.0, 2.0, 3.0, "4"]],
    "digits as objects": np.array([["1", 2.0, 3.0, 4.0]], dtype=object),
    "bytes": b"1234",
    "digits as bytes": np.array([[b"1", b"2", b"3", b"4"]]),
    "complex": np.ones((1, 4)) * 1j,
    "dates": np.array([["2020-01-01"] * 4], dtype="datetime64[D]"),
    "durations": np.array([[1, 2, 3, 4]], dtype="timedelta64[s]"),
    "dates as objects": [[datetime(2020, 1, 1), 1.0, 2.0, 3.0]],
    "durations as objects": [[timedelta(1), np.timedelta64(1, "s"), 2.0, 3.0]],
    "masked": np.ma.masked_array([[1.0, 2, 3, 4]], mask=[[0, 0, 0, 1]]),
    "masked rows": [np.ma.masked_array([1.0, 2, 3, 4], mask=[0, 0, 0, 1])],
    "sparse": csr_array(np.ones((1, 4))),
    "huge integer": [[10**400, 1, 2, 3]],
    "huge long double": np.array([[1, 2, 3, 4]]) * np.longdouble("1e4000"),
    "dict": {"a": 1},
    "set": {1, 2, 3, 4},
    "generator": (i for i in range(4)),
    "structured": np.zeros(2, dtype=[("a", float), ("b", float)]),
    "function": np.sin,
    "problem": TOP,
    "pandas missing": pd.DataFrame([[1, 2, 3, pd.NA]]),
    "pandas digits": pd.DataFrame([["1", "2", "3", "4"]]),
    "pandas dates": pd.DataFrame({"a": pd.to_datetime(["2020-01-01"]), "b": 1.0, "c": 1.0, "d": 1.0}),
    "pandas categories": pd.DataFrame({name: pd.Categorical(["1"]) for name in "abcd"}),
    "polars missing": pl.DataFrame({"a": [1.0], "b": [None], "c": [1.0], "d": [2.0]}),
    "polars digits": pl.DataFrame({name: ["1"] for name in "abcd"}),
}
TAKES_COSTS = {
    "solve": ("costs", TOP.solve),
    "minimize": ("costs", TOP.minimize),
    "minimize of a kernel": ("costs", Assignment(2).minimize),
    "prepare": ("costs", lambda bad: SPO_PLUS.prepare(TOP, bad)),
    "prepare, solver-free": ("costs", lambda bad: registry["wise"]().prepare(TOP, bad)),
    "value_and_grad": ("prediction", lambda bad: SPO_PLUS.value_and_grad(bad, TARGET, RNG)),
    "decision_regret": ("prediction", lambda bad: evaluate.decision_regret(TOP, bad, COSTS)),
    "normalized_regret": ("costs", lambda bad: evaluate.normalized_regret(TOP, COSTS, bad)),
    "compare": ("predictions['bad']", lambda bad: evaluate.compare(TOP, {"good": COSTS, "bad": bad}, COSTS)),
    "reweight": ("costs", measure.reweight),
    "transform": ("costs", measure.transform),
    "resample": ("costs", lambda bad: measure.resample(COSTS, bad, 3, RNG)),
    "Portfolio": ("covariance", lambda bad: Portfolio(bad, 1.0)),
    "Ellipsoid": ("matrix", Ellipsoid),
}


def refusal(function, *arguments, **options):
    """Return the sentence by which a call is refused, and see that it is ours."""
    with pytest.raises((ValueError, TypeError)) as caught:
        function(*arguments, **options)
    assert PACKAGE in Path(str(caught.traceback[-1].path)).parents, f"raised by {caught.traceback[-1]}"
    return str(caught.value)


@pytest.mark.parametrize("entry", TAKES_COSTS)
def test_bad_arrays(entry):
    name, function = TAKES_COSTS[entry]
    for case, bad in BAD_ARRAYS.items():
        if (entry, case) == ("solve", "no rows"):  # a batch of no rows has no decisions
            continue
        sentence = refusal(function, bad)
        assert name in sentence, case
        assert len(sentence.split()) > 4, case


FOUR_NUMBERS = {
    "bool": [[True, False, True, False]],
    "integers": [[3, 1, 4, 1]],
    "Fraction": [[Fraction(1, 3), Fraction(1, 7), Fraction(1, 2), 0]],
    "Decimal": [[Decimal("1.5"), Decimal("0.1"), Decimal("2.5"), 0]],
    "float16": np.array([[3, 1, 4, 1]], dtype=np.float16),
    "long double": np.array([[3, 1, 4, 1]], dtype=np.longdouble),
    "nothing masked": np.ma.masked_array([[3.0, 1, 4, 1]]),
    "matrix of objects": np.array([[3, 1.0, 4, True]], dtype=object),
    "pandas": pd.DataFrame([[3, 1.5, 4, 1]]),
    "pandas nullable": pd.DataFrame({name: pd.array([i]) for name, i in zip("abcd", (3, 1, 4, 1), strict=True)}),
    "polars": pl.DataFrame({"a": [3], "b": [1.0], "c": [4], "d": [1]}),
}


@pytest.mark.parametrize("good", FOUR_NUMBERS)
def test_whatever_holds_numbers_is_accepted(good):
    np.testing.assert_array_equal(TOP.solve(FOUR_NUMBERS[good]), [[1.0, 0.0, 1.0, 0.0]])


def loss(name, parameter):
    """Return a function that makes a loss with one parameter."""
    return lambda value: as_loss(name, **{parameter: value})


def generator(make, parameter, **options):
    """Return a function that draws data with one option."""
    return lambda value: make(**{"n": 3, "degree": 1, "seed": 0} | options | {parameter: value})


paths, packs, tours = data.make_shortest_path, data.make_knapsack, data.make_travelling_salesman
INTEGERS = {
    "rows": lambda value: ShortestPath(value, 5),
    "columns": lambda value: ShortestPath(5, value),
    "n": lambda value: TopK(value, 1),
    "n of Assignment": Assignment,
    "n_nodes": TravellingSalesman,
    "dimension": Ball,
    "rows_per_job": lambda value: ParallelProblem(TOP, rows_per_job=value),
    "size": lambda value: measure.resample(COSTS, COSTS, value, RNG),
    "n_resamples": lambda value: evaluate.regret_interval(TOP, COSTS, COSTS, n_resamples=value),
    "n_resamples of compare": lambda value: evaluate.compare(TOP, {"a": COSTS}, COSTS, n_resamples=value),
    "n_samples": loss("pfy", "n_samples"),
    "n_samples of dpo": loss("dpo", "n_samples"),
    "n_samples of imle": loss("imle", "n_samples"),
    "max_iter": loss("rfy", "max_iter"),
    "max_iter of rfwo": loss("rfwo", "max_iter"),
    "max_iter of cave+": loss("cave+", "max_iter"),
    "max_neighbors": loss("lava", "max_neighbors"),
    "n of paths": generator(paths, "n"),
    "degree": generator(paths, "degree"),
    "n_features": generator(paths, "n_features"),
    "n_items": generator(packs, "n_items"),
    "dimension of packs": generator(packs, "dimension"),
    "n_assets": generator(data.make_portfolio, "n_assets"),
    "n_nodes of tours": generator(tours, "n_nodes"),
    "n_train": paths(5, degree=1, seed=0).split,
}
NUMBERS = {
    "radius": lambda value: Ball(2, value),
    "radius of Ellipsoid": lambda value: Ellipsoid(np.eye(2), value),
    "sigma": loss("pfy", "sigma"),
    "lambd": loss("dbb", "lambd"),
    "h": loss("pg", "h"),
    "kappa": loss("imle", "kappa"),
    "rate": loss("aimle", "rate"),
    "tol": loss("rfy", "tol"),
    "threshold": loss("lava", "threshold"),
    "temperature": loss("ltr-listwise", "temperature"),
    "noise_level": generator(data.make_portfolio, "noise_level"),
    "risk_multiple": generator(data.make_portfolio, "risk_multiple"),
}
FROM_ZERO = {
    "exponent": lambda value: measure.transform(COSTS, value),
    "margin": loss("ltr-pairwise", "margin"),
    "capacity": generator(packs, "capacity"),
}
FRACTIONS = {
    "solve_ratio": lambda value: CachedProblem(TOP, value, 0),
    "solve_ratio of cave": loss("cave-hybrid", "solve_ratio"),
    "inner_ratio": loss("cave-hybrid", "inner_ratio"),
    "noise": generator(paths, "noise"),
    "noise of packs": generator(packs, "noise"),
    "noise of tours": generator(tours, "noise", n_nodes=5),
    "level": lambda value: evaluate.regret_interval(TOP, COSTS, COSTS, level=value),
    "level of compare": lambda value: evaluate.compare(TOP, {"a": COSTS}, COSTS, level=value),
}
FLAGS = {
    "unambiguous": lambda value: evaluate.decision_regret(TOP, COSTS, COSTS, unambiguous=value),
    "variance_reduction": loss("dpo", "variance_reduction"),
    "factor_noise": generator(data.make_portfolio, "factor_noise"),
}
SEEDS = {
    "seed": generator(paths, "seed"),
    "instance_seed": generator(packs, "instance_seed"),
    "rng": lambda value: CachedProblem(TOP, 0.5, value),
}
CHOICES = {
    "sense": lambda value: ShortestPath(2, 2, sense=value),
    "sense of Knapsack": lambda value: Knapsack([1.0], 1.0, sense=value),
    "mode": loss("pg", "mode"),
    "relaxed": loss("cave", "relaxed"),
    "standardize": loss("sfge", "standardize"),
    "loss": as_loss,
    "noise of portfolios": generator(data.make_portfolio, "noise"),
}
NUMBERS_BY_ROW = {  # a list of numbers has one per row
    "k": lambda value: TopK(4, value),
    "risk": lambda value: Portfolio(np.eye(2), value),
    "budget": lambda value: Portfolio(np.eye(2), 1.0, value),
}
GENERATORS = {
    "rng of losses": lambda value: PFY.value_and_grad(COSTS, PFY.prepare(TOP, COSTS), value),
    "rng of resample": lambda value: measure.resample(COSTS, COSTS, 3, value),
}
NO_NUMBERS = ("1", None, True, [1], np.ones(2), NAN, 1j)
BY_KIND = [
    (INTEGERS, (*NO_NUMBERS, 0, -1, 1.5, INF)),
    (NUMBERS_BY_ROW, ("1", None, True, np.ones((2, 2)), [NAN], [-1.0], 1j, 0, -1, INF)),
    (NUMBERS, (*NO_NUMBERS, 0, -1, INF, -INF, 10**400)),
    (FROM_ZERO, (*NO_NUMBERS, -1, INF, 10**400)),
    (FRACTIONS, (*NO_NUMBERS, "95%", -0.1, 1.1, 95, INF)),
    (FLAGS, ("no", 1, None, [])),
    (SEEDS, ("x", -1, 1.5, True, NAN)),
    (CHOICES, ("x", None, 1, [], COSTS, ShortestPath)),
    (GENERATORS, (None, 0, "x", np.random.RandomState(0), np.random)),
]


@pytest.mark.parametrize(
    ("name", "function", "values"),
    [
        pytest.param(name, function, values, id=name)
        for functions, values in BY_KIND
        for name, function in functions.items()
    ],
)
def test_bad_parameters(name, function, values):
    for value in values:
        sentence = refusal(function, value)
        assert sentence.startswith(name.split(" of ")[0]), value
        assert "must be" in sentence, value


class Half(Problem):
    """Forgets to say how many costs there are."""

    def minimize(self, costs):
        return costs


class Silent(Problem):
    """Forgets the constructor of `Problem`, and so the sense."""

    n_costs = 4

    def __init__(self):
        pass

    def minimize(self, costs):
        return costs


class LooksLikeOne:
    """Has what is used of a problem, by luck, and not what else a `Problem` promises."""

    n_costs, sense, is_integer, polyhedron = 4, "min", False, None

    def minimize(self, costs):
        return costs

    solve = minimize


NO_PROBLEMS = (None, "shortest path", 5, ShortestPath, COSTS, LooksLikeOne(), SPO_PLUS)
UNFINISHED = {
    "Half must set n_costs to the number of its costs; got Half(n_costs=None, sense='min').": Half(),
    "Silent must have the sense 'min' or 'max': call super().__init__(sense=sense)": Silent(),
}
TAKES_A_PROBLEM = {
    "decision_regret": lambda bad: evaluate.decision_regret(bad, COSTS, COSTS),
    "normalized_regret": lambda bad: evaluate.normalized_regret(bad, COSTS, COSTS),
    "regret_interval": lambda bad: evaluate.regret_interval(bad, COSTS, COSTS),
    "compare": lambda bad: evaluate.compare(bad, {"a": COSTS}, COSTS),
    "regret_scorer": evaluate.regret_scorer,
    "CachedProblem": lambda bad: CachedProblem(bad, 0.5, 0),
    "CountedProblem": CountedProblem,
    "ParallelProblem": ParallelProblem,
    "prepare": lambda bad: SPO_PLUS.prepare(bad, COSTS),
    "prepare, solver-free": lambda bad: registry["mse"]().prepare(bad, COSTS),
    "check": registry["cave"]().check,
    "Dataset": lambda bad: data.Dataset(COSTS, COSTS, bad),
}


@pytest.mark.parametrize("entry", TAKES_A_PROBLEM)
def test_what_is_no_problem(entry):
    for bad in NO_PROBLEMS:
        sentence = refusal(TAKES_A_PROBLEM[entry], bad)
        assert sentence.startswith("problem must be a decidewise problem, such as ShortestPath(5, 5), or"), bad
        assert "derive it from decidewise.problems.Problem, set n_costs and write minimize; got" in sentence, bad
    for expected, bad in UNFINISHED.items():
        assert refusal(TAKES_A_PROBLEM[entry], bad).startswith(expected)


class Cheapest:
    """What `from_pyepo` needs of a model."""

    modelSense, num_cost, copy = 1, 3, copy  # noqa: N815

    def setObj(self, costs):
        self.costs = costs

    def solve(self):
        return np.eye(3)[self.costs.argmin()], self.costs.min()


def model(**attributes):
    return type("Model", (Cheapest,), attributes)()


OTHERS = {
    "1 by 1": ("rows or columns", lambda: ShortestPath(1, 1)),
    "huge grid": ("199,999,980,000,000 costs", lambda: ShortestPath(10**7, 10**7)),
    "huge number of items": ("costs", lambda: TopK(10**12, 1)),
    "huge assignment": ("costs", lambda: Assignment(10**6)),
    "huge tour": ("costs", lambda: TravellingSalesman(10**6)),
    "huge ball": ("costs", lambda: Ball(10**9)),
    "huge radius": ("radius", lambda: Ball(3, 1e200)),
    "huge budget": ("budget", lambda: Portfolio(np.eye(2), 1.0, 1e200)),
    "k above n": ("k", lambda: TopK(3, 4)),
    "ragged tails": ("tails", lambda: ShortestPath.from_edges([[0], [1, 2]], [1, 2], 0, 2)),
    "fractional tails": ("tails", lambda: ShortestPath.from_edges([0.5], [1], 0, 1)),
    "heads beyond int64": ("heads", lambda: ShortestPath.from_edges([0], np.array([2**63 + 5], np.uint64), 0, 7)),
    "no edges": ("tails", lambda: ShortestPath.from_edges([], [], 0, 1)),
    "unknown target": ("node 7", lambda: ShortestPath.from_edges([0], [1], 0, 7)),
    "ragged weights": ("weights", lambda: Knapsack([[1, 2], [1]], [3, 3])),
    "masked weights": ("weights", lambda: Knapsack(np.ma.masked_array([1.0, 2], mask=[0, 1]), 3)),
    "digits as weights": ("weights", lambda: Knapsack(["1", "2"], 3)),
    "weights as dates": ("weights", lambda: Knapsack(np.array(["2020-01-01"], "datetime64[D]"), 3)),
    "negative weights": ("weights", lambda: Knapsack([-1.0, 2], 3)),
    "cube of weights": ("weights", lambda: Knapsack(np.ones((1, 1, 2)), 3)),
    "no capacity": ("capacities", lambda: Knapsack([1.0, 2], None)),
    "infinite capacity": ("capacities", lambda: Knapsack([1.0, 2], INF)),
    "digits as capacity": ("capacities", lambda: Knapsack([1.0, 2], "3")),
    "too many capacities": ("capacities", lambda: Knapsack([1.0, 2], [3, 3])),
    "covariance not square": ("covariance", lambda: Portfolio(np.ones((2, 3)), 1)),
    "covariance not symmetric": ("covariance", lambda: Portfolio([[1, 2], [0, 1]], 1)),
    "covariance indefinite": ("covariance", lambda: Portfolio([[1, 2], [2, 1]], 1)),
    "matrix singular": ("matrix", lambda: Ellipsoid(np.ones((2, 2)))),
    "no workers": ("n_jobs", lambda: ParallelProblem(TOP, 0)),
    "workers around a cache": ("CachedProblem", lambda: ParallelProblem(CachedProblem(TOP, 0.5, 0))),
    "no model": ("optModel", lambda: from_pyepo(None)),
    "class of a model": ("optModel", lambda: from_pyepo(Cheapest)),
    "model without sense": ("modelSense", lambda: from_pyepo(model(modelSense=0))),
    "model with a word for its sense": ("modelSense", lambda: from_pyepo(model(modelSense="min"))),
    "model without costs": ("num_cost", lambda: from_pyepo(model(num_cost=0))),
    "zero costs": ("all 2 rows have weight zero", lambda: measure.reweight(np.zeros((2, 2)))),
    "norm out of range": ("row 1", lambda: measure.reweight([[1.0, 1.0], [1.7e308, 1.7e308]])),
    "weights too large": ("weights", lambda: measure.transform(COSTS, 1e6)),
    "weights too small": ("weights", lambda: measure.transform(COSTS / 100, 1e6)),
    "rows of X": ("X has 2 rows", lambda: measure.resample(COSTS[:2], COSTS, 3, RNG)),
    "ragged X": ("X has 2 rows", lambda: measure.resample([[1], [1, 2]], COSTS, 3, RNG)),
    "negative sample_weight": (
        "sample_weight",
        lambda: measure.resample(COSTS, COSTS, 3, RNG, sample_weight=[-1, 1, 1]),
    ),
    "masked sample_weight": (
        "sample_weight",
        lambda: measure.resample(COSTS, COSTS, 3, RNG, sample_weight=np.ma.masked_array([1.0, 1, 1], mask=[0, 0, 1])),
    ),
    "unknown parameter": (
        "'pfy' got an unexpected keyword argument 'sgima'; its parameters are n_samples, sigma",
        lambda: as_loss("pfy", sgima=1),
    ),
    "parameter of a loss without any": (
        "'wise' got an unexpected keyword argument 'eps'; it has no parameters",
        lambda: as_loss("wise", eps=1),
    ),
    "parameter for an object": ("parameters", lambda: as_loss(PFY, sigma=1)),
    "class of a loss": ("loss", lambda: as_loss(type(PFY))),
    "lists for wise": ("prediction and costs", lambda: wise([[1.0]], [[1.0]])),
    "lists for mse": ("prediction and costs", lambda: mse([[1.0]], [[1.0]])),
    "no target": ("target", lambda: SPO_PLUS.value_and_grad(COSTS, None, RNG)),
    "target of another loss": (
        "target",
        lambda: SPO_PLUS.value_and_grad(COSTS, registry["mse"]().prepare(TOP, COSTS), RNG),
    ),
    "rows of a target": ("prediction has 2 rows", lambda: SPO_PLUS.value_and_grad(COSTS[:2], TARGET, RNG)),
    "no polyhedron": ("polyhedron", lambda: registry["lava"]().prepare(Ball(4), COSTS)),
    "list of predictions": ("predictions", lambda: evaluate.compare(TOP, [COSTS], COSTS)),
    "no predictions": ("predictions", lambda: evaluate.compare(TOP, {}, COSTS)),
    "None for predictions": ("predictions", lambda: evaluate.compare(TOP, None, COSTS)),
    "unknown baseline": ("baseline", lambda: evaluate.compare(TOP, {"a": COSTS}, COSTS, baseline="b")),
    "seed for a generator": ("rng", lambda: evaluate.regret_interval(TOP, COSTS, COSTS, rng=3)),
    "optimal values of zero": ("optimal value", lambda: evaluate.normalized_regret(TOP, COSTS, 0 * COSTS)),
    "seed beyond 32 bits": ("seed", lambda: paths(3, degree=1, seed=2**40)),
    "degree beyond float32": ("degree", lambda: paths(2000, degree=300, seed=0)),
    "degree of packs": ("degree", lambda: packs(20, degree=400, seed=0)),
    "degree of tours": ("degree", lambda: tours(20, n_nodes=5, degree=400, seed=0)),
    "degree beyond float64": ("degree", lambda: paths(3, degree=10_000, seed=0)),
    "grid of one side": ("grid", lambda: paths(3, degree=1, seed=0, grid=5)),
    "grid of three": ("grid", lambda: paths(3, degree=1, seed=0, grid=(2, 2, 2))),
    "grid of letters": ("grid", lambda: paths(3, degree=1, seed=0, grid="55")),
    "rows of a dataset": ("costs has 2 rows", lambda: data.Dataset(COSTS, COSTS[:2], TOP)),
    "items of a dataset": ("features of 4 items", lambda: data.Dataset(np.ones((3, 4, 2)), COSTS[:, :3], TOP)),
    "names of a dataset": ("cost_names", lambda: data.Dataset(COSTS, COSTS, TOP, cost_names=("a",))),
    "no table": ("a table is a path", lambda: data.read_table(None, problem=TOP, costs="c", features="x")),
    "split with nothing left": ("n_train", lambda: paths(3, degree=1, seed=0).split(3)),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_mistakes(case):
    words, call = OTHERS[case]
    assert words in refusal(call)
