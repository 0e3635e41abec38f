"""Time one step of every loss against what it consists of, and the labels of LODL.

Run: `python speed/losses.py`. Targets: the value and the gradient of 2,000 rows of the 5×5 grid take at most twice the
processor time of the solves, random numbers and products that they consist of, each as a bare call; labels of LODL with
10^6 solves in under 3 s; projections on normal cones, by DAQP, in at most the time of SciPy, and the steps of CaVE+, a
kernel of ours, in at most a fifth of that of Clarabel. A solve of this grid takes 0.2 µs, so that the random numbers of
losses that draw some take longer than their solves.
"""

from functools import partial
from time import process_time

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import nnls

from benchmark import Bench, Measured, parser
from decidewise.data import make_shortest_path
from decidewise.kit.machine import one_library_thread
from decidewise.losses import as_loss, registry, row_dot
from decidewise.problems import Ball, CountedProblem, TopK

N, N_CONES = 2_000, 200
LEAST_ROUNDS, MOST_ROUNDS, SECONDS = 3, 40, 1.0


def seconds(function):
    start = process_time()
    function()
    return process_time() - start


class Replayed(CountedProblem):
    """A problem that remembers the batches it has solved, to solve them again."""

    def __init__(self, problem):
        super().__init__(problem)
        self.batches = []

    def _call(self, method, costs):
        self.batches.append((method, costs.copy()))
        return super()._call(method, costs)

    def replay(self):
        """Solve all batches again, uncounted."""
        for method, costs in self.batches:
            getattr(self.problem, method)(costs)


def normal_numbers(loss, target, prediction, rng):
    rng.standard_normal((loss.n_samples, *prediction.shape))


def gamma_numbers(loss, target, prediction, rng):
    rng.standard_gamma(10 / loss.kappa, (loss.n_samples, *prediction.shape))


def squares(loss, target, prediction, rng):
    error = prediction - target.costs
    return row_dot(error, error), 2 * error


def two_sided_squares(loss, target, prediction, rng):
    error = prediction - target.costs
    above = np.maximum(error, 0)
    weighted = target.costs * above + prediction * (error - above)
    return row_dot(weighted, error), 2 * weighted


def directions(loss, target, prediction, rng):
    error = prediction - target.directions
    return target.norms[:, 0] * row_dot(error, error), 2 * target.norms * error


def angles(loss, target, prediction, rng):
    length = np.sqrt(row_dot(prediction, prediction))[:, None]
    unit = prediction / length
    agreement = row_dot(unit, target.costs)[:, None]
    return 1 - agreement, (target.costs - agreement * unit) / length


def pool_products(loss, target, prediction, rng):
    objectives = prediction @ target.pool.decisions.T
    return objectives @ target.pool.decisions


def two_softmaxes(loss, target, prediction, rng):
    both = []
    for costs in (prediction, target.costs):
        exponents = -costs @ target.pool.decisions.T
        exponents -= exponents.max(axis=1, keepdims=True)
        np.exp(exponents, out=exponents)
        both.append(exponents / exponents.sum(axis=1, keepdims=True))
    return (both[0] - both[1]) @ target.pool.decisions


def cone_projections(loss, target, prediction, rng):
    target.cones.project(-prediction, target.binding)


def inner_cone_projections(loss, target, prediction, rng):
    inside = loss.margin * np.asarray(np.where(target.binding == 2, 0, target.binding) @ target.cones.normals)
    target.cones.project(-prediction - inside, target.binding)


def cone_steps(loss, target, prediction, rng):
    target.cones.approach(-prediction, target.binding, loss.max_iter)


def some_cone_steps(loss, target, prediction, rng):
    drawn = rng.random(len(prediction)) < loss.solve_ratio
    target.cones.approach(-prediction[drawn], target.binding[drawn], loss.max_iter)
    target.cones.mean_unit_normal(target.binding)


def edge_products(loss, target, prediction, rng):
    edges = target.edges
    for vertex in np.unique(target.vertex):
        rows = edges[target.starts[vertex] : target.starts[vertex + 1]]
        products = prediction[target.vertex == vertex] @ rows.T
        (products > -loss.threshold) @ rows


def projection(loss, target, prediction, rng):
    """Project on the hull, with all solves and systems of equations, and on the directions of the face."""
    loss.smoothed(prediction, target).along_face(target.costs)


def compact_projection(loss, target, prediction, rng):
    loss.smoothed(prediction @ target.columns, target).along_face(target.costs @ target.columns)


def unrolling(loss, target, prediction, rng):
    loss._unrolled(prediction, target.costs, target.region, target.matrix)


def barrier(loss, target, prediction, rng):
    target.barrier.minimize(prediction, mu=loss.mu, vectors=target.costs)


def splitting(loss, target, prediction, rng):
    loss._split(prediction, target.region)


def network(loss, target, prediction, rng):
    target.network.value_and_slope(prediction)


#: What a step consists of beside its solves, by loss; `projection` contains the solves.
PARTS = {
    **dict.fromkeys(("dpo", "pfy", "sfge"), normal_numbers),
    **dict.fromkeys(("imle", "aimle"), gamma_numbers),
    **dict.fromkeys(("mse", "nce"), squares),
    **dict.fromkeys(("lodl", "egl", "one-sided"), two_sided_squares),
    "wise": directions,
    **dict.fromkeys(("cosine", "implicit"), angles),
    **dict.fromkeys(("cmap", "ltr-pointwise", "ltr-pairwise"), pool_products),
    "ltr-listwise": two_softmaxes,
    "cave": cone_projections,
    "cilp": inner_cone_projections,
    "cave+": cone_steps,
    "cave-hybrid": some_cone_steps,
    **dict.fromkeys(("lava", "mom"), edge_products),
    **dict.fromkeys(("rfy", "rfwo", "sce", "pear", "qptl", "mipaal"), projection),
    "compact": compact_projection,
    "projectnet": unrolling,
    "intopt": barrier,
    "dys": splitting,
    "lancer": network,
}


#: Losses that refuse the grid, and what they are timed on.
ELSEWHERE = {"implicit": Ball(40), "compact": TopK(40, 5)}


def step(name, data):
    """Return the processor seconds of one step, of its solves, and of its other parts, the least of many rounds."""
    problem = Replayed(ELSEWHERE.get(name, data.problem))
    loss, rng = as_loss(name), np.random.default_rng(0)
    target = loss.prepare(problem, data.costs, X=data.X)
    prediction, part = data.mean_costs, PARTS.get(name)
    problem.batches.clear()
    loss.value_and_grad(prediction, target, rng)
    batches = [] if part is projection else list(problem.batches)
    whole, solves, others = [], [], [0.0] * (part is None)
    while len(whole) < LEAST_ROUNDS or (len(whole) < MOST_ROUNDS and sum(whole + solves + others) < SECONDS):
        problem.batches[:] = batches  # in turn, so that a busy moment of the machine hits all
        solves.append(seconds(problem.replay))
        if part is not None:
            others.append(seconds(lambda: part(loss, target, prediction, rng)))
        whole.append(seconds(lambda: loss.value_and_grad(prediction, target, rng)))
    return min(whole), min(solves), min(others)


def by_scipy(cones, points, binding):
    """Project each point on its cone by SciPy, in the coordinates of the cones."""
    for point, how in zip(points @ cones.directions, np.where(binding == 2, 0, binding), strict=True):
        spanning = (how[:, None] * cones.generators)[how != 0]
        nnls(spanning.T, point)


def by_clarabel(cones, points, binding, max_iter):
    """Take the same steps towards each projection by Clarabel."""
    settings = clarabel.DefaultSettings()
    settings.verbose = settings.presolve_enable = settings.equilibrate_enable = False
    settings.max_iter = max_iter
    normals = cones.normals.toarray()
    gram = normals @ normals.T
    for aim, how in zip(points @ normals.T, binding, strict=True):
        used = np.concatenate([np.flatnonzero(how), np.flatnonzero(how == 2)])
        signs = np.where(how[used] < 0, -1.0, 1.0)
        signs[np.count_nonzero(how) :] = -1.0
        products = sparse.csc_matrix(np.triu(2 * np.outer(signs, signs) * gram[np.ix_(used, used)]))
        below, m = sparse.csc_matrix(-sparse.eye(len(used))), len(used)
        orthant = [clarabel.NonnegativeConeT(m)]
        clarabel.DefaultSolver(products, -2 * signs * aim[used], below, np.zeros(m), orthant, settings).solve()


def main(arguments):
    np.ones(2**21)  # freed at once: from now on the process keeps the memory that a step frees, as in a training
    data = make_shortest_path(N, degree=4, seed=0)
    with Bench(__file__, "One step of a loss", arguments.quick, rounds=LEAST_ROUNDS) as bench:
        bench.group = f"One step on {N:,} rows of the 5×5 grid (implicit: a ball; compact: top 5 of 40)"
        for name in registry:
            whole, solves, others = step(name, data)
            parts = [
                f"{1e3 * time:.2g} ms of {what}"
                for what, time in (("solves", solves), (part_name(name), others))
                if time > 1e-7
            ]
            bench.claim(
                name,
                Measured(whole, "processor", LEAST_ROUNDS),
                Measured(solves + others, "processor", LEAST_ROUNDS),
                peer="its parts",
                at_most=2,
                same=", ".join(parts),
            )
        labels = min(seconds(lambda: as_loss("lodl").prepare(data.problem, data.costs)) for _ in range(3))
        bench.claim("lodl, labels of 10^6 solves", Measured(labels, "processor", 3), at_most=3)
        bench.group = f"Normal cones at {N_CONES} decisions of the 5×5 grid"
        target, points = as_loss("cave").prepare(data.problem, data.costs[:N_CONES]), -data.mean_costs[:N_CONES]
        cones, binding = target.cones, target.binding
        given, steps = (points, binding), (points, binding, 3)
        for name, peer, most, ours, theirs in (
            ("projections by DAQP", "SciPy", 1, partial(cones.project, *given), partial(by_scipy, cones, *given)),
            ("CaVE+", "Clarabel", 0.2, partial(cones.approach, *steps), partial(by_clarabel, cones, *steps)),
        ):
            times = [Measured(min(seconds(side) for _ in range(3)), "processor", 3) for side in (ours, theirs)]
            bench.claim(name, *times, peer=peer, at_most=most)


def part_name(name):
    return PARTS[name].__name__.replace("_", " ") if name in PARTS else ""


if __name__ == "__main__":
    with one_library_thread():  # processor time would count the waiting of others
        main(parser(__doc__).parse_args())
