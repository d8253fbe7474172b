"""Possible causes of both the masking of a function and its loss: the seven confounders of Velasco et al. (2024).

They are named by what they are. The published `n_whitespaces_` is the number of words, and the published model left out
`n_ast_errors`. The procedure of the study is that of today with an older parser and lizard: with tree-sitter-python
0.20 strings had no parts, so that functions had fewer nodes, and lizard 1.17 counted some f-strings as one token less.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from codesyntax_dataset.errors import ArgumentError, CodeSyntaxError, UnknownName
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_metric.ast_similarity.similarity import parse

PUBLISHED = ("ast_levels", "words", "complexity", "nloc", "token_counts", "n_ast_nodes")
"""The common causes in the model of the study."""


class Confounders(NamedTuple):
    """Sizes of one function.

    Of the tree: `n_ast_errors`, the nodes of type ERROR; `ast_levels`, the nodes on the longest path from the root, 0
    where the root is alone; `n_ast_nodes`, all nodes but the root. Of the text: `words`, separated by white space. By
    lizard: `complexity`, McCabe's cyclomatic complexity; `nloc`, lines that are neither empty nor comments;
    `token_counts`, its tokens from its name on; these three are None where lizard finds no function.
    """

    n_ast_errors: int
    ast_levels: int
    n_ast_nodes: int
    complexity: int | None
    nloc: int | None
    token_counts: int | None
    words: int


def confounders(code: str, language: str = "python") -> Confounders:
    """The confounders of one function; of several, or of functions in functions, lizard's are those of the last to end.

    Raises UnknownName for an unknown language, ArgumentError for one that lizard does not read, and CodeSyntaxError for
    code without a UTF-8 form, or without an installed grammar.
    """
    try:
        lizard, readers = import_module("lizard"), import_module("lizard_languages")
    except ImportError as error:  # no dependency of this package: nothing else needs it
        raise CodeSyntaxError(
            "complexity is lizard's, which is not installed: pip install codesyntax[confounders]"
        ) from error
    if language not in LANGUAGES:
        raise UnknownName("language", language, LANGUAGES)
    file = f"function{''.join(LANGUAGES[language].suffixes[:1])}"
    if readers.get_reader_for(file) is None:
        raise ArgumentError(f"lizard does not read {language}, so that its functions have no complexity")
    cursor = parse(code, language).walk()
    nodes = errors = deepest = 0
    walking = True
    while walking:
        nodes, errors = nodes + 1, errors + (cursor.node is not None and cursor.node.type == "ERROR")
        deepest = max(deepest, cursor.depth)
        walking = cursor.goto_first_child() or cursor.goto_next_sibling()
        while not walking and cursor.goto_parent():
            walking = cursor.goto_next_sibling()
    functions = lizard.analyze_file.analyze_source_code(file, code).function_list
    last = functions[-1] if functions else None
    return Confounders(
        n_ast_errors=errors,
        ast_levels=deepest + (deepest > 0),
        n_ast_nodes=nodes - 1,
        complexity=last and last.cyclomatic_complexity,
        nloc=last and last.nloc,
        token_counts=last and last.token_count,
        words=len(code.split()),
    )
