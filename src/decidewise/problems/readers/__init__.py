"""Readers of problems written with other libraries."""

from decidewise.kit.lazy import import_lazily

import_lazily(__name__)
