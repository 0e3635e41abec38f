"""Rows, one per measurement, and tables of rows."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import get_args, get_type_hints

import pyarrow as pa

from decidewise.kit.errors import InputError
from decidewise.kit.files import write_whole


@dataclass(frozen=True)
class Row:
    """One method, trained and evaluated once.

    Attributes
    ----------
    plan, problem, degree, samples, method, mode, trial
        The cell of the row. `samples` is the number of training samples; `degree` is None for data without degrees.
    regret, floor : float
        Normalised test regret of the method and of the true conditional mean, in percent; None if unknown.
    label_seconds, train_seconds, evaluate_seconds : float
        Seconds of labels, training and evaluation, on one thread.
    n_solves : int
        Solver calls of labels and training.
    seed : int
        The seed of the data.
    version, libraries, machine : str
        The version of the code, the versions of the libraries, and the machine that computed the row.
    status : {"ok", "failed", "refused"}
        Refused: the method says itself that it is not for such a problem; see `NotForProblemError`.
    reason : str
        The reason of a failure or a refusal.
    chosen : str
        What the method chose on the training rows, such as "learning_rate 0.01"; empty if it has nothing to choose.

    Examples
    --------
    >>> row = Row(
    ...     plan="mine", problem="paths", degree=2, samples=50, method="WISE", mode="exact", trial=0, regret=9.5,
    ...     floor=8.0, label_seconds=0.0, train_seconds=0.01, evaluate_seconds=0.1, n_solves=0, seed=42,
    ...     version="0.1.0", libraries="NumPy 2.4.6", machine="2 cores", status="ok", reason="",
    ... )
    >>> row.regret - row.floor, row.chosen
    (1.5, '')
    """

    plan: str
    problem: str
    degree: int | None
    samples: int
    method: str
    mode: str
    trial: int
    regret: float | None
    floor: float | None
    label_seconds: float | None
    train_seconds: float | None
    evaluate_seconds: float | None
    n_solves: int | None
    seed: int
    version: str
    libraries: str
    machine: str
    status: str
    reason: str
    chosen: str = ""


#: The type of each column; a number may also be None.
COLUMNS: dict[str, type] = {
    name: next(kind for kind in get_args(hint) or (hint,) if kind is not NoneType)
    for name, hint in get_type_hints(Row).items()
}
_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64()}
SCHEMA = pa.schema([(name, _ARROW[kind]) for name, kind in COLUMNS.items()])


def as_table(rows: Iterable[Row]) -> pa.Table:
    """Return the rows as an Arrow table, one column per field.

    Examples
    --------
    >>> as_table([]).column_names[:5]
    ['plan', 'problem', 'degree', 'samples', 'method']
    """
    return pa.Table.from_pylist([asdict(row) for row in rows], schema=SCHEMA)


def export(table: pa.Table, path: Path | str) -> None:
    """Write a table as Parquet or CSV, as the name of the file ends; an error leaves no partial file.

    In CSV, a ' is put before text that a spreadsheet would take for a formula.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     export(pa.table({"method": ["WISE", "=1+1"], "regret": [9.5, 12.0]}), Path(folder, "rows.csv"))
    ...     print(Path(folder, "rows.csv").read_text())
    "method","regret"
    "WISE",9.5
    "'=1+1",12
    """
    path = Path(path)
    if path.suffix not in (".parquet", ".csv"):
        raise InputError(f"the name of the file must end in .parquet or .csv; got {path.name!r}.")
    content = pa.BufferOutputStream()
    if path.suffix == ".csv":
        from pyarrow import compute, csv  # noqa: PLC0415  (only one of the two writers is needed)

        for i, field in enumerate(table.schema):
            if field.type == pa.string():
                plain = compute.replace_substring_regex(table[i], r"^([=+\-@\t\r])", r"'\1")
                table = table.set_column(i, field, plain)
        csv.write_csv(table, content)
    else:
        from pyarrow import parquet  # noqa: PLC0415

        parquet.write_table(table, content)
    write_whole({path: content.getvalue().to_pybytes()})


@cache
def machine() -> str:
    """Return processor, cores, system and Python of this machine."""
    cores = f"{os.cpu_count()} cores"
    return ", ".join([_processor(), cores, platform.system(), f"Python {platform.python_version()}"])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
