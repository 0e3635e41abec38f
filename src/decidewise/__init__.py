"""Train on the costs that drive your decisions, with no solver in the training loop.

>>> from decidewise import WiseRegressor, decide, normalized_regret
>>> from decidewise.data import make_shortest_path
>>> train, test = make_shortest_path(1_200, degree=6, seed=0).split(200)
>>> model = WiseRegressor().fit(train.X, train.costs)
>>> regret = normalized_regret(test.problem, model.predict(test.X), test.costs)
>>> decisions = decide(model, test.problem, test.X)

- Models: `WiseRegressor`, `WiseRegressorCV`, `GeneralizedLinear`, `DecisionRegressor`; trees: `SpoTreeRegressor`,
  `SpoForestRegressor`, `DecisionBoostingRegressor`; see `decidewise.models`.
- Raw frames, with text, dates and gaps, as features: `TableFeatures`.
- Problems: `decidewise.problems`, or your own class derived from `Problem`.
- Decisions: `decide`; `predict` for predictions with names.
- Model files: `save_model`, `load_model`, `read_model_summary`; for other runtimes `export_onnx`.
- Which model decides best on a frame, as a table, a figure and a page: `compare_table`.
- How good the decisions are: `normalized_regret` and `compare`, see `decidewise.evaluate`; `diagnose`.
- Losses by name: `decidewise.losses`, or your own class derived from `Loss`; in torch and jax: `decidewise.frontends`.
- Checks of your own problem, loss or model, one line each: `decidewise.testing`.
- Synthetic data with known expected costs: `decidewise.data`. The change of measure: `decidewise.measure`.
- The evidence, in a distribution of its own: `decidewise_bench`.
"""

from decidewise.kit.lazy import import_lazily

__version__ = "0.1.0"

import_lazily(__name__)
