"""Fill the pages' tables and numbers from benchmarks/results.

    python benchmarks/fill.py [--check] [--show NAME [--results FOLDER]]

A table stands in a page between `<!-- bench NAME -->` and `<!-- /bench -->`, a number or a few
words between `<!-- = NAME -->` and `<!-- /= -->` in one line. `<!-- bench stamp NAME NAME ... -->`
tells where the tables of these names come from. What the names show is in `tables/`. `--check`
changes nothing, tells where a page and the data differ, and exits with 1 if one does. `--show`
prints the tables of a benchmark, also of a run that was not published.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from _results import PUBLISHED, ROOT
from tables import TABLES, VALUES, NotMeasuredError, Stored, stamps

BLOCK = re.compile(r"<!-- bench (.+?) -->\n(.*?)<!-- /bench -->", re.DOTALL)
INLINE = re.compile(r"<!-- = (.+?) -->(.*?)<!-- /= -->")
# There a page's reader would take the comment for a block of its own and end the paragraph.
AT_LINE_START = re.compile(r"^ {0,3}<!-- /?=.*", re.MULTILINE)
MARKS = re.compile(r"<!-- (?:/?bench\b|/?=).*?-->")


def filled(page: str, stored: Stored) -> str:
    """A page with all its blocks and numbers made anew.

    Raises:
        ValueError: If a mark has no partner, a name is not known, or a line begins with a number.
    """
    if AT_LINE_START.search(page):
        raise ValueError(f"a line begins with a mark: {AT_LINE_START.search(page)[0]}")
    page, blocks = BLOCK.subn(lambda m: _block(m[1], stored), page)
    page, values = INLINE.subn(lambda m: _inline(m[1], stored), page)
    if len(MARKS.findall(page)) != 2 * (blocks + values):
        raise ValueError("a mark has no partner, or an inline one is broken over lines")
    return page


def _block(name: str, stored: Stored) -> str:
    try:
        if name.startswith("stamp "):
            lines = stamps(stored, name.split()[1:])
        elif name in TABLES:
            lines = TABLES[name](stored)
        else:
            raise ValueError(f"no table is called {name!r}")
    except NotMeasuredError as missing:
        lines = [f"*Not measured yet: `{missing}` is missing.*"]
    return "\n".join([f"<!-- bench {name} -->", *lines, "<!-- /bench -->"])


def _inline(name: str, stored: Stored) -> str:
    if name not in VALUES:
        raise ValueError(f"no value is called {name!r}")
    try:
        value = VALUES[name](stored)
    except NotMeasuredError:
        value = "(not measured)"
    return f"<!-- = {name} -->{value}<!-- /= -->"


def pages() -> Iterator[Path]:
    """The pages that have marks."""
    folders = (*(ROOT / "docs").rglob("*.md"), *(ROOT / "models").rglob("*.md"))
    for path in (ROOT / "README.md", ROOT / "benchmarks/README.md", *folders):
        if MARKS.search(path.read_text(encoding="utf-8")):
            yield path


def wanted(folder: Path = PUBLISHED) -> dict[Path, str]:
    """Every page that has marks or is made whole, as it should be."""
    from peers import report

    stored = Stored(folder)
    found = {}
    for path in pages():
        try:
            found[path] = filled(path.read_text(encoding="utf-8"), stored)
        except ValueError as error:
            raise ValueError(f"{path.relative_to(ROOT)}: {error}") from error
    return found | {folder / "peers.md": report.page(folder)}


def differences(folder: Path = PUBLISHED) -> list[str]:
    """Where pages and data differ, as lines of a diff."""
    found = []
    for path, text in wanted(folder).items():
        is_there = path.read_text(encoding="utf-8") if path.exists() else ""
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
        lines = is_there.splitlines(), text.splitlines()
        found += difflib.unified_diff(*lines, name, f"{name}, as the data say", n=0, lineterm="")
    return found


def show(benchmark: str, folder: Path = PUBLISHED) -> None:
    """Print the tables of a benchmark."""
    stored = Stored(folder)
    for name, made in TABLES.items():
        if name.split(".")[0] == benchmark:
            try:
                print("\n".join(["", f"{name}:", "", *made(stored)]))
            except NotMeasuredError as missing:
                print(f"\n{name}: {missing} is missing")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="tell what differs, change nothing")
    parser.add_argument("--show", metavar="NAME", help="print the tables of a benchmark")
    parser.add_argument("--results", type=Path, default=PUBLISHED, help="where --show looks")
    arguments = parser.parse_args()
    if arguments.show:
        show(arguments.show, arguments.results)
        return 0
    if arguments.check:
        found = differences()
        print("\n".join(found) or "pages show what is stored")
        return bool(found)
    for path, text in wanted().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"filled {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
