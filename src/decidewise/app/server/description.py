"""What the server says of itself, made for the model at hand: OpenAPI for machines, the page at `/` for people."""

from __future__ import annotations

import json
from html import escape
from shlex import quote
from typing import Any

from decidewise.app.server.bodies import ARROW, JSON, Limits
from decidewise.app.server.service import Service

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
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid; border-radius: .4rem; }
td, th { text-align: left; padding: .2rem 1rem .2rem 0; vertical-align: top; }
"""


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
    required = ["names", values]
    if decides:
        properties["predicted_objective"] = _NUMBERS
        required.append("predicted_objective")
    if service.reads_tables:
        properties["rows"] = {"type": "array", "items": {"type": ["number", "string"]}}
        properties["warnings"] = {"type": "array", "items": {"type": "string"}}
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
    rows = "".join(
        f"<tr><td><code>{method.upper()} {escape(path)}</code></td><td>{escape(operation.get('summary', ''))}</td></tr>"
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    )
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>decidewise</title>",
        "<meta name=viewport content='width=device-width'>",
        f"<style>{_STYLE}</style></head><body><h1>decidewise</h1>",
        f"<p>{escape(service.summary.model[:500])}</p><table>{rows}</table>",
        "<p>The description for machines is at <a href=openapi.json>openapi.json</a>.</p>",
        f"<p>A body has at most {limits.max_bytes:,} bytes and {limits.max_rows:,} rows, and must be answered within "
        f"{limits.seconds:g} seconds. It is JSON, or a stream of the Arrow format with a column per name "
        "(<code>application/vnd.apache.arrow.stream</code>); the answer has the form that <code>Accept</code> asks for."
        f"</p><h2>Example</h2><pre>{escape(_example(service, url, token=token))}</pre>",
        f"<h2>Costs</h2><p>{escape(', '.join(service.cost_names))}</p></body></html>",
    ]
    return "".join(parts)


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
