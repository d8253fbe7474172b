"""The needs of edits in Java."""

from __future__ import annotations

import re

from codesyntax_dataset.languages.language import Editing

EDITING = Editing(
    string=re.compile(r"(?P<quotes>\")(?P<text>.*)(?P=quotes)"),
    comment="//",
    expressions=frozenset(
        "identifier decimal_integer_literal decimal_floating_point_literal character_literal true false null_literal "
        "method_invocation field_access array_access object_creation_expression this".split()
    ),
    bracketed=frozenset(
        "argument_list.* array_access.array array_access.index assignment_expression.right binary_expression.right "
        "binary_expression.left enhanced_for_statement.value for_statement.condition instanceof_expression.left "
        "method_invocation.object parenthesized_expression.* return_statement.* ternary_expression.alternative "
        "ternary_expression.condition ternary_expression.consequence variable_declarator.value".split()
    ),
    bare=frozenset({"field_access.super", "method_invocation.super"}),  # `(A).super.f()` is no Java
    cast=re.compile(r"[^\W\d][\w$.]*(?=\s*[+-])"),
    arguments=frozenset({"argument_list"}),
    blocks=frozenset({"block", "constructor_body", "switch_block_statement_group"}),
    no_op=" ;",
    alone=frozenset("block_comment line_comment switch_label".split()),
    contextual=frozenset(
        "enum exports module open opens permits provides record requires sealed to transitive uses var when with "
        "yield".split()
    ),
    identifier=re.compile(r"(?!var$)[^\W\d][\w$]*|\$[\w$]*"),
)
