"""Read an array from a file: numbers in a CSV file, or an array of NumPy or SciPy."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy.sparse import load_npz

from decidewise.kit.checks import is_number
from decidewise.kit.errors import InputError


def read_array(path: Path, *, name: str) -> Any:
    r"""Return the array in a file. Nothing in it is executed.

    Parameters
    ----------
    path : Path
        `.csv` is a table of numbers, with a line of headings or without; a single row or column is a vector. `.npy` is
        an array as `numpy.save` writes it, and `.npz` a sparse matrix as `scipy.sparse.save_npz` does.
    name : str
        The key that names the file, with which every message starts.

    Returns
    -------
    array : ndarray or sparse array

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp(), "weights.csv")
    >>> _ = path.write_text("small,large\n1,2\n3,4\n")
    >>> read_array(path, name="weights")
    array([[1, 2],
           [3, 4]])
    """
    readers = {".csv": _read_csv, ".npy": lambda file: np.load(file, allow_pickle=False), ".npz": load_npz}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{name}: the name of the file must end in {', '.join(readers)}; got {path.name!r}.")
    if path.exists() and not path.is_file():
        raise InputError(f"{name}: {path} is not a file.")  # a pipe would block, and a device may never end
    try:
        return reader(path)
    except OSError as reason:
        if not reason.strerror:  # SciPy's way to say that the content is not what it should be
            raise InputError(f"{name}: {path.name} cannot be read: {reason}.") from reason
        raise InputError(f"{name}: cannot read {path}: {reason.strerror}.") from reason
    except (ValueError, EOFError, KeyError, BadZipFile) as reason:
        raise InputError(
            f"{name}: {path.name} cannot be read: {' '.join(str(reason).split()).rstrip('.')}."
        ) from reason


def _read_csv(path: Path) -> Any:
    lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    if lines and not all(map(is_number, lines[0].split(","))):
        del lines[0]  # headings
    if not lines:
        raise ValueError("it has no rows of numbers")
    table = np.loadtxt(io.StringIO("\n".join(lines)), delimiter=",", ndmin=2)
    if not any(re.search(r"[^\d\s,+-]", line) for line in lines) and np.all(np.abs(table) < 2**53):
        table = table.astype(np.int64)
    return table.ravel() if 1 in table.shape else table
