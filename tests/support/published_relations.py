"""The relations of the published labels: exact ones have others, too."""

from __future__ import annotations

import importlib

from codesyntax_dataset.languages import Relation


def published_relations(language: str) -> tuple[Relation, ...]:
    return importlib.import_module(f"codesyntax_dataset.languages.{language}.relations").RELATIONS
