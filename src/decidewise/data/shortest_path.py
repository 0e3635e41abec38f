"""Shortest paths on a grid whose edge costs are a polynomial of the features."""

from __future__ import annotations

from decidewise.data.dataset import Dataset
from decidewise.data.polynomial import checked, polynomial, single_precision, streams
from decidewise.problems import ShortestPath


def make_shortest_path(
    n: int, *, degree: int, seed: int, grid: tuple[int, int] = (5, 5), n_features: int = 5, noise: float = 0.5
) -> Dataset:
    """Draw features and edge costs for shortest paths on a grid.

    `c_j = (((B x)_j / √p + 3)^degree + 1) / 3.5^degree · u_j` with `x ~ N(0, I)`, entries of `B` 0 or 1 with equal
    probability, and `u_j ~ Uniform(1 - noise, 1 + noise)`. The higher the degree, the worse a linear model fits.

    Parameters
    ----------
    n : int
        Number of samples. To train and test on one instance, call this once and use `split`.
    degree : int
        Degree of the polynomial; with 1 the mean costs are linear in `x`.
    seed : int
        Seed of the instance `B`, the features and the noise, in this order.
    grid : (rows, columns)
        Size of the grid, as in `ShortestPath`.
    n_features : int
        The number `p` of features.
    noise : float
        Half-width of the multiplicative noise, in [0, 1].

    Returns
    -------
    Dataset
        The same numbers as PyEPO 2.2.7 (its `genData` with `noise_width=noise`). The costs are rounded to float32 as in
        PyEPO, and stored as float64. `mean_costs` is the polynomial before noise and rounding.

    References
    ----------
    Elmachtoub and Grigas, "Smart Predict, then Optimize", Management Science 68 (2022).

    Examples
    --------
    >>> data = make_shortest_path(3, degree=2, seed=42)
    >>> data.costs[0, :3].round(4)
    array([0.4604, 1.0125, 0.7162])
    """
    n, degree, n_features, noise = checked(n, degree, n_features, noise)
    if not (isinstance(grid, tuple | list) and len(grid) == 2):
        raise ValueError(f"grid must be a pair of integers, rows and columns, such as (5, 5); got {grid!r}.")
    problem = ShortestPath(*grid)
    rng, _ = streams(seed)
    B = rng.binomial(1, 0.5, (problem.n_costs, n_features))
    X = rng.normal(0, 1, (n, n_features))
    mean_costs = polynomial(X, B, degree)
    costs = mean_costs * rng.uniform(1 - noise, 1 + noise, mean_costs.shape)
    return Dataset(X, single_precision(costs), problem, mean_costs)
