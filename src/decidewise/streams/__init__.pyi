# What the package offers; see `decidewise.runtime.lazy`.
from decidewise.streams.arrays import ArrayRows
from decidewise.streams.files import FileRows
from decidewise.streams.rows import Rows, RowSource

__all__ = ["ArrayRows", "FileRows", "RowSource", "Rows"]
