"""What the site needs besides docs/: pages that are kept elsewhere, and links that lead there.

A link in a page or notebook is written as in the repository, where it works too. Here it is led to
the page that shows the file; a file that has no page is named instead.
"""

import json
import re
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "tutorials").glob("*.ipynb"))
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")

RESULTS = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("studies/*/results.csv"))]

# Pages that lie beside what they tell of, and where the site shows them.
BESIDE = {
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/results/peers.md": "peers.md",
    "models/cooling/README.md": "studies/cooling_model.md",
    "models/pbmc/README.md": "studies/pbmc_model.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}

# Files of the repository and where the site shows them; those of docs/ are their own.
ELSEWHERE = (
    BESIDE
    | {f"tutorials/{notebook.name}": f"tutorials/{notebook.stem}.md" for notebook in NOTEBOOKS}
    | {results: results for results in RESULTS}
)
KEPT_AT = {page: path for path, page in ELSEWHERE.items()}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and write out the folders that `nav` names."""
    for name, page in BESIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    for picture in sorted((ROOT / "benchmarks/results").glob("*.png")):
        name = f"results/{picture.name}"
        files.append(File.generated(config, name, content=picture.read_bytes()))
    for name in RESULTS:
        files.append(File.generated(config, name, content=(ROOT / name).read_bytes()))
    for notebook in NOTEBOOKS:
        text, found = MarkdownExporter().from_filename(
            notebook, resources={"unique_key": notebook.stem}
        )
        text = _with_named_pictures(text)
        files.append(File.generated(config, f"tutorials/{notebook.stem}.md", content=text))
        for name, drawn in found["outputs"].items():
            files.append(File.generated(config, f"tutorials/{name}", content=drawn))
    entries = [_written_out(entry, files) for entry in config.nav or ()]
    config.nav = [entry for entry in entries if entry]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to pages, and list the notebooks on the page that asks for them."""
    here = page.file.src_uri
    folder = Path(KEPT_AT.get(here, f"docs/{here}")).parent.as_posix()

    def led(link: re.Match[str]) -> str:
        text, target, anchor = link.group(1), normpath(f"{folder}/{link.group(2)}"), link.group(3)
        shown = ELSEWHERE.get(target, target.removeprefix("docs/"))
        if target in ELSEWHERE or target.startswith("docs/"):
            return f"[{text}]({relpath(shown, Path(here).parent.as_posix())}{anchor or ''})"
        if (ROOT / target).exists():
            return text if target in text else f"{text} (`{target}`)"
        return link.group()  # leads nowhere: mkdocs tells

    summaries = "\n".join(map(_summary, NOTEBOOKS))
    return LINK.sub(led, markdown).replace("<!-- notebooks -->", summaries)


def _written_out(entry: dict[str, Any], files: Files) -> dict[str, Any] | None:
    """An entry such as `Tutorials: tutorials/` with the folder's pages, its index first."""
    ((title, folder),) = entry.items()
    if not isinstance(folder, str) or not folder.endswith("/"):
        return entry
    pages = [page.src_uri for page in files.documentation_pages()]
    pages = [page for page in pages if page.startswith(folder)]
    pages.sort(key=lambda page: (not page.endswith("/index.md"), page))
    return {title: pages} if pages else None


def _with_named_pictures(page: str) -> str:
    """Pictures of a notebook are called "png": call them by the heading that they stand under."""
    heading, in_code, lines = "", False, []
    for line in page.split("\n"):
        if line.startswith("```"):
            in_code = not in_code
        elif line.startswith("#") and not in_code:
            heading = line.lstrip("# ").replace("`", "")
        lines.append(line if in_code else line.replace("![png](", f"![Picture: {heading}]("))
    return "\n".join(lines)


def _summary(notebook: Path) -> str:
    """A notebook's title, as a link, and its first paragraph."""
    first = "".join(json.loads(notebook.read_text(encoding="utf-8"))["cells"][0]["source"])
    title, paragraph = first.split("\n\n")[:2]
    return f"- **[{title.lstrip('# ')}]({notebook.stem}.md)** {' '.join(paragraph.split())}"
