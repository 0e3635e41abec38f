"""Parts of decidewise that need more than a plain `pip install decidewise` brings."""

from __future__ import annotations

from importlib.util import find_spec

#: The modules that an extra of `pyproject.toml` installs.
EXTRAS = {"cli": ("jinja2", "matplotlib", "msgspec", "pyarrow", "typer")}


def require(extra: str, *, by: str) -> None:
    """Raise an `ImportError` that names the extra unless all of its modules are installed.

    Parameters
    ----------
    extra : str
        A key of `EXTRAS`.
    by : str
        Who needs it; it opens the message.
    """
    missing = [module for module in EXTRAS[extra] if find_spec(module) is None]
    if missing:
        raise ImportError(f'{by} needs {", ".join(missing)}: pip install "decidewise[{extra}]".')
