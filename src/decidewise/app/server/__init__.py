"""A small server: features in, predicted costs or decisions out, over HTTP as JSON or Arrow.

`create_app` is an ASGI application for any server; `serve` runs it with uvicorn, which is what `decidewise serve` does.
"""

from decidewise.kit.lazy import require

require("serve", by=__name__)
require("cli", "jinja2", "msgspec", "pyarrow", by=__name__)

from decidewise.app.server.app import create_app, serve  # noqa: E402
from decidewise.app.server.bodies import Limits  # noqa: E402

__all__ = ["Limits", "create_app", "serve"]
