"""Readers of problems written with other libraries."""

from decidewise.runtime.lazy import import_lazily

import_lazily(__name__)
