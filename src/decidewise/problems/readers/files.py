"""Read a linear program from a file, `.mps`, `.mps.gz` or `.lp`, as any modelling tool writes it."""

from __future__ import annotations

import gzip
import os
import re
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint
from scipy.sparse import csc_array, csr_array

from decidewise.errors import InputError
from decidewise.problems.base import Sense
from decidewise.problems.linear_program import LinearProgram
from decidewise.problems.linear_program.arguments import Costs

if TYPE_CHECKING:
    import highspy

_SUFFIXES = (".mps", ".lp", ".mps.gz", ".lp.gz")


def read_problem(
    path: str | os.PathLike[str], costs: Costs = None, *, sense: Sense | None = None, **options: Any
) -> LinearProgram:
    """Read a file that HiGHS can read as a problem.

    Where a variable has a predicted cost, that of the file is left out. All other costs of the file are known costs,
    and its constant is the offset. As in every solver, an integer variable of an MPS file that has no bounds is binary.

    Parameters
    ----------
    path : str or path
        An `.mps` or `.lp` file, also compressed as `.gz`.
    costs : optional
        Which variables have predicted costs: names, a pattern of names such as `"price_*"`, or a map; see
        `LinearProgram`. By default all of them.
    sense : {"min", "max"}, optional
        By default that of the file.
    options
        Others of `LinearProgram`: `time_limit`, `gap`, `on_error`.

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
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}. Check its name, and the folder that the program runs in.")
    if not path.name.lower().endswith(_SUFFIXES):
        raise InputError(f"{path.name!r} must end in {', '.join(_SUFFIXES)}, which says how it is written.")
    model, remarks = _read(path)
    _check(model, path)
    if remarks:
        warnings.warn(f"{path.name}: HiGHS says: {' '.join(remarks[:3])}", stacklevel=2)
    lp = model.lp_
    found: Sense = "max" if "Max" in str(lp.sense_) else "min"
    if sense is None and _maximises_in_a_comment(path):
        raise InputError(
            f"{path.name} says only in a comment that it maximises, as PuLP writes it, and no solver reads that. Pass "
            "sense='max'; or sense='min', if its costs were negated."
        )
    matrix = lp.a_matrix_
    kind = csc_array if "Col" in str(matrix.format_) else csr_array
    A = kind((np.array(matrix.value_), np.array(matrix.index_), np.array(matrix.start_)), (lp.num_row_, lp.num_col_))
    return LinearProgram.from_milp(
        np.array(lp.col_cost_),
        integrality=[int(whole) for whole in lp.integrality_] or None,
        bounds=Bounds(np.array(lp.col_lower_), np.array(lp.col_upper_)),
        constraints=LinearConstraint(A, np.array(lp.row_lower_), np.array(lp.row_upper_)),
        costs=costs,
        names=list(lp.col_names_) or None,
        constraint_names=list(lp.row_names_),
        offset=lp.offset_,
        sense=found if sense is None else sense,
        **options,
    )


def _read(path: Path) -> tuple[highspy.HighsModel, list[str]]:
    """Let HiGHS read the file, and return what it read and what it remarked."""
    import highspy  # noqa: PLC0415  (whoever reads no file does not wait for HiGHS)

    solver = highspy.Highs()
    with TemporaryDirectory() as folder:
        log, plain = Path(folder) / "log", path
        if path.suffix.lower() == ".gz":  # not every build of HiGHS can
            plain = Path(folder) / path.stem.lower()
            plain.write_bytes(_unpacked(path))
        solver.setOptionValue("log_to_console", False)
        solver.setOptionValue("log_file", str(log))
        status = solver.readModel(str(plain))
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("log_file", "")  # closed, so that the folder can go
        said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    remarks = re.findall(r"^(?:WARNING|ERROR): *(.*\S)", said, flags=re.MULTILINE)
    if status == highspy.HighsStatus.kError:
        raise InputError(f"HiGHS cannot read {path.name}{_reason(path, remarks)}")
    return solver.getModel(), remarks


def _unpacked(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise InputError(f"{path.name} cannot be unpacked: {error}. Is it complete, and compressed by gzip?") from error


def _reason(path: Path, remarks: list[str]) -> str:
    text = "" if path.suffix.lower() == ".gz" else path.read_text(encoding="utf-8", errors="replace")
    if ".lp" in path.name.lower() and re.search(r"\w\[[^\]^]*\]", text):
        return (
            ": names such as x[0], which Gurobi writes, are not allowed in its .lp files. Write an .mps file instead."
        )
    said = f": {' '.join(remarks[:2])}" if remarks else "."
    return f"{said} Is it a complete {'MPS' if '.mps' in path.name.lower() else 'LP'} file, without spaces in names?"


def _check(model: highspy.HighsModel, path: Path) -> None:
    """Refuse what a linear program cannot say."""
    lp = model.lp_
    if model.hessian_.dim_:
        raise InputError(f"{path.name} has a quadratic objective. Only linear ones can have predicted costs here.")
    if lp.num_col_ == 0:
        raise InputError(f"{path.name} has no variables.")
    kinds = np.array([int(kind) for kind in lp.integrality_])
    if np.any(kinds > 1):
        raise InputError(
            f"{path.name} has a semi-continuous variable, number {int(np.argmax(kinds > 1))}. Write it with a binary "
            "one that switches it on."
        )
    lower, upper = np.array(lp.col_lower_), np.array(lp.col_upper_)
    crossed = np.flatnonzero((upper < 0) & (lower == 0))
    if len(crossed):
        j = int(crossed[0])
        name = lp.col_names_[j] if lp.col_names_ else f"number {j}"
        raise InputError(
            f"{path.name}: variable {name} has the upper bound {upper[j]:g} and no lower one, which HiGHS takes as 0 "
            "and others as minus infinity. Write the lower bound into the file (MI for minus infinity in an MPS file)."
        )


def _maximises_in_a_comment(path: Path) -> bool:
    """Whether the head of an MPS file says so in the way of PuLP, and no OBJSENSE does."""
    if ".mps" not in path.name.lower():
        return False
    with (
        gzip.open(path, "rt", errors="replace") if path.suffix.lower() == ".gz" else path.open(errors="replace") as file
    ):
        head = file.read(2000).upper()
    return head.startswith("*SENSE:MAX") and "OBJSENSE" not in head
