import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

from decidewise.data import make_portfolio, make_shortest_path
from decidewise.models import Candidates, DecisionRegressor, GeneralizedLinear, WiseRegressor, default_candidates
from decidewise.problems import CountedProblem
from decidewise_bench.paper import same_model
from decidewise_bench.paper.same_model import SameModel


@pytest.fixture
def only_candidate(monkeypatch):
    return lambda model: monkeypatch.setattr(
        same_model, "default_candidates", lambda X, costs, **_: Candidates({"mine": model})
    )


def test_it_is_spo_plus_on_the_link_of_the_choice_from_least_squares():
    train, test = make_shortest_path(160, degree=6, seed=0).split(100)
    fair = SameModel(train.problem, epochs=3, learning_rate=1e-3, random_state=1).fit(train.X, train.costs)
    assert fair.choice_.members_ == [fair.choice_.best_name_]
    assert fair.choice_.best_estimator_.estimator_.deviance == "gamma"
    by_hand = DecisionRegressor(
        train.problem,
        "spo+",
        protocol="paper",
        init="mse",
        link="log",
        epochs=3,
        learning_rate=1e-3,
        random_state=1,
    ).fit(train.X, train.costs)
    np.testing.assert_allclose(fair.predict(test.X), by_hand.predict(test.X), rtol=1e-9)


def test_it_keeps_the_feature_steps_and_the_ridge(only_candidate):
    train, test = make_portfolio(160, degree=7, seed=43, instance_seed=42).split(100)
    only_candidate(default_candidates(train.X, train.costs)["wise, quadratic, ridge 0.1"])
    fair = SameModel(train.problem, epochs=1, learning_rate=1e-12, random_state=0).fit(train.X, train.costs)
    pipeline = fair.choice_.best_estimator_.estimator_
    assert pipeline[-1].alpha == 0.1
    start = GeneralizedLinear(alpha=0.1).fit(pipeline[:-1].transform(train.X), train.costs)
    expected = start.predict(pipeline[:-1].transform(test.X))  # steps of 1e-12 leave training where it starts
    np.testing.assert_allclose(fair.predict(test.X), expected, atol=1e-8)


def test_solver_calls_of_choosing_and_of_training_are_counted():
    train = make_shortest_path(60, degree=4, seed=0)
    problem = CountedProblem(train.problem)
    fair = SameModel(problem, epochs=2, random_state=0).fit(train.X, train.costs)
    assert problem.n_solves == fair.choice_.n_solves_ + 60 + 2 * 60
    assert fair.stopped_ == "epochs"


def test_a_choice_that_is_not_linear(only_candidate):
    only_candidate(WiseRegressor(KNeighborsRegressor()))
    train = make_shortest_path(60, degree=4, seed=0)
    with pytest.raises(ValueError, match=r"none of the candidates \['mine'\] is linear behind its feature steps"):
        SameModel(train.problem).fit(train.X, train.costs)
