"""Equal seeds, equal numbers: the generators are those of PyEPO 2.2.7, here run side by side where it is installed."""

import numpy as np
import pytest

from decidewise.data import (
    make_knapsack,
    make_portfolio,
    make_shortest_path,
    make_travelling_salesman,
    make_vehicle_routing,
)

SIZES = [(1, 3), (50, 5), (333, 7)]


@pytest.fixture(scope="module")
def peer():
    pytest.importorskip("pyepo")
    from pyepo.data import knapsack, portfolio, shortestpath, tsp  # noqa: PLC0415

    modules = {"shortest path": shortestpath, "knapsack": knapsack, "portfolio": portfolio, "travelling salesman": tsp}
    return {name: module.genData for name, module in modules.items()}


@pytest.mark.parametrize("seed", [0, 42, 135])
@pytest.mark.parametrize("degree", [1, 2, 4, 7, 8])
@pytest.mark.parametrize(("n", "p"), SIZES)
def test_shortest_path(peer, n, p, degree, seed):
    X, costs = peer["shortest path"](n, p, (4, 6), degree, 0.5, seed)
    data = make_shortest_path(n, degree=degree, seed=seed, grid=(4, 6), n_features=p)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.costs, costs)


@pytest.mark.parametrize("seed", [0, 42, 135])
@pytest.mark.parametrize("degree", [1, 2, 4, 7])
@pytest.mark.parametrize(("n", "p"), SIZES)
def test_knapsack(peer, n, p, degree, seed):
    weights, X, costs = peer["knapsack"](n, p, 16, 2, degree, 0.5, seed)
    data = make_knapsack(n, degree=degree, seed=seed, n_features=p)
    assert np.array_equal(data.problem.weights, weights)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.costs, costs)


@pytest.mark.parametrize("seed", [0, 42, 135])
@pytest.mark.parametrize("degree", [1, 3, 7])
@pytest.mark.parametrize(("n", "p"), SIZES)
def test_portfolio(peer, n, p, degree, seed):
    covariance, X, costs = peer["portfolio"](n, p, 25, degree, 2.0, seed)
    data = make_portfolio(n, degree=degree, seed=seed, n_features=p, noise="gaussian", noise_level=2.0)
    assert np.array_equal(data.problem.covariance, covariance)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.costs, costs)


@pytest.mark.parametrize("seed", [0, 42, 135])
@pytest.mark.parametrize("degree", [1, 2, 4, 7])
@pytest.mark.parametrize("nodes", [4, 9, 20])
@pytest.mark.parametrize(("n", "p"), SIZES)
def test_travelling_salesman(peer, n, p, nodes, degree, seed):
    X, costs = peer["travelling salesman"](n, p, nodes, degree, 0.5, seed)
    data = make_travelling_salesman(n, n_nodes=nodes, degree=degree, seed=seed, n_features=p)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.costs, costs)


@pytest.mark.parametrize("seed", [0, 42])
@pytest.mark.parametrize("degree", [1, 4])
def test_vehicle_routing(peer, degree, seed):
    """PyEPO's routing models take the costs of its tours."""
    X, costs = peer["travelling salesman"](50, 5, 11, degree, 0.5, seed)
    data = make_vehicle_routing(50, n_customers=10, degree=degree, seed=seed, n_features=5)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.costs, costs)


# What PyEPO 2.2.7 returned for two samples at seed 42. Costs go through a matrix product, whose last bits depend on the
# machine, before they are rounded to float32; hence the tolerance.
def test_pinned_shortest_path():
    data = make_shortest_path(2, degree=4, seed=42)
    assert data.X[1].tolist() == [
        0.4738329209117875,
        -1.1913034972026486,
        0.6565536086338297,
        -0.9746816702273214,
        0.787084603742452,
    ]
    np.testing.assert_allclose(
        data.costs[0, :3], [0.402896523475647, 1.4761604070663452, 0.8466343879699707], rtol=2e-7
    )
    np.testing.assert_allclose(
        data.costs[1, -3:], [0.2431497573852539, 0.12627439200878143, 0.35663434863090515], rtol=2e-7
    )


def test_pinned_knapsack():
    data = make_knapsack(2, degree=4, seed=42)
    assert data.problem.weights[1].tolist() == [
        *[3.99, 6.59, 4.51, 4.3, 4.49, 6.08, 5.57, 6.43],
        *[7.91, 7.13, 5.93, 6.85, 4.91, 7.43, 5.76, 4.6],
    ]
    assert data.X[1].tolist() == [
        -1.9875689146008928,
        -0.21967188783751193,
        0.3571125715117464,
        1.477894044741516,
        -0.5182702182736474,
    ]
    assert data.costs.tolist() == [
        [4, 2, 4, 2, 5, 4, 6, 2, 4, 4, 6, 3, 1, 1, 1, 1],
        [2, 2, 3, 8, 2, 3, 2, 2, 2, 2, 6, 5, 1, 1, 1, 4],
    ]


def test_pinned_portfolio():
    data = make_portfolio(2, degree=3, seed=42, noise="gaussian")
    assert data.X[1].tolist() == [
        -0.661786464768388,
        0.852433334796224,
        -0.7925207384327007,
        -0.11473644146689901,
        0.5049872789804571,
        0.8657551941701215,
    ]
    np.testing.assert_allclose(
        data.problem.covariance[0, :3], [1.1657779462757022e-04, -1.359554609215e-07, 4.524371932075875e-06], rtol=1e-12
    )
    np.testing.assert_allclose(
        data.costs[0, :3], [0.12077589333057404, 0.14040687680244446, 0.12111369520425797], rtol=2e-7
    )
    np.testing.assert_allclose(
        data.costs[1, -3:], [0.11292992532253265, 0.1007273867726326, 0.08745379000902176], rtol=2e-7
    )


def test_pinned_travelling_salesman():
    data = make_travelling_salesman(2, n_nodes=20, degree=4, seed=42)
    assert data.X[1, :5].tolist() == [
        0.714609790636618,
        -2.049941278577478,
        1.1590740649558977,
        -0.336254738681072,
        0.42548993324023027,
    ]
    np.testing.assert_allclose(data.costs[0, :3], [6.140200138092041, 8.381600379943848, 9.153800010681152], rtol=2e-7)
    np.testing.assert_allclose(
        data.costs[1, -3:], [3.162100076675415, 9.219499588012695, 15.613699913024902], rtol=2e-7
    )
    assert data.costs.sum() == pytest.approx(2205.060397297144, abs=1e-3)
