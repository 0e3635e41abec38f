"""Long work in short parts: the same answers, and somebody listens meanwhile."""

import _thread
import threading
from time import perf_counter

import numpy as np
import pytest

from decidewise.kit import batches
from decidewise.kit.batches import in_parts, search_in_parts, time_limit
from decidewise.kit.errors import SolverError, TimeLimitReached
from decidewise.problems import Knapsack, ShortestPath, TravellingSalesman
from decidewise.problems.knapsack import problem as knapsack
from decidewise.problems.travelling_salesman import problem as travelling_salesman


def hard_knapsack(n=60):
    """Values equal to the weights: no bound closes the search."""
    weights = np.random.default_rng(0).uniform(3, 8, size=n)
    return Knapsack(np.vstack([weights, weights[::-1]]), [weights.sum() / 2] * 2), weights + 1e-4 * np.arange(n) % 7


def test_a_batch_in_parts_is_the_whole(monkeypatch):
    costs = np.random.default_rng(0).uniform(size=(50, 12))
    sizes = []

    def solve(rows, decisions):
        sizes.append(len(rows))
        decisions += 2 * rows

    whole = in_parts(solve, costs)
    assert sizes == [50]
    monkeypatch.setattr(batches, "FIRST_PART", 36)
    np.testing.assert_array_equal(in_parts(solve, costs), whole)
    assert sizes[1] == 3
    assert sum(sizes[1:]) == 50


def test_parts_shrink_where_rows_take_long(monkeypatch):
    monkeypatch.setattr(batches, "PART", 0.0)
    monkeypatch.setattr(batches, "FIRST_PART", 4)
    sizes = []
    in_parts(lambda rows, decisions: sizes.append(len(rows)), np.ones((7, 1)))
    assert sizes == [4, 1, 1, 1]


def test_a_row_that_fails_is_counted_in_the_whole_batch(monkeypatch):
    monkeypatch.setattr(batches, "PART", 0.0)
    monkeypatch.setattr(batches, "FIRST_PART", 1)

    def solve(rows, decisions):
        if rows[0, 0] == 3:
            raise SolverError("no", row=0)

    with pytest.raises(SolverError, match="row 3: no"):
        in_parts(solve, np.arange(5.0).reshape(5, 1))


def counting_search(rows, steps):
    """Take as many steps as the first entry of a row says."""
    for i, row in enumerate(rows):
        steps[0] -= row[0]
        if steps[0] < 0:
            return -rows, i
    return -rows, -1


@pytest.mark.parametrize(
    ("efforts", "given_up"), [([1, 2, 3], -1), ([5, 5, 50, 5], -1), ([1, 101], 1), ([200], 0), ([50, 7, 500, 1], 2)]
)
def test_a_search_goes_on_where_its_steps_ended(efforts, given_up):
    rows = np.array(efforts, dtype=float).reshape(-1, 1)
    decisions, stuck = search_in_parts(counting_search, rows, steps=10, max_steps=100)
    assert stuck == given_up
    solved = slice(None if given_up < 0 else given_up)
    np.testing.assert_array_equal(decisions[solved], -rows[solved])


def test_an_error_in_the_thread_of_a_hard_row_comes_through():
    def search(rows, steps):
        if steps[0] > 10:
            raise ZeroDivisionError
        return rows, 0

    with pytest.raises(ZeroDivisionError):
        search_in_parts(search, np.ones((1, 1)), steps=10, max_steps=100)


def endless_search(rows, steps):
    """Search until the steps are taken away."""
    if steps[0] <= 10:
        return rows, 0
    while steps[0] >= 0:
        threading.Event().wait(0.01)
    return rows, 0


def test_an_interrupt_ends_the_search_of_a_hard_row():
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        search_in_parts(endless_search, np.ones((1, 1)), steps=10, max_steps=100)
    timer.join()
    assert not [thread for thread in threading.enumerate() if "work" in thread.name and thread.is_alive()]


def test_the_end_of_the_time_ends_the_search_of_a_hard_row():
    with pytest.raises(TimeLimitReached), time_limit(perf_counter() + 0.1):
        search_in_parts(endless_search, np.ones((1, 1)), steps=10, max_steps=100)


def test_the_earlier_of_two_deadlines_counts_and_ends_with_its_context():
    with time_limit(perf_counter() - 1), time_limit(perf_counter() + 60), pytest.raises(TimeLimitReached):
        in_parts(np.negative, np.ones((1, 1)))
    assert in_parts(np.negative, np.ones((1, 1))) == -1


def test_a_hard_knapsack_hears_the_end_of_its_time():
    problem, values = hard_knapsack()
    problem.solve(values[:1].repeat(60) * np.arange(60))  # compiled
    begin = perf_counter()
    problem.solve(values)
    quarter = (perf_counter() - begin) / 4  # of the time that it takes on this machine
    with pytest.raises(TimeLimitReached), time_limit(perf_counter() + quarter):
        problem.solve(values)


def test_rows_that_need_many_parts_are_solved_all_the_same(monkeypatch):
    rng = np.random.default_rng(5)
    weights = rng.uniform(3, 8, size=(2, 40))
    for problem, module, name in (
        (Knapsack(weights, weights.sum(axis=1) / 2), knapsack, "STEPS"),
        (TravellingSalesman(14), travelling_salesman, "EDGES"),
    ):
        costs = rng.uniform(size=(30, problem.n_costs))
        whole = problem.solve(costs)
        monkeypatch.setattr(module, name, 2_000)
        np.testing.assert_array_equal(problem.solve(costs), whole)


def test_costs_that_must_not_be_written_to_need_no_other_kernel():
    problem = ShortestPath(3, 3)
    costs = np.random.default_rng(0).uniform(size=(4, 12))
    expected = problem.solve(costs)
    from decidewise.problems.shortest_path.acyclic import acyclic_paths  # noqa: PLC0415

    before = len(acyclic_paths.compiled.signatures)
    costs.flags.writeable = False
    np.testing.assert_array_equal(problem.solve(costs), expected)
    assert len(acyclic_paths.compiled.signatures) == before
