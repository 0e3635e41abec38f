"""Time quadratic programs in batches of 1,000 against DAQP by itself and Clarabel by itself.

Run: `python speed/quadratic_program.py`. Target: at most 1.5 times DAQP by itself on a portfolio of 25 assets. Both are
set up once and told the costs of each row; ours also proves every answer, and starts anew for every row, as DAQP does
here. The line "one row at a time" has DAQP's function for a single program, which people call.
"""

import clarabel
import daqp
import numpy as np
from scipy.sparse import csc_array, eye_array, vstack

from benchmark import Bench, parser
from decidewise.problems import QuadraticProgram

ROWS = 1_000


def main(arguments):
    with Bench(__file__, "Quadratic programs", arguments.quick, warm_up="a row of each side") as bench:
        for n in (10, 25) if arguments.quick else (10, 25, 100):
            compare(bench, n, ROWS // 10 if arguments.quick else ROWS)


def compare(bench, n, rows):
    rng = np.random.default_rng(0)
    root, costs = rng.normal(size=(n, 2 * n)), rng.normal(size=(rows if n < 100 else rows // 10, n))
    Q, A = 5 * root @ root.T / (2 * n), np.ones((1, n))
    problem = QuadraticProgram(Q, A_eq=A, b_eq=[1.0], upper=0.2)
    lower, upper = np.append(np.zeros(n), 1.0), np.append(np.full(n, 0.2), 1.0)
    kinds = np.append(np.zeros(n), 5).astype(np.intc)  # 5 is an equation
    model = daqp.Model()
    model.settings = {"primal_tol": 1e-11}
    model.setup(Q, np.zeros(n), A, upper, lower, kinds)

    def by_daqp():
        points = np.empty_like(costs)
        for row, f in enumerate(costs):
            model.update(f=f, sense=kinds)
            points[row] = model.solve()[0]
        return points

    def one_by_one():
        return np.array([daqp.solve(Q, f, A, upper, lower, kinds, primal_tol=1e-11)[0] for f in costs])

    settings = clarabel.DefaultSettings()
    settings.verbose, settings.presolve_enable = False, False
    unit = eye_array(n)
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * n)]
    sides = np.concatenate([[1.0], upper[:n], -lower[:n]])
    barrier = clarabel.DefaultSolver(
        csc_array(np.triu(Q)), np.zeros(n), csc_array(vstack([A, unit, -unit])), sides, cones, settings
    )

    def by_clarabel():
        points = []
        for f in costs[: len(costs) // 10]:
            barrier.update(q=f)
            points.append(barrier.solve().x)
        return np.array(points)

    for other in (by_daqp(), one_by_one()):
        np.testing.assert_allclose(problem.solve(costs), other, atol=1e-8)
    np.testing.assert_allclose(problem.solve(costs)[: len(costs) // 10], by_clarabel(), atol=1e-4)
    times = bench.time(lambda: problem.solve(costs), by_daqp, one_by_one, by_clarabel)
    ours, alone, single = (time.per(len(costs)) for time in times[:3])
    what, same = f"portfolio of {n} assets, a row", "same decisions to 1e-8"
    bench.claim(what, ours, alone, peer="DAQP by itself", at_most=1.5 if n > 10 else None, same=same)
    bench.claim(what, ours, single, peer="DAQP, one row at a time", same=same)
    bench.claim(what, ours, times[3].per(len(costs) // 10), peer="Clarabel by itself", same="same decisions to 1e-4")


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
