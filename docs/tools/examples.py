"""Docstrings as mkdocstrings reads them: a section `Example` holds code, as `Examples` does."""

from typing import Any

import griffe


class Examples(griffe.Extension):
    """Renames the sections before they are parsed."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
