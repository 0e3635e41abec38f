"""A polyhedron, a linear program without its costs, and HiGHS loaded with it: the only place that sets up HiGHS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

from decidewise.kit.batches import check_time, seconds_left
from decidewise.kit.checks import BoolArray, FloatArray
from decidewise.kit.errors import InfeasibleError, SolverError

if TYPE_CHECKING:
    import highspy

#: How far beyond a bound or a constraint an answer may be, in units of what is added up there, or of 1 if that is more.
FEASIBLE = 1e-9
#: How far from a whole number a bound may be at most and mean that number, however large it is.
_NEARLY_WHOLE = 1e-6
#: HiGHS finds a contradiction from the rows of the LP, and leaves out one after another; and its word for a bound that
#: takes no part in it.
_FROM_LP_TO_LAST, _NO_SIDE = 6, 1
_SIDES = ("row_lower", "row_upper", "lower", "upper")


@dataclass(frozen=True)
class Polyhedron:
    """The set `{w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}`, with sparse rows.

    For an integer problem it is the linear relaxation.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> polyhedron = TopK(3, 1).polyhedron
    >>> polyhedron.A_eq.toarray(), polyhedron.b_eq, polyhedron.upper
    (array([[1., 1., 1.]]), array([1.]), array([1., 1., 1.]))
    """

    A_ub: csr_array
    b_ub: FloatArray
    A_eq: csr_array
    b_eq: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def within(cls, lower: FloatArray, upper: FloatArray, *, ub: Any = None, eq: Any = None) -> Self:
        """Return the points between bounds (d,), with constraints as pairs of a matrix (m, d) and a side (m,), if any.

        >>> simplex = Polyhedron.within(np.zeros(3), np.ones(3), eq=([[1.0, 1.0, 1.0]], [1.0]))
        >>> simplex.A_eq.shape, simplex.A_ub.shape
        ((1, 3), (0, 3))
        """
        none = csr_array((0, len(lower))), ()
        (A_ub, b_ub), (A_eq, b_eq) = ub or none, eq or none
        sides = np.asarray(b_ub, dtype=np.float64), np.asarray(b_eq, dtype=np.float64)
        return cls(csr_array(A_ub), sides[0], csr_array(A_eq), sides[1], lower, upper)


@dataclass(frozen=True)
class Program:
    """The set `{w : row_lower <= A w <= row_upper, lower <= w <= upper}`, and which of `w` are whole numbers.

    Parameters
    ----------
    A : csc_array of shape (m, n)
    row_lower, row_upper : ndarray of shape (m,)
        Infinite where there is no bound.
    lower, upper : ndarray of shape (n,)
        Where bounds differ by row of costs, all four have one more axis in front, of length r; then `take` chooses.
    integrality : ndarray of shape (n,), optional
        True for a variable in whole numbers; None if there is none. Their bounds are rounded inwards, and 2.9999999999
        means 3: HiGHS without presolve branches wrongly between bounds that are not whole.
    """

    A: csc_array
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    upper: FloatArray
    integrality: BoolArray | None = None

    def __post_init__(self) -> None:
        if self.integrality is not None:
            for name, towards, sign in (("lower", np.ceil, -1.0), ("upper", np.floor, 1.0)):
                bound = getattr(self, name)
                near = sign * np.minimum(FEASIBLE * (1.0 + np.abs(bound)), _NEARLY_WHOLE)
                object.__setattr__(self, name, np.where(self.integrality, towards(bound + near), bound))

    @classmethod
    def of(cls, polyhedron: Polyhedron, integrality: BoolArray | None = None) -> Program:
        """Return a polyhedron as a program; an inequality of one variable becomes a bound, which is cheaper to keep."""
        A, A_eq = (matrix.copy() for matrix in (polyhedron.A_ub, polyhedron.A_eq))
        for matrix in (A, A_eq):
            matrix.eliminate_zeros()  # an edge from a node to itself enters as zero
        b, b_eq = polyhedron.b_ub, polyhedron.b_eq
        lower, upper = polyhedron.lower.copy(), polyhedron.upper.copy()
        single = np.diff(A.indptr) == 1
        columns, factors = A[single].indices, A[single].data
        limits = b[..., single] / factors
        np.minimum.at(upper.T, columns[factors > 0], limits[..., factors > 0].T)
        np.maximum.at(lower.T, columns[factors < 0], limits[..., factors < 0].T)
        return cls(
            A=csc_array(vstack([A[~single], A_eq], format="csc")),
            row_lower=np.concatenate([np.full_like(b[..., ~single], -np.inf), b_eq], axis=-1),
            row_upper=np.concatenate([b[..., ~single], b_eq], axis=-1),
            lower=lower,
            upper=upper,
            integrality=integrality,
        )

    def take(self, rows: Any) -> Program:
        """Return the program of some rows, or of one, where bounds differ by row."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _SIDES})

    @property
    def widest(self) -> Program:
        """The program within the widest bounds of all rows, where bounds differ by row."""
        lowest = {name: getattr(self, name).min(axis=0) for name in ("row_lower", "lower")}
        return replace(self, **lowest, **{name: getattr(self, name).max(axis=0) for name in ("row_upper", "upper")})

    @property
    def all_lower(self) -> FloatArray:
        """The lower bounds of variables, then of rows: (..., n + m)."""
        return np.concatenate([self.lower, self.row_lower], axis=-1)

    @property
    def all_upper(self) -> FloatArray:
        """The upper bounds of variables, then of rows: (..., n + m)."""
        return np.concatenate([self.upper, self.row_upper], axis=-1)

    def put(self, rows: dict[int, Program]) -> Program:
        """Return the program with the bounds of some rows replaced, where bounds differ by row."""
        sides = {name: getattr(self, name).copy() for name in _SIDES}
        for row, program in rows.items():
            for name, side in sides.items():
                side[row] = getattr(program, name)
        return replace(self, **sides)

    def values(self, points: FloatArray) -> FloatArray:
        """Return the values of variables, then of rows: (r, n) -> (r, n + m)."""
        return np.concatenate([points, (self.A @ points.T).T], axis=1)

    def violated(self, values: FloatArray, tolerance: float = FEASIBLE) -> BoolArray:
        """Return which bounds the values of variables, then of rows, break by more than the tolerance: (r, n + m)."""
        beyond = np.maximum(self.all_lower - values, values - self.all_upper)
        broken: BoolArray = ~(beyond <= tolerance * (1.0 + np.abs(values)))
        if broken.any():  # where terms cancel, rounding leaves more than their sum tells
            sizes = np.abs(values[:, : self.A.shape[1]])
            broken = ~(beyond <= tolerance * (1.0 + np.concatenate([sizes, (abs(self.A) @ sizes.T).T], axis=1)))
        return broken


class Highs:
    """HiGHS with one program in it, to be solved for one cost vector after another; in one thread at a time.

    `set_bounds` changes the bounds before a run.

    Parameters
    ----------
    program : Program
    time_limit : float, optional
        Seconds for one run.
    options : dict
        HiGHS's own options.
    """

    def __init__(self, program: Program, *, time_limit: float | None = None, **options: Any) -> None:
        import highspy  # noqa: PLC0415  (slow to import)

        self.time_limit = np.inf if time_limit is None else time_limit
        self.solver = highspy.Highs()
        # Entries below 1e-12 are rounding; by default HiGHS drops those up to 1e-9, which are not.
        fixed: dict[str, Any] = {"output_flag": False, "threads": 1, "small_matrix_value": 1e-12}
        if program.integrality is not None and self.solver.version().startswith("1.14."):
            # Its presolve calls decisions optimal that are not (ERGO-Code/HiGHS#2957), in programs of two variables.
            fixed["presolve"] = "off"
        for option, value in (fixed | options).items():
            self.solver.setOptionValue(option, value)
        self._failed = highspy.HighsStatus.kError
        if self.solver.passModel(as_highs(program)) == self._failed:
            raise ValueError(
                "HiGHS cannot take the program: a constraint has factors too far apart, or above 1e15. Choose units in "
                "which its factors are nearer to each other."
            )
        self._rows, self._columns = (np.arange(k, dtype=np.int32) for k in program.A.shape)
        self._optimal, self._infeasible = highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible
        self._limits = (highspy.HighsModelStatus.kTimeLimit, highspy.HighsModelStatus.kSolutionLimit)
        self._feasible = highspy.SolutionStatus.kSolutionStatusFeasible

    def run(self, costs: FloatArray) -> bool:
        """Minimise `costs·w` from where the solver stands; return whether it found an optimum."""
        check_time()
        self.solver.changeColsCost(len(costs), self._columns, costs)
        limit = min(self.time_limit, seconds_left())
        if np.isfinite(limit):  # HiGHS counts the seconds of all runs
            self.solver.setOptionValue("time_limit", self.solver.getRunTime() + limit)
        status = self.solver.run()
        return bool(status != self._failed and self.solver.getModelStatus() == self._optimal)

    def stopped_at_a_point(self) -> bool:
        """Return whether the last run reached its own limit with a feasible point in hand."""
        check_time()  # if it was the deadline of the caller that stopped the run, say so instead
        is_late = self.solver.getModelStatus() in self._limits
        return bool(is_late and self.solver.getInfo().primal_solution_status == self._feasible)

    def set_bounds(self, program: Program) -> None:
        """Give all columns and rows the bounds of a program, of which nothing else counts."""
        self.solver.changeColsBounds(len(self._columns), self._columns, program.lower, program.upper)
        self.solver.changeRowsBounds(len(self._rows), self._rows, program.row_lower, program.row_upper)

    def add_rows(self, A: csr_array, upper: FloatArray) -> None:
        """Add constraints `A w <= upper`; the next run starts where the last one ended."""
        starts, columns = (part.astype(np.int32) for part in (A.indptr[:-1], A.indices))
        self.solver.addRows(len(upper), np.full(len(upper), -np.inf), upper, A.nnz, starts, columns, A.data)

    def start_at(self, point: FloatArray) -> None:
        """Let a run in whole numbers begin with a feasible point."""
        import highspy  # noqa: PLC0415

        start = highspy.HighsSolution()
        start.col_value = point
        self.solver.setSolution(start)

    def error(self, row: int) -> SolverError:
        """Return what went wrong in the last run, as an error of the row."""
        check_time()  # if it was the deadline of the caller that stopped the run, say so instead
        status = self.solver.modelStatusToString(self.solver.getModelStatus())
        advice = _ADVICE.get(status, "The problem may be badly scaled: bring rows and costs to similar sizes.")
        kind = InfeasibleError if self.solver.getModelStatus() == self._infeasible else SolverError
        return kind(f"HiGHS ended with status {status!r}. {advice}", row=row)


_ADVICE = {
    "Infeasible": "No decision keeps all constraints and bounds.",
    "Unbounded": "The cost falls without end: bound the variables, or check the sense and the signs of the costs.",
    "Primal infeasible or unbounded": "Bound all variables; then HiGHS can tell which of the two it is.",
    "Time limit reached": "Give it a longer time_limit, allow a gap, or take the best found: on_limit='best'.",
}


def contradiction(program: Program) -> list[int]:
    """Return variables, whose bounds, and rows, counted from n, that no point keeps together, as few as HiGHS finds.

    None if there is a point, in fractions, or if HiGHS cannot tell.

    >>> contradicting = [[-1.0, -1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]], [-2.0, 3.0, 1.0]
    >>> contradiction(Program.of(Polyhedron.within(np.zeros(3), np.ones(3), ub=contradicting)))
    [2, 3, 5]
    """
    n = len(program.lower)
    if (crossed := np.flatnonzero(program.all_lower > program.all_upper)).size:
        return [int(crossed[0])]
    highs = Highs(replace(program, integrality=None))
    if highs.run(np.zeros(n)) or highs.solver.getModelStatus() != highs._infeasible:
        return []
    highs.solver.setOptionValue("iis_strategy", _FROM_LP_TO_LAST)
    _, found = highs.solver.getIis()
    columns = [int(j) for j, side in zip(found.col_index_, found.col_bound_, strict=True) if side != _NO_SIDE]
    return [*columns, *(n + int(row) for row in found.row_index_)]


def as_highs(program: Program) -> highspy.HighsLp:
    """Return the program, without costs, as HiGHS takes it."""
    import highspy  # noqa: PLC0415

    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = program.A.shape
    model.col_cost_ = np.zeros(program.A.shape[1])
    model.col_lower_, model.col_upper_ = program.lower, program.upper
    model.row_lower_, model.row_upper_ = program.row_lower, program.row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = program.A.indptr
    model.a_matrix_.index_ = program.A.indices
    model.a_matrix_.value_ = program.A.data
    if program.integrality is not None:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[int(whole)] for whole in program.integrality]
    return model
