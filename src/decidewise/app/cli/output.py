"""What commands print for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import typer


def print_json(found: Any) -> None:
    """Print a result as JSON on standard output; a number that is not finite, which JSON has not, as null."""
    typer.echo(as_json(found, indent=2))


def as_json(found: Any, *, indent: int | None = None) -> str:
    """Return plain values as JSON; paths and dates are text.

    >>> as_json({"regret": float("nan"), "rows": [1, 2]})
    '{"regret": null, "rows": [1, 2]}'
    """
    return json.dumps(_finite(found), indent=indent, ensure_ascii=False, allow_nan=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value
