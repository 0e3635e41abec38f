"""Read a problem from a file: `.mps`, `.mps.gz` or `.lp`, as any modelling tool writes it, or `.toml`."""

from __future__ import annotations

import gzip
import os
import re
import warnings
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.sparse import csc_array, csr_array, triu

from decidewise.kit.errors import InputError
from decidewise.problems.contract import Problem, Sense
from decidewise.problems.mapped_problem.arguments import Costs
from decidewise.problems.readers.logic import logic_of_lp, logic_of_mps
from decidewise.problems.readers.lp import check_lp
from decidewise.problems.readers.mps import check_mps
from decidewise.problems.readers.translation import read_program

if TYPE_CHECKING:
    import highspy

_SUFFIXES = (".mps", ".lp", ".mps.gz", ".lp.gz")


def read_problem(
    path: str | os.PathLike[str],
    costs: Costs = None,
    *,
    sense: Sense | None = None,
    time_limit: float | None = None,
    gap: float = 0.0,
    on_limit: Literal["raise", "best"] = "raise",
    on_error: Literal["raise", "nan"] = "raise",
    solver: str | None = None,
) -> Problem:
    """Read a problem from a file: a linear or quadratic program as modelling tools write it, or a description in TOML.

    A `.toml` file says all about the problem (see `decidewise.problems.ProblemFile`), so there are no further
    arguments. If it is of the kind "python", reading it executes the module that it names.

    All other files are read by HiGHS, and the problem is a `LinearProgram`, or a `QuadraticProgram` if the objective
    has squares or products of variables, which are known. Where a variable has a predicted cost, that of the file is
    left out. All other costs of the file are known costs, and its constant is the offset. As in every
    solver, an integer variable of an MPS file that has no bounds is binary. Semi-continuous variables, indicators and
    special ordered sets become constraints with binary variables, if the variables have bounds.

    Parameters
    ----------
    path : str or path
        An `.mps` or `.lp` file, also compressed as `.gz`, or a `.toml` file.
    costs : optional
        Which variables have predicted costs: names, a pattern of names such as `"price_*"`, factors of patterns, or a
        map; see `LinearProgram`. By default all of them.
    sense : {"min", "max"}, optional
        By default that of the file.
    time_limit, gap, on_limit, on_error, solver
        As of `LinearProgram`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "plan.lp"
    >>> _ = path.write_text("max obj: 0 price_a + 0 price_b - rent s.t. price_a + 2 price_b - 4 rent <= 0 "
    ...                     "bounds price_a <= 3 price_b <= 3 rent <= 1 end")
    >>> plan = read_problem(path, costs="price_*")
    >>> plan.sense, plan.has_known
    ('max', True)
    >>> plan.solve([[1.0, 1.0], [0.2, 0.1]])
    array([[3. , 0.5],
           [0. , 0. ]])

    A semi-continuous variable is zero or within its bounds:

    >>> _ = path.write_text("max obj: 0 batch s.t. c: batch <= 4 bounds 2 <= batch <= 5 semi batch end")
    >>> read_problem(path).solve([[1.0], [-1.0]])
    array([[4.],
           [0.]])
    """
    path = Path(path)
    options: dict[str, Any] = {
        "time_limit": time_limit, "gap": gap, "on_limit": on_limit, "on_error": on_error, "solver": solver,
    }  # fmt: skip
    if path.suffix.lower() == ".toml":
        if costs is not None or sense is not None or not {*options.values()} <= {None, 0.0, "raise"}:
            raise InputError(f"{path.name} says all about the problem: write costs and options into it.")
        from decidewise.problems.readers.problem_file import ProblemFile  # noqa: PLC0415  (it reads models, too)

        return ProblemFile.read(path).build()
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}. Check its name, and the folder that the program runs in.")
    if not path.name.lower().endswith(_SUFFIXES):
        raise InputError(f"{path.name!r} must end in {', '.join(_SUFFIXES)} or .toml, which says how it is written.")
    text = _text(path)
    logic = (logic_of_mps if _is_mps(path) else logic_of_lp)(text)
    if _is_mps(path):
        plain = check_mps(logic.text, path.name)
    else:
        check_lp(logic.text, path.name)
        plain = logic.text
    model, remarks = _read(path, plain)
    _check(model, path)
    if remarks:
        warnings.warn(f"{path.name}: HiGHS says: {' '.join(remarks[:3])}", stacklevel=2)
    lp = model.lp_
    found: Sense = "max" if "Max" in str(lp.sense_) else "min"
    if not _is_mps(path) and re.match(r"\s*max", re.sub(r"\\.*", "", plain), flags=re.IGNORECASE):
        found = "max"  # which HiGHS forgets where the objective is empty
    if sense is None and _maximises_in_a_comment(path, text):
        raise InputError(
            f"{path.name} says only in a comment that it maximises, as PuLP writes it, and no solver reads that. Pass "
            "sense='max'; or sense='min', if its costs were negated."
        )
    matrix = lp.a_matrix_
    kind = csc_array if "Col" in str(matrix.format_) else csr_array
    A = csr_array(
        kind((np.array(matrix.value_), np.array(matrix.index_), np.array(matrix.start_)), (lp.num_row_, lp.num_col_))
    )
    rows = np.array(lp.row_lower_), np.array(lp.row_upper_)
    indicators, sets = logic.resolved(A, rows, list(lp.col_names_), list(lp.row_names_), path.name)
    kinds = ["CISN"[int(kind)] for kind in lp.integrality_] or ["C"] * lp.num_col_
    semi = {name for name, kind in zip(lp.col_names_, kinds, strict=False) if kind == "S"} & logic.whole
    kinds = ["N" if name in semi else kind for name, kind in zip(lp.col_names_, kinds, strict=True)] if semi else kinds
    try:
        return read_program(
            np.array(lp.col_cost_),
            A,
            rows,
            (np.array(lp.col_lower_), np.array(lp.col_upper_)),
            kinds,
            quadratic=_quadratic(model.hessian_),
            costs=costs,
            names=list(lp.col_names_) or None,
            constraint_names=list(lp.row_names_),
            indicators=indicators,
            sets=sets,
            offset=lp.offset_,
            sense=found if sense is None else sense,
            **options,
        )
    except InputError:
        raise
    except ValueError as reason:
        raise InputError(f"{path.name}: {reason}") from reason


def _is_mps(path: Path) -> bool:
    return path.name.lower().endswith((".mps", ".mps.gz"))


def _text(path: Path) -> str:
    """Return the text of a file, unpacked."""
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix.lower() == ".gz" else data).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name} is not written in UTF-8 ({error.reason}). Save it in UTF-8.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path.name} cannot be unpacked: {error}. Is it complete, and compressed by gzip?") from error


def _read(path: Path, text: str) -> tuple[highspy.HighsModel, list[str]]:
    """Let HiGHS read the text of the file, and return what it read and what it remarked."""
    import highspy  # noqa: PLC0415  (slow to import)

    solver = highspy.Highs()
    with TemporaryDirectory() as folder:
        log, plain = Path(folder) / "log", Path(folder) / ("model.mps" if _is_mps(path) else "model.lp")
        plain.write_text(text, encoding="utf-8")
        solver.setOptionValue("log_to_console", False)
        solver.setOptionValue("log_file", str(log))
        status = solver.readModel(str(plain))
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("log_file", "")  # closed, so that the folder can go
        said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    remarks = re.findall(r"^(?:WARNING|ERROR): *(.*\S)", said, flags=re.MULTILINE)
    if status == highspy.HighsStatus.kError:
        raise InputError(f"HiGHS cannot read {path.name}{_reason(path, text, remarks)}")
    if any("switching to fixed format" in remark for remark in remarks) and remarks[-1].endswith("ignored"):
        raise InputError(
            f"HiGHS cannot read {path.name}: a name has spaces, or a line too many words, so that it tells fields "
            f"apart by their columns, and then: {' '.join(remarks[-1].split())}. Write names without spaces."
        )
    return solver.getModel(), remarks


def _reason(path: Path, text: str, remarks: list[str]) -> str:
    kind = "MPS" if _is_mps(path) else "LP"
    if kind == "LP" and re.search(r"\w\[[^\]^]*\]", text):
        return (
            ": names such as x[0], which Gurobi writes, are not allowed in its .lp files. Write an .mps file instead."
        )
    told = [remark for remark in remarks if not remark.startswith("Parser error reading")]
    said = f": {'; '.join(' '.join(remark.split()).rstrip('.') for remark in told[:2])}." if told else "."
    return f"{said} Is it a complete {kind} file, without spaces in names?"


def _check(model: highspy.HighsModel, path: Path) -> None:
    """Refuse what a linear program cannot say."""
    lp = model.lp_
    if lp.num_col_ == 0:
        raise InputError(f"{path.name} has no variables. Is it complete?")
    lower, upper = np.array(lp.col_lower_), np.array(lp.col_upper_)
    crossed = np.flatnonzero((upper < 0) & (lower == 0))
    if len(crossed):
        j = int(crossed[0])
        raise InputError(
            f"{path.name}: variable {_name(lp, j)} has the upper bound {upper[j]:g} and no lower one, which HiGHS "
            "takes as 0 and others as minus infinity. Write the lower bound into the file (MI for minus infinity in an "
            "MPS file)."
        )


def _quadratic(hessian: highspy.HighsHessian) -> csr_array | None:
    """Return `Q`, of which HiGHS keeps the lower triangle, column by column; None if there is none."""
    n = hessian.dim_
    if not n:
        return None
    lower = csc_array((np.array(hessian.value_), np.array(hessian.index_), np.array(hessian.start_)), (n, n))
    return csr_array(lower + triu(lower.T, k=1))


def _name(lp: highspy.HighsLp, j: int) -> str:
    return str(lp.col_names_[j]) if lp.col_names_ else f"number {j}"


def _maximises_in_a_comment(path: Path, text: str) -> bool:
    """Whether the head of an MPS file says so in the way of PuLP, and no OBJSENSE does."""
    head = text[:2000].upper()
    return _is_mps(path) and head.startswith("*SENSE:MAX") and "OBJSENSE" not in head
