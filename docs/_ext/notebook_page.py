"""Write the page of the notebook: its cells with what they show, as they are stored."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

NAME = "tutorial_notebook"
SOURCE = f"https://github.com/decidewise/decidewise/blob/main/docs/{NAME}.ipynb"


def setup(app: Any) -> dict[str, Any]:
    """Write the page once the settings are known, before the site looks for its pages."""
    app.connect("config-inited", lambda app, _: write_page(Path(app.srcdir)), priority=1)
    return {"parallel_read_safe": True}


def write_page(docs: Path) -> None:
    """Write the page of the notebook and its pictures into the folder of generated pages."""
    notebook = json.loads((docs / f"{NAME}.ipynb").read_text(encoding="utf-8"))
    text, pictures = page(notebook)
    (docs / "generated").mkdir(exist_ok=True)
    for name, content in {f"{NAME}.md": text.encode(), **pictures}.items():
        path = docs / "generated" / name
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


def page(notebook: dict[str, Any]) -> tuple[str, dict[str, bytes]]:
    """Return the cells of a notebook and their outputs as Markdown, and its pictures by the name of their file."""
    parts, pictures = [], dict[str, bytes]()
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = {key: "".join(value) for key, value in output.get("data", {}).items()}
            if "image/png" in data:
                name = f"{NAME}_{len(pictures)}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![What {source.splitlines()[-1].rstrip(';')} draws]({name}){{.screenshot}}")
            elif "text/html" in data:
                parts.append(f'```{{raw}} html\n<div class="shown">\n{data["text/html"]}\n</div>\n```')
            else:
                parts.append(f"```text\n{(data.get('text/plain') or ''.join(output['text'])).rstrip()}\n```")
    return "\n\n".join([*parts, f"Run it yourself: [{NAME}.ipynb]({SOURCE}).\n"]), pictures
