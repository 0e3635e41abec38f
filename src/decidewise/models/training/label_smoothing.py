"""Costs averaged with those of similar samples, so that labels depend less on noise."""

from __future__ import annotations

from sklearn.neighbors import NearestNeighbors

from decidewise.kit.checks import FloatArray


def neighbor_costs(X: FloatArray, costs: FloatArray, n_neighbors: int, weight: float = 0.5) -> FloatArray:
    """Return `weight · c_i + (1 - weight) · mean of the costs of the nearest other samples`: (n, d) -> (n, d).

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Features; the neighbours of a row are the nearest other rows, in Euclidean distance.
    n_neighbors : int
        The number of neighbours: at least 1, and less than the number of rows.
    weight : float
        The weight of the sample's own costs, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> neighbor_costs(np.array([[0.0], [1.0], [9.0]]), np.array([[2.0], [4.0], [8.0]]), 1)
    array([[3.],
           [3.],
           [6.]])
    """
    if not 1 <= n_neighbors < len(X):
        raise ValueError(
            f"n_neighbors must be between 1 and {len(X) - 1}, the number of other rows; got {n_neighbors}."
        )
    # Without an argument `kneighbors` excludes the sample itself, even among equal rows.
    nearest = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors(return_distance=False)
    return weight * costs + (1 - weight) * costs[nearest].mean(axis=1)
