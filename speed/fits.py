"""Time exact WISE fits against the matrix products that they contain, scikit-learn's linear models, and Adam.

Run: `python speed/fits.py` (about two minutes). Targets: on 500,000 rows, 50 features and 100 costs at most 1.25 times
the time of `X.T @ X` and `X.T @ Y`, which nobody can go below, and under 100 MB on top of the data. Then from 1,000 to
10 million rows; the last are streamed from ten names of one file of a million rows. scikit-learn gets what a user would
write: weights `‖y‖` and targets `y / ‖y‖`. Adam takes 100 epochs in batches of 32, as in the paper.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from sklearn.linear_model import LinearRegression, Ridge

from benchmark import Bench, parser, peak_megabytes
from decidewise import GeneralizedLinear, WiseRegressor
from tables import COLUMNS, batches, write_rows

N, P, D, TARGET = 500_000, 50, 100, 1.25
EPOCHS, BATCH, MOST_FOR_ADAM = 100, 32, 10_000


def against_products(bench, n):
    """Compare with the bare products on the rows of the target."""
    rng = np.random.default_rng(0)
    X, costs = rng.standard_normal((n, P)), rng.standard_normal((n, D))
    costs += 5  # in place, since the memory of a temporary copy would hide what the fit adds
    WiseRegressor().fit(X[:10_000], costs[:10_000])  # loads every library before memory is measured
    before = peak_megabytes()
    WiseRegressor().fit(X, costs)
    extra = peak_megabytes() - before
    ours, products = bench.time(lambda: WiseRegressor().fit(X, costs), lambda: (X.T @ X, X.T @ costs), rounds=15)
    name = f"WISE, n={n:,}, p={P}, d={D}"
    bench.claim(name, ours, products, peer="X'X and X'Y", at_most=TARGET, same="the limit: only a part of the fit")
    bench.claim("memory that this fit adds, at its peak", extra, unit="MB", at_most=100)


def by_adam(X, costs):
    """Return the coefficients after some epochs of Adam on the WISE loss."""
    norms = torch.linalg.vector_norm(costs, dim=1, keepdim=True)
    targets, model = costs / norms, torch.nn.Linear(X.shape[1], costs.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(X)).split(BATCH):
            loss = (norms[rows] * (model(X[rows]) - targets[rows]) ** 2).sum(dim=1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


def wise_loss(X, costs, coef, intercept):
    norms = np.linalg.norm(costs, axis=1, keepdims=True)
    return float((norms * (X @ coef.T + intercept - costs / norms) ** 2).sum() / len(X))


def against_peers(bench, n, p, d):
    """Compare with scikit-learn and Adam on n rows."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, p))
    costs = 5 + X @ rng.normal(scale=0.3, size=(p, d)) + rng.standard_normal((n, d))
    name, rounds = f"n={n:,}, p={p}, d={d}", 3 if n >= 10**6 else 7
    ridge = 1 / float(np.linalg.norm(costs, axis=1).sum())  # the ridge of one on the weighted sum, on the mean

    def peer(learner):
        norms = np.linalg.norm(costs, axis=1)
        return learner.fit(X, costs / norms[:, None], sample_weight=norms)

    exact, ridged, products, plain, sk_ridge = bench.time(
        lambda: WiseRegressor(scale="unit").fit(X, costs),
        lambda: WiseRegressor(GeneralizedLinear(alpha=ridge), scale="unit").fit(X, costs),
        lambda: (X.T @ X, X.T @ costs),
        lambda: peer(LinearRegression()),
        lambda: peer(Ridge(alpha=1.0)),
        rounds=rounds,
    )
    for what, ours, theirs, by in (
        ("WISE", exact, plain, "LinearRegression"),
        ("WISE with a ridge", ridged, sk_ridge, "Ridge"),
    ):
        gap = np.abs(ours.result.estimator_.coef_ - theirs.result.coef_).max()
        same = f"same coefficients: they differ by {gap:.0e}"
        bench.claim(f"{what}, {name}", ours, theirs, peer=by, same=same, is_same=gap < 1e-9)
    bench.claim(f"WISE, {name}", exact, products, peer="X'X and X'Y", limit=True, same="a part of the fit")
    if n <= MOST_FOR_ADAM:
        tensors = torch.tensor(X, dtype=torch.float32), torch.tensor(costs, dtype=torch.float32)
        ours, adam = bench.time(
            lambda: WiseRegressor(scale="unit").fit(X, costs), lambda: by_adam(*tensors), rounds=1, warm=False
        )
        fit, layer = ours.result.estimator_, adam.result
        least = wise_loss(X, costs, fit.coef_, fit.intercept_)
        excess = wise_loss(X, costs, layer.weight.detach().numpy(), layer.bias.detach().numpy()) / least - 1
        same = f"Adam's loss is {100 * excess:.2f} % above the least"
        bench.claim(f"WISE, {name}", exact, adam, peer=f"Adam, {EPOCHS} epochs", same=same)


def streamed(bench, n, n_files, p, d):
    """Compare a fit over files with the bare products of the same blocks."""

    def products(paths):
        sums = 0.0
        for batch in batches(paths):
            rows = np.column_stack([column.to_numpy() for column in batch.columns])
            sums = sums + rows[:, :p].T @ rows
        return sums

    with TemporaryDirectory() as folder:
        paths = [Path(folder, f"rows_{number}.parquet") for number in range(n_files)]
        write_rows(paths[0], n // n_files, np.random.default_rng(2), n_features=p, n_costs=d)
        for path in paths[1:]:
            path.hardlink_to(paths[0])
        WiseRegressor().fit_files(paths[0], **COLUMNS)
        ours, theirs = bench.time(
            lambda: WiseRegressor().fit_files(paths, **COLUMNS), lambda: products(paths), rounds=1, warm=False
        )
    name = f"WISE, n={n:,}, p={p}, d={d}, streamed from Parquet"
    bench.claim(name, ours, theirs, peer="X'[X, Y] of the same batches", at_most=TARGET, same="a part of the fit")


def main(arguments):
    quick, p, d = arguments.quick, 10, 20
    torch.set_num_threads(1)  # steps of 32 rows are too small to share
    with Bench(__file__, "Exact fits", quick, clock="wall") as bench:
        against_products(bench, N // 50 if quick else N)
        for n in (1_000, 10_000) if quick else (1_000, 10_000, 100_000, 1_000_000):
            against_peers(bench, n, p, d)
        streamed(bench, 10**5 if quick else 10**7, 10, p, d)


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
