"""The needs of edits in Python."""

from __future__ import annotations

import re

from codesyntax_dataset.languages.language import Editing

EDITING = Editing(
    string=re.compile(
        r"""[rRbBuU]{0,2}(?P<quotes>\'\'\'|\"""|'|")(?P<text>.*)(?P=quotes)""", re.DOTALL
    ),
    comment="#",
    expressions=frozenset(
        "identifier integer float string true false none call attribute subscript binary_operator boolean_operator "
        "comparison_operator unary_operator not_operator conditional_expression list dictionary set tuple "
        "list_comprehension dictionary_comprehension set_comprehension lambda".split()
    ),
    bracketed=frozenset(
        "argument_list.* assignment.right attribute.object augmented_assignment.right binary_operator.left "
        "binary_operator.right boolean_operator.left boolean_operator.right comparison_operator.* "
        "conditional_expression.* elif_clause.condition for_in_clause.right for_statement.right if_statement.condition "
        "keyword_argument.value list.* list_comprehension.body not_operator.argument pair.key pair.value "
        "return_statement.* subscript.subscript subscript.value unary_operator.argument "
        "while_statement.condition".split()
    ),
    bare=frozenset({"assignment.type"}),  # `(a).b: int` is no Python
    arguments=frozenset({"argument_list"}),
    blocks=frozenset({"block"}),
    no_op="; pass",
    alone=frozenset(
        "class_definition comment decorated_definition for_statement function_definition if_statement match_statement "
        "try_statement while_statement with_statement".split()
    ),
    filled_by=((".", "format"), (".", "format_map"), ("%",)),
    contextual=frozenset({"_", "case", "exec", "match", "print", "type"}),
)
