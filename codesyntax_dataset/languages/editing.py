"""What edits ask of languages whose module is one table."""

from __future__ import annotations

import re
from dataclasses import replace

from codesyntax_dataset.languages.language import Editing

GO = Editing(
    string=re.compile(r"(?P<quotes>[\"`])(?P<text>.*)(?P=quotes)", re.DOTALL),
    comment="//",
    expressions=frozenset(
        "call_expression composite_literal false float_literal func_literal identifier index_expression "
        "int_literal interpreted_string_literal nil raw_string_literal rune_literal selector_expression "
        "slice_expression true".split()
    ),
    bracketed=frozenset(
        "argument_list.* binary_expression.left binary_expression.right expression_switch_statement.value "
        "for_clause.condition if_statement.condition index_expression.index index_expression.operand "
        "parenthesized_expression.* range_clause.right send_statement.value slice_expression.end "
        "slice_expression.operand slice_expression.start unary_expression.operand".split()
    ),
    arguments=frozenset({"argument_list"}),
    blocks=frozenset({"statement_list"}),
    no_op="; {}",
    alone=frozenset({"comment", "empty_statement"}),
    identifier=re.compile(r"(?!(?:false|iota|make|new|nil|true)\b)[^\W\d]\w*"),  # those before have syntax of their own
)

_JAVASCRIPT = "accessor|arguments|constructor|get|meta|set|target|using"  # names that are none in some places
_TYPESCRIPT = (
    "any|asserts|bigint|boolean|global|infer|is|never|number|object|out|override|require|satisfies|string|symbol|unique|"
    "unknown"
)

JAVASCRIPT = Editing(
    string=re.compile(r"(?P<quotes>[\"'])(?P<text>.*)(?P=quotes)", re.DOTALL),
    comment="//",
    expressions=frozenset(
        "call_expression false identifier member_expression new_expression null number string subscript_expression "
        "this true".split()
    ),
    bracketed=frozenset(
        "arguments.* assignment_expression.right binary_expression.left binary_expression.right pair.value "
        "parenthesized_expression.* return_statement.* subscript_expression.index ternary_expression.alternative "
        "ternary_expression.condition ternary_expression.consequence variable_declarator.value".split()
    ),
    arguments=frozenset({"arguments"}),
    blocks=frozenset({"statement_block"}),
    no_op=" ;",
    contextual=frozenset({"as", "assert", "eval", "from", *_JAVASCRIPT.split("|")}),
    identifier=re.compile(rf"(?!(?:{_JAVASCRIPT})\b)(?:[^\W\d]|\$)[\w$]*"),
)

TYPESCRIPT = replace(
    JAVASCRIPT,
    contextual=JAVASCRIPT.contextual.union(_TYPESCRIPT.split("|")),
    identifier=re.compile(rf"(?!(?:{_JAVASCRIPT}|{_TYPESCRIPT})\b)(?:[^\W\d]|\$)[\w$]*"),
)

RUST = Editing(
    string=re.compile(r"[bc]?r?(?P<signs>#*)\"(?P<text>[^{}]*)\"(?P=signs)"),  # names in curly brackets are code
    comment="//",
    expressions=frozenset(
        "await_expression boolean_literal call_expression char_literal field_expression float_literal identifier "
        "index_expression integer_literal self string_literal try_expression".split()
    ),
    bracketed=frozenset(
        "arguments.* array_expression.* assignment_expression.right binary_expression.left binary_expression.right "
        "compound_assignment_expr.right field_initializer.value for_expression.value if_expression.condition "
        "let_condition.value let_declaration.value match_arm.value match_expression.value parenthesized_expression.* "
        "range_expression.* reference_expression.value return_expression.* tuple_expression.* "
        "type_cast_expression.value unary_expression.* while_expression.condition".split()
    ),
    arguments=frozenset({"arguments"}),
    blocks=frozenset(),  # behind the last expression of a block, which is its value, nothing can stand
    no_op="",
    contextual=frozenset(
        "abstract auto become box default do final gen macro macro_rules override priv raw safe try typeof union "
        "unsized virtual yield".split()
    ),
    identifier=re.compile(r"(?!(?:[iu](?:8|16|32|64|128|size)|f32|f64|bool|char|default|gen|str|union)\b)[^\W\d]\w*"),
)
