"""What the server computes, without HTTP: predictions and decisions for the rows of a body.

And what it says of itself, made for the model at hand: OpenAPI for machines, the page at `/` for people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from shlex import quote
from typing import Any

import numpy as np

from decidewise.app.pages import render_template
from decidewise.app.server.bodies import ARROW, JSON, Body, Limits
from decidewise.evaluate import check_in_units
from decidewise.kit.checks import FloatArray, as_matrix, nearest_names
from decidewise.kit.errors import InputError, as_input_errors
from decidewise.model_file import ModelSummary
from decidewise.problems import ProblemFile
from decidewise.problems.levels.problem import of_demand

#: What the columns of an example hold, by the kind of feature.
_VALUES = {"numbers": 1.0, "dates": "2026-01-01", "names": "a"}


@dataclass(frozen=True)
class Answer:
    """Predictions (n, d) for the rows of a body, or decisions with their predicted values (n,), the `objective`.

    If the model reads tables, also the keys of the rows, and warnings of what no training row had. Decisions
    that are not proven optimal have a warning, too.
    """

    values: FloatArray
    objective: FloatArray | None = None
    keys: list[Any] | None = None
    warnings: list[str] | None = None


class Service:
    """A model and a problem, applied to bodies; without a problem, there are only predictions.

    The model is one of arrays; or of tables, as `decidewise fit` writes it: then it has `read`, `needed`,
    `predict_samples`, `decide_samples` and `warnings`.
    """

    def __init__(self, model: Any, summary: ModelSummary, problem: ProblemFile | None = None) -> None:
        self.model, self.summary, self.problem = model, summary, problem
        self.reads_tables = hasattr(model, "read") and hasattr(model, "predict_samples")
        self.per_item = summary.n_items is not None and not self.reads_tables
        #: What a model of tables needs: the kinds of its features by name, and the columns of the keys of long tables.
        self.needed: Mapping[str, str] = model.needed if self.reads_tables else {}
        keys = {name: model.options.get(name) for name in ("rows", "items")} if self.reads_tables else {}
        self.keys = keys if all(keys.values()) else {}
        self._check()

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names that rows must have for the model; None if features have no names."""
        if self.reads_tables:
            return tuple(dict.fromkeys([*self.keys.values(), *self.needed]))
        return self.summary.feature_names

    @property
    def cost_names(self) -> tuple[str, ...]:
        """The names of the costs, numbers if there are none."""
        names = self.summary.cost_names or self.summary.item_names
        return names or tuple(map(str, range(self.summary.n_costs or 0)))

    @property
    def example(self) -> dict[str, Any]:
        """A body with one row: one line, or one for each item of a long table."""
        names, summary = self.feature_names, self.summary
        if not names or self.per_item:
            row: list[Any] = [1.0] * (summary.n_features or 1)
            return {"X": [[row] * (summary.n_items or 1) if self.per_item else row]}
        line: dict[str, Any] = {name: _VALUES[self.needed.get(name, "numbers")] for name in names}
        if self.problem is not None:
            line |= {name: 1 for name in self.problem.columns if not set("*?") & set(name)}
        return {"rows": [line | {self.keys["items"]: item} for item in self.cost_names] if self.keys else [line]}

    def predict(self, body: Body) -> Answer:
        """Return the predicted costs of each row; raise a `ValueError` or `TypeError` if the rows do not fit."""
        if self.reads_tables:
            if getattr(self.model, "levels", None) is not None:
                raise InputError("this model predicts what each level costs: ask /decide.")
            samples = self.model.read(self._columns(body), costs=False)
            predicted = as_matrix(self.model.predict_samples(samples), name="the prediction")
            return Answer(predicted, None, _keys(samples), self.model.warnings(samples))
        return Answer(as_matrix(self._predicted(body), name="the prediction"))

    def decide(self, body: Body) -> Answer:
        """Return a decision for each row, and the value that the model predicts for it."""
        assert self.problem is not None  # the application offers decisions only with a problem
        if self.reads_tables:
            samples = self.model.read(self._columns(body), self.problem, costs=False)
            decided = self.model.decide_samples(samples)
            warnings = [*self.model.warnings(samples), *filter(None, [decided.caution])]
            return Answer(decided.decisions, _finite(decided.objective), _keys(samples), warnings)
        problem = self.problem.build(body.columns)
        check_in_units(self.model, problem)
        details = problem.solve_details(problem.as_costs(self._predicted(body), name="the prediction"))
        caution = [details.caution] if details.caution else None
        return Answer(details.decisions, _finite(details.objective), warnings=caution)

    def _check(self) -> None:
        """Raise if the model and the problem do not fit together, before the first request does."""
        if self.problem is None or self.problem.columns:
            return
        problem = self.problem.build()
        if not self.cost_names:
            return
        if (problem.n_items if of_demand(problem) else problem.n_costs) != len(self.cost_names):
            raise InputError(
                f"the model predicts {len(self.cost_names)} costs, and the problem of {self.problem.path} has "
                f"{problem.n_costs}."
            )
        with as_input_errors():
            check_in_units(getattr(self.model, "estimator", self.model) if self.reads_tables else self.model, problem)

    def _predicted(self, body: Body) -> FloatArray:
        prediction = np.asarray(self.model.predict(self._features(body)), dtype=np.float64)
        return prediction.reshape(body.n_rows, -1)

    def _features(self, body: Body) -> Any:
        if body.X is not None:
            if self.per_item and body.X.shape[1] != self.summary.n_items:
                raise InputError(f"each row must have {self.summary.n_items} items; got {body.X.shape[1]}.")
            return body.X
        names = self.summary.feature_names
        if names is None or self.per_item:
            raise InputError('this model has features without names: send them as "X".')
        missing = [name for name in names if name not in body.columns]
        if missing:
            raise InputError(f"not all rows have {missing[0]!r}{nearest_names(missing[0], list(body.columns))}")
        columns = {name: body.columns[name] for name in names}
        if hasattr(self.model, "feature_names_in_") and find_spec("pandas"):
            return import_module("pandas").DataFrame(columns)  # which only a model that was fitted on a frame wants
        for name, column in columns.items():
            if column.dtype.kind not in "fiub":
                row = next((k for k, entry in enumerate(column) if not isinstance(entry, float | int)), 0)
                raise InputError(f"row {row}: {name!r} must be a number.")
        return np.column_stack(list(columns.values()))

    def _columns(self, body: Body) -> dict[str, Any]:
        if body.X is not None:
            raise InputError('this model reads tables: send "rows", a list of objects by name, without "X".')
        return body.columns


def _finite(objective: FloatArray) -> FloatArray:
    if not np.isfinite(objective).all():
        row = int(np.isfinite(objective).argmin())
        raise InputError(f"row {row}: the predicted value of its decision is more than float64 can hold.")
    return objective


def _keys(samples: Any) -> list[Any]:
    # Dates as text themselves: a list has those to the nanosecond as numbers.
    entries = samples.keys if samples.keys.dtype.kind == "M" else samples.keys.tolist()
    return [entry if isinstance(entry, int | float | str) else str(entry) for entry in entries]


#: What each status means, beside 200.
REFUSALS = {
    400: "The body is not valid JSON, or not a valid Arrow stream.",
    401: "The token is missing or wrong.",
    408: "The body did not arrive in time.",
    413: "The body has too many bytes or rows.",
    415: "The body is neither JSON nor Arrow.",
    422: "The rows do not fit the model or the problem, or a row has no solution.",
    503: "The answer took too long, or the server has too much to do.",
}
_NUMBER = {"type": ["number", "boolean"]}
_NUMBERS = {"type": "array", "items": {"type": "number"}}
_ENTRY = {"type": ["number", "string", "boolean", "null"]}


def request_body(service: Service, limits: Limits, *, decides: bool) -> dict[str, Any]:
    """Return the description of the body of `/predict`, or of `/decide`."""
    columns = service.problem.columns if decides and service.problem is not None else ()
    exact = [name for name in columns if not set("*?") & set(name)]
    names = service.feature_names or ()
    rows = {"type": "array", "minItems": 1, "maxItems": limits.max_rows}
    forms = []
    if not service.reads_tables:
        properties: dict[str, Any] = {"X": {**rows, "items": _features(service)}}
        required = ["X"]
        if columns:
            properties["rows"] = {**rows, "items": _record(exact, _ENTRY)}
            required.append("rows")
        forms.append(_object(properties, required))
    if service.reads_tables or (names and not service.per_item):
        entry = _ENTRY if service.reads_tables or hasattr(service.model, "feature_names_in_") else _NUMBER
        record = _record(names, entry, exact)
        forms.append(_object({"rows": {**rows, "items": record}}, ["rows"]))
    schema = forms[0] if len(forms) == 1 else {"oneOf": forms}
    stream = {"type": "string", "format": "binary", "description": "A stream of the Arrow format, one column per name."}
    content = {JSON: {"schema": schema}}
    if names and not service.per_item:
        content[ARROW] = {"schema": stream}
    return {"required": True, "content": content}


def responses(service: Service, *, decides: bool, token: bool) -> dict[int | str, dict[str, Any]]:
    """Return the descriptions of all answers of `/predict`, or of `/decide`."""
    properties: dict[str, Any] = {"names": {"type": "array", "items": {"type": "string"}}}
    values = "decisions" if decides else "costs"
    properties[values] = {"type": "array", "items": _NUMBERS}
    properties["warnings"] = {"type": "array", "items": {"type": "string"}}
    required = ["names", values]
    if decides:
        properties["predicted_objective"] = _NUMBERS
        required.append("predicted_objective")
    if service.reads_tables:
        properties["rows"] = {"type": "array", "items": {"type": ["number", "string"]}}
        required.append("warnings")
    stream = {"schema": {"type": "string", "format": "binary"}}
    found: dict[int | str, dict[str, Any]] = {
        200: {
            "description": "One entry per row.",
            "content": {JSON: {"schema": _object(properties, required)}, ARROW: stream},
        }
    }
    return {**found, **refusals(*(status for status in REFUSALS if token or status != 401))}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the descriptions of refusals, which all have one sentence."""
    sentence = {JSON: {"schema": _object({"error": {"type": "string"}}, ["error"])}}
    return {status: {"description": REFUSALS[status], "content": sentence} for status in statuses}


def page(service: Service, limits: Limits, description: dict[str, Any], url: str, *, token: bool) -> str:
    """Return the page as HTML, which loads nothing from elsewhere; its example asks the server at `url`."""
    return render_template(
        "server.html.j2",
        package="decidewise.app.pages",
        model=service.summary.model[:500],
        operations=[
            (method.upper(), path, operation.get("summary", ""))
            for path, methods in description["paths"].items()
            for method, operation in methods.items()
        ],
        limits=limits,
        example=_example(service, url, token=token),
        cost_names=service.cost_names,
    )


def _features(service: Service) -> dict[str, Any]:
    size = service.summary.n_features
    fixed = {} if size is None else {"minItems": size, "maxItems": size}
    row = {**_NUMBERS, **fixed}
    if not service.per_item:
        return row
    n_items = service.summary.n_items
    return {"type": "array", "items": row, "minItems": n_items, "maxItems": n_items}


def _record(names: Any, entry: dict[str, Any], others: Any = ()) -> dict[str, Any]:
    properties = {**dict.fromkeys(others, _ENTRY), **dict.fromkeys(names, entry)}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": _ENTRY,  # columns that are not needed are ignored
    }


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _example(service: Service, url: str, *, token: bool) -> str:
    path = "predict" if service.problem is None else "decide"
    secret = ' -H "Authorization: Bearer $DECIDEWISE_TOKEN"' if token else ""
    return f"curl{secret} -H 'Content-Type: application/json' -d {quote(json.dumps(service.example))} {url}/{path}"
