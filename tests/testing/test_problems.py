"""Each thing that `check_problem` promises to find, found in a problem that is broken in just that way."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array

from decidewise import SolverError
from decidewise.problems import CachedProblem, CountedProblem, Knapsack, ParallelProblem, Problem, TopK
from decidewise.solvers import Polyhedron
from decidewise.testing import check_problem

SIMPLEX = Polyhedron(
    A_ub=csr_array((0, 4)), b_ub=np.zeros(0), A_eq=csr_array(np.ones((1, 4))), b_eq=np.ones(1), lower=np.zeros(4),
    upper=np.ones(4),
)  # fmt: skip


class Cheapest(Problem):
    """Choose the cheapest of four items; a tie goes to the first."""

    n_costs = 4
    is_integer = True
    polyhedron = SIMPLEX

    def minimize(self, costs):
        return np.eye(4)[costs.argmin(axis=1)]


class Halfway(Cheapest):
    """Not in integers: the same vertices, found otherwise."""

    is_integer = False


class NoCosts(Cheapest):
    n_costs = None


class WrongShape(Cheapest):
    def solve(self, costs):
        return super().solve(costs)[..., :3]


class NotFinite(Cheapest):
    def solve(self, costs):
        return np.where(super().solve(costs) > 0, np.inf, 0.0)


class Failing(Cheapest):
    def minimize(self, costs):
        raise SolverError("no licence", row=3)


class WritesToCosts(Cheapest):
    def minimize(self, costs):
        costs -= costs.min(axis=1, keepdims=True)
        return super().minimize(costs)


class TakesNaN(Cheapest):
    def solve(self, costs):
        return super().solve(np.nan_to_num(costs))


class Dearest(Cheapest):
    def minimize(self, costs):
        return np.eye(4)[costs.argmax(axis=1)]


class Fractional(Cheapest):
    polyhedron = None

    def minimize(self, costs):
        return super().minimize(costs) / 2


class Outside(Cheapest):
    def minimize(self, costs):
        return 2 * super().minimize(costs)


class ForgotIntegers(Cheapest):
    """Say that any part of any item may be chosen."""

    is_integer = False

    @property
    def polyhedron(self):
        return Polyhedron(csr_array((0, 4)), np.zeros(0), csr_array((0, 4)), np.zeros(0), np.zeros(4), np.ones(4))


class WrongRelaxation(Cheapest):
    def minimize_relaxation(self, costs):
        return self.minimize(-costs)


class FailingRelaxation(Cheapest):
    def minimize_relaxation(self, costs):
        raise SolverError("no licence", row=3)


class Remembers(Cheapest):
    """Break ties by the row before."""

    last = 0

    def minimize(self, costs):
        ties = costs.min(axis=1) == costs[:, self.last]
        chosen = np.where(ties, self.last, costs.argmin(axis=1))
        self.last = int(chosen[-1])
        return np.eye(4)[chosen]


class ReturnsItsOwn(Cheapest):
    """Return an array that is kept, which the caller then writes to."""

    answers = None

    def minimize(self, costs):
        if self.answers is None or len(self.answers) != len(costs) or not np.array_equal(self.known, costs):
            self.known, self.answers = costs.copy(), super().minimize(costs)
        return self.answers


class BatchTies(Cheapest):
    """Break ties to the last item in a batch, and to the first alone."""

    def minimize(self, costs):
        return super().minimize(costs) if len(costs) == 1 else super().minimize(costs[:, ::-1])[:, ::-1].copy()


class AbsoluteTolerance(Cheapest):
    def minimize(self, costs):
        return super().minimize(np.where(costs <= costs.min(axis=1, keepdims=True) + 1e-3, 0.0, 1.0))


class LooksAtTheSense(Cheapest):
    def minimize(self, costs):
        return super().minimize(costs) if self.sense == "min" else super().minimize(costs[:, ::-1])[:, ::-1].copy()


class NoPickle(Cheapest):
    def __init__(self, **keywords):
        super().__init__(**keywords)
        self.solver = lambda costs: costs


class ForgetsItsSense(Cheapest):
    def __setstate__(self, state):
        self.__dict__.update(state, sense="min" if state["sense"] == "max" else "max")


class ForgetsItsItems(Cheapest):
    shift = 0

    def __setstate__(self, state):
        self.__dict__.update(state, shift=1)

    def minimize(self, costs):
        return np.roll(super().minimize(costs), self.shift, axis=1)


class Tolled(Cheapest):
    """Right: one of the items has a toll."""

    is_integer, polyhedron, has_known = False, None, True
    tolls = np.array([0.0, 0.5, 0.0, 0.0])

    def minimize(self, costs):
        return super().minimize(costs + self.tolls)

    def minimize_lifted(self, costs):
        chosen = super().minimize(costs[:, :-1] + costs[:, -1:] * self.tolls)
        return np.column_stack([chosen, chosen @ self.tolls])


class ForgetsTheToll(Tolled):
    def minimize(self, costs):
        return Cheapest.minimize(self, costs)


class MiscountsTheToll(Tolled):
    def minimize_lifted(self, costs):
        return super().minimize_lifted(costs) * [1, 1, 1, 1, -3]


class NoLifted(Cheapest):
    has_known = True


class Forbidden(Cheapest):
    """Right: one item, which differs by row, is forbidden."""

    is_integer, polyhedron = False, None

    def __init__(self, forbidden=(0, 1, 2, 3, 0, 0), *, sense="min"):
        super().__init__(sense=sense)
        self.forbidden = np.asarray(forbidden)
        self.n_rows = len(self.forbidden)

    def take(self, rows):
        return type(self)(self.forbidden[rows], sense=self.sense)

    def minimize(self, costs):
        return np.eye(4)[np.where(np.arange(4) == self.forbidden[:, None], np.inf, costs).argmin(axis=1)]


class TakesOthers(Forbidden):
    def take(self, rows):
        return Forbidden(np.sort(self.forbidden[rows])[::-1], sense=self.sense)


class TakesAll(Forbidden):
    def take(self, rows):
        return self


class NoTake(Cheapest):
    n_rows = 6


class DearestByRow(Forbidden):
    def minimize(self, costs):
        return super().minimize(-costs)


BROKEN = {
    "ForgetsTheToll.minimize(costs) must return the same as minimize_lifted for the costs and a": ForgetsTheToll(),
    "the lifted view of MiscountsTheToll: row 0: the decision that Lifted returns for row": MiscountsTheToll(),
    "NoLifted is not a valid problem: TypeError: NoLifted sets has_known = True, so it must write": NoLifted(),
    "TakesOthers returns another decision for some rows, after take(rows), than for all rows together": TakesOthers(),
    "7 rows of TakesAll have n_rows = 6. Set n_rows in what take returns.": TakesAll(),
    "NoTake cannot take some of its rows: TypeError: NoTake sets n_rows = 6, so it must write take(rows)": NoTake(),
    "row 0: DearestByRow returns a better decision for this row with other costs, by": DearestByRow(),
    "str is not a valid problem: TypeError: problem must be a decidewise problem": "shortest path",
    "NoCosts is not a valid problem: TypeError: NoCosts must set n_costs": NoCosts(),
    "WrongShape.solve must return float64 decisions of the shape of the costs, (40, 4); it returned an array of shape "
    "(40, 3)": WrongShape(),
    "NotFinite.solve returned numbers that are not finite. Raise a SolverError": NotFinite(),
    "Failing cannot be solved: SolverError: row 3: no licence": Failing(),
    "WritesToCosts writes to the costs that it is given. Copy them first.": WritesToCosts(),
    "TakesNaN.solve must refuse a cost of nan with a ValueError, as Problem.solve does; it raised nothing.": TakesNaN(),
    "row 0: the decision that Dearest returns for row 3 is better for this row than its own, by 0.77.": Dearest(),
    "row 0: Fractional sets is_integer = True but returned [0.  0.5 0.  0. ]. Set False, or round.": Fractional(),
    "row 0: Outside returned [0. 2. 0. 0.], which violates A_eq w = b_eq of its polyhedron. Correct": Outside(),
    "row 2: the least cost over the polyhedron of ForgotIntegers is -2.59243, but -1.26542 by "
    "minimize_relaxation. If decisions are integers, set is_integer = True": ForgotIntegers(),
    "row 0: the least cost over the polyhedron of WrongRelaxation is": WrongRelaxation(),
    "FailingRelaxation cannot solve its relaxation: SolverError: row 3: no licence": FailingRelaxation(),
    "Remembers returns another decision when called again. Keep no state, or set keeps_state": Remembers(),
    "ReturnsItsOwn returns another decision when called again. Keep no state": ReturnsItsOwn(),
    "BatchTies returns another decision for a row alone than in a batch. Break ties": BatchTies(),
    "AbsoluteTolerance returns another decision for 1e-08 times the costs. Make tolerances": AbsoluteTolerance(),
    "LooksAtTheSense returns another decision if both the sense and the sign of the costs change. minimize must not":
        LooksAtTheSense(),
    "NoPickle cannot be pickled. Define its class in a module, and hold plain data: ": NoPickle(),
    "ForgetsItsSense has another n_costs or sense after it is pickled": ForgetsItsSense(),
    "ForgetsItsItems returns another decision after it is pickled. Keep all it needs": ForgetsItsItems(),
}  # fmt: skip


@pytest.mark.parametrize(
    ("sentence", "problem"), BROKEN.items(), ids=[type(broken).__name__ for broken in BROKEN.values()]
)
def test_what_is_broken_is_named(sentence, problem):
    with pytest.raises(AssertionError, match=re.escape(sentence)):
        check_problem(problem)


@pytest.mark.parametrize(
    "problem", [Cheapest(), Cheapest(sense="max"), Halfway(), Tolled(), Tolled(sense="max"), Forbidden()]
)
def test_what_is_right_passes(problem):
    check_problem(problem, tolerance=0.0)


KNAPSACK = Knapsack([[3.0, 4.0, 5.0]], [7.0])


@pytest.mark.parametrize(
    "problem",
    [
        CountedProblem(KNAPSACK),
        CachedProblem(KNAPSACK, 0.5, 0),
        CachedProblem(TopK(4, 2), 0.0, 0),
        ParallelProblem(TopK(4, 2), n_jobs=1),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_wrappers_pass(problem):
    check_problem(problem, tolerance=0.0)


def test_costs_of_ones_own():
    """On costs without ties, a rule for ties that depends on the batch does no harm, and does not show."""
    check_problem(BatchTies(), costs=np.random.default_rng(0).normal(size=(10, 4)))
