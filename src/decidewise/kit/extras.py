"""Parts of decidewise that need more than a plain `pip install decidewise` brings."""

from __future__ import annotations

from importlib.util import find_spec

#: The modules that an extra of `pyproject.toml` installs.
EXTRAS = {
    "cli": ("jinja2", "matplotlib", "msgspec", "pyarrow", "typer"),
    "boosting": ("lightgbm",),
    "onnx": ("onnx",),
    "serve": ("fastapi", "uvicorn"),
    "skops": ("skops",),
}


def require(extra: str, *modules: str, by: str) -> None:
    """Raise an `ImportError` that names the extra unless its modules, or those given, are installed.

    Parameters
    ----------
    extra : str
        A key of `EXTRAS`.
    modules : str
        The modules of the extra that are needed; by default all of them.
    by : str
        Who needs it; it opens the message.
    """
    missing = [module for module in modules or EXTRAS[extra] if find_spec(module) is None]
    if missing:
        raise ImportError(f'{by} needs {", ".join(missing)}: pip install "decidewise[{extra}]".')
