"""Pages say what the code says: statuses, public names; and the site builds, from here alone."""

from __future__ import annotations

import re
import subprocess
import sys
from inspect import isclass, ismodule
from pathlib import Path

import pytest

import gdpnet
import gdpnet.nn

ROOT = Path(__file__).parents[2]
FETCHED = re.compile(r'<(?:script|img|iframe|link)[^>]* (?:src|href)="(?:https?:)?//[^"]*')


def read(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("status", list(gdpnet.Status), ids=lambda status: status.name)
def test_concepts_have_the_words_of_each_status(status: gdpnet.Status) -> None:
    assert f"| `{status.name}` | {status.message} |" in read("concepts.md")


def test_every_public_name_is_in_the_api() -> None:
    listed = set(re.findall(r"^(?::::|###) (gdpnet\.\S+)", read("api.md"), re.MULTILINE))
    public = {f"gdpnet.{n}" for n in gdpnet.__all__ if not ismodule(getattr(gdpnet, n))}
    rooms = (gdpnet.nn, gdpnet.plan, gdpnet.plot, gdpnet.proof, gdpnet.solve, gdpnet.derivative)
    for room in rooms:
        public |= {f"{room.__name__}.{name}" for name in room.__all__}
    errors = (n for n, kind in vars(gdpnet.errors).items() if isclass(kind) and n[0] != "_")
    public |= {f"gdpnet.errors.{n}" for n in errors}
    again = {"gdpnet.nn.ProjectionLayer", "gdpnet.errors.GdpnetError"}
    again |= {f"gdpnet.derivative.{n}" for n in gdpnet.derivative.__all__ if n in gdpnet.__all__}
    within = {"gdpnet.solve.backend_of", "gdpnet.derivative.sensitivity_of"}  # for gdpnet itself
    assert public - again - within <= listed


def test_the_site_builds_and_fetches_nothing(tmp_path: Path) -> None:
    for package in ("mkdocs", "material", "mkdocstrings", "nbconvert"):
        pytest.importorskip(package)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    beside = {"benchmarks.html", "peers.html", "changelog.html", "contributing.html"}
    beside |= {"cooling_model.html", "pbmc_model.html"}
    assert {"index.html", "api.html", "paper.html"} | beside <= {page.name for page in pages}
    for page in pages:
        assert not FETCHED.findall(page.read_text(encoding="utf-8")), page


def test_the_server_of_the_page_is_the_one_that_is_tested() -> None:
    app = (ROOT / "tutorials" / "serving" / "app.py").read_text(encoding="utf-8")
    assert f"```py\n{app}```" in read("deploy.md")
