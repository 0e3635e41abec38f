# What the package offers; see `decidewise.runtime.lazy`.
from decidewise import (
    data,
    distributed,
    evaluate,
    frontends,
    losses,
    measure,
    models,
    problems,
    testing,
)
from decidewise.choose_files import choose_files
from decidewise.decide import decide
from decidewise.decide_files import decide_files, evaluate_files
from decidewise.diagnose import diagnose
from decidewise.errors import (
    CalibrationWarning,
    DivergenceError,
    FeasibilityWarning,
    InfeasibleError,
    InputError,
    OptimalityWarning,
    SolverError,
    TrainingWarning,
)
from decidewise.evaluate import compare, normalized_regret
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
