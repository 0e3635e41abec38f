"""Costs averaged with those of similar samples, for labels that noise does not turn around."""

from __future__ import annotations

from sklearn.neighbors import NearestNeighbors

from decidewise.checks import FloatArray


def neighbor_costs(X: FloatArray, costs: FloatArray, n_neighbors: int, weight: float = 0.5) -> FloatArray:
    """Return `weight · c_i + (1 - weight) · mean of the costs of the nearest other samples`: (n, d) -> (n, d).

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Neighbours are the nearest rows here, in Euclidean distance.
    n_neighbors : int
        How many, at least 1 and fewer than the rows.
    weight : float
        Between 0 and 1, for the sample's own costs.

    Examples
    --------
    >>> import numpy as np
    >>> neighbor_costs(np.array([[0.0], [1.0], [9.0]]), np.array([[2.0], [4.0], [8.0]]), 1)
    array([[3.],
           [3.],
           [6.]])
    """
    if not 1 <= n_neighbors < len(X):
        raise ValueError(f"n_neighbors must be between 1 and {len(X) - 1}, the other rows; got {n_neighbors}.")
    if not 0 <= weight <= 1:
        raise ValueError(f"the weight of a sample's own costs must be between 0 and 1; got {weight}.")
    # Without an argument the search leaves out the sample itself, also among equal rows.
    nearest = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors(return_distance=False)
    return weight * costs + (1 - weight) * costs[nearest].mean(axis=1)
