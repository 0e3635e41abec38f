"""A model, a problem and new rows give decisions and advice.

- `decide`, and `predict` with names; `decide_files` and `evaluate_files` for files larger than memory
- `diagnose`: would a decision-focused model pay?
- `distributed`: fits, decisions and regrets over a Dask cluster
"""

from decidewise.kit.lazy import import_lazily

import_lazily(__name__)
