"""Problems that were written with other tools."""

from decidewise.runtime.lazy import import_lazily

import_lazily(__name__)
