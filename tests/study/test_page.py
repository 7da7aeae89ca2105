"""Pages of HTML: text is escaped, tables can be read aloud, nothing is loaded from elsewhere."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

from matplotlib.figure import Figure

from gdpnet.study.page import Page

_VOID = {"meta", "img"}


class _Balance(HTMLParser):
    """Notes whether every tag that is opened is closed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page() -> Page:
    figure = Figure()
    figure.subplots().plot([0, 1])
    page = Page("a <b> & c")
    page.section("one < two")
    page.paragraph("3 > 2")
    page.table(["", "x"], [["first", "<1>"], ["a title"], ["second", "2"]], caption="c & d")
    page.figure(figure, alt='a "line"', caption="up & up")
    page.markup("<em>as it is</em>")
    return page


def test_text_is_escaped_and_tags_are_closed() -> None:
    text = page().text()
    parser = _Balance()
    parser.feed(text)
    assert not parser.open
    for part in (
        "<title>a &lt;b&gt; &amp; c</title>",
        "<h2>one &lt; two</h2>",
        "<p>3 &gt; 2</p>",
        "<td>&lt;1&gt;</td>",
        "<caption>c &amp; d</caption>",
        'alt="a &quot;line&quot;"',
        "<em>as it is</em>",
        '<html lang="en">',
    ):
        assert part in text


def test_tables_name_their_rows_and_columns() -> None:
    text = page().text()
    assert '<th scope="row">first</th>' in text
    assert '<th scope="col">x</th>' in text
    assert '<th scope="colgroup" colspan="2">a title</th>' in text


def test_figures_are_inside() -> None:
    text = page().text()
    (data,) = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", text)
    assert b"<svg" in base64.b64decode(data)
    assert "http" not in text


def test_write_makes_the_folder(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "page.html"
    made = page()
    made.write(file)
    assert file.read_text(encoding="utf-8") == made.text()
