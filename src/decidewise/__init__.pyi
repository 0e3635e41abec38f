# What the package offers; see `decidewise.runtime.lazy`.
from decidewise import data, evaluate, experiments, frontends, losses, measure, models, problems, report, testing
from decidewise.decide import decide
from decidewise.diagnose import diagnose
from decidewise.errors import (
    CalibrationWarning,
    DivergenceError,
    InputError,
    OptimalityWarning,
    SolverError,
    TrainingWarning,
)
from decidewise.evaluate import compare, normalized_regret
from decidewise.losses import Loss
from decidewise.model_file import ModelSummary, export_onnx, load_model, read_model_summary, save_model
from decidewise.models import DecisionRegressor, GeneralizedLinear, WiseRegressor, WiseRegressorCV
from decidewise.problems import Problem

__version__: str
__all__ = [
    "CalibrationWarning",
    "DecisionRegressor",
    "DivergenceError",
    "GeneralizedLinear",
    "InputError",
    "Loss",
    "ModelSummary",
    "OptimalityWarning",
    "Problem",
    "SolverError",
    "TrainingWarning",
    "WiseRegressor",
    "WiseRegressorCV",
    "__version__",
    "compare",
    "data",
    "decide",
    "diagnose",
    "evaluate",
    "experiments",
    "export_onnx",
    "frontends",
    "load_model",
    "losses",
    "measure",
    "models",
    "normalized_regret",
    "problems",
    "read_model_summary",
    "report",
    "save_model",
    "testing",
]
