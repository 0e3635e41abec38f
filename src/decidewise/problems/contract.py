"""The contract of a problem: a feasible region `S`, and exact solutions of `min (or max) c·w over w in S`, in batch.

A new problem is one file with one class: set `n_costs`, write `minimize` and, if the region has one, `polyhedron`.
A problem whose region or known costs differ by row sets `n_rows` and writes `take`. `Problem` has the members that
every problem has; `KnownPart` and the functions of `decidewise.problems.views` say what some problems write besides.
`decidewise.testing.check_problem` checks that a problem keeps this contract.

>>> import numpy as np
>>> class Interval(Problem):
...     '''Choose one number between -1 and 1.'''
...
...     n_costs = 1
...
...     def minimize(self, costs):
...         return np.where(costs > 0, -1.0, 1.0)  # a tie goes to the upper end
>>> Interval().solve([[2.0], [-0.5]])
array([[-1.],
       [ 1.]])
>>> Interval(sense="max").solve([2.0])
array([1.])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property, wraps
from inspect import signature
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from decidewise.kit.checks import (
    FloatArray,
    all_finite,
    as_array,
    as_choice,
    as_matrix,
    as_number,
    as_positive,
    as_vector,
    check_finite,
    shown,
)
from decidewise.kit.errors import SolverError
from decidewise.kit.gaps import noted_gaps
from decidewise.problems.details import SolveDetails
from decidewise.problems.drawing import draw_bars
from decidewise.solvers import Polyhedron

if TYPE_CHECKING:
    from decidewise.problems.explanation import Explanation
    from decidewise.solvers.highs import Solver

Sense = Literal["min", "max"]
#: The largest number of costs of a problem: a single row of so many takes almost a gigabyte.
MAX_COSTS = 10**8
#: The largest number of entries of an array that `repr` shows in full.
_MOST_SHOWN = 48


def _checked(
    minimize: Callable[[Any, FloatArray], FloatArray], *, marks_ones: bool = False
) -> Callable[[Any, FloatArray], FloatArray]:
    """Return `minimize` with a check of its costs, because bad ones could crash a solver, and of its decisions.

    What marks ones among zeros need not be checked to be finite.
    """
    returned = f"what {minimize.__name__} returns"
    n_known = 1 if minimize.__name__ == "minimize_lifted" else 0

    @wraps(minimize)
    def checked(self: Any, costs: FloatArray) -> FloatArray:
        costs = as_matrix(costs, n_columns=self.n_costs + n_known, owner=type(self).__name__)
        if self.n_rows is not None:
            check_rows(self, len(costs))
        decisions = as_array(minimize(self, costs), name=returned)
        if decisions.shape != costs.shape:
            raise ValueError(
                f"{type(self).__name__}.{minimize.__name__} must return one decision for each row of costs, of shape "
                f"{costs.shape}; it returned shape {decisions.shape}."
            )
        if not marks_ones and self.on_error == "raise" and not all_finite(decisions):
            row = int(np.flatnonzero(~np.isfinite(decisions).all(axis=1))[0])
            raise SolverError(f"{type(self).__name__} returned {decisions[row]}, which is not finite.", row=row)
        return decisions

    return checked


class Problem(ABC):
    """A linear objective over a bounded feasible region.

    Subclasses set `n_costs` and write `minimize`; this class does the rest, and checks the costs and the decisions of
    every call of `minimize`. A problem can be pickled and, unless it sets `keeps_state`, no call changes it. It is
    deterministic: a documented rule breaks ties and depends only on the set of optimal decisions, so that
    `solve(a * c) == solve(c)` for every `a > 0` and a batch equals a loop.

    Parameters
    ----------
    sense : {"min", "max"}
        Whether `solve` minimises or maximises; `minimize` always minimises.
    time_limit : float, optional
        Seconds for one row. This and the next three are for problems with a search.
    gap : float
        How far, relative to its value, a decision may be from the optimum.
    on_limit : {"raise", "best"}
        Whether a row that reaches a limit is an error, or has the best decision found so far. `solve_details` says how
        far that may be from the optimum.
    on_error : {"raise", "nan"}
        Whether a row that cannot be solved is a `SolverError`, or a decision of NaN beside the decisions of all others.

    Notes
    -----
    *Known costs.* If `has_known`, the objective is `c·(M w) + b·w`: the costs `c` are predicted, and `b` is known when
    deciding. A decision is `M w`. The known part is one more cost, which is 1 in every row: `lifted` is the problem of
    the costs `(c, 1)` and the decisions `(M w, b·w)`, on which every loss and metric holds unchanged. Such a problem
    writes `minimize_lifted` (see `KnownPart`). `b` belongs to the minimisation, so a problem that maximises
    `c·(M w) + g·w` has `b = -g`. Multiplying the predicted costs alone changes the optimum, so there `solve(a * c)` may
    differ from `solve(c)`; the rule holds for the lifted problem.

    *Regions by row.* If `n_rows` is a number, the region or the known costs differ by row. Such a problem solves
    exactly `n_rows` rows of costs, and `take(rows)` is the problem of some of its rows.

    *Representation.* `repr` is the call that builds the problem, if each parameter of the constructor is kept as an
    attribute of the same name, as scikit-learn's estimators do.

    Examples
    --------
    >>> class Cheapest(Problem):
    ...     '''Choose one of three; a tie goes to the first.'''
    ...
    ...     n_costs = 3
    ...
    ...     def minimize(self, costs):
    ...         return np.eye(3)[costs.argmin(axis=1)]
    >>> Cheapest().solve([[4.0, 2.0, 3.0]])
    array([[0., 1., 0.]])
    """

    #: The number of costs in a row, and of entries in a decision.
    n_costs: int
    #: Whether decisions are integers; then `polyhedron` is a relaxation, whose vertices may be fractional.
    is_integer: bool = False
    #: "flat" if the region, or its convex hull, has finitely many vertices, although no `polyhedron` shows it; "curved"
    #: if decisions change smoothly with the costs and `derivative` is written.
    faces: Literal["flat", "curved", "unknown"] = "unknown"
    #: Whether solving changes the object, as with a cache or a counter, so that a copy in another process would differ.
    keeps_state: bool = False
    #: Whether the objective has a known part beside the predicted costs; then the problem is a `KnownPart`.
    has_known: bool = False
    #: Whether the costs of a row are those of consecutive periods, so that another order is another problem.
    in_time: bool = False
    #: The number of rows, if the region or the known costs differ by row; then `take` must be written.
    n_rows: int | None = None
    #: What a search may take and leave, for problems that have one: see the parameters of the same names.
    time_limit: float | None = None
    gap: float = 0.0
    on_limit: Literal["raise", "best"] = "raise"
    on_error: Literal["raise", "nan"] = "raise"
    #: Whether `minimize` checks that costs are finite; if not, `solve` does.
    _checks_costs: ClassVar[bool] = True
    #: The attributes that have one entry per row if `n_rows` is a number, or are None: what the default `take` takes.
    _by_row: ClassVar[tuple[str, ...]] = ()
    #: The class method that builds this, if the constructor does not.
    _built_by: str = ""

    def __init_subclass__(cls, *, marks_ones: bool = False, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for method in ("minimize", "minimize_relaxation", "minimize_lifted"):
            if method in vars(cls) and cls._checks_costs:
                setattr(cls, method, _checked(vars(cls)[method], marks_ones=marks_ones))

    def __init__(
        self,
        *,
        sense: Sense = "min",
        time_limit: float | None = None,
        gap: float = 0.0,
        on_limit: Literal["raise", "best"] = "raise",
        on_error: Literal["raise", "nan"] = "raise",
    ) -> None:
        self.sense: Sense = as_choice(sense, name="sense", choices=("min", "max"))
        if time_limit is not None:
            self.time_limit = as_positive(time_limit, name="time_limit")
        self.gap = as_number(gap, name="gap", at_least=0)
        self.on_limit = as_choice(on_limit, name="on_limit", choices=("raise", "best"))
        self.on_error = as_choice(on_error, name="on_error", choices=("raise", "nan"))

    def __repr__(self) -> str:
        """Return the call that builds the problem, if all parameters of its constructor are attributes."""
        name = type(self).__name__ + (f".{self._built_by}" if self._built_by else "")
        parameters = signature(getattr(type(self), self._built_by) if self._built_by else type(self)).parameters
        if not all(hasattr(self, parameter) for parameter in (*parameters, "n_costs")):
            # A user's class may lack either attribute; the error message that says so shows the object.
            n_costs, sense = getattr(self, "n_costs", None), getattr(self, "sense", None)
            return f"{name}({n_costs=}, {sense=})"
        arguments = {key: getattr(self, key) for key in parameters}
        required = [key for key, parameter in parameters.items() if parameter.default is parameter.empty]
        said = [
            f"{key}={_as_literal(value)}"
            for key, value in arguments.items()
            if key in (*required, "sense") or not _is_same(value, parameters[key].default)
        ]
        return f"{name}({', '.join(said)})"

    def solve(self, costs: Any) -> FloatArray:
        """Return an optimal decision for every row of costs.

        Parameters
        ----------
        costs : array-like of shape (n, n_costs) or (n_costs,)

        Returns
        -------
        decisions : ndarray of the same shape
        """
        costs = as_array(costs, name="costs")
        vector = costs.ndim == 1
        batch = as_matrix(
            costs[np.newaxis] if vector else costs,
            n_columns=self.n_costs,
            owner=type(self).__name__,
            finite=self.sense == "max" or not self._checks_costs,  # errors show the caller's costs, not minus them
            min_rows=0,
        )
        if not len(batch):
            check_rows(self, 0)
            return np.empty(batch.shape)
        decisions = self.minimize(-batch if self.sense == "max" else batch)
        return decisions[0] if vector else decisions

    def solve_details(self, costs: Any) -> SolveDetails:
        """Return the decisions of `solve` with the status, the objective and its bound by row.

        Parameters
        ----------
        costs : array-like of shape (n, n_costs) or (n_costs,)

        Examples
        --------
        >>> from decidewise.problems import LinearProgram
        >>> whole = {"integrality": [1, 1], "upper": 9, "sense": "max"}
        >>> pack = LinearProgram([[7.0, 5.0]], [23.0], **whole, time_limit=10.0, on_limit="best")
        >>> pack.solve_details([[9.0, 6.0], [4.0, 4.0]])
        SolveDetails(2 rows: 2 optimal)
        """
        from decidewise.problems.views import lift  # noqa: PLC0415  (it derives from this class)

        lifted = self.lifted
        costs = lift(lifted, as_matrix(np.atleast_2d(as_array(costs, name="costs")), n_columns=self.n_costs))
        with noted_gaps() as noted:
            decisions = lifted.solve(costs)
        gaps, stopped = noted.by_row(len(costs))
        objective = np.einsum("ij,ij->i", costs, decisions)
        return SolveDetails.of(decisions[:, : self.n_costs], objective, sign_of(self) * gaps, stopped)

    def solution(self, costs: Any) -> dict[str, Any]:
        """Return the whole solution by name, for costs as in `solve`: here only the decision, of the shape of costs.

        A problem with more variables than costs returns these.
        """
        return {"decision": self.solve(costs)}

    def explain(self, costs: Any, *, names: Sequence[str] | None = None) -> Explanation:
        """Return how far each cost may move before the decision changes, what then takes over, and duals if any.

        Parameters
        ----------
        costs : array-like of shape (n_costs,) or (n, n_costs)
            One row or a few: each takes some solves for each of its costs.
        names : sequence of str, optional
            Those of the costs; by default those of a frame, or of the variables of a program.

        Examples
        --------
        >>> from decidewise.problems import LinearProgram
        >>> sold = LinearProgram([[1.0, 1.0]], [4.0], upper=3, sense="max", names=["17:00", "18:00"])
        >>> sold.explain([55.0, 50.0])
        17:00: 3 at 55; 1 below 50
        18:00: 1 at 50; 0 below 0; 3 above 55
        A_ub[0]: one unit more adds 50
        """
        from decidewise.problems.explanation import explained  # noqa: PLC0415  (few need it)

        return explained(self, costs, names)

    @property
    def _cost_names(self) -> list[str]:
        return [str(j) for j in range(self.n_costs)]

    def _duals(self, costs: FloatArray) -> tuple[dict[str, FloatArray], dict[str, FloatArray], str]:
        """Return duals and reduced costs by name, each (n,), of rows of costs (n, n_costs), or why there are none."""
        return {}, {}, f"{type(self).__name__} has no duals: only a LinearProgram without whole numbers says them."

    def as_costs(self, values: Any, *, name: str = "costs", realised: bool = False) -> FloatArray:
        """Return costs (n, n_costs) of what was predicted: costs, or scenarios of them, whose mean is what counts.

        The objective is linear in the costs, so the decision for their mean is the one that is best in the mean.

        Parameters
        ----------
        values : array-like of shape (n, n_costs), or (n, samples, n_costs)
            Samples or quantiles of equal weight.
        name : str
            Their name in messages.
        realised : bool
            Whether they happened, so that there are no scenarios.

        Examples
        --------
        >>> from decidewise.problems import TopK
        >>> TopK(2, 1).as_costs([[[1.0, 4.0], [3.0, 8.0]]])
        array([[2., 6.]])
        """
        if realised:
            return as_matrix(values, name=name, n_columns=self.n_costs, owner=type(self).__name__)
        values = as_array(values, name=name)
        if values.ndim == 3 and values.shape[1] and values.shape[2] == self.n_costs:
            check_finite(values, name=name)
            values = values.mean(axis=1)
        elif values.ndim == 3:
            raise ValueError(
                f"{name} must be scenarios of shape (n, samples, {self.n_costs}) for {type(self).__name__}, or costs "
                f"of shape (n, {self.n_costs}); got {name}.shape={values.shape}."
            )
        return as_matrix(values, name=name, n_columns=self.n_costs, owner=type(self).__name__)

    def plot(self, decision: Any, costs: Any = None, ax: Any = None) -> Any:
        """Draw one decision: a path on its graph, the day of a battery, and bars for every other problem.

        Parameters
        ----------
        decision : array-like of shape (n_costs,)
            If it is a row of a frame, such as `decide(model, problem, frame).iloc[0]`, entries have its names.
        costs : array-like of shape (n_costs,), optional
            Predicted or realised costs to show with it.
        ax : matplotlib axes, optional
            By default a new figure is made.

        Returns
        -------
        matplotlib axes
        """
        entries = as_vector(decision, name="decision", length=self.n_costs)
        values = None if costs is None else as_vector(costs, name="costs", length=self.n_costs)
        index = getattr(decision, "index", None)
        names = None if index is None or callable(index) else [str(name) for name in index]
        return self._draw(entries, values, names, ax)

    def _draw(self, decision: FloatArray, costs: FloatArray | None, names: list[str] | None, ax: Any) -> Any:
        return draw_bars(decision, costs, names, ax)

    @abstractmethod
    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return a minimiser of `costs[i]·w` for each row `i`: (n, n_costs) -> (n, n_costs).

        The costs are finite, float64 and C-contiguous, and must not be written to. Decisions that are not finite, or
        not of the shape of the costs, raise an error. A problem with known costs counts the known part once: it returns
        `minimize_lifted` of the costs and a column of ones, without the last column.
        """

    def derivative(self, costs: FloatArray, decisions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return `J v` of each row, with `J` the Jacobian of the decision in the costs: three times (n, d) -> (n, d).

        Costs are to be minimised, and `decisions` are what `minimize` returns for them. `J` is symmetric and negative
        semidefinite. Only a problem with curved `faces` has it. If it also has known costs, it may write
        `derivative_lifted` of the same shape as `minimize_lifted`; its `lifted` then has a derivative.
        """
        raise ValueError(f"{type(self).__name__} has no derivative: its faces are {self.faces}.")

    @property
    def lifted(self) -> Problem:
        """The problem of the costs `(c, 1)` and the decisions `(M w, b·w)`; the problem itself without known costs."""
        if not self.has_known:
            return self
        from decidewise.problems.views import Lifted  # noqa: PLC0415  (it derives from this class)

        return Lifted(self)

    def take(self, rows: Any) -> Problem:
        """Return the problem of the given rows, a slice or an array of row numbers, which may repeat.

        A problem that is the same for every row returns itself.
        """
        if self.n_rows is None:
            return self
        if not self._by_row:
            raise TypeError(f"{type(self).__name__} sets n_rows = {self.n_rows}, so it must write take(rows).")
        part = copy(self)
        part.__dict__.pop("_program", None)  # which some keep, with the sides of all rows
        for name in self._by_row:
            if (values := getattr(self, name)) is not None:
                setattr(part, name, np.ascontiguousarray(values[rows]))
        part.n_rows = len(np.arange(self.n_rows)[rows])
        return part

    @_checked
    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Return an optimal vertex of the linear relaxation for each row of costs to be minimised: (n, d) -> (n, d).

        By default `minimize` if the problem is not integer, and otherwise HiGHS over `polyhedron`; a subclass may have
        a faster method.
        """
        if not self.is_integer:
            return self.minimize(costs)
        return self._relaxation_solver.minimize(costs)

    @cached_property
    def _relaxation_solver(self) -> Solver:
        """HiGHS with the relaxation in it, once: building it takes longer than to solve some rows."""
        polyhedron = None if self.has_known else self.polyhedron  # which knows nothing of the known part
        if polyhedron is None:
            why = "with known costs" if self.has_known else "without a polyhedron"
            raise ValueError(
                f"{type(self).__name__} is an integer problem {why}, so its relaxation is unknown. "
                "Write its polyhedron or minimize_relaxation, or choose a loss that needs neither, such as SpoPlus."
            )
        from decidewise.solvers.highs import Solver  # noqa: PLC0415  (the base imports no solver)
        from decidewise.solvers.program import Program  # noqa: PLC0415

        return Solver(Program.of(polyhedron))

    @property
    def polyhedron(self) -> Polyhedron | None:
        """The region as linear constraints and bounds, or None if it is not polyhedral."""
        return None

    @property
    def missing(self) -> dict[str, str]:
        """Why there is no "polyhedron" or no "derivative", where that is known, for the message of a loss."""
        return {}


@runtime_checkable
class KnownPart(Protocol):
    """What a problem with `has_known` writes besides: its minimisation with a cost of the known part."""

    def minimize_lifted(self, costs: FloatArray) -> FloatArray:
        """Return a minimiser with the cost of the known part given: (n, n_costs + 1) -> (n, n_costs + 1).

        It minimises `costs[:, :-1]·(M w) + costs[:, -1] · (b·w)`. The last entry of a decision is `b·w`, the others are
        `M w`.
        """


def _as_literal(value: Any) -> str:
    """Return the text of a constructor's argument; long arrays are abbreviated as NumPy does."""
    if isinstance(value, np.ndarray):
        if value.size > _MOST_SHOWN:
            short = np.array2string(value, separator=", ", threshold=_MOST_SHOWN, max_line_width=10**6)
            return " ".join(short.split()).replace("[ ", "[")
        value = value.tolist()
    return repr(value.item() if isinstance(value, np.generic) else value)


def _is_same(value: Any, default: Any) -> bool:
    return bool(np.ndim(value) == 0 and value == default)


def as_problem(problem: Any) -> Problem:
    """Return `problem`, which must be a `Problem` that knows its number of costs and its sense.

    >>> as_problem("shortest path")
    Traceback (most recent call last):
    TypeError: problem must be a decidewise problem, such as ShortestPath(5, 5), or an object of your own class: derive
    it from decidewise.problems.Problem, set n_costs and write minimize; got 'shortest path' of type str.
    """
    if not isinstance(problem, Problem):
        raise TypeError(
            "problem must be a decidewise problem, such as ShortestPath(5, 5), or an object of your own class: derive "
            f"it from decidewise.problems.Problem, set n_costs and write minimize; got {shown(problem)}."
        )
    if not isinstance(getattr(problem, "n_costs", None), Integral):
        raise TypeError(f"{type(problem).__name__} must set n_costs to the number of its costs; got {problem!r}.")
    if getattr(problem, "sense", None) not in ("min", "max"):
        raise TypeError(
            f"{type(problem).__name__} must have the sense 'min' or 'max': call super().__init__(sense=sense) in its "
            f"__init__; got {problem!r}."
        )
    if problem.has_known and not isinstance(problem, KnownPart):
        raise TypeError(f"{type(problem).__name__} sets has_known = True, so it must write minimize_lifted(costs).")
    return problem


def check_rows(problem: Problem, n_rows: int) -> None:
    """Raise if the region or the known costs of a problem differ by row and it has another number of rows."""
    if problem.n_rows is not None and problem.n_rows != n_rows:
        raise ValueError(
            f"{type(problem).__name__} differs by row and has {problem.n_rows} rows, and there are {n_rows} rows of "
            "costs; row i of both must belong to the same sample. Take the rows of these costs: problem.take(rows)."
        )


def sign_of(problem: Problem) -> float:
    """Return the factor, 1 or -1, that turns costs of the problem into costs to be minimised."""
    return -1.0 if problem.sense == "max" else 1.0


def as_n_costs(n_costs: int) -> int:
    """Return the number of costs of a new problem; raise if a row of so many would hardly fit into memory."""
    if n_costs > MAX_COSTS:
        raise ValueError(f"a problem can have at most {MAX_COSTS:,} costs; this one would have {n_costs:,} costs.")
    return n_costs
