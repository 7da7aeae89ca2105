"""Draws docs/pictures/explorer.png: the page that `gdpnet explore` writes, in Chromium.

Run from the top of the repository: PYTHONPATH=. python docs/tools/explorer.py
"""

import json
import tempfile
from pathlib import Path
from urllib.parse import quote

from gdpnet.explore import explorer_page
from gdpnet.study import load_model
from tests.explore._chromium import Page

ROOT = Path(__file__).resolve().parents[2]
STATE = {
    "x": [35.9, 70.0, 0.69, 0.39, 0.0, 0.0, 0.0],  # Ta, H, w, price, dr, mf, mc
    "y": [0.5, 0.15, 0.2],
    "relaxation": "cnf",
}


def main() -> None:
    rules = load_model(ROOT / "models" / "cooling").build()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cooling.html"
        file.write_text(explorer_page(rules, "cooling"), encoding="utf-8")
        page = Page(Path(folder) / "profile")
        page.open(f"{file.as_uri()}#{quote(json.dumps(STATE))}")
        page.screenshot(ROOT / "docs" / "pictures" / "explorer.png", 1200, 1130)
        page.close()


if __name__ == "__main__":
    main()
