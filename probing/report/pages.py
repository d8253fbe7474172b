"""Self-contained HTML pages, and their templates, with autoescaping."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from pathlib import Path

import jinja2

from codesyntax_dataset.atomic import write


@dataclass(frozen=True)
class Page:
    """A page about one function, as self-contained HTML. `title`: what it is. Notebooks display it."""

    title: str
    html: str

    def save(self, path: str | os.PathLike) -> Path:
        """Write the page to the file `path`; raises LedgerError if it cannot be written."""
        return write(path, self.html)

    def _repr_html_(self) -> str:
        # a frame keeps the page's styles and script separate from the notebook's
        style = "width: 100%; height: 48rem; border: 0"
        return (
            f'<iframe title="{html.escape(self.title)}" sandbox="allow-scripts" style="{style}" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


def environment() -> jinja2.Environment:
    """The jinja environment that loads the templates."""
    return jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.PackageLoader("probing", "report"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
