"""The languages whose syntax is labelled: `LANGUAGES` holds one record per language, `CONFIGS`
their configs.

A record (`language.Language`) holds every fact about a language; no other module depends on a
particular language. To add a language, `register` another record.
"""

from __future__ import annotations

from collections.abc import Iterable

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import ArgumentError, ParseError, UnknownName
from codesyntax_dataset.languages.go import GO
from codesyntax_dataset.languages.java import JAVA
from codesyntax_dataset.languages.javascript import JAVASCRIPT
from codesyntax_dataset.languages.language import Definition, Language, Relation, Variant
from codesyntax_dataset.languages.natural import ENGLISH, GERMAN, UD
from codesyntax_dataset.languages.php import PHP
from codesyntax_dataset.languages.python import PYTHON
from codesyntax_dataset.languages.ruby import RUBY
from codesyntax_dataset.languages.rust import RUST
from codesyntax_dataset.languages.typescript import TYPESCRIPT
from codesyntax_dataset.safe_files import LONGEST_FUNCTION
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
    "unedited",
    "variant_of",
]

LANGUAGES: dict[str, Language] = {}
"""Name -> language, in the order of the paper."""

CONFIGS: dict[str, tuple[str, str]] = {}
"""Dataset config name -> (language, variant)."""


def register(language: Language) -> None:
    """Add a language, so that it can be built, probed and reported.

    Raises ArgumentError if the name of the language or of one of its configs is taken.
    """
    for name in (language.name, *language.configs):
        if name in LANGUAGES or name in CONFIGS:
            raise ArgumentError(
                f"the language {language.name} needs the name {name}, which is taken: choose another"
            )
    LANGUAGES[language.name] = language
    CONFIGS.update(
        {config: (language.name, variant.name) for config, variant in language.configs.items()}
    )


for _language in (PYTHON, JAVA, JAVASCRIPT, TYPESCRIPT, GO, PHP, RUBY, RUST, ENGLISH, GERMAN, UD):
    register(_language)


def language_of(config: str) -> Language:
    """The language of a dataset config; raises UnknownName for an unknown one."""
    if config not in CONFIGS:
        raise UnknownName("config", config, CONFIGS)
    return LANGUAGES[CONFIGS[config][0]]


def variant_of(config: str) -> Variant:
    """The label variant of a dataset config; raises UnknownName for an unknown config."""
    return language_of(config).configs[config]


def unedited() -> list[str]:
    """The configs whose rows are functions as in their source."""
    return [
        config
        for config in CONFIGS
        if variant_of(config).edit is None and not variant_of(config).pairs
    ]


def in_order(relations: Iterable[str]) -> list[str]:
    """Sort names of relations alphabetically, with those of no language last."""

    def known(name: str) -> bool:
        return any(language.has_relation(name) for language in LANGUAGES.values())

    return sorted(relations, key=lambda name: (not known(name), name))


@checked
def annotate(code: str, language: str, variant: str | None = None) -> Annotation:
    """The labels of one function, as in the published CodeSyntax (Shen et al. 2022, section 3).
    They depend only on the code, not on the interpreter.

    Args:
        code: the text of the function.
        language: `python`, `java` or another name in `LANGUAGES`, or a config such as `java_exact`.
        variant: one of its variants, by default the first: `paper`, `with_new_lines` (line breaks
            are tokens, too) or `skip_semicolon` (Java: no dependent ends in `;`).

    Returns:
        Its tokens, with character offsets, and its edges, with token indices; both from 0.

    Raises:
        ParseError: code that does not parse; it has line and column.
        ArgumentError: a language whose labels come with treebanks.
        UnknownName: an unknown language or variant.

    Examples:
        >>> from codesyntax_dataset import annotate
        >>> tokens, edges = annotate("def f(x):\\n    return x.y\\n", "python")
        >>> [token.text for token in tokens][8:12]
        ['return', 'x', '.', 'y']
        >>> edges[-1]
        Edge(relation='Attribute:value->attr', head=9, first=11, last=11)
    """
    record, variant = _known(language, variant)
    if record.annotate is None:
        raise _of_treebanks(record)
    _check_length(code)
    return record.annotate(code, variant)


@checked
def tokenize(code: str, language: str, variant: str | None = None) -> list[Token]:
    """Only the tokens, also of code that does not parse.

    Args:
        code: the text.
        language: `python`, `java` or another name in `LANGUAGES`, or a config such as `java_exact`.
        variant: one of its variants, by default the first: `paper`, `with_new_lines` (line breaks
            are tokens, too) or `skip_semicolon` (Java: no dependent ends in `;`).

    Returns:
        The tokens, with character offsets from 0.

    Raises:
        ParseError: code that cannot be tokenized.
        ArgumentError: a language whose labels come with treebanks.
        UnknownName: an unknown language or variant.

    Examples:
        >>> from codesyntax_dataset import tokenize
        >>> [token.text for token in tokenize("if x y", "python")][:3]
        ['if', 'x', 'y']
    """
    record, variant = _known(language, variant)
    if record.tokenize is None:
        raise _of_treebanks(record)
    _check_length(code)
    return record.tokenize(code, variant)


def _check_length(code: str) -> None:
    if len(code) > LONGEST_FUNCTION:
        raise ParseError(f"longer than {LONGEST_FUNCTION:,} characters", 1, 0)


def _of_treebanks(language: Language) -> ArgumentError:
    others = ", ".join(name for name, record in LANGUAGES.items() if not record.of_treebanks)
    return ArgumentError(
        f"people label {language.title} in treebanks, and no rules do: build a dataset from a treebank, or give a "
        f"text in {others}"
    )


def _known(language: str, variant: str | None) -> tuple[Language, str]:
    """The language of that name, and its variant, by default the first; or those of a config."""
    if variant is None and language not in LANGUAGES and language in unedited():
        language, variant = CONFIGS[language]
    if language not in LANGUAGES:
        raise UnknownName("language", language, LANGUAGES)
    names = LANGUAGES[language].variant_names
    if variant is not None and variant not in names:
        raise UnknownName(f"{language} variant", variant, names)
    return LANGUAGES[language], variant or names[0]
