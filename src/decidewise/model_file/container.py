r"""The bytes of a model file: a header in JSON, then arrays, each with a checksum.

    8 bytes    the signature `\x89DWM\r\n\x1a\n`, which a transfer in text mode would damage visibly
    4 bytes    the version of the format
    8 bytes    the length of the header
    32 bytes   the SHA-256 of the header
    header     JSON in UTF-8; its key "parts" lists the type, the shape, the order and the SHA-256 of every array
    arrays     their bytes, one after the other, little endian, without gaps; the file ends with the last one

Nothing is compressed and nothing has a name, so a file of n bytes never asks for much more than n bytes of memory, and
no part of it can be taken for a path. Reading checks all sizes against the size of the file before it allocates.
"""

from __future__ import annotations

import json
import math
import os
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

import decidewise
from decidewise.kit.errors import InputError

SIGNATURE = b"\x89DWM\r\n\x1a\n"
VERSION = 1
#: The longest header. Names of half a million features fit; parsing it takes a few hundred megabytes at worst.
MAX_HEADER = 2**23
_START = struct.Struct("<8sIQ32s")
_TYPES = ("<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1")
_MAX_DIMENSIONS = 8
_MAX_PARTS = 2**20


def pack(header: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> bytes:
    """Return the bytes of a file with this header and these arrays, the same bytes for the same content."""
    parts, bodies = [], []
    for array in arrays:
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        body = little.tobytes(order=order)  # type: ignore[arg-type]
        digest = sha256(body).hexdigest()
        parts.append({"type": little.dtype.str, "shape": list(array.shape), "order": order, "sha256": digest})
        bodies.append(body)
    text = json.dumps({**header, "parts": parts}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    encoded = text.encode("utf-8")
    if len(encoded) > MAX_HEADER:
        raise ValueError(
            f"the names, the summary and the structure of the model take {len(encoded):,} bytes; a model file holds at "
            f"most {MAX_HEADER:,} of them. Pass a shorter summary."
        )
    return b"".join([_START.pack(SIGNATURE, VERSION, len(encoded), sha256(encoded).digest()), encoded, *bodies])


def can_hold(array: np.ndarray) -> bool:
    """Whether a file can hold this array: numbers or booleans, of a type with the same size on every machine."""
    return array.ndim <= _MAX_DIMENSIONS and array.dtype.newbyteorder("<").str in _TYPES


def read_header(path: Path) -> dict[str, Any]:
    """Return the header of a file, without its arrays; raise an `InputError` if the file is not whole or not valid."""
    with _reading(path) as (file, size):
        return _read_header(file, path, size)


def unpack(path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Return the header and the arrays of a file; raise an `InputError` if the file is not whole or not valid."""
    with _reading(path) as (file, size):
        header = _read_header(file, path, size)
        return header, [_read_array(file, part, f"{path}: array {k}") for k, part in enumerate(header["parts"])]


@contextmanager
def _reading(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would block, and a device may never end
            raise InputError(f"{path} is not a file.")
        with path.open("rb") as file:
            yield file, os.fstat(file.fileno()).st_size
    except OSError as reason:
        raise InputError(f"cannot read the model {path}: {reason.strerror}.") from reason
    except ValueError as reason:
        if isinstance(reason, InputError):
            raise
        raise InputError(f"cannot read the model {str(path)!r}: {reason}.") from reason  # a path with a zero byte


def _read_header(file: BinaryIO, path: Path, size: int) -> dict[str, Any]:
    start = file.read(_START.size)
    if start[: len(SIGNATURE)] != SIGNATURE[: len(start)] or not start:
        raise InputError(f"{path} is not a model file: write one by `decidewise fit`, or with decidewise.save_model.")
    if len(start) < _START.size:
        raise InputError(f"{path} is cut off: it has {size} bytes. Copy it again, or save the model again.")
    _, version, length, digest = _START.unpack(start)
    if version > VERSION:
        raise InputError(
            f"{path} has format {version}, and decidewise {decidewise.__version__} reads formats up to {VERSION}. "
            "Install a newer decidewise."
        )
    if not 1 <= version <= VERSION or length > MAX_HEADER:
        raise InputError(f"{path} is damaged: its first bytes are not those of a model file.")
    encoded = file.read(length)
    if len(encoded) < length:
        raise InputError(f"{path} is cut off: it has {size} bytes. Copy it again, or save the model again.")
    if sha256(encoded).digest() != digest:
        raise InputError(f"{path} is damaged: its header does not match its checksum. Copy it again.")
    try:
        header = json.loads(encoded.decode("utf-8"), object_pairs_hook=_no_doubles, parse_constant=_refuse)
    except (ValueError, RecursionError) as reason:
        raise InputError(f"{path} is not a valid model file: its header is not JSON ({reason}).") from reason
    expected = _START.size + length + sum(_n_bytes(part, path) for part in _parts(header, path))
    if size != expected:
        what = "is cut off" if size < expected else "has something after its end"
        raise InputError(f"{path} {what}: it has {size} bytes, and {expected} were written. Copy it again.")
    return header


def _parts(header: Any, path: Path) -> list[Any]:
    parts = header.get("parts") if isinstance(header, dict) else None
    if not isinstance(parts, list) or len(parts) > _MAX_PARTS:
        raise InputError(f"{path} is not a valid model file: its header has no list of arrays.")
    return parts


def _n_bytes(part: Any, path: Path) -> int:
    """Return the size of an array after checking all that the header says of it."""
    valid = (
        isinstance(part, dict)
        and part.keys() == {"type", "shape", "order", "sha256"}
        and part["type"] in _TYPES
        and part["order"] in ("C", "F")
        and isinstance(part["sha256"], str)
        and isinstance(part["shape"], list)
        and len(part["shape"]) <= _MAX_DIMENSIONS
        and all(type(length) is int and 0 <= length < 2**48 for length in part["shape"])
    )
    if not valid:
        raise InputError(f"{path} is not a valid model file: it describes an array in a way that this format has not.")
    return math.prod(part["shape"]) * np.dtype(part["type"]).itemsize


def _read_array(file: BinaryIO, part: Mapping[str, Any], where: str) -> np.ndarray:
    shape, order = part["shape"], part["order"]
    try:
        array = np.empty(math.prod(shape), dtype=part["type"])
        body = memoryview(array.view(np.uint8))  # type: ignore[arg-type]
    except (ValueError, MemoryError) as reason:
        raise InputError(f"{where} of shape {shape} does not fit into memory ({reason}).") from reason
    if array.size and file.readinto(body) < len(body):  # type: ignore[attr-defined]
        raise InputError(f"{where} is cut off. Copy the file again, or save the model again.")
    if sha256(body).hexdigest() != part["sha256"]:
        raise InputError(f"{where} does not match its checksum: the file is damaged. Copy it again.")
    if array.dtype == bool and array.view(np.uint8).max(initial=0) > 1:
        raise InputError(f"{where} has entries that are neither true nor false.")
    try:
        return array.astype(array.dtype.newbyteorder("="), copy=False).reshape(shape, order=order)
    except ValueError as reason:  # an empty array with a side that no machine can index
        raise InputError(f"{where} has the shape {shape}, which no array can have.") from reason


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number of JSON")
