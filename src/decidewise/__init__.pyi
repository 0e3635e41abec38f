# What the package offers; see `decidewise.kit.lazy`.
from decidewise import (
    data,
    evaluate,
    frontends,
    losses,
    measure,
    models,
    problems,
    testing,
)
from decidewise.evaluate import compare, normalized_regret
from decidewise.kit.errors import (
    CalibrationWarning,
    DivergenceError,
    FeasibilityWarning,
    InfeasibleError,
    InputError,
    OptimalityWarning,
    SolverError,
    TrainingWarning,
)
from decidewise.losses import Loss
from decidewise.model_file import ModelSummary, export_onnx, load_model, read_model_summary, save_model
from decidewise.models import (
    DecisionBoostingRegressor,
    DecisionRegressor,
    GeneralizedLinear,
    SpoForestRegressor,
    SpoTreeRegressor,
    WiseRegressor,
    WiseRegressorCV,
)
from decidewise.operate import choose_files, decide, decide_files, diagnose, distributed, evaluate_files
from decidewise.problems import Problem

__version__: str
__all__ = [
    "CalibrationWarning",
    "DecisionBoostingRegressor",
    "DecisionRegressor",
    "DivergenceError",
    "FeasibilityWarning",
    "GeneralizedLinear",
    "InfeasibleError",
    "InputError",
    "Loss",
    "ModelSummary",
    "OptimalityWarning",
    "Problem",
    "SolverError",
    "SpoForestRegressor",
    "SpoTreeRegressor",
    "TrainingWarning",
    "WiseRegressor",
    "WiseRegressorCV",
    "__version__",
    "choose_files",
    "compare",
    "data",
    "decide",
    "decide_files",
    "diagnose",
    "distributed",
    "evaluate",
    "evaluate_files",
    "export_onnx",
    "frontends",
    "load_model",
    "losses",
    "measure",
    "models",
    "normalized_regret",
    "problems",
    "read_model_summary",
    "save_model",
    "testing",
]
