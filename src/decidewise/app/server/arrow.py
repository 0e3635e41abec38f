"""Arrow streams of strangers: read without trusting what they say of themselves.

pyarrow allocates what a compressed buffer says it will need, so a few bytes could ask for all memory. The metadata of
every message are therefore read here first: compressed streams are refused, and so are too many rows.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import compute

from decidewise.app.server.limits import too_many_rows

# Types of messages and places of fields in the flatbuffers of the Arrow format.
_DICTIONARY, _BATCH = 2, 3
_HEADER_TYPE, _HEADER = 1, 2
_LENGTH, _COMPRESSION = 0, 3
_DATA = 1
# The most bytes of text that a dictionary may stand for: a few bytes can repeat a long text for every row.
_TEXT_BYTES = 2**26


def read_stream(content: bytes, max_rows: int) -> pa.Table:
    """Return the table in a stream of the Arrow format, without compression.

    Raise a `ValueError` if it is not valid, and a `RefusedError` if it has too many rows.
    Only columns of numbers, booleans, text and dates are returned. Dictionaries are written out, as their values, and
    decimals are numbers.
    """
    try:
        _check_messages(content, max_rows)
        with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
            table = reader.read_all()
        if len(set(table.column_names)) < table.num_columns:
            raise ValueError("two columns have the same name")
        plain = [name for name, kind in zip(table.column_names, table.schema.types, strict=True) if _is_plain(kind)]
        table = table.select(plain)
        table.validate(full=True)
        table = pa.table({name: _decoded(table[name]) for name in plain}) if plain else table
    except (pa.ArrowException, struct.error, IndexError, OverflowError, EOFError, OSError) as reason:
        raise ValueError(" ".join(str(reason).split())[:300].rstrip(".") or type(reason).__name__) from reason
    return table


def write_stream(columns: Mapping[str, Any], warnings: Sequence[str] | None = None) -> bytes:
    """Return columns as a stream of the Arrow format, with warnings as the metadata of its schema."""
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    if warnings:
        table = table.replace_schema_metadata({"warnings": "\n".join(warnings)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        if _is_text(column.type.value_type):
            parts = [compute.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks]
            if sum(compute.sum(part).as_py() or 0 for part in parts) > _TEXT_BYTES:
                raise ValueError(f"a dictionary stands for more than {_TEXT_BYTES:,} bytes of text")
        column = column.cast(column.type.value_type)
    return column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_plain(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return bool(numbers or types.is_boolean(kind) or types.is_temporal(kind) or _is_text(kind))


def _check_messages(content: bytes, max_rows: int) -> None:
    """Raise if a message is compressed, or if there are more rows than allowed."""
    n_rows = 0
    reader = pa.ipc.MessageReader.open_stream(pa.py_buffer(content))
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            break
        metadata = message.metadata.to_pybytes()
        kind, header = _table(metadata, struct.unpack_from("<I", metadata)[0], _HEADER_TYPE, _HEADER)
        if kind is None or header is None:
            continue
        if metadata[kind] == _DICTIONARY:
            [data] = _table(metadata, _follow(metadata, header), _DATA)
            if data is None:
                continue
            _refuse_compressed(metadata, _follow(metadata, data))
        elif metadata[kind] == _BATCH:
            n_rows += _refuse_compressed(metadata, _follow(metadata, header))
        if n_rows > max_rows:
            raise too_many_rows(max_rows)


def _refuse_compressed(metadata: bytes, batch: int) -> int:
    """Return the number of rows of a batch; raise if it is compressed."""
    length, compression = _table(metadata, batch, _LENGTH, _COMPRESSION)
    if compression is not None:
        raise ValueError("it is compressed, which this server does not read; write it without compression")
    n_rows: int = 0 if length is None else struct.unpack_from("<q", metadata, length)[0]
    if n_rows < 0:
        raise ValueError("a batch has a negative number of rows")
    return n_rows


def _table(metadata: bytes, start: int, *fields: int) -> list[int | None]:
    """Return where the fields of a flatbuffer's table are, None for those that are absent."""
    fields_at = start - struct.unpack_from("<i", metadata, start)[0]
    size = struct.unpack_from("<H", metadata, fields_at)[0]
    places: list[int | None] = []
    for field in fields:
        entry = 4 + 2 * field
        offset = struct.unpack_from("<H", metadata, fields_at + entry)[0] if entry + 2 <= size else 0
        places.append(start + offset if offset else None)
    return places


def _follow(metadata: bytes, place: int) -> int:
    target: int = place + struct.unpack_from("<I", metadata, place)[0]
    return target
