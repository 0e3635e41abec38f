"""Choose a portfolio by predicted returns less a price on its variance, which is known.

The variance enters with a risk aversion, and not as a limit: it is a part of the objective beside the predicted one.

    python examples/portfolio_with_risk.py
"""

import numpy as np

from decidewise import DecisionRegressor, GeneralizedLinear, WiseRegressor, compare
from decidewise.problems import QuadraticProgram

RISK_AVERSION, N_ASSETS, N_FEATURES, N_TRAIN = 4.0, 15, 5, 800


def main() -> None:
    """Print the regret of three models."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(N_ASSETS, 4)) / 4
    covariance = factors @ factors.T + np.diag(rng.uniform(0.05, 0.2, N_ASSETS))
    X = rng.normal(size=(N_TRAIN + 400, N_FEATURES))
    mean = (0.4 * X @ rng.normal(size=(N_FEATURES, N_ASSETS)) + 1) ** 3 / 10  # no model here has this shape
    returns = mean + rng.multivariate_normal(np.zeros(N_ASSETS), covariance / 10, size=len(X))

    portfolio = QuadraticProgram(
        -RISK_AVERSION * covariance, A_eq=np.ones((1, N_ASSETS)), b_eq=[1.0], upper=0.3, sense="max"
    )
    models = {
        "least squares": GeneralizedLinear(),
        "WISE, lifted": WiseRegressor(lifted=True),
        "implicit": DecisionRegressor(portfolio, "implicit", epochs=10, random_state=0),
    }
    predictions = {
        name: model.fit(X[:N_TRAIN], returns[:N_TRAIN]).predict(X[N_TRAIN:]) for name, model in models.items()
    }
    print(compare(portfolio, predictions, returns[N_TRAIN:]))


if __name__ == "__main__":
    main()
