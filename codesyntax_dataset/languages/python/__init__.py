"""Python. Labels follow its version 3.9, so that they do not depend on the interpreter."""

from __future__ import annotations

import re

from codesyntax_dataset.languages.blocks import by_indentation
from codesyntax_dataset.languages.language import Language, deferred
from codesyntax_dataset.languages.python.editing import EDITING
from codesyntax_dataset.languages.python.exact import TABLE
from codesyntax_dataset.languages.python.relations import RELATIONS, SAME_SYNTAX
from codesyntax_dataset.languages.tables.record import annotate_by, exact_by, tokenize_by
from codesyntax_dataset.languages.variants import PAPER, WITH_NEW_LINES

PYTHON = Language(
    name="python",
    title="Python",
    variants=(PAPER, WITH_NEW_LINES, *exact_by(TABLE)),
    relations=RELATIONS,
    suffixes=(".py",),
    kindred=(".ipynb", ".pyi", ".pyw", ".pyx"),
    program="python",
    keywords=tuple(  # those of Python 3.9
        "False None True and as assert async await break class continue def del elif else except finally for from "
        "global if import in is lambda nonlocal not or pass raise return try while with yield".split()
    ),
    unparsed="Python 3.9's grammar cannot read it",
    annotate=annotate_by(TABLE, deferred("codesyntax_dataset.languages.python.labels.annotate")),
    tokenize=tokenize_by(TABLE, deferred("codesyntax_dataset.languages.python.labels.tokenize")),
    definitions=deferred("codesyntax_dataset.languages.python.definitions.definitions"),
    decode=deferred("codesyntax_dataset.languages.python.definitions.decode"),
    blocks=by_indentation,
    between_tokens=re.compile(r"(?:\s|\\\r?\n|\\\r)*"),
    codesearchnet="python",
    first_validation_id=8680,
    grammar="tree_sitter_python",
    node_types=tuple(  # those of SyntaxEval (Velasco et al. 2024)
        "boolean_operator comparison_operator for_in_clause for_statement identifier if_clause if_statement parameters "
        "return_statement string while_statement".split()
    ),
    same_syntax=SAME_SYNTAX,
    editing=EDITING,
)
