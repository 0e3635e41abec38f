"""Models: features and costs in, a fitted scikit-learn estimator out."""

from decidewise.kit.lazy import import_lazily

import_lazily(__name__)
