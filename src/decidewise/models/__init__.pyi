# What the package offers; see `decidewise.runtime.lazy`.
from decidewise.models.candidates import default_candidates
from decidewise.models.decision_regressor import DecisionRegressor
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.training.loop import Epoch
from decidewise.models.wise_regressor import WiseRegressor
from decidewise.models.wise_regressor_cv import WiseRegressorCV

__all__ = ["DecisionRegressor", "Epoch", "GeneralizedLinear", "WiseRegressor", "WiseRegressorCV", "default_candidates"]
