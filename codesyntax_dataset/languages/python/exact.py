"""The table of Python's exact labels, up to Python 3.14."""

from __future__ import annotations

import re

from codesyntax_dataset.languages.tables.operators import Level, Operators
from codesyntax_dataset.languages.tables.table import BACKWARD, Rule, Table

_BINARY = "binary_operator"
_LEVELS = (  # of its reference, section 6.17
    Level("postfix", "as_pattern"),
    Level("unpacking", "list_splat"),
    Level("target", "named_expression"),
    Level("prefix", "lambda"),
    Level("right", "conditional_expression"),
    Level("left", "boolean_operator", "or"),
    Level("left", "boolean_operator", "and"),
    Level("prefix", "not_operator"),
    Level("none", "comparison_operator"),
    Level("left", _BINARY, "|"),
    Level("left", _BINARY, "^"),
    Level("left", _BINARY, "&"),
    Level("left", _BINARY, "<< >>"),
    Level("left", _BINARY, "+ -"),
    Level("left", _BINARY, "* @ / // %"),
    Level("prefix", "unary_operator"),
    Level("right", _BINARY, "**"),
    Level("prefix", "await"),
    Level("postfix", "attribute call subscript"),
)

_IF = {
    "if": "'if elif'",
    "test": "condition",
    "body": "consequence/*",
}
_GENERATOR = "*<for_in_clause>[0]/left .. *<for_in_clause>[-1]/right"
_ARGUMENTS = "arguments<argument_list>/*"
_ITEM = "*<with_clause>/*<with_item>[0]"
_OTHER = "*<with_clause>/*<with_item>[1]"
_UNDECLARED = "unless ^/^<type_parameter>/^<!generic_type> unless ^/^/^/^/^<type_alias_statement>"  # `def f[T: int]`
_PATTERNS = "case_pattern class_pattern dict_pattern keyword_pattern union_pattern".split()


def _items(path: str) -> str:
    """The items at a path, and a comma behind the last one: without brackets of its own, a tuple
    has no node."""
    return f"{path} .. {path}[-1]/~','<!block> | {path}"


TABLE = Table(
    grammar="tree_sitter_python",
    operators=Operators(_LEVELS),
    brackets=frozenset({"parenthesized_expression", "tuple_pattern"}),
    chains={"union_type": ("BinOp", frozenset({"binary_operator", "type", "union_type"}))},
    whole=frozenset({"string"}),
    interpolated=frozenset("format_expression format_specifier interpolation string".split()),
    literal=frozenset("string_start string_content string_end { } = : type_conversion".split()),
    flat=frozenset(
        {
            "argument_list",
            "block",
            "module",
            "parameters",
            "lambda_parameters",
            "type",
            "type_parameter",
            "with_clause",
        }
    ),
    backward=BACKWARD - {"IfExp:body->test"} | {"IfExp:test->body"},
    joins_lines=True,
    functions={"function_definition": "name"},
    scopes={"class_definition": "name"},
    suites=(("", ""), ("if 1:\n", "")),
    names=re.compile(  # of type parameters with defaults
        rb"\b(?:def|class|type)\s+\w+\s*\[(?:[^\]=]*,)?\s*(?P<name>\w+\s*=\s*\w+(?:\s*,\s*\w+\s*=\s*\w+)*)\s*\]"
    ),
    suspect=re.compile(rb"exec|print|type"),
    refused="""
        [(exec_statement) (print_statement)] @refused
        (type_alias_statement left: (type [(attribute) (list) (subscript)]) @refused)
    """,
    soft=re.compile(rb"\b(?:exec|print|type(?=\s*[(\[]))\b"),  # such as `type(a).b = c`
    rules=(
        Rule("assignment", "Assign", {"target": "left", "value": "right+"}),
        Rule("type_alias_statement", "Assign", {"target": "left", "value": "right"}),
        # not in f"{x:=9}", where 9 is a format
        Rule(
            "named_expression",
            "Assign",
            {"target": "name unless ^<interpolation>", "value": "value"},
        ),
        Rule("attribute", "Attribute", {"value": "object", "attr": "attribute"}),
        Rule("member_type", "Attribute", {"value": "*[0]", "attr": "*[1]"}),
        *(
            Rule(f"{pattern}/dotted_name", "Attribute", {"value": "*[0]", "attr": f"*[{index}]"})
            for pattern in _PATTERNS
            for index in range(1, 5)
        ),
        Rule("augmented_assignment", "AugAssign", {"target": "left", "value": "right"}),
        Rule("await", "Await", {"await": "'await'", "value": "*"}),
        Rule("binary_operator", "BinOp", {"left": "left", "right": "right"}),
        Rule("complex_pattern", "BinOp", {"left": "*/^", "right": "*[1]"}),
        Rule("boolean_operator", "BoolOp", {"value": "*"}),
        Rule(
            "call",
            "Call",
            {
                "func": "function",
                "args": f"{_ARGUMENTS}<!keyword_argument|dictionary_splat> | arguments<generator_expression>",
                "keywords": f"{_ARGUMENTS}<keyword_argument|dictionary_splat>",
            },
        ),
        Rule("case_clause", "Case", {"test": "*<case_pattern>", "body": "consequence/*"}),
        Rule("comparison_operator", "Compare", {"left": "*[0]", "comparator": "*[1:]"}),
        Rule("default_parameter", "Default", {"name": "name", "value": "value"}),
        Rule("typed_default_parameter", "Default", {"name": "name", "value": "value"}),
        Rule("dictionary/pair", "Dict", {"key": "key", "value": "value"}),
        Rule(
            "dictionary_comprehension",
            "DictComp",
            {"key": "body/key", "value": "body/value", "generator": _GENERATOR},
        ),
        Rule(
            "for_statement",
            "For",
            {
                "for": "'for'",
                "target": "left",
                "iter": "right",
                "body": "body/*",
                "orelse": "alternative/body/*",
            },
        ),
        Rule("generator_expression", "GeneratorExp", {"elt": "body", "generator": _GENERATOR}),
        Rule("list_comprehension", "ListComp", {"elt": "body", "generator": _GENERATOR}),
        Rule("set_comprehension", "SetComp", {"elt": "body", "generator": _GENERATOR}),
        Rule("for_in_clause", "comprehension", {"target": "left", "iter": "right"}),
        Rule(
            "if_statement",
            "If",
            _IF
            | {
                "else": "alternative[0]/'else elif'",
                "orelse": "alternative<elif_clause>[0] .. alternative[-1] | alternative/body/*",
            },
        ),
        Rule(
            "elif_clause",
            "If",
            _IF | {"else": "~[0]/'else elif'", "orelse": "~<elif_clause>[0] .. ~[-1] | ~/body/*"},
        ),
        Rule("conditional_expression", "IfExp", {"body": "*[0]", "test": "*[1]", "orelse": "*[2]"}),
        Rule("raise_statement", "Raise", {"raise": "'raise'", "value": "*[0]"}),
        Rule("return_statement", "Return", {"return": "'return'", "value": "*"}),
        Rule("slice", "Slice", {"lower": ":0", "upper": ":1"}),
        Rule("constrained_type", "Slice", {"lower": f"*[0] {_UNDECLARED}", "upper": "*[1]"}),
        Rule("dictionary_splat", "Spread", {"spread": "*/^", "value": "*"}),
        Rule(
            "list_splat",
            "Spread",
            {
                "spread": "*/^ unless ^/^<as_pattern_target> unless ^/^/^<as_pattern_target>",
                "value": "*",
            },
        ),
        Rule("splat_type", "Spread", {"spread": f"*/^ {_UNDECLARED}", "value": "*"}),
        Rule("subscript", "Subscript", {"value": "value", "slice": _items("subscript")}),
        Rule(
            "generic_type",
            "Subscript",
            {
                "value": "*[0] unless ^/^<type_alias_statement>",
                "slice": _items("*<type_parameter>/*"),
            },
        ),
        Rule(
            "type_alias_statement",
            "Subscript",
            {
                "value": "right/*<generic_type>/*[0]",
                "slice": _items("right/*<generic_type>/*<type_parameter>/*"),
            },
        ),
        Rule(
            "match_statement",
            "Switch",
            {"switch": "'match'", "expr": _items("subject"), "statement": "body/*"},
        ),
        Rule(
            "try_statement",
            "Try",
            {
                "body": "body/*",
                "handler": "*<except_clause>",
                "orelse": "*<else_clause>/body/*",
                "finalbody": "*<finally_clause>/*/*",
            },
        ),
        Rule("unary_operator", "UnaryOp", {"op": "*/^", "operand": "argument"}),
        *(Rule(f"{pattern}/-", "UnaryOp", {"op": ".", "operand": "~[0]"}) for pattern in _PATTERNS),
        Rule("complex_pattern/-", "UnaryOp", {"op": "~[1]/^", "operand": "~[0]"}),
        Rule("not_operator", "UnaryOp", {"op": "*/^", "operand": "argument"}),
        Rule(
            "while_statement",
            "While",
            {
                "while": "'while'",
                "test": "condition",
                "body": "body/*",
                "orelse": "alternative/body/*",
            },
        ),
        Rule(
            "with_statement",
            "With",
            {"item": f"{_ITEM}/value<tuple>/*[0] unless {_OTHER} | {_ITEM}", "body": "body/*"},
        ),
        Rule("lambda", "Lambda", {"params": "parameters", "body": "body"}),
        Rule("yield", "Yield", {"yield": "'yield'", "value": "*"}),
    ),
    examples={
        "Assign": "x = a + b",
        "Attribute": "obj.name",
        "AugAssign": "x += 1",
        "Await": "await x",
        "BinOp": "a + b",
        "BoolOp": "a and b",
        "Call": "f(a, k=1)",
        "Case": "match x:\n    case 1: a()",
        "Compare": "a < b",
        "Default": "def g(a=1): pass",
        "Dict": "{k: v}",
        "DictComp": "{k: v for k in s}",
        "For": "for x in s: use(x)\nelse: b()",
        "GeneratorExp": "sum(x for x in s)",
        "If": "if t: a()\nelse: b()",
        "IfExp": "a if t else b",
        "Lambda": "lambda a: a + 1",
        "ListComp": "[x for x in s]",
        "Raise": "raise E(a)",
        "Return": "return a + b",
        "SetComp": "{x for x in s}",
        "Slice": "s[1:n]",
        "Spread": "f(*a)",
        "Subscript": "s[i]",
        "Switch": "match x:\n    case 1: a()",
        "Try": "try: a()\nexcept E: b()\nelse: c()\nfinally: d()",
        "UnaryOp": "not t",
        "While": "while t: a()\nelse: b()",
        "With": "with open(p) as f: use(f)",
        "Yield": "yield x",
        "comprehension": "[x for x in s]",
    },
)
