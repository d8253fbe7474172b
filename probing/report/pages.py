"""The templates of HTML pages, with autoescaping."""

from __future__ import annotations

import jinja2


def environment() -> jinja2.Environment:
    """The jinja environment that loads the templates."""
    return jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.PackageLoader("probing", "report"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
