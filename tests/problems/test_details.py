"""Limits, and what is known of decisions that a limit stopped."""

import numpy as np
import pytest
from joblib import parallel_config

from decidewise import SolverError
from decidewise.problems import CachedProblem, CountedProblem, KnownCosts, LinearProgram, ParallelProblem
from decidewise.problems.views import in_unit
from decidewise.solvers.program import Highs

RNG = np.random.default_rng(0)
WEIGHTS = RNG.integers(10, 60, size=(3, 30)).astype(float)
VALUES = RNG.integers(10, 60, size=(6, 30)).astype(float)


def pack(**limits):
    region = {"upper": 1, "integrality": np.ones(30), "sense": "max", "solver": "highs"}
    return LinearProgram(WEIGHTS, WEIGHTS.sum(axis=1) // 3, **region, **limits)


@pytest.fixture(scope="module")
def best():
    return pack().solve_details(VALUES).objective


def test_the_optimum_is_within_the_gap(best):
    details = pack(gap=0.02).solve_details(VALUES)
    assert set(details.status) == {"optimal"}
    assert 0 < details.gap.max() <= 0.02 * (1 + 1e-9)
    assert details.n_unproven == (details.gap > 0).sum() > 0
    assert np.all((details.objective <= best + 1e-9) & (best <= details.bound + 1e-9))


def test_the_best_so_far_has_a_bound(best, monkeypatch):
    """HiGHS is stopped at its first node, whatever the machine."""
    run = Highs.run

    def run_one_node(self, costs):
        self.solver.setOptionValue("mip_max_nodes", 1)
        return run(self, costs)

    monkeypatch.setattr(Highs, "run", run_one_node)
    details = pack(on_limit="best", offset=5.0).solve_details(VALUES)
    stopped = details.status == "limit"
    assert stopped.any()
    assert np.all(details.gap[stopped] > 0)
    assert np.all(WEIGHTS.sum(axis=1) // 3 >= (WEIGHTS @ details.decisions.T).T)
    assert np.all((details.objective <= best + 5 + 1e-9) & (best + 5 <= details.bound + 1e-9))
    assert "limit, largest gap" in repr(details)
    with pytest.raises(SolverError, match="limit reached"):
        pack().solve(VALUES)


def test_views_pass_the_gaps_on():
    relaxed = pack(gap=0.02)
    expected = relaxed.solve_details(VALUES)
    for view in (CountedProblem(relaxed), ParallelProblem(relaxed, n_jobs=2), KnownCosts(relaxed, np.zeros(30))):
        with parallel_config(backend="threading"):
            details = view.solve_details(VALUES)
        np.testing.assert_array_equal(details.status, expected.status)
        np.testing.assert_allclose(details.bound, expected.bound, rtol=1e-12)
    in_tens = in_unit(KnownCosts(relaxed, np.zeros(30)), 10.0)
    np.testing.assert_allclose(in_tens.solve_details(VALUES / 10).bound, expected.bound / 10, rtol=1e-9)
    pooled = CachedProblem(pack(), solve_ratio=0.5, rng=0)
    pooled.solve(VALUES)  # of an empty pool, every row
    assert 0 < np.isinf(pooled.solve_details(VALUES).gap).sum() < len(VALUES)


def test_a_row_that_fails_has_no_bound():
    by_row = LinearProgram([[1.0]], [1.0], upper=2.0, on_error="nan").by_row(b_ub=[[1.0], [-1.0]])
    details = by_row.solve_details([[-3.0], [-3.0]])
    assert details.status.tolist() == ["optimal", "failed"]
    np.testing.assert_array_equal(details.bound, [-3.0, np.nan])


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"time_limit": 0}, "time_limit must be a number above 0; got time_limit=0.0"),
        ({"gap": -0.1}, "gap must be a number at least 0; got gap=-0.1"),
        ({"on_limit": "ignore"}, "on_limit must be one of 'raise', 'best'; got 'ignore'"),
    ],
)
def test_bad_limits(limits, message):
    with pytest.raises(ValueError, match=message):
        pack(**limits)
