"""The languages whose functions are labelled: `LANGUAGES` has a record of each, `CONFIGS` the configs that follow.

A record (`language.Language`) holds every fact about a language; no other module depends on which language it is. Another
language is one more record, made known by `register`.
"""

from __future__ import annotations

from collections.abc import Iterable

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import ArgumentError, UnknownName
from codesyntax_dataset.languages.java import JAVA
from codesyntax_dataset.languages.language import Definition, Language, Relation, Variant
from codesyntax_dataset.languages.python import PYTHON
from codesyntax_dataset.schema import Annotation, Token

__all__ = [
    "CONFIGS",
    "LANGUAGES",
    "Definition",
    "Language",
    "Relation",
    "Variant",
    "annotate",
    "in_order",
    "language_of",
    "register",
    "tokenize",
    "variant_of",
]

LANGUAGES: dict[str, Language] = {}
"""Name -> language, in the order of the paper."""

CONFIGS: dict[str, tuple[str, str]] = {}
"""Dataset config name -> (language, variant)."""


def register(language: Language) -> None:
    """Make a language known to all that is built, probed and reported from now on.

    Raises ArgumentError where the name of the language or of one of its configs is taken.
    """
    for name in (language.name, *language.configs):
        if name in LANGUAGES or name in CONFIGS:
            raise ArgumentError(f"the language {language.name} needs the name {name}, which is taken: choose another")
    LANGUAGES[language.name] = language
    CONFIGS.update({config: (language.name, variant.name) for config, variant in language.configs.items()})


for _language in (PYTHON, JAVA):
    register(_language)


def language_of(config: str) -> Language:
    """The language of a dataset config; raises UnknownName for an unknown one."""
    if config not in CONFIGS:
        raise UnknownName("config", config, CONFIGS)
    return LANGUAGES[CONFIGS[config][0]]


def variant_of(config: str) -> Variant:
    """The variant of the labels that a dataset config has; raises UnknownName for an unknown config."""
    return language_of(config).configs[config]


def in_order(relations: Iterable[str]) -> list[str]:
    """Names of relations in alphabetical order; those that no language has come last."""
    known = {name for language in LANGUAGES.values() for name in language.relation_names}
    return sorted(relations, key=lambda name: (name not in known, name))


@checked
def annotate(code: str, language: str, variant: str | None = None) -> Annotation:
    """The labels of one function, as the published CodeSyntax has them (Shen et al. 2022, section 3).

    `language` is `python`, `java` or another name in `LANGUAGES`; `variant` is one of its variants, the first by default:
    `paper`, `with_new_lines` (line breaks are tokens, too) or `skip_semicolon` (Java: a dependent never ends in `;`).
    Labels depend on the code alone, not on the interpreter.

    Raises ParseError, with line and column, where the code does not parse, and UnknownName for an unknown language or
    variant.

    >>> tokens, edges = annotate("def f(x):\\n    return x.y\\n", "python")
    >>> [token.text for token in tokens][8:12]
    ['return', 'x', '.', 'y']
    >>> edges[-1]
    Edge(relation='Attribute:value->attr', head=9, first=11, last=11)
    """
    found, variant = _found(language, variant)
    return found.annotate(code, variant)


@checked
def tokenize(code: str, language: str, variant: str | None = None) -> list[Token]:
    """The tokens alone, also of code that does not parse; raises ParseError where not even tokens can be told."""
    found, variant = _found(language, variant)
    return found.tokenize(code, variant)


def _found(language: str, variant: str | None) -> tuple[Language, str]:
    """The language of that name, and the variant, its first unless told."""
    if language not in LANGUAGES:
        raise UnknownName("language", language, LANGUAGES)
    names = LANGUAGES[language].variant_names
    if variant is not None and variant not in names:
        raise UnknownName(f"{language} variant", variant, names)
    return LANGUAGES[language], variant or names[0]
