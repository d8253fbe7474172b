"""The skeleton of a further language: a module with an empty table, and a golden pair that fails,
with what to do."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import tree_sitter

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.atomic import write
from codesyntax_dataset.errors import ArgumentError
from codesyntax_dataset.languages import CONFIGS, LANGUAGES

_MODULE = '''"""{title} by the table of its exact labels."""

from __future__ import annotations

from codesyntax_dataset.languages.tables.record import language_by
from codesyntax_dataset.languages.tables.table import Rule, Table

TABLE = Table(
    grammar="{grammar}",
    rules=(),
    examples={{}},
)

{constant} = language_by(
    TABLE,
    name="{name}",
    title="{title}",
    suffixes=("{suffix}",),
)
'''

_GOLDEN = """{title} has no rules yet. CONTRIBUTING.md, "Add a language", has all steps. Until a first test passes:

1. Register {constant} of codesyntax_dataset/languages/{name}.py in codesyntax_dataset/languages/__init__.py, TABLE in
   TABLES of tests/dataset/test_labels_exact.py, and the grammar in pyproject.toml and constraints.txt.
2. Put a function into a file: python tests/support/labels/syntax_tree.py {name} FILE prints its tree.
3. Give TABLE one Rule after the other, each with an example.
4. Print a golden pair: python tests/support/labels/golden_pairs.py {name} FILE. Read it by eye, and put it here.

=== code

=== exact
tests/golden/{name}/next.txt says what is next

none
"""


@checked
def new_language(
    name: str, grammar: str, suffix: str, *, title: str | None = None, checkout: str | Path = "."
) -> tuple[Path, Path]:
    """Write a module of `codesyntax_dataset/languages` and a golden pair for a language into a
    checkout; return both.

    `grammar` is the installed package of its tree-sitter grammar, or `package.function` for one of
    several; `suffix` ends the names of its files, such as `.rs`; `title` is its name in texts, by
    default `name` with a capital letter.

    Raises ArgumentError for a name that is taken or not a lowercase word, a suffix without a full
    stop, a grammar that is not installed, or a folder that is not a checkout of the repository.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*", name):
        raise ArgumentError(
            f"the name {name!r} is not a word of lowercase letters and digits, such as rust"
        )
    if not re.fullmatch(r"\.\w+", suffix):
        raise ArgumentError(f"the suffix {suffix!r} is not what file names end in, such as .rs")
    root = Path(checkout)
    languages, golden = root / "codesyntax_dataset" / "languages", root / "tests" / "golden" / name
    if not (languages / "tables" / "table.py").is_file():
        raise ArgumentError(
            f"{root} is not a checkout of the repository: go to its root, or give it with --checkout"
        )
    module, pair = languages / f"{name}.py", golden / "next.txt"
    taken = [str(path) for path in (module, languages / name, golden) if path.exists()]
    if taken or name in LANGUAGES or name in CONFIGS:
        raise ArgumentError(
            f"the name {name} is taken{' by ' if taken else ''}{', '.join(taken)}: choose another"
        )
    _check_grammar(grammar)
    facts = {"name": name, "constant": name.upper(), "title": title or name.capitalize()}
    write(module, _MODULE.format(grammar=grammar, suffix=suffix, **facts))
    write(pair, _GOLDEN.format(**facts))
    return module, pair


def _check_grammar(grammar: str) -> None:
    package, _, function = grammar.partition(".")
    try:
        module = importlib.import_module(package)
    except ImportError as error:
        raise ArgumentError(
            f"no package {package}: pip install {package.replace('_', '-')}"
        ) from error
    try:
        tree_sitter.Language(getattr(module, function or "language")())
    except (AttributeError, TypeError, ValueError) as error:
        several = [
            f"{package}.{attribute}"
            for attribute in dir(module)
            if attribute.startswith("language_")
        ]
        hint = (
            f"give one of {', '.join(several)}"
            if several
            else "its package has none that this tree-sitter reads"
        )
        raise ArgumentError(f"no tree-sitter grammar at {grammar}: {hint}") from error
