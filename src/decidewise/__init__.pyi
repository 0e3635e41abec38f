# What the package offers; see `decidewise.kit.lazy`.
from decidewise import (
    data,
    evaluate,
    frontends,
    losses,
    measure,
    models,
    operate,
    problems,
    testing,
)
from decidewise.app.tables.compare_table import compare_table
from decidewise.app.tables.features import TableFeatures
from decidewise.evaluate import compare, normalized_regret
from decidewise.kit.errors import (
    CalibrationWarning,
    DivergenceError,
    FeasibilityWarning,
    InfeasibleError,
    InputError,
    NotForProblemError,
    OptimalityWarning,
    OtherCodeError,
    SolveLimitReached,
    SolverError,
    TimeLimitReached,
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
from decidewise.operate import decide, decide_files, diagnose, evaluate_files, predict
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
    "NotForProblemError",
    "OptimalityWarning",
    "OtherCodeError",
    "Problem",
    "SolveLimitReached",
    "SolverError",
    "SpoForestRegressor",
    "SpoTreeRegressor",
    "TableFeatures",
    "TimeLimitReached",
    "TrainingWarning",
    "WiseRegressor",
    "WiseRegressorCV",
    "__version__",
    "compare",
    "compare_table",
    "data",
    "decide",
    "decide_files",
    "diagnose",
    "evaluate",
    "evaluate_files",
    "export_onnx",
    "frontends",
    "load_model",
    "losses",
    "measure",
    "models",
    "normalized_regret",
    "operate",
    "predict",
    "problems",
    "read_model_summary",
    "save_model",
    "testing",
]
