"""From the code of one function to its labels, one module per language."""

from __future__ import annotations

import importlib

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.schema import Annotation, Token, check_names


@checked
def annotate(code: str, language: str, variant: str = "paper") -> Annotation:
    """The labels of one function, as the published CodeSyntax has them (Shen et al. 2022, section 3).

    `language` is `python` or `java`; `variant` is `paper`, `with_new_lines` (line breaks are tokens, too) or
    `skip_semicolon` (Java: a dependent never ends in `;`). Labels depend on the code alone, not on the interpreter.

    Raises ParseError, with line and column, where the code does not parse, and UnknownName for an unknown language or
    variant.

    >>> tokens, edges = annotate("def f(x):\\n    return x.y\\n", "python")
    >>> [token.text for token in tokens][8:12]
    ['return', 'x', '.', 'y']
    >>> edges[-1]
    Edge(relation='Attribute:value->attr', head=9, first=11, last=11)
    """
    return _annotator(language, variant).annotate(code, variant)


@checked
def tokenize(code: str, language: str, variant: str = "paper") -> list[Token]:
    """The tokens alone, also of code that does not parse; raises ParseError where not even tokens can be told."""
    return _annotator(language, variant).tokenize(code, variant)


def _annotator(language: str, variant: str):
    check_names(language, variant)
    return importlib.import_module(f"codesyntax_dataset.languages.{language}.labels")
