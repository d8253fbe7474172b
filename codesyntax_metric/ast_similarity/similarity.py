"""Similarity of two syntax trees: from code to the sequence of its node types, from two sequences
to three numbers.

The comparison of Velasco et al. (ICSE-NIER 2024), with what the publication leaves open defined
here:

- A tree is the sequence of the types of its nodes in pre-order, the root, punctuation and error
  nodes included.
- Jaccard and Sorensen-Dice are over the multisets of node types; Levenshtein is over the sequences.
- Code that does not parse has a tree with `ERROR` nodes, and is compared like any other. Three
  things alone cannot be compared, and raise an error rather than count as unlike: text that has no
  UTF-8 form (a lone surrogate), a tree of more than MOST_NODES nodes, for which the edit distance
  would take seconds, and code with which tree-sitter's error repair does not end. The limits are on
  nodes and steps, not on time, so that the same input has the same answer on any machine.

The numbers depend on tree-sitter and on the grammar, error repair most of all: `parser_version`
names both.

This file imports none of its siblings, because the Hub loads the metric alone.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import importlib.util
import pkgutil
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import NamedTuple

import tree_sitter
from rapidfuzz.distance import Levenshtein

CodeSyntaxError: type[ValueError]
try:
    from codesyntax_dataset import errors

    CodeSyntaxError = errors.CodeSyntaxError
# the metric was loaded from the Hub, without our packages; their errors are ValueErrors, too
except ImportError:
    CodeSyntaxError = ValueError

MOST_NODES = 100_000
"""Larger trees are not compared; no function that a masked model can read comes near."""

# three times as many as any of 7,623 files and functions took
_STEPS, _STEPS_PER_BYTE = 1_000, 0.06

_PREFIX = "tree_sitter_"


class Similarity(NamedTuple):
    """From 0, nothing in common, to 1."""

    jaccard: float
    sorensen_dice: float
    levenshtein: float


def grammar(language: str) -> tree_sitter.Language:
    """The grammar in the installed package `tree_sitter_<language>`, such as `python` or `c_sharp`.

    Raises CodeSyntaxError without such a package, with the nearest installed one, and for one that
    cannot be used.
    """
    if not isinstance(language, str):
        raise CodeSyntaxError(f"language is {language!r}, expected a name, such as 'python'")
    return _grammar(language)


@cache
def _grammar(language: str) -> tree_sitter.Language:
    name = _PREFIX + language
    if not language.isidentifier() or importlib.util.find_spec(name) is None:
        installed = sorted(
            module.name.removeprefix(_PREFIX)
            for module in pkgutil.iter_modules()
            if module.name.startswith(_PREFIX)
        )
        near = difflib.get_close_matches(language.lower(), installed, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise CodeSyntaxError(
            f"no grammar for the language {language!r}: {hint}installed are {', '.join(installed) or 'none'}; others "
            "come as packages called tree-sitter-LANGUAGE"
        )
    try:
        module = importlib.import_module(name)
        # packages with several grammars, such as that of TypeScript, name each
        pointer = (getattr(module, "language", None) or getattr(module, f"language_{language}"))()
        return tree_sitter.Language(pointer)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise CodeSyntaxError(
            f"the grammar {name} cannot be used: {error}; try another version of it, or of tree-sitter"
        ) from None


def parser_version(language: str) -> str:
    """The versions on which trees depend, such as `tree-sitter 0.26.1, tree-sitter-python 0.25.0`.

    Raises CodeSyntaxError without a grammar for the language.
    """
    grammar(language)
    names = ("tree-sitter", f"tree-sitter-{language.replace('_', '-')}")
    return ", ".join(f"{name} {_version(name)}" for name in names)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    # a package with several grammars has a name of its own
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def parse(code: str, language: str = "python") -> tree_sitter.Tree:
    """tree-sitter's tree of `code`; the positions of its nodes, which do not know their text, are
    bytes of UTF-8.

    Raises CodeSyntaxError for text that has no UTF-8 form, for code that takes more steps than any
    real code, and without a grammar for the language.
    """
    parser = tree_sitter.Parser(grammar(language))
    try:
        data = code.encode()
    except UnicodeEncodeError as error:
        raise CodeSyntaxError(
            f"character {error.start} of the code is the lone surrogate {code[error.start]!r}, which cannot be parsed"
        ) from None
    steps = count()
    try:  # steps are told only where the code is read piece by piece
        return parser.parse(
            lambda start, _: data[start : start + (1 << 16)],
            encoding="utf8",
            progress_callback=lambda *_: next(steps) > _STEPS + _STEPS_PER_BYTE * len(data),
        )
    except ValueError:
        raise CodeSyntaxError("the code does not parse, and takes too long to repair") from None


def node_types(
    code: str | tree_sitter.Tree, language: str = "python", *, anonymous: bool = True
) -> list[str]:
    """The types of all nodes of a tree in pre-order; without `anonymous`, of its named nodes only.

    `code` is text in `language`, or its parsed tree. Anonymous nodes are keywords, operators and
    punctuation.

    >>> node_types("f(x)")
    ['module', 'expression_statement', 'call', 'identifier', 'argument_list', '(', 'identifier', ')']
    >>> node_types("f(x)", anonymous=False)
    ['module', 'expression_statement', 'call', 'identifier', 'argument_list', 'identifier']

    Raises CodeSyntaxError for text that has no UTF-8 form, for more than MOST_NODES nodes, and
    without a grammar.
    """
    tree = parse(code, language) if isinstance(code, str) else code
    nodes = tree.root_node.descendant_count
    if nodes > MOST_NODES:
        raise CodeSyntaxError(
            f"the tree has {nodes:,} nodes, more than the {MOST_NODES:,} that are compared"
        )
    types, cursor = [], tree.walk()
    while True:
        node = cursor.node
        assert node is not None  # a cursor always stands on one
        if anonymous or node.is_named:
            types.append(node.type)
        if not cursor.goto_first_child():
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return types


def compare(first: Sequence[str], second: Sequence[str]) -> Similarity:
    """The similarity of two sequences of node types, as from `node_types`; the order of the two
    does not matter.

    With c common elements of the two multisets, of sizes m and n: Jaccard is c / (m + n - c),
    Sorensen-Dice 2 c / (m + n), and Levenshtein 1 - d / max(m, n) with the distance d between the
    sequences. Two empty sequences are alike.

    >>> compare(node_types("f(x)"), node_types("f(x, y)"))
    Similarity(jaccard=0.8, sorensen_dice=0.8888888888888888, levenshtein=0.8)
    """
    if not first and not second:
        return Similarity(1.0, 1.0, 1.0)
    common, both = (Counter(first) & Counter(second)).total(), len(first) + len(second)
    distance = Levenshtein.distance(first, second)
    return Similarity(
        common / (both - common), 2 * common / both, 1 - distance / max(len(first), len(second))
    )
