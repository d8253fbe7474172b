"""Self-contained HTML pages, and their templates, with autoescaping."""

from __future__ import annotations

import hashlib
import html
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from codesyntax_dataset import safe_files
from codesyntax_dataset.atomic import write
from codesyntax_dataset.errors import LedgerError


@dataclass(frozen=True)
class Page:
    """A page about one function, as self-contained HTML. `title`: what it is. Notebooks display it."""

    title: str
    html: str

    def save(self, path: str | os.PathLike) -> Path:
        """Write the page to the file `path`; raises LedgerError if it cannot be written, or is another file."""
        check_page(path)
        return write(path, self.html)

    def _repr_html_(self) -> str:
        # a frame keeps the page's styles and script separate from the notebook's
        style = "width: 100%; height: 48rem; border: 0"
        return (
            f'<iframe title="{html.escape(self.title)}" sandbox="allow-scripts" style="{style}" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


def check_page(path: str | os.PathLike) -> None:
    """Raise LedgerError for a file that is there and is not a page of ours, which `save` would replace."""
    place = Path(path)
    if not place.is_file() or not place.stat().st_size:
        return
    with safe_files.opened(place) as file:
        ours = b"script-src 'nonce-" in file.read(1000)
    if not ours:
        raise LedgerError(f"{place} is not a page that `codesyntax show` wrote, and would be lost: choose another file")


_CONTROLS = [*range(9), 11, 12, *range(14, 32), *range(127, 160), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF]
_DIRECTIONS = [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]

SHOWN = str.maketrans(dict.fromkeys(map(chr, [*_CONTROLS, *_DIRECTIONS]), "\ufffd"))
"""Replacements for characters that cannot be shown, or that change the order in which a reader sees others."""


def shown(value: Any) -> Any:
    """The texts of any JSON as pages show them."""
    if isinstance(value, str):
        return value.translate(SHOWN)
    if isinstance(value, dict):
        return {shown(name): shown(one) for name, one in value.items()}
    return [shown(one) for one in value] if isinstance(value, (list, tuple)) else value


def fill(template: jinja2.Template, **context: Any) -> str:
    """The page that a template makes, with a nonce that no text in it can know; the same page has the same one."""
    place = secrets.token_hex(16)
    page = template.render(context, nonce=place).translate(SHOWN)
    nonce = hashlib.sha256(page.replace(place, "").encode()).hexdigest()[:32]
    return page.replace(place, nonce)


def environment() -> jinja2.Environment:
    """The jinja environment that loads the templates."""
    templates = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.PackageLoader("probing", "report"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.policies["json.dumps_function"] = lambda value, **options: json.dumps(shown(value), **options)
    return templates
