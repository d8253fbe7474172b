"""Go, up to version 1.26, by the table of its exact labels."""

from __future__ import annotations

import re

from codesyntax_dataset.languages import editing
from codesyntax_dataset.languages.tables.record import language_by
from codesyntax_dataset.languages.tables.table import BACKWARD, Rule, Table

# a loop without such a clause has a condition, or nothing
_WHILE = "*[0]<!for_clause|range_clause>"
_OPERATORS = "'+= -= *= /= %= &= |= ^= <<= >>= &^='"
_CASES = "*<expression_case|type_case|communication_case|default_case>"
_BODY = "*<statement_list>/*"
_TYPE = "receiver/*/type"  # of a method: `T` of `*T[K]`
_RECEIVER = " | ".join(
    f"{_TYPE}{end}"
    for end in (
        "<pointer_type>/*<generic_type>/type",
        "<pointer_type>/*",
        "<generic_type>/type",
        "",
    )
)
# its parts need not be there, its colons are
_NEW = re.compile(  # `new(x + 1)`, of a value
    rb"\bnew(?=\((?:(?!\s*(?:\[|\*\*|map\b|chan\b|struct\b|interface\b|<-))|\s*<-\s*(?!chan\b)"
    rb"|[^(){}\n]*(?<!\bstruct)(?<!\binterface)(?<!\bfunc)[{(]))"
)
_SLICE = " | ".join(
    f"{first} .. {last}" for last in ("capacity", "end", "':'") for first in ("start", "':'")
)

TABLE = Table(
    grammar="tree_sitter_go",
    brackets=frozenset({"parenthesized_expression", "parenthesized_type"}),
    suspect=re.compile(rb"<-\s*chan|\*[\w.]+\[[^]\n]*,"),
    respelled=((_NEW, b"nex"),),
    completed=(  # `var (a = 1)`
        (re.compile(rb"\b(?:const|import|type|var)\s*\([^()\n]*[^()\n;\s](?=\s*\))"), b";"),
    ),
    refused="""
        (type_conversion_expression type: (channel_type . "<-" . "chan" @refused @bracketed)
          ")" @bracketed) ; `<-chan T(x)` receives from `chan T(x)`
        (type_instantiation_expression
          type: (pointer_type (_) @refused @bracketed) "]" @bracketed) ; `*a[b, c]`
        (type_conversion_expression type: (pointer_type (channel_type . "<-" . "chan" @refused @bracketed))
          ")" @bracketed)
    """,
    whole=frozenset({"interpreted_string_literal", "raw_string_literal"}),
    flat=frozenset(
        "argument_list expression_list for_clause literal_element parameter_list range_clause source_file "
        "statement_list type_arguments type_elem type_parameter_list var_spec_list".split()
    ),
    rules=(
        Rule(
            "assignment_statement", "Assign", {"target": "'='/^/left/*", "value": "'='/^/right/*"}
        ),
        Rule("const_spec", "Assign", {"target": "name", "value": "value/*"}),
        Rule("receive_statement", "Assign", {"target": "left/*", "value": "right"}),
        Rule("short_var_declaration", "Assign", {"target": "left/*", "value": "right/*"}),
        Rule("type_alias", "Assign", {"target": "name", "value": "type"}),
        Rule("type_switch_statement", "Assign", {"target": "alias", "value": "value .. ')'"}),
        Rule("var_spec", "Assign", {"target": "name", "value": "value/*"}),
        Rule("qualified_type", "Attribute", {"value": "package", "attr": "name"}),
        Rule("selector_expression", "Attribute", {"value": "operand", "attr": "field"}),
        Rule(
            "assignment_statement",
            "AugAssign",
            {"target": f"{_OPERATORS}/^/left/*", "value": f"{_OPERATORS}/^/right/*"},
        ),
        Rule(
            "call_expression",
            "Call",
            {"func": "function .. type_arguments | function", "args": "arguments/*"},
        ),
        Rule("type_conversion_expression", "Call", {"func": "type", "args": "operand"}),
        Rule("communication_case", "Case", {"test": "communication", "body": _BODY}),
        Rule("expression_case", "Case", {"test": "value/*", "body": _BODY}),
        Rule("type_case", "Case", {"test": "type", "body": _BODY}),
        Rule("defer_statement", "Defer", {"defer": "'defer'", "call": "*"}),
        Rule("keyed_element", "Dict", {"key": "key/*", "value": "value/*"}),
        Rule(
            "for_statement/for_clause",
            "For",
            {
                "for": "^/'for'",
                "initializers": "initializer",
                "test": "condition",
                "updaters": "update",
                "body": "^/body",
            },
        ),
        Rule(
            "for_statement/range_clause",
            "For",
            {"for": "^/'for'", "target": "left/*", "iter": "right", "body": "^/body"},
        ),
        Rule("go_statement", "Go", {"go": "'go'", "call": "*"}),
        Rule(
            "if_statement",
            "If",
            {
                "if": "'if'",
                "test": "condition",
                "body": "consequence",
                "else": "'else'",
                "orelse": "alternative",
            },
        ),
        Rule("binary_expression", "InfixExpr", {"left": "left", "right": "right"}),
        Rule("labeled_statement", "LabeledStatement", {"label": "label", "body": "*[1]"}),
        Rule("func_literal", "Lambda", {"params": "parameters/*", "body": "body"}),
        Rule("return_statement", "Return", {"return": "'return'", "value": "*/*"}),
        Rule("send_statement", "Send", {"channel": "channel", "value": "value"}),
        Rule("slice_expression", "Slice", {"lower": "start", "upper": "end"}),
        Rule("variadic_argument", "Spread", {"value": "*", "spread": "'...'"}),
        Rule("call_expression", "Subscript", {"value": "function", "slice": "type_arguments/*"}),
        Rule("generic_type", "Subscript", {"value": "type", "slice": "type_arguments/*"}),
        Rule("index_expression", "Subscript", {"value": "operand", "slice": "index"}),
        Rule("type_instantiation_expression", "Subscript", {"value": "type", "slice": "*[1:]"}),
        Rule("slice_expression", "Subscript", {"value": "operand", "slice": _SLICE}),
        Rule(
            "expression_switch_statement",
            "Switch",
            {"switch": "'switch'", "expr": "value", "statement": _CASES},
        ),
        Rule("select_statement", "Switch", {"switch": "'select'", "statement": _CASES}),
        Rule(
            "type_switch_statement",
            "Switch",
            {"switch": "'switch'", "expr": "value .. ')'", "statement": _CASES},
        ),
        Rule(
            "unary_expression",
            "UnaryOp",
            {"op": "'+ - ! ^ & <-'/^", "operand": "'+ - ! ^ & <-'/^/operand"},
        ),
        Rule(
            "for_statement",
            "While",
            {"while": f"{_WHILE}/^/'for'", "test": f"{_WHILE}<!block>", "body": f"{_WHILE}/^/body"},
        ),
    ),
    backward=BACKWARD - {"Spread:value->spread"} | {"Spread:spread->value"},
    functions={"function_declaration": "body/^/name", "method_declaration": "body/^/name"},
    scopes={"method_declaration": _RECEIVER},
    sketch="func f() { ... }",
    examples={
        "Assign": "x := a + b",
        "Attribute": "obj.name",
        "AugAssign": "x += 1",
        "Call": "f(a, b)",
        "Case": "switch x { case 1: a() }",
        "Defer": "defer f.Close()",
        "Dict": 'ages := map[string]int{"Ada": 36}',
        "For": "for _, x := range s { use(x) }; for i := 0; i < n; i++ { a() }",
        "Go": "go serve(c)",
        "If": "if t { a() } else { b() }",
        "InfixExpr": "x = a + b",
        "LabeledStatement": "outer: for { a() }",
        "Lambda": "f := func(a int) int { return a + 1 }",
        "Return": "return a, b",
        "Send": "c <- x",
        "Slice": "s = s[1:n]",
        "Spread": "f(s...)",
        "Subscript": "x = s[i]",
        "Switch": "switch x { case 1: a() }",
        "UnaryOp": "x = !t",
        "While": "for t { a() }",
    },
)

GO = language_by(
    TABLE,
    name="go",
    title="Go",
    suffixes=(".go",),
    keywords=tuple(
        "break case chan const continue default defer else fallthrough for func go goto if import interface map "
        "package range return select struct switch type var".split()
    ),
    codesearchnet="go",
    editing=editing.GO,
    node_types=tuple(
        "binary_expression call_expression expression_switch_statement for_statement identifier if_statement "
        "interpreted_string_literal parameter_list range_clause return_statement selector_expression".split()
    ),
    same_syntax=(
        ("selector_expression", "Attribute:*"),
        ("argument_list", "Call:*"),
        ("defer_statement", "Defer:*"),
        ("keyed_element", "Dict:*"),
        ("for_statement", "For:* While:*"),
        ("go_statement", "Go:*"),
        ("if_statement", "If:*"),
        ("binary_expression", "InfixExpr:*"),
        ("labeled_statement", "LabeledStatement:*"),
        ("func_literal", "Lambda:*"),
        ("slice_expression", "Slice:*"),
    ),
)
