"""The needs of edits in languages whose module is one table."""

from __future__ import annotations

import re
from dataclasses import replace

from codesyntax_dataset.languages.language import Editing

_GO = "false|iota|make|new|nil|true"  # names with syntax of their own

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
    contextual=frozenset(_GO.split("|")),
    identifier=re.compile(rf"(?!(?:{_GO})\b)[^\W\d]\w*"),
)

# names that are none in some places
_JAVASCRIPT = "accessor|arguments|constructor|get|meta|set|target|using"
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
    verbatim=frozenset({"jsx_text"}),
    continued=re.compile(r"\s*[<{]"),  # a comment before these would be text in JSX
    contextual=frozenset({"as", "assert", "eval", "from", *_JAVASCRIPT.split("|")}),
    identifier=re.compile(rf"(?!(?:{_JAVASCRIPT})\b)(?:[^\W\d]|\$)[\w$]*"),
)

TYPESCRIPT = replace(
    JAVASCRIPT,
    bracketed=JAVASCRIPT.bracketed
    - {"binary_expression.right"},  # `a < b | c > (d)` is a call of `a<b | c>`
    # of `a && b!.c`, the grammar reads `(a && b)!.c`
    bare=frozenset({"non_null_expression.binary_expression"}),
    contextual=JAVASCRIPT.contextual.union(_TYPESCRIPT.split("|")),
    identifier=re.compile(rf"(?!(?:{_JAVASCRIPT}|{_TYPESCRIPT})\b)(?:[^\W\d]|\$)[\w$]*"),
)

_PHP = (  # names with syntax of their own
    "abstract|binary|bool|boolean|callable|declare|die|double|enum|final|float|from|goto|implements|int|integer|"
    "interface|iterable|mixed|namespace|never|object|real|resource|string|trait|var|void|xor"
)

PHP = Editing(
    # names behind a dollar sign are code
    string=re.compile(r"(?P<quotes>['\"])(?P<text>[^$]*)(?P=quotes)"),
    comment="//",
    expressions=frozenset(
        "array_creation_expression boolean class_constant_access_expression encapsed_string float "
        "function_call_expression integer member_access_expression member_call_expression null "
        "object_creation_expression scoped_call_expression string subscript_expression variable_name".split()
    ),
    bracketed=frozenset(
        "argument.* arrow_function.body assignment_expression.right augmented_assignment_expression.right "
        "binary_expression.left binary_expression.right conditional_expression.alternative "
        "conditional_expression.body conditional_expression.condition parenthesized_expression.* "
        "return_statement.*".split()
    ),
    cast=re.compile(  # the grammar reads `(Double` as the beginning of one, whatever follows
        r"(?i)(?:array|binary|bool|boolean|double|float|int|integer|object|real|string|unset)\b(?:[\w:\\]|\([^()]*\))*"
    ),
    arguments=frozenset({"arguments"}),
    blocks=frozenset({"compound_statement"}),
    no_op=" ;",
    alone=frozenset({"comment", "text_interpolation"}),
    verbatim=frozenset({"text", "text_interpolation"}),
    contextual=frozenset(_PHP.split("|")),
    identifier=re.compile(rf"(?!\$this$|__|(?i:{_PHP}|namespace\\.*)$)[$\\]?([^\W\d][\w\\]*)"),
)

RUBY = Editing(
    # names behind a number sign are code
    string=re.compile(r"(?P<quotes>[\"'])(?P<text>[^#]*)(?P=quotes)"),
    comment="#",
    expressions=frozenset(
        "array call constant element_reference false float hash identifier instance_variable integer nil "
        "simple_symbol string true".split()
    ),
    bracketed=frozenset(
        "assignment.right binary.right case.value conditional.alternative conditional.consequence "
        "element_reference.* elsif.condition if.condition if_modifier.condition operator_assignment.right pair.value "
        "parenthesized_statements.* unless.condition unless_modifier.condition until.condition "
        "while.condition".split()
    ),
    arguments=frozenset({"argument_list"}),
    blocks=frozenset("begin block_body body_statement do else ensure then".split()),
    no_op="; nil",
    keywords=frozenset({"hash_splat_argument", "pair"}),
    alone=frozenset("comment else empty_statement ensure heredoc_body rescue".split()),
    verbatim=frozenset("heredoc_body string_array symbol_array".split()),
    continued=re.compile(r"(#.*\n\s*)*&?\."),
    capitals=True,
    identifier=re.compile(r":?(?:@@?|\$)?([^\W\d]\w*)[?!=]?"),
)

RUST = Editing(
    # names in curly brackets are code
    string=re.compile(r"[bc]?r?(?P<signs>#*)\"(?P<text>[^{}]*)\"(?P=signs)"),
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
    filled_by=((),),  # macros fill what is in their strings
    contextual=frozenset(
        "abstract auto become box default do final gen macro macro_rules override priv raw safe try typeof union "
        "unsized virtual yield".split()
    ),
    identifier=re.compile(
        r"(?!(?:[iu](?:8|16|32|64|128|size)|f32|f64|bool|char|default|gen|str|union)\b)[^\W\d]\w*"
    ),
)
