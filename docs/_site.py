"""Pages of the site that are kept elsewhere: notebooks of tutorials/ and the benchmarks' report."""

import json
from pathlib import Path

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
    config.nav = [_written_out(entry, files) for entry in config.nav or ()]
    return files


def on_page_markdown(markdown: str, page: object, config: MkDocsConfig, files: Files) -> str:
    """List the notebooks on the page that asks for them."""
    return markdown.replace("<!-- notebooks -->", "\n".join(map(_summary, NOTEBOOKS)))


def _written_out(entry: object, files: Files) -> object:
    """An entry such as `Tutorials: tutorials/` with the folder's pages, its index first."""
    match entry:
        case {**named} if len(named) == 1:
            ((title, folder),) = named.items()
            if isinstance(folder, str) and folder.endswith("/"):
                pages = [f.src_uri for f in files.documentation_pages()]
                found = [p for p in pages if p.startswith(folder)]
                return {title: sorted(found, key=lambda p: (not p.endswith("/index.md"), p))}
    return entry


def _summary(notebook: Path) -> str:
    """A notebook's title, as a link, and its first paragraph."""
    first = "".join(json.loads(notebook.read_text(encoding="utf-8"))["cells"][0]["source"])
    title, paragraph = first.split("\n\n")[:2]
    return f"- **[{title.lstrip('# ')}]({notebook.stem}.md)** {' '.join(paragraph.split())}"
