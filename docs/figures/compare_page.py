"""Take the picture of the page of `decidewise compare`: `python docs/figures/compare_page.py`, with Chromium.

It runs the two commands of the README, and keeps the page down to its first chart.
"""

import subprocess
import tempfile
from pathlib import Path

from PIL import Image

from decidewise.app.cli.app import app

IMAGE = Path(__file__).parents[1] / "images" / "compare.png"
WIDTH, HEIGHT, SCALE, COLORS = 1000, 1445, 1.2, 256


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page, picture = folder / "compare.html", folder / "page.png"
        app(["init", str(folder / "example")], standalone_mode=False)
        table, problem = (str(folder / "example" / file) for file in ("history.csv", "problem.toml"))
        app(["compare", table, "--problem", problem, "--out", str(page)], standalone_mode=False)
        page.write_text(page.read_text(encoding="utf-8").replace(f"{folder}/", ""), encoding="utf-8")
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
        size = (f"--force-device-scale-factor={SCALE}", f"--window-size={WIDTH},{HEIGHT}")
        subprocess.run(["chromium", *options, *size, f"--screenshot={picture}", page.as_uri()], check=True)
        with Image.open(picture) as image:
            small = image.convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            small.save(IMAGE, optimize=True)


if __name__ == "__main__":
    main()
