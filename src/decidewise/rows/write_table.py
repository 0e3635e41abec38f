"""Write tables to files, whole or not at all, also block by block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from decidewise.kit.errors import InputError
from decidewise.kit.files import whole_file
from decidewise.kit.lazy import require
from decidewise.rows.file_blocks import FORMATS, KINDS

_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"


def write_table(blocks: Iterable[Mapping[str, Any]], out: Path) -> None:
    r"""Write columns, block after block, to one file; nothing is written if a block cannot be made.

    The end of the name says how: see `kind_of_output`.

    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp(), "a.csv")
    >>> write_table([{"day": [1, 2], "cost": [0.5, float("nan")]}, {"day": [3], "cost": [2.0]}], path)
    >>> path.read_text()
    '"day","cost"\n1,0.5\n2,\n3,2\n'
    """
    kind = kind_of_output(out)
    try:
        with whole_file(out) as beside, beside.open("wb") as file:
            write_blocks(blocks, file, kind)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(out)) from error  # names the file, not the temporary one


def write_blocks(blocks: Iterable[Mapping[str, Any]], file: Any, kind: str) -> None:
    """Write columns, block after block, to an open file, in the format of names that end in `kind`."""
    require("cli", "pyarrow", by="writing a table")
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    sink: Any = pa.PythonFile(file, mode="w")
    if kind.endswith(".gz"):
        sink = pa.CompressedOutputStream(sink, "gzip")
    writer, schema = None, None
    try:
        for columns in blocks:
            table = pa.table({name: _as_arrow(values) for name, values in columns.items()})
            if KINDS[kind] == "text":
                table = _without_formulas(table)
            if writer is None:
                schema, writer = table.schema, _writer(sink, table.schema, kind)
            writer.write_table(table.cast(schema))
    finally:
        if writer is not None:
            writer.close()
        sink.close()


def _as_arrow(values: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    return values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)


def _without_formulas(table: Any) -> Any:
    """Return a table whose text a spreadsheet does not compute: an apostrophe before what begins like a formula."""
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency
    from pyarrow import compute  # noqa: PLC0415

    def safe(texts: Any) -> Any:
        numbers = compute.match_substring_regex(texts, rf"^{_NUMBER}$")
        formulas = compute.and_not(compute.match_substring_regex(texts, "^[=+\\-@\t\r]"), numbers)
        return compute.if_else(formulas, compute.binary_join_element_wise("'", texts, ""), texts)

    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            table = table.set_column(place, field.name, safe(table.column(place)))
    return table.rename_columns(safe(pa.array(table.column_names)).to_pylist())


def _writer(sink: Any, schema: Any, kind: str) -> Any:
    from pyarrow import csv, ipc, parquet  # noqa: PLC0415 - an optional dependency

    if KINDS[kind] == "parquet":
        return parquet.ParquetWriter(sink, schema)
    if KINDS[kind] == "arrow":
        return ipc.new_file(sink, schema)
    return csv.CSVWriter(sink, schema, write_options=csv.WriteOptions(delimiter="\t" if ".tsv" in kind else ","))


def kind_of_output(path: Path) -> str:
    """Return the ending that says how to write a table; raise an `InputError` if there is none."""
    ending = next(
        (ending for ending in sorted(KINDS, key=len, reverse=True) if path.name.lower().endswith(ending)), None
    )
    if ending is None:
        raise InputError(f"the name of the table to write must end in {FORMATS}; got {path.name!r}.")
    return ending
