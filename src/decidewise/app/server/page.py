"""The page at `/`: what the server offers, for people; it loads nothing from elsewhere."""

from __future__ import annotations

import json
from html import escape
from shlex import quote
from typing import Any

from decidewise.app.server.limits import Limits
from decidewise.app.server.service import Service

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid; border-radius: .4rem; }
td, th { text-align: left; padding: .2rem 1rem .2rem 0; vertical-align: top; }
"""


def page(service: Service, limits: Limits, description: dict[str, Any], url: str, *, token: bool) -> str:
    """Return the page as HTML; its example asks the server at `url`."""
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


def _example(service: Service, url: str, *, token: bool) -> str:
    path = "predict" if service.problem is None else "decide"
    secret = ' -H "Authorization: Bearer $DECIDEWISE_TOKEN"' if token else ""
    return f"curl{secret} -H 'Content-Type: application/json' -d {quote(json.dumps(service.example))} {url}/{path}"
