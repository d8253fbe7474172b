"""The relations of a language's first variant: where that is the published labels, exact ones have others, too."""

from __future__ import annotations

import importlib

from codesyntax_dataset.languages import LANGUAGES, Relation
from codesyntax_dataset.languages.variants import EXACT


def published_relations(language: str) -> tuple[Relation, ...]:
    if LANGUAGES[language].variants[0] == EXACT:
        return LANGUAGES[language].relations
    return importlib.import_module(f"codesyntax_dataset.languages.{language}.relations").RELATIONS
