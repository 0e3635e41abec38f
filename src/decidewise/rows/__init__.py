"""Rows that do not fit into memory: blocks of rows from arrays and files, read in order, and sums over them."""

from decidewise.kit.lazy import import_lazily

import_lazily(__name__)
