"""Java. Labels follow its version 1.3, whose compiler is behind the published ones."""

from __future__ import annotations

import re

from codesyntax_dataset.languages.blocks import in_curly_brackets
from codesyntax_dataset.languages.java.editing import EDITING
from codesyntax_dataset.languages.java.exact import TABLE
from codesyntax_dataset.languages.java.relations import RELATIONS, SAME_SYNTAX
from codesyntax_dataset.languages.language import Language, deferred
from codesyntax_dataset.languages.tables.record import (
    annotate_by,
    definitions_by,
    exact_by,
    tokenize_by,
)
from codesyntax_dataset.languages.variants import PAPER, SKIP_SEMICOLON, WITH_NEW_LINES

JAVA = Language(
    name="java",
    title="Java",
    variants=(PAPER, WITH_NEW_LINES, SKIP_SEMICOLON, *exact_by(TABLE)),
    relations=RELATIONS,
    suffixes=(".java",),
    kindred=(".jsh", ".jsp"),
    keywords=tuple(  # reserved words and literals of Java 8, without `enum`
        "abstract assert boolean break byte case catch char class const continue default do double else extends false "
        "final finally float for goto if implements import instanceof int interface long native new null package "
        "private protected public return short static strictfp super switch synchronized this throw throws transient "
        "true try void volatile while".split()
    ),
    unparsed="does not parse",
    annotate=annotate_by(TABLE, deferred("codesyntax_dataset.languages.java.labels.annotate")),
    tokenize=tokenize_by(TABLE, deferred("codesyntax_dataset.languages.java.labels.tokenize")),
    definitions=definitions_by(TABLE),
    blocks=in_curly_brackets,
    between_tokens=re.compile(r"(?:\s|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL),
    codesearchnet="java",
    first_validation_id=11009,
    grammar="tree_sitter_java",
    node_types=tuple(  # what comes nearest to Python's: one type for all binary operators, and conditions in brackets
        "binary_expression enhanced_for_statement for_statement formal_parameters identifier if_statement "
        "parenthesized_expression return_statement string_literal ternary_expression while_statement".split()
    ),
    same_syntax=SAME_SYNTAX,
    editing=EDITING,
)
