"""The templates of our pages: whatever they show is escaped."""

from __future__ import annotations

import jinja2


def environment() -> jinja2.Environment:
    """Where the templates are, and how they are read."""
    return jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.PackageLoader("probing", "report"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
