"""The explorer: one page of HTML in which a person drags a prediction and sees what rules do.

| module | what is in it |
|---|---|
| `_page` | `explorer_page`: the page as text, made of the files in `page/` |
| `_model` | the rules as plain data that the page computes with |
| `page/*.js` | linear programs, rules at an input, polytopes, projections, outlines, the page |
| `page/curves.js`, `bent.js`, `rounded.js` | rows that are not linear: nearest points, pictures |
"""

from gdpnet.explore._page import explorer_page

__all__ = ["explorer_page"]
