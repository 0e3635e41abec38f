"""Linear and log-linear models as ONNX, so that they run where there is no Python."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

import decidewise
from decidewise.kit.files import write_whole
from decidewise.kit.lazy import require
from decidewise.model_file.summary import ModelSummary
from decidewise.models.linear.deviances import LARGEST_EXPONENT

# Read by all runtimes since 2023; reductions take their axes as inputs from this version on.
_OPERATORS, _FORMAT = 18, 9


def export_onnx(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a linear or log-linear model as ONNX.

    The graph has one input `X` of float64, of shape (n, p) or (n, d, q), and one output `costs`: what `predict`
    returns. Names of features and costs, and whether predictions are directions, are in the metadata.

    Parameters
    ----------
    model : fitted estimator
        A `GeneralizedLinear`, a `DecisionRegressor`, `LinearRegression` or `Ridge`; or any of these in a
        `WiseRegressor` or a `FlooredRegressor`, behind `StandardScaler`s in a pipeline, or averaged. Of a
        `WiseRegressorCV`, the chosen model.
    path : path of the file, by convention `*.onnx`

    Raises
    ------
    TypeError
        If a part of the model is none of these; the message names it.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from decidewise import WiseRegressor
    >>> path = Path(mkdtemp()) / "model.onnx"
    >>> model = WiseRegressor().fit([[0.0], [1.0], [2.0]], [[1.0, 3.0], [2.0, 2.5], [3.0, 2.0]])
    >>> export_onnx(model, path)
    >>> from onnx.reference import ReferenceEvaluator
    >>> [costs] = ReferenceEvaluator(str(path)).run(None, {"X": np.array([[0.5]])})
    >>> bool(np.allclose(costs, model.predict([[0.5]]), rtol=1e-12))
    True
    """
    require("onnx", by="export_onnx")
    from onnx import TensorProto, helper  # noqa: PLC0415

    check_is_fitted(model)
    summary = ModelSummary.of(model, {}, {})
    graph = _Graph(per_item=summary.n_items is not None)
    output = graph.named("Identity", [graph.add(getattr(model, "best_estimator_", model), "X")], "costs")
    shape = ["n", summary.n_items, summary.n_features] if graph.per_item else ["n", summary.n_features]
    made = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "decidewise",
            [helper.make_tensor_value_info("X", TensorProto.DOUBLE, shape)],
            [helper.make_tensor_value_info(output, TensorProto.DOUBLE, None)],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", _OPERATORS)],
        ir_version=_FORMAT,
        producer_name="decidewise",
        producer_version=decidewise.__version__,
    )
    told = {"feature_names": summary.feature_names, "cost_names": summary.cost_names}
    told["predicts_directions"] = summary.predicts_directions  # type: ignore[assignment]
    helper.set_model_props(made, {key: json.dumps(value) for key, value in told.items() if value is not None})
    write_whole({Path(path): made.SerializeToString()})


class _Graph:
    """Nodes and constants of a graph, to which models are added; each adds an output."""

    def __init__(self, *, per_item: bool) -> None:
        self.per_item = per_item
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, model: Any, X: str) -> str:
        """Add the prediction of a model from the features named X; return the name of the prediction."""
        by_class = {
            "GeneralizedLinear": self._linear,
            "DecisionRegressor": self._linear,
            "LinearRegression": self._linear,
            "Ridge": self._linear,
            "WiseRegressor": self._wise,
            "ClippedWise": self._wise,
            "FlooredRegressor": lambda model, X: self.add(model.estimator_, X),
            "Pipeline": self._pipeline,
            "AveragedRegressor": self._average,
            "LiftedItems": self._lifted_items,
        }
        name = type(model).__name__
        if name not in by_class:
            raise TypeError(f"export_onnx holds linear and log-linear models; {name} is none of them. Use save_model.")
        return by_class[name](model, X)

    def named(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add a node with a given name of its output, and return it."""
        from onnx import helper  # noqa: PLC0415

        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def _of(self, operator: str, *inputs: str | npt.ArrayLike, **attributes: Any) -> str:
        """Add a node; inputs are names of earlier outputs, or numbers. Return the name of its output."""
        names = [given if isinstance(given, str) else self._constant(given) for given in inputs]
        return self.named(operator, names, f"{operator}_{len(self.nodes)}", **attributes)

    def _constant(self, values: Any) -> str:
        from onnx import numpy_helper  # noqa: PLC0415

        name = f"constant_{len(self.constants)}"
        array = np.asarray(values, dtype=np.int64 if np.asarray(values).dtype.kind == "i" else np.float64)
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name

    def _linear(self, model: Any, X: str) -> str:
        coefficients = np.asarray(model.coef_)
        if self.per_item and coefficients.ndim == 2:
            products = self._of("ReduceSum", self._of("Mul", X, coefficients), [-1], keepdims=0)
        else:
            products = self._of("MatMul", X, coefficients.T)
        predictor = self._of("Add", products, model.intercept_)
        if getattr(model, "effective_link", getattr(model, "link", "identity")) == "identity":
            return predictor
        return self._of("Exp", self._of("Clip", predictor, -LARGEST_EXPONENT, LARGEST_EXPONENT))

    def _wise(self, model: Any, X: str) -> str:
        lifted = bool(model._lifts)
        costs = self.add(model.estimator_, X)
        if not self.per_item:
            costs = self._of("Reshape", costs, [-1, model.n_outputs_ + lifted])
        if lifted:
            divisor = self._of("Max", self._of("Slice", costs, [-1], [2**31], [1]), model._smallest_lifted)
            costs = self._of("Div", self._of("Slice", costs, [0], [-1], [1]), divisor)
        return costs if model.unit_ == 1 else self._of("Mul", costs, model.unit_)

    def _pipeline(self, model: Any, X: str) -> str:
        for _, step in model.steps[:-1]:
            if type(step).__name__ != "StandardScaler":
                raise TypeError(
                    f"export_onnx holds pipelines of StandardScalers; {type(step).__name__} is none. Use save_model."
                )
            X = self._of("Sub", X, step.mean_) if step.with_mean else X
            X = self._of("Div", X, step.scale_) if step.with_std else X
        return self.add(model.steps[-1][1], X)

    def _average(self, model: Any, X: str) -> str:
        predictions = [self._of("Reshape", self.add(member, X), [-1, model.n_outputs_]) for member in model.estimators_]
        if not model.directions:
            return self._weighted(predictions, model.shares)
        sizes = [self._norms(prediction) for prediction in predictions]
        pairs = zip(predictions, sizes, strict=True)
        directions = [self._of("Div", prediction, self._or_one(size)) for prediction, size in pairs]
        return self._of("Mul", self._weighted(directions, model.shares), self._weighted(sizes, model.shares_of_size))

    def _weighted(self, terms: list[str], shares: npt.ArrayLike) -> str:
        shared = zip(terms, np.asarray(shares).tolist(), strict=True)
        return self._of("Sum", *[self._of("Mul", term, share) for term, share in shared])

    def _norms(self, rows: str) -> str:
        largest = self._or_one(self._of("ReduceMax", self._of("Abs", rows), [1]))
        scaled = self._of("Div", rows, largest)
        return self._of("Mul", self._of("Sqrt", self._of("ReduceSum", self._of("Mul", scaled, scaled), [1])), largest)

    def _or_one(self, sizes: str) -> str:
        return self._of("Where", self._of("Greater", sizes, 0.0), sizes, 1.0)

    def _lifted_items(self, model: Any, X: str) -> str:
        means = self._of("ReduceMean", X, [1], keepdims=0)
        outer, self.per_item = self.per_item, False
        always_one = self._of("Reshape", self.add(model.always_one, means), [-1, 1])
        self.per_item = outer
        return self._of("Concat", self.add(model.items, X), always_one, axis=1)
