"""Write a program with the costs of one row to a file that every solver reads."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, tril, vstack

from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import InputError
from decidewise.problems.mapped_problem.arguments import SideNames
from decidewise.solvers.program import Polyhedron, Program, as_highs

_SUFFIXES = (".mps", ".lp")


def write_program(
    path: str | os.PathLike[str],
    region: Polyhedron,
    objective: FloatArray,
    *,
    whole: Any,
    quadratic: csr_array | None,
    offset: float,
    sense: str,
    names: list[str],
    sides: SideNames,
) -> None:
    """Write an objective (n,) over a region; see `LinearProgram.write`."""
    import highspy  # noqa: PLC0415  (slow to import)

    path = Path(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError(f"{path.name!r} must end in {' or '.join(_SUFFIXES)}, which says how it is written.")
    turned = np.array([name in sides.below for name in [*sides.above, *sides.below]] or [False] * region.A_ub.shape[0])
    turned[: len(sides.above)] = False
    signs = np.where(turned, -1.0, 1.0)  # a constraint from below is kept as minus itself
    b_ub, b_eq, lower, upper = map(np.ravel, (region.b_ub, region.b_eq, region.lower, region.upper))  # of one row
    own = signs * b_ub
    program = Program(
        csc_array(vstack([region.A_ub * signs[:, np.newaxis], region.A_eq])),
        np.concatenate([np.where(turned, own, -np.inf), b_eq]),
        np.concatenate([np.where(turned, np.inf, own), b_eq]),
        lower,
        upper,
        whole,
    )
    model = as_highs(program)
    model.col_cost_, model.offset_ = objective, offset
    model.sense_ = highspy.ObjSense.kMaximize if sense == "max" else highspy.ObjSense.kMinimize
    model.col_names_ = _plain(names, "w")
    rows = [*sides.above, *(f"{name}_from" if name in sides.above else name for name in sides.below), *sides.equal]
    model.row_names_ = _plain(rows or [f"r{k}" for k in range(program.A.shape[0])], "r")
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    full = highspy.HighsModel()
    full.lp_ = model
    if quadratic is not None:
        half = csc_array(tril(quadratic))
        full.hessian_.dim_, full.hessian_.format_ = len(objective), highspy.HessianFormat.kTriangular
        full.hessian_.start_, full.hessian_.index_, full.hessian_.value_ = half.indptr, half.indices, half.data
    if highspy.HighsStatus.kError in (solver.passModel(full), solver.writeModel(str(path))):
        raise InputError(f"HiGHS cannot write {str(path)!r}. Is there such a folder, and room in it?")


def _plain(names: list[str], letter: str) -> list[str]:
    """Return names without what files do not allow, or numbers where two of them would be the same."""
    plain = [re.sub(r"[^\w.\[\],()]", "_", name) for name in names]
    return plain if len(set(plain)) == len(plain) and all(plain) else [f"{letter}{k}" for k in range(len(names))]
