"""Train on the costs that drive your decisions, with no solver in the training loop.

>>> from decidewise import WiseRegressor
>>> from decidewise.data import make_shortest_path
>>> from decidewise.evaluate import normalized_regret
>>> train, test = make_shortest_path(1_200, degree=6, seed=0).split(200)
>>> model = WiseRegressor().fit(train.X, train.costs)
>>> regret = normalized_regret(test.problem, model.predict(test.X), test.costs)
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from decidewise.errors import (
    CalibrationWarning,
    DivergenceError,
    OptimalityWarning,
    SolverError,
    TrainingWarning,
)

if TYPE_CHECKING:
    from decidewise.models import DecisionRegressor, GeneralizedLinear, WiseRegressor, WiseRegressorCV

__version__ = version("decidewise")
__all__ = [
    "CalibrationWarning",
    "DecisionRegressor",
    "DivergenceError",
    "GeneralizedLinear",
    "OptimalityWarning",
    "SolverError",
    "TrainingWarning",
    "WiseRegressor",
    "WiseRegressorCV",
    "__version__",
]

# Names that pull in scikit-learn load on first use, so that `import decidewise` stays instant.
_LAZY = dict.fromkeys(
    ("DecisionRegressor", "GeneralizedLinear", "WiseRegressor", "WiseRegressorCV"), "decidewise.models"
)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'decidewise' has no attribute {name!r}")
