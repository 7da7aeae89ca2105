"""A page of HTML that needs no other file."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gdpnet import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Dark text on white at any width; a wide table scrolls by itself, on paper it is set smaller.
_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  color: #1b1b1b; background: #fff; max-width: 66rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .6rem; padding-bottom: .25rem;
  border-bottom: 1px solid #d0d0d0; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
p { max-width: 46rem; margin: .5rem 0; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
caption { text-align: left; color: #4a4a4a; padding-bottom: .4rem; }
th, td { text-align: left; padding: .3rem 1rem .3rem 0; vertical-align: top; font-weight: normal; }
thead th { font-weight: 600; border-bottom: 2px solid #1b1b1b; vertical-align: bottom; }
tbody tr { border-bottom: 1px solid #e4e4e4; }
tr.title th { font-weight: 600; padding-top: 1rem; }
table.numbers td, table.numbers thead th + th { text-align: right; }
figure { margin: 1.2rem 0; }
figure img { max-width: 100%; height: auto; }
figcaption { color: #4a4a4a; max-width: 46rem; font-size: .92rem; }
pre { font-size: .85rem; overflow-x: auto; background: #f6f6f6; padding: .8rem 1rem; }
footer { color: #5a5a5a; margin-top: 3rem; font-size: .85rem; }
@media print {
  body { font-size: 10pt; max-width: none; margin: 0; }
  table { font-size: 8pt; }
  .scroll { overflow: visible; }
  figure, tr { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
}
"""


class Page:
    """A page in the making: parts are appended in the order of reading.

    Text is escaped; only `markup` takes markup.

    Args:
        heading: the heading of the page.
        title: what a browser's tab says; the heading where not given.

    Example:
        >>> page = Page("cooling")
        >>> page.section("Sizes")
        >>> page.table(["form", "rows"], [["CNF", "13"]], numbers=True)
        >>> "<td>13</td>" in page.text()
        True
    """

    def __init__(self, heading: str, title: str | None = None) -> None:
        self._heading = heading
        self._title = heading if title is None else title
        self._parts: list[str] = []

    def section(self, title: str, level: int = 2) -> None:
        """Begin a section; level 3 is a section within a section."""
        self._parts.append(f"<h{level}>{html.escape(title)}</h{level}>")

    def paragraph(self, text: str) -> None:
        """Append a paragraph."""
        self._parts.append(f"<p>{html.escape(text)}</p>")

    def table(
        self,
        headers: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        caption: str = "",
        numbers: bool = False,
    ) -> None:
        """Append a table; the first cell of a row names the row.

        Args:
            headers: one for each column.
            rows: cells, as many as headers, or one: a title within the table.
            caption: stands above the table.
            numbers: whether all columns but the first are set to the right.
        """
        self._parts.append(table_markup(headers, rows, caption=caption, numbers=numbers))

    def figure(self, figure: Figure, *, alt: str, caption: str = "") -> None:
        """Append a matplotlib figure.

        It is an image of its own inside the page, because drawings of matplotlib name their parts
        alike, and two in one document would take each other's.

        Args:
            figure: the figure; it is drawn, not closed.
            alt: says in words what is to be seen, for those who do not see it.
            caption: stands below the figure.
        """
        import matplotlib

        buffer = io.BytesIO()
        # Without a date, and with names of parts not drawn by lot, the same figure gives the same
        # page.
        with matplotlib.rc_context({"svg.hashsalt": "gdpnet"}):
            figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
        data = base64.b64encode(buffer.getvalue()).decode("ascii")
        told = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
        self._parts.append(
            f'<figure><img alt="{html.escape(alt)}" src="data:image/svg+xml;base64,{data}">'
            f"{told}</figure>"
        )

    def markup(self, markup: str) -> None:
        """Append markup as it is."""
        self._parts.append(markup)

    def text(self) -> str:
        """The whole page."""
        body = "\n".join(self._parts)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{html.escape(self._title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
            f"<body>\n<main>\n<h1>{html.escape(self._heading)}</h1>\n{body}\n</main>\n"
            f"<footer>gdpnet {html.escape(__version__)}</footer>\n</body>\n</html>\n"
        )

    def write(self, path: Path) -> None:
        """Write the page; its folder is made if there is none."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text(), encoding="utf-8")


def table_markup(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    caption: str = "",
    numbers: bool = False,
) -> str:
    """A table as `Page.table` sets it; a row with a single cell is a title within the table."""
    head = "".join(f'<th scope="col">{html.escape(header)}</th>' for header in headers)
    body = "\n".join(_row(row, len(headers)) for row in rows)
    told = f"<caption>{html.escape(caption)}</caption>\n" if caption else ""
    kind = ' class="numbers"' if numbers else ""
    return (
        f'<div class="scroll" tabindex="0"><table{kind}>\n{told}<thead><tr>{head}</tr></thead>'
        f"\n<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _row(row: Sequence[str], columns: int) -> str:
    first, *rest = row
    if not rest and columns > 1:
        title = html.escape(first)
        return f'<tr class="title"><th scope="colgroup" colspan="{columns}">{title}</th></tr>'
    cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in rest)
    return f'<tr><th scope="row">{html.escape(first)}</th>{cells}</tr>'
