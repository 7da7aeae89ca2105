"""Pages of the site that are kept elsewhere: notebooks of tutorials/ and the benchmarks' report."""

import json
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "tutorials").glob("*.ipynb"))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and write out the folders that `nav` names."""
    report = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    files.append(
        File.generated(config, "benchmarks.md", content=report.replace("](../docs/", "]("))
    )
    for notebook in NOTEBOOKS:
        text, found = MarkdownExporter().from_filename(
            notebook, resources={"unique_key": notebook.stem}
        )
        files.append(File.generated(config, f"tutorials/{notebook.stem}.md", content=text))
        for name, picture in found["outputs"].items():
            files.append(File.generated(config, f"tutorials/{name}", content=picture))
    entries = [_written_out(entry, files) for entry in config.nav or ()]
    config.nav = [entry for entry in entries if entry]
    return files


def on_page_markdown(markdown: str, page: object, config: MkDocsConfig, files: Files) -> str:
    """List the notebooks on the page that asks for them."""
    return markdown.replace("<!-- notebooks -->", "\n".join(map(_summary, NOTEBOOKS)))


def _written_out(entry: dict[str, Any], files: Files) -> dict[str, Any] | None:
    """An entry such as `Tutorials: tutorials/` with the folder's pages, its index first."""
    ((title, folder),) = entry.items()
    if not isinstance(folder, str) or not folder.endswith("/"):
        return entry
    pages = [page.src_uri for page in files.documentation_pages()]
    pages = [page for page in pages if page.startswith(folder)]
    pages.sort(key=lambda page: (not page.endswith("/index.md"), page))
    return {title: pages} if pages else None


def _summary(notebook: Path) -> str:
    """A notebook's title, as a link, and its first paragraph."""
    first = "".join(json.loads(notebook.read_text(encoding="utf-8"))["cells"][0]["source"])
    title, paragraph = first.split("\n\n")[:2]
    return f"- **[{title.lstrip('# ')}]({notebook.stem}.md)** {' '.join(paragraph.split())}"
