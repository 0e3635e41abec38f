# What the package offers; see `decidewise.kit.lazy`.
from decidewise.models.candidate_menu import Candidates
from decidewise.models.candidates import default_candidates
from decidewise.models.decision_regressor import DecisionRegressor
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.learners.averaged import AveragedRegressor
from decidewise.models.learners.given_forecast import GivenForecast
from decidewise.models.learners.scenarios import DemandRegressor, NearestScenarios, ResidualScenarios
from decidewise.models.learners.smooth_features import SmoothFeatures
from decidewise.models.learners.wrappers import ClippedWise, CorrectedRegressor, FlooredRegressor
from decidewise.models.selection.families import family_shares
from decidewise.models.selection.row_folds import RowFolds
from decidewise.models.selection.time_folds import BlockFolds, TimeFolds
from decidewise.models.training.loop import Epoch
from decidewise.models.trees.decision_boosting import DecisionBoostingRegressor
from decidewise.models.trees.spo_trees import SpoForestRegressor, SpoTreeRegressor
from decidewise.models.wise_regressor import WiseRegressor
from decidewise.models.wise_regressor_cv import WiseRegressorCV

__all__ = [
    "AveragedRegressor",
    "BlockFolds",
    "Candidates",
    "ClippedWise",
    "CorrectedRegressor",
    "DecisionBoostingRegressor",
    "DecisionRegressor",
    "DemandRegressor",
    "Epoch",
    "FlooredRegressor",
    "GeneralizedLinear",
    "GivenForecast",
    "NearestScenarios",
    "ResidualScenarios",
    "RowFolds",
    "SmoothFeatures",
    "SpoForestRegressor",
    "SpoTreeRegressor",
    "TimeFolds",
    "WiseRegressor",
    "WiseRegressorCV",
    "default_candidates",
    "family_shares",
]
