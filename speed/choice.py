"""Time the default choice, `WiseRegressorCV(problem)`, against the same candidates scored one by one.

Run: `python speed/choice.py` (about two minutes). The choice shares feature steps and ridge paths among candidates,
tries costly ones on one fold first, and does not score that fold again. Target: at most half the processor time of
scoring the candidates that it tried, each alone on all folds. Beside it, scikit-learn's `GridSearchCV` over these
candidates, with the regret as the score, five folds, and the best one fitted again. The regrets are those of 2,000
other rows.
"""

from sklearn.dummy import DummyRegressor
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from benchmark import Bench, parser
from decidewise import WiseRegressorCV
from decidewise.data import make_knapsack, make_portfolio, make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.models import default_candidates

SETTINGS = {
    "shortest path, degree 8": (make_shortest_path, 1600, 8),
    "knapsack, degree 2": (make_knapsack, 400, 2),
    "portfolio, degree 3": (make_portfolio, 800, 3),
}
TARGET, N_TEST = 0.5, 2_000


def choose(data, candidates=None):
    return WiseRegressorCV(data.problem, candidates, rule="minimum", random_state=0).fit(data.X, data.costs)


def grid_search(data, candidates):
    """Return scikit-learn's choice among candidates by the regret on held-out rows."""

    def score(model, X, costs):
        return -normalized_regret(data.problem, model.predict(X), costs)

    pipeline, folds = Pipeline([("model", DummyRegressor())]), KFold(5, shuffle=True, random_state=0)
    return GridSearchCV(pipeline, {"model": candidates}, scoring=score, cv=folds).fit(data.X, data.costs)


@threadpool_limits.wrap(limits=1)
def main(arguments):
    warm_up = "a choice on 80 rows"
    with Bench(__file__, "Choosing a model", arguments.quick, rounds=1, warm_up=warm_up) as bench:
        for name, (make, n, degree) in SETTINGS.items():
            n = n // 8 if arguments.quick else n  # noqa: PLW2901
            train, test = make(n + N_TEST, degree=degree, seed=0).split(n)
            choose(train[:80])  # compiles
            (together,) = bench.time(lambda data=train: choose(data), warm=False)
            candidates, results = default_candidates(train.X, train.costs), together.result.cv_results_
            solves = dict(zip(results["candidate"], results["n_solves"], strict=True))
            tried = [label for label in candidates if solves.get(label)]  # not doing nothing, which is no model

            def one_by_one(data=train, candidates=candidates, tried=tried):
                return [choose(data, {label: candidates[label]}) for label in tried]

            def by_grid(data=train, candidates=candidates, tried=tried):
                return grid_search(data, [candidates[label] for label in tried])

            alone, grid = bench.time(one_by_one, by_grid, warm=False)
            what = f"{name}, {n:,} rows, {len(tried)} candidates"
            bench.claim(what, together, alone, peer="one by one", at_most=TARGET, same="the same candidates and folds")
            regrets = [
                normalized_regret(test.problem, model.result.predict(test.X), test.costs) for model in (together, grid)
            ]
            same = f"the same candidates; regret of the choice {regrets[0]:.2f} %, theirs {regrets[1]:.2f} %"
            bench.claim(what, together, grid, peer="GridSearchCV", same=same)


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
