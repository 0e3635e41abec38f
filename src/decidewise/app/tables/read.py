"""Read samples from a table, wide or long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from decidewise.app.tables.long import LongReader
from decidewise.app.tables.options import TableOptions
from decidewise.app.tables.samples import TableSamples
from decidewise.app.tables.wide import WideReader
from decidewise.kit.errors import InputError
from decidewise.problems import ProblemFile
from decidewise.rows.columns import NamedColumns


def read_samples(
    table: NamedColumns,
    options: TableOptions,
    file: ProblemFile | None = None,
    *,
    like: Sequence[str] | None = None,
    needed: Mapping[str, str] | None = None,
    as_listed: Sequence[str] | None = None,
    costs: bool | None = True,
    in_order: bool = True,
    whole: bool = True,
) -> TableSamples:
    """Read samples from a table.

    Parameters
    ----------
    table : NamedColumns
    options : TableOptions
    file : ProblemFile, optional
        The problem; without it, samples have none.
    like : sequence of str, optional
        The names of the costs that a model was trained with, for a table that need not have costs.
    needed : mapping of str to str, optional
        The features that a model needs, with their kinds (`TableFeatures.needed`); by default those that the options
        select.
    as_listed : sequence of str, optional
        The items of a long table in the order in which the whole table lists them, if this is a part of it.
    costs : bool or None
        Whether costs are read; None if they are there.
    in_order : bool
        Whether samples without costs are left out and the others sorted by time; otherwise they stay as they are, and
        times and groups are not read.
    whole : bool
        Whether this is the whole table; in a part of one, no sample need have costs.
    """
    reader = LongReader if options.items else WideReader
    return reader(table, options, file, like, needed, as_listed).read(costs, in_order, whole)


def columns_of(source: Any, options: Mapping[str, Any]) -> NamedColumns:
    """Return the columns of a source, a path, frame or mapping; `options` say how text files are written."""
    from decidewise.rows.file_blocks import read_files  # noqa: PLC0415

    try:
        return NamedColumns.of(read_files(source, **options) if isinstance(source, str | Path) else source)
    except (ValueError, TypeError) as reason:
        raise InputError(str(reason)) from reason
