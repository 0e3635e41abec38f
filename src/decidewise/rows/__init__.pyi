# What the package offers; see `decidewise.kit.lazy`.
from decidewise.rows.files import FileRows
from decidewise.rows.source import ArrayRows, Rows, RowSource

__all__ = ["ArrayRows", "FileRows", "RowSource", "Rows"]
