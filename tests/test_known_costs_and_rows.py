"""Known costs and regions by row in every loss, metric and model, on problems small enough to enumerate."""

import importlib
from itertools import combinations, product

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from decidewise import DecisionRegressor, WiseRegressor, WiseRegressorCV, decide, diagnose
from decidewise.data.dataset import Dataset
from decidewise.evaluate import RegretScorer, compare, decision_regret, normalized_regret, regret_scorer
from decidewise.losses import as_loss, registry
from decidewise.problems import (
    CountedProblem,
    Knapsack,
    KnownCosts,
    LinearProgram,
    ParallelProblem,
    Problem,
    ShortestPath,
    Storage,
)
from decidewise.testing import check_loss, check_problem
from decidewise.testing.requirements import pickled

STARTS = np.array(list(product([0.0, 1.0], repeat=4)))


class Machines(Problem):
    """Run some of four machines, which sell their output in two markets; starting them has known costs.

    The two predicted prices act on four variables through a map, and at least two machines must run.
    """

    n_costs = 2
    has_known = True
    start_costs = np.array([1.0, 2.0, 0.5, 1.5])
    output = np.array([[1.0, 0.0, 2.0, 1.0], [0.0, 3.0, 1.0, 1.0]])

    def __init__(self, *, sense="min"):
        super().__init__(sense=sense)
        self.runs = STARTS[STARTS.sum(axis=1) >= 2]

    def minimize(self, costs):
        return self.minimize_lifted(np.column_stack([costs, np.ones(len(costs))]))[:, :-1]

    def minimize_lifted(self, costs):
        lifted = np.column_stack([self.runs @ self.output.T, self.runs @ self.start_costs])
        return lifted[(costs @ lifted.T).argmin(axis=1)]


class Sacks(Problem):
    """A knapsack of five items by enumeration, with a capacity of its own for each row; the first optimum wins."""

    n_costs = 5
    weights = np.array([3.0, 4.0, 5.0, 6.0, 7.0])

    def __init__(self, capacities, *, sense="max"):
        super().__init__(sense=sense)
        self.capacities = np.asarray(capacities, dtype=float)
        self.n_rows = len(self.capacities)

    def take(self, rows):
        return Sacks(self.capacities[rows], sense=self.sense)

    def minimize(self, costs):
        sets = np.array([np.isin(range(5), chosen) for k in range(6) for chosen in combinations(range(5), k)], float)
        fits = sets @ self.weights <= self.capacities[:, None]
        return sets[np.where(fits, costs @ sets.T, np.inf).argmin(axis=1)]


class OneSack(Sacks):
    """The same for one capacity, as a problem that is the same for every row."""

    def __init__(self, capacity, *, sense="max"):
        super().__init__([capacity], sense=sense)
        self.n_rows = None


def data_for(n_rows, n_costs, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    costs = np.exp(0.5 * X @ rng.normal(size=(3, n_costs)) + 0.2 * rng.normal(size=(n_rows, n_costs)))
    return X, costs, rng.choice([7.0, 9.0, 12.0, 16.0], size=n_rows)


def refused(call, *arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(*arguments)


# Known costs.


def test_the_contract_of_known_costs():
    for sense in ("min", "max"):
        check_problem(Machines(sense=sense), costs=np.random.default_rng(0).normal(size=(30, 2)))


#: Losses that need what this problem lacks: constraints, flat faces or curved ones, zeros and ones, or no known part.
REFUSE_MACHINES = {
    "wise", "cosine", "rfwo", "sce", "pear", "qptl", "lava", "mom", "cave", "cave+", "cave-hybrid", "cilp", "intopt",
    "one-sided", "implicit", "dys", "projectnet", "mipaal", "compact",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(registry) - REFUSE_MACHINES))
def test_losses_beside_known_costs(name):
    check_loss(as_loss(name), Machines(sense="min"))


def test_losses_that_need_what_the_lifted_problem_lacks_say_so():
    problem, costs = Machines(), np.ones((3, 2))
    refused(as_loss("cave").prepare, problem, costs, sentence="Cave needs linear constraints, and Machines has no poly")
    refused(as_loss("wise").prepare, problem, costs, sentence="Wise predicts directions, which cannot be added to the")


def test_regret_counts_the_whole_objective():
    rng = np.random.default_rng(0)
    costs, prediction = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    for sense, sign in (("min", 1), ("max", -1)):
        problem = Machines(sense=sense)
        output, starts = problem.runs @ problem.output.T, problem.runs @ problem.start_costs
        whole = sign * costs @ output.T + starts  # of the minimisation, for every row and every run
        decided = (sign * prediction @ output.T + starts).argmin(axis=1)
        expected = whole[np.arange(50), decided] - whole.min(axis=1)
        np.testing.assert_allclose(decision_regret(problem, prediction, costs), expected, atol=1e-12)
        ratio = 100 * expected.sum() / np.abs(whole.min(axis=1)).sum()
        assert normalized_regret(problem, prediction, costs) == pytest.approx(ratio)
        assert compare(problem, {"model": prediction}, costs)[0].regret.estimate == pytest.approx(ratio)


def test_spo_plus_beside_known_costs_is_its_formula():
    """`2p·w - c·w - min_z (2p - c)·z` of the whole objective: the known part of w and z counts once."""
    rng = np.random.default_rng(1)
    costs, prediction = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    problem, loss = Machines(), as_loss("spo+")
    output, starts = problem.runs @ problem.output.T, problem.runs @ problem.start_costs
    best = (costs @ output.T + starts).argmin(axis=1)
    shifted = ((2 * prediction - costs) @ output.T + starts).argmin(axis=1)
    values, gradient = loss.value_and_grad(prediction, loss.prepare(problem, costs), rng)
    gap = output[best] - output[shifted]
    expected = ((2 * prediction - costs) * gap).sum(axis=1) + starts[best] - starts[shifted]
    np.testing.assert_allclose(values, expected, atol=1e-12)
    np.testing.assert_allclose(gradient, 2 * gap)


def test_training_does_not_depend_on_the_unit_of_all_costs():
    """Costs and known costs in cents give the same decisions as in units of currency."""
    X, costs, _ = data_for(80, 12)
    tolls = np.linspace(0.0, 1.0, 12)
    for early_stopping in (False, True):
        predictions = []
        for unit in (1.0, 100.0):
            problem = KnownCosts(ShortestPath(3, 3), unit * tolls)
            model = DecisionRegressor(problem, epochs=3, early_stopping=early_stopping, random_state=0)
            predictions.append(model.fit(X, unit * costs).predict(X) / unit)
        np.testing.assert_allclose(*predictions, rtol=1e-6)


def test_known_costs_by_row_in_training_and_choice():
    X, costs, _ = data_for(120, 12)
    tolls = 3 * np.random.default_rng(1).uniform(size=costs.shape)
    problem = KnownCosts(ShortestPath(3, 3), tolls)
    train, test = Dataset(X, costs, problem).split(90)
    scores = {}
    for model in (
        DecisionRegressor(train.problem, epochs=5, random_state=0),
        DecisionRegressor(train.problem, "pfy", init="zeros", epochs=5, early_stopping=True, random_state=0),
        DecisionRegressor(train.problem, "rfy", epochs=1, random_state=0),
        WiseRegressorCV(train.problem, random_state=0),
    ):
        model.fit(train.X, train.costs)
        scores[repr(model)] = normalized_regret(test.problem, model.predict(test.X), test.costs)
    without = normalized_regret(test.problem, np.tile(train.costs.mean(axis=0), (30, 1)), test.costs)
    assert max(scores.values()) < without
    decisions = decide(model, test.problem, test.X)
    np.testing.assert_array_equal(decisions, ShortestPath(3, 3).solve(model.predict(test.X) + tolls[90:]))


def test_directions_are_never_added_to_known_costs():
    X, costs, _ = data_for(40, 12)
    problem = KnownCosts(ShortestPath(3, 3), np.ones(12))
    sentence = r"WiseRegressor\(\) predicts directions, which cannot be added to the known costs of KnownCosts. Use"
    model = WiseRegressor().fit(X, costs)
    search = GridSearchCV(WiseRegressor(), {"exponent": [1.0]}).fit(X, costs)
    for wise in (model, make_pipeline(StandardScaler(), WiseRegressor()).fit(X, costs), search):
        refused(decide, wise, problem, X, sentence=sentence)
        refused(regret_scorer(problem), wise, X, costs, sentence=sentence)
    refused(WiseRegressorCV(problem, [LinearRegression(), WiseRegressor()]).fit, X, costs, sentence=sentence)
    refused(DecisionRegressor(problem, "wise").fit, X, costs, sentence="Wise predicts directions")
    in_units = WiseRegressor(lifted=True).fit(X, costs)
    np.testing.assert_array_equal(decide(in_units, problem, X), problem.solve(in_units.predict(X)))
    decide(model, ShortestPath(3, 3), X)


def test_a_diagnosis_beside_known_costs_by_row():
    X, costs, _ = data_for(60, 12)
    problem = KnownCosts(ShortestPath(3, 3), 2 * np.random.default_rng(1).uniform(size=costs.shape))
    found = diagnose(problem, X, costs, cv=3)
    assert not found.failures
    assert found.best.estimate < 100


# Regions by row.


def test_the_contract_of_regions_by_row():
    _, _, capacities = data_for(40, 5)
    check_problem(Sacks(capacities), costs=np.random.default_rng(0).normal(size=(40, 5)))
    check_problem(KnownCosts(Sacks(capacities), np.arange(5.0)), costs=np.random.default_rng(0).normal(size=(40, 5)))


@pytest.mark.parametrize("name", ["mse", "wise", "spo+", "pfy", "dbb", "pg", "nid", "dpo", "imle", "aimle", "rfy"])
def test_losses_by_row_are_those_of_single_problems(name):
    _, costs, capacities = data_for(12, 5)
    problem, loss = Sacks(capacities), as_loss(name)
    check_loss(loss, problem)
    if loss.random:
        return
    prediction = np.random.default_rng(1).normal(size=costs.shape)
    values, gradient = loss.value_and_grad(prediction, loss.prepare(problem, costs), None)
    for row, capacity in enumerate(capacities):
        rows = slice(row, row + 1)
        target = loss.prepare(OneSack(capacity), costs[rows])
        value, slope = loss.value_and_grad(prediction[rows], target, None)
        np.testing.assert_allclose(values[rows], value)
        np.testing.assert_allclose(gradient[rows], slope)


def test_losses_that_compare_rows_refuse_regions_by_row():
    _, costs, capacities = data_for(12, 5)
    for name in ("cmap", "nce", "ltr-listwise"):
        refused(as_loss(name).prepare, Sacks(capacities), costs, sentence="compares each row with decisions of other")


def test_regret_by_row_is_that_of_single_problems():
    _, costs, capacities = data_for(25, 5)
    prediction = np.random.default_rng(1).uniform(size=costs.shape)
    for unambiguous in (False, True):
        found = decision_regret(Sacks(capacities), prediction, costs, unambiguous=unambiguous)
        single = [
            decision_regret(OneSack(capacity), prediction[[row]], costs[[row]], unambiguous=unambiguous)[0]
            for row, capacity in enumerate(capacities)
        ]
        np.testing.assert_allclose(found, single)


def test_a_choice_by_row_is_scored_on_the_right_rows():
    """The candidate that knows the best decisions has regret 0 out of fold only if each row meets its own capacity."""
    X, costs, capacities = data_for(60, 5)
    model = WiseRegressorCV(
        Sacks(capacities),
        {"costs": LinearRegression(), "spo+": DecisionRegressor(Sacks(capacities), epochs=2, random_state=0)},
        random_state=0,
    ).fit(np.column_stack([X, costs]), costs)
    assert model.best_name_ == "costs"
    assert model.cv_results_["regret"][0] == pytest.approx(0, abs=1e-9)
    assert not any(model.cv_results_["error"])
    assert not diagnose(Sacks(capacities), X, costs, cv=3).failures


@pytest.mark.parametrize("early_stopping", [False, True])
def test_training_by_row_counts_all_solver_calls(early_stopping):
    X, costs, capacities = data_for(60, 5)
    problem = CountedProblem(Sacks(capacities))
    model = DecisionRegressor(problem, "spo+", epochs=4, early_stopping=early_stopping, random_state=0)
    model.fit(X, costs)
    assert problem.n_solves == model.n_solves_ > 4 * 48
    by_row = model.predict(X)
    parallel = ParallelProblem(Sacks(capacities), n_jobs=2)
    again = DecisionRegressor(parallel, "spo+", epochs=4, early_stopping=early_stopping, random_state=0)
    with parallel_config("threading"):
        np.testing.assert_array_equal(again.fit(X, costs).predict(X), by_row)
    limited = DecisionRegressor(Sacks(capacities), "pfy", epochs=4, max_solves=500, random_state=0).fit(X, costs)
    assert limited.n_solves_ <= 500


def test_equal_regions_train_as_one_region():
    X, costs, _ = data_for(60, 5)
    for loss in ("spo+", "pfy", "rfy"):
        same, one = (
            DecisionRegressor(problem, loss, epochs=2, early_stopping=True, random_state=0).fit(X, costs).predict(X)
            for problem in (Sacks(np.full(60, 12.0)), OneSack(12.0))
        )
        np.testing.assert_array_equal(same, one)


def test_a_wrong_number_of_rows_is_a_sentence():
    X, costs, capacities = data_for(20, 5)
    problem = Sacks(capacities[1:])
    sentence = "Sacks differs by row and has 19 rows, and there are 20 rows of costs"
    model = LinearRegression().fit(X, costs)
    for call, arguments in (
        (problem.solve, (costs,)),
        (normalized_regret, (problem, costs, costs)),
        (as_loss("spo+").prepare, (problem, costs)),
        (WiseRegressorCV(problem).fit, (X, costs)),
        (DecisionRegressor(problem).fit, (X, costs)),
        (diagnose, (problem, X, costs)),
        (decide, (model, problem, X)),
        (RegretScorer(problem), (model, X, costs)),
        (Dataset, (X, costs, problem)),
    ):
        refused(call, *arguments, sentence=sentence)
    scorer = RegretScorer(Sacks(capacities))
    assert scorer(model, X[3:9], costs[3:9], rows=np.arange(3, 9)) == scorer(
        model, X[3:9], costs[3:9], rows=slice(3, 9)
    )


def test_a_scorer_gets_the_rows_of_each_fold_or_says_how():
    X, costs, capacities = data_for(20, 5)
    problem, model, rows = Sacks(capacities), LinearRegression(), np.arange(20)
    refused(regret_scorer, problem, sentence="scikit-learn does not tell a scorer which rows it scores. Use")
    with config_context(enable_metadata_routing=True):
        scorer = regret_scorer(problem)
        scores = cross_val_score(model, X, costs, scoring=scorer, cv=KFold(4), params={"rows": rows})
        search = GridSearchCV(model, {"positive": [False]}, scoring=scorer, cv=KFold(4)).fit(X, costs, rows=rows)
    expected = [
        -normalized_regret(Sacks(capacities[test]), model.fit(X[train], costs[train]).predict(X[test]), costs[test])
        for train, test in KFold(4).split(X)
    ]
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    assert search.best_score_ == pytest.approx(np.mean(expected))


def test_a_dataset_takes_the_rows_of_its_problem():
    X, costs, capacities = data_for(20, 5)
    data = Dataset(X, costs, Sacks(capacities))
    train, test = data.split(15)
    np.testing.assert_array_equal(test.problem.capacities, capacities[15:])
    np.testing.assert_array_equal(train[[3, 1]].problem.capacities, capacities[[3, 1]])
    assert len(data[::2]) == 10


# Regions by row, of the problems that are here.

ITEMS = np.array([[3.0, 4.0, 5.0, 6.0, 7.0]])
BUILT_IN = {
    "program": lambda rows: LinearProgram(ITEMS, np.reshape(rows, (-1, 1)), upper=1, sense="max"),
    "knapsack": lambda rows: Knapsack(ITEMS, np.reshape(rows, (-1, 1))),
    "storage": lambda rows: Storage(5, 1.0, rows / 4, initial=rows / 8),
    "battery": lambda rows: Storage(5, 1.0, rows / 4, discharge_power=0.8, discharge_efficiency=0.9, cycles=0.5),
}


@pytest.fixture(params=BUILT_IN.values(), ids=BUILT_IN)
def build(request):
    return request.param


def test_built_in_regions_by_row_in_evaluation_choice_and_decisions(build):
    X, costs, capacities = data_for(60, 5)
    train, test = Dataset(X, costs, build(capacities)).split(40)
    prediction = np.random.default_rng(1).uniform(size=test.costs.shape)
    single = [build(capacities[[row]]) for row in range(40, 60)]
    decided, best = (
        np.array([problem.solve(row) for problem, row in zip(single, rows, strict=True)])
        for rows in (prediction, test.costs)
    )
    expected = 100 * (test.costs * (best - decided)).sum() / np.abs((test.costs * best).sum(axis=1)).sum()
    assert normalized_regret(test.problem, prediction, test.costs, unambiguous=False) == pytest.approx(expected)
    table = compare(test.problem, {"model": prediction}, test.costs)
    assert table[0].regret.estimate == pytest.approx(normalized_regret(test.problem, prediction, test.costs))
    with parallel_config("threading"):
        np.testing.assert_allclose(ParallelProblem(test.problem, n_jobs=2).solve(prediction), decided, atol=1e-9)

    choice = WiseRegressorCV(train.problem, [LinearRegression(), WiseRegressor()], random_state=0)
    choice.fit(train.X, train.costs)
    assert not any(choice.cv_results_["error"])
    assert not diagnose(train.problem, train.X, train.costs, cv=3).failures
    decisions = decide(choice, test.problem, test.X)
    np.testing.assert_array_equal(decisions, test.problem.solve(choice.predict(test.X)))
    refused(decide, choice, train.problem, test.X, sentence="differs by row and has 40 rows, and there are 20 rows")


@pytest.mark.filterwarnings("ignore::decidewise.kit.errors.TrainingWarning")  # so few rows may not improve on the start
@pytest.mark.parametrize("loss", ["spo+", "pfy", "dbb"])
def test_built_in_regions_by_row_in_training(build, loss):
    X, costs, capacities = data_for(40, 5)
    problem = CountedProblem(build(capacities))
    model = DecisionRegressor(problem, loss, epochs=2, random_state=0).fit(X, costs)
    assert problem.n_solves == model.n_solves_ >= 40
    again = DecisionRegressor(pickled(build(capacities)), loss, epochs=2, random_state=0).fit(X, costs)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-9)
    same, one = (
        DecisionRegressor(each, loss, epochs=2, random_state=0).fit(X, costs).predict(X)
        for each in (build(np.full(40, 12.0)), one_region(build))
    )
    np.testing.assert_allclose(same, one, rtol=1e-7)


def one_region(build):
    """The problem of the capacity 12, the same for all rows."""
    return {
        BUILT_IN["program"]: LinearProgram(ITEMS, [12.0], upper=1, sense="max"),
        BUILT_IN["knapsack"]: Knapsack(ITEMS, 12.0),
        BUILT_IN["storage"]: Storage(5, 1.0, 3.0, initial=1.5),
        BUILT_IN["battery"]: Storage(5, 1.0, 3.0, discharge_power=0.8, discharge_efficiency=0.9, cycles=0.5),
    }[build]


def test_built_in_regions_by_row_in_torch(build):
    torch = pytest.importorskip("torch")
    loss_module = importlib.import_module("decidewise.frontends.torch").loss_module
    _, costs, capacities = data_for(12, 5)
    problem, prediction = build(capacities), np.random.default_rng(1).uniform(size=(12, 5))
    loss = as_loss("spo+")
    values, gradient = loss.value_and_grad(prediction, loss.prepare(problem, costs), None)
    module, given = loss_module("spo+", problem), torch.tensor(prediction, requires_grad=True)
    found = module(given, costs, module.prepare(costs))
    found.backward()
    assert float(found.detach()) == pytest.approx(values.mean())
    np.testing.assert_allclose(given.grad.numpy(), gradient / 12, atol=1e-12)


def test_training_without_a_solver_needs_no_region(build):
    X, costs, capacities = data_for(20, 5)
    model = WiseRegressor().fit(X, costs)  # of which no problem is an argument
    assert decide(model, build(capacities), X).shape == costs.shape
