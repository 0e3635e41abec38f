"""Time conic programs of CVXPY, taken over once, against CVXPY that sets a parameter and solves row by row.

Run: `python speed/conic_program.py`. Target: at least 5 times as fast, to the same values. CVXPY ends in Clarabel, and
so does ours, which sets a region up once and only tells it the costs of a row; ours aims at 1e-10 where CVXPY's default
is 1e-8. The lines "Clarabel by itself" have what Clarabel takes to solve the same rows with the same aim: nobody who
calls it can be faster than this.

Processor time counts no other processes of the machine; both sides take turns, with one thread for BLAS, since threads
that wait count too. The lines "both cores" have `ParallelProblem` with two workers, by the clock on the wall: run them
on a machine that does nothing else. Threads would do as well as processes, since Clarabel releases Python's lock.
"""

from time import perf_counter, process_time

import cvxpy
import numpy as np

from benchmark import Bench, Measured, parser
from decidewise.kit.scaling import unit_rows
from decidewise.models.linear.blocks import one_library_thread
from decidewise.problems import ParallelProblem, from_cvxpy
from decidewise.solvers.conic import _ATTEMPTS, _Clarabel

TURNS, ROWS, THEIR_ROWS = 8, 50, 10


def ball(n=5):
    costs, w = cvxpy.Parameter(n), cvxpy.Variable(n)
    limits = [cvxpy.norm(w) <= 1, w >= -0.7, cvxpy.sum(w) <= 1]
    return cvxpy.Problem(cvxpy.Minimize(costs @ w), limits), costs


def portfolio(n=10):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(n, n)) / 3
    returns, w = cvxpy.Parameter(n), cvxpy.Variable(n, nonneg=True)
    risk = cvxpy.quad_form(w, root @ root.T + 0.1 * np.eye(n))
    return cvxpy.Problem(cvxpy.Maximize(returns @ w), [risk <= 0.2, cvxpy.sum(w) <= 1]), returns


def eigenvalue(k=4):
    costs, X = cvxpy.Parameter((k, k)), cvxpy.Variable((k, k), PSD=True)
    return cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(cvxpy.multiply(costs, X))), [cvxpy.trace(X) == 1]), costs


def entropy(n=6):
    costs, w = cvxpy.Parameter(n), cvxpy.Variable(n)
    limits = [cvxpy.sum(cvxpy.entr(w)) >= 1, cvxpy.sum(w) == 1]
    return cvxpy.Problem(cvxpy.Minimize(costs @ w), limits), costs


def main(arguments):
    with Bench(__file__, "Conic programs of CVXPY", arguments.quick, warm_up="a row of each side") as bench:
        compare(bench, 2 if arguments.quick else TURNS)


def compare(bench, turns):
    for what, (model, parameter) in {
        "a ball cut by planes, 5 costs": ball(),
        "portfolio of 10 assets": portfolio(),
        "entropy of 6 shares": entropy(),
        "semidefinite matrix, 4 × 4": eigenvalue(),
    }.items():
        problem = from_cvxpy(model, parameter)
        costs = np.random.default_rng(1).normal(size=(turns * ROWS, parameter.size))

        def values_by_cvxpy(rows, model=model, parameter=parameter):
            values = []
            for row in rows:
                parameter.value = row.reshape(parameter.shape)
                values.append(model.solve(solver=cvxpy.CLARABEL))
            return values

        values_by_cvxpy(costs[:1])
        problem.solve(costs[:1])
        times, alone = np.zeros(3), _Clarabel(problem._solver.region, *_ATTEMPTS[0])
        with one_library_thread():
            for start in range(0, len(costs), ROWS):
                few = costs[start : start + THEIR_ROWS]
                begin = process_time()
                decisions = problem.solve(costs[start : start + ROWS])
                middle = process_time()
                values = values_by_cvxpy(few)
                end = process_time()
                for unit in unit_rows(few @ problem._map):
                    alone.run(unit if problem.sense == "min" else -unit)
                times += np.array([
                    (middle - begin) / ROWS, (process_time() - end) / THEIR_ROWS, (end - middle) / THEIR_ROWS
                ]) / turns  # fmt: skip
                np.testing.assert_allclose((few * decisions[:THEIR_ROWS]).sum(axis=1), values, atol=1e-6)
        ours, clarabel, theirs = (Measured(seconds, "processor", turns) for seconds in times)
        same = "same values to 1e-6"
        bench.claim(f"{what}, a row", ours, theirs, peer="CVXPY, Clarabel", at_least=5, same=same)
        bench.claim(f"{what}, a row", ours, clarabel, peer="Clarabel by itself", limit=True, same="same rows, same aim")

        both, many = ParallelProblem(problem, n_jobs=2), np.tile(costs, (1 + 1_000 // len(costs), 1))
        both.solve(costs[:ROWS])  # starts the workers
        walls = np.zeros(2)
        for start in range(0, turns * THEIR_ROWS, THEIR_ROWS):
            begin = perf_counter()
            both.solve(many)
            middle = perf_counter()
            values_by_cvxpy(costs[start : start + THEIR_ROWS])
            walls += np.array([(middle - begin) / len(many), (perf_counter() - middle) / THEIR_ROWS]) / turns
        on_both, theirs = (Measured(seconds, "wall", turns) for seconds in walls)
        bench.claim(f"{what}, a row, both cores", on_both, theirs, peer="CVXPY, Clarabel", at_least=5, same=same)


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
