"""The table of Java's exact labels, up to the version that the grammar reads: lambdas, records,
patterns and so on."""

from __future__ import annotations

import re

from codesyntax_dataset.languages.tables.operators import Level, Operators
from codesyntax_dataset.languages.tables.table import Rule, Table

_ASSIGNED = "'+= -= *= /= %= &= |= ^= <<= >>= >>>='"
_TRY = {"body": "body", "handler": "*<catch_clause>", "finalbody": "*<finally_clause>/*"}
_NUMBER = re.compile(rb"(?<![\w.])\d\w*__\w*")
_FINAL = re.compile(
    rb"\b(?:case\s+|(?:case|instanceof)\b[^;:{}\n]*?[(,]\s*)(?P<name>final\s+[\w.]+)"
)
_RECORD = re.compile(rb"\b(?:case|instanceof)\s+\w+(?:\.\w+)+(?=\()")  # of a scoped type
_SWITCH = "*[1]<expression_statement>/*<switch_expression>"  # the `;` behind is an empty statement
_TYPES = (
    "annotation_type_declaration class_declaration enum_declaration interface_declaration "
    "record_declaration"
).split()
_LEVELS = (Level("prefix", "unary_expression"), Level("postfix", "update_expression"))

TABLE = Table(
    grammar="tree_sitter_java",
    frames=(("class A {", "\n}"), ("record A() {", "\n}")),
    brackets=frozenset({"parenthesized_expression"}),
    operators=Operators(_LEVELS),
    whole=frozenset({"string_literal"}),
    respelled=(
        (_NUMBER, lambda number: number[0].replace(b"_", b"0")),
        (re.compile(rb"(?<!')\\u+[0-9a-fA-F]{4}"), lambda letter: b"_" * len(letter[0])),
    ),
    names=_FINAL,
    completed=((_RECORD, b"<A>"),),
    suspect=re.compile(rb"\)\s*[-+/]"),  # `/` begins a comment
    refused="""
        (cast_expression type: [(type_identifier) (scoped_type_identifier)] ; `f((a.b) - c)` is no cast of `-c`
          value: (unary_expression ["+" "-"]) @refused)
    """,
    flat=frozenset(
        "argument_list class_body formal_parameters inferred_parameters modifiers resource_specification switch_block "
        "throws type_arguments type_parameters".split()
    ),
    rules=(
        Rule("assignment_expression", "Assign", {"target": "'='/^/left", "value": "'='/^/right"}),
        Rule("resource", "Assign", {"target": "name", "value": "value"}),
        Rule("variable_declarator", "Assign", {"target": "name", "value": "value"}),
        Rule("field_access", "Attribute", {"value": "object", "attr": "field"}),
        *(
            Rule(node, "Attribute", {"value": "object", "attr": "*<super>"})
            for node in ("field_access", "method_invocation")
        ),
        Rule("method_invocation", "Attribute", {"value": "object", "attr": "name"}),
        Rule(
            "explicit_constructor_invocation",
            "Attribute",
            {"value": "object", "attr": "constructor"},
        ),
        Rule(
            "method_reference", "Attribute", {"value": "*[0]", "attr": "*[1:]<identifier> | 'new'"}
        ),
        Rule("scoped_identifier", "Attribute", {"value": "scope", "attr": "name"}),
        Rule("scoped_type_identifier", "Attribute", {"value": "*[0]", "attr": "*[-1]"}),
        Rule(
            "assignment_expression",
            "AugAssign",
            {"target": f"{_ASSIGNED}/^/left", "value": f"{_ASSIGNED}/^/right"},
        ),
        Rule(
            "explicit_constructor_invocation",
            "Call",
            {"func": "constructor", "args": "arguments/*"},
        ),
        Rule("method_invocation", "Call", {"func": "name", "args": "arguments/*"}),
        *(
            Rule(node, "Case", {"test": "*<switch_label>/*", "body": "*';'<!switch_label>"})
            for node in ("switch_block_statement_group", "switch_rule")
        ),
        Rule("do_statement", "Do", {"do": "'do'", "body": "body", "test": "condition"}),
        Rule(
            "enhanced_for_statement",
            "For",
            {"for": "'for'", "target": "name", "iter": "value", "body": "body"},
        ),
        Rule(
            "for_statement",
            "For",
            {
                "for": "'for'",
                "initializers": "init<local_variable_declaration> .. init/declarator | init",
                "test": "condition",
                "updaters": "update",
                "body": "body",
            },
        ),
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
        Rule(
            "ternary_expression",
            "IfExp",
            {"test": "condition", "body": "consequence", "orelse": "alternative"},
        ),
        Rule("binary_expression", "InfixExpr", {"left": "left", "right": "right"}),
        Rule(
            "instanceof_expression",
            "InstanceofExpr",
            {"expr": "left", "type": "name/^/right<annotated_type>/*[-1] | right | pattern"},
        ),
        Rule(
            "labeled_statement",
            "LabeledStatement",
            {"label": "*[0]", "body": f"{_SWITCH} | *';'[1]"},
        ),
        Rule(
            "lambda_expression",
            "Lambda",
            {"params": "parameters/* | parameters<identifier>", "body": "body"},
        ),
        Rule(
            "object_creation_expression",
            "New",
            {"class": "type<generic_type>/*[0] | type", "args": "arguments/*"},
        ),
        Rule("throw_statement", "Raise", {"raise": "'throw'", "value": "*"}),
        Rule("return_statement", "Return", {"return": "'return'", "value": "*"}),
        Rule("array_access", "Subscript", {"value": "array", "slice": "index"}),
        Rule(
            "switch_expression",
            "Switch",
            {"switch": "'switch'", "expr": "condition", "statement": "body/*"},
        ),
        Rule("try_statement", "Try", _TRY),
        Rule("try_with_resources_statement", "Try", _TRY),
        Rule("unary_expression", "UnaryOp", {"op": "*/^", "operand": "operand"}),
        Rule("while_statement", "While", {"while": "'while'", "test": "condition", "body": "body"}),
        Rule(
            "try_with_resources_statement",
            "With",
            {"item": "resources/*[0]/value | resources/*[0]", "body": "body"},
        ),
        Rule("yield_statement", "Yield", {"yield": "'yield'", "value": "*"}),
    ),
    functions={
        "compact_constructor_declaration": "name",
        "constructor_declaration": "name",
        "method_declaration": "body/^/name",
    },
    scopes=dict.fromkeys(_TYPES + ["enum_constant"], "name"),
    suites=(("enum A { A; ", "\n}"), ("", "")),
    # CodeSearchNet has the methods of named types
    unpublished=frozenset(
        "block compact_constructor_declaration constructor_declaration enum_constant field_declaration "
        "static_initializer".split()
    ),
    sketch="void f() { ... }",
    examples={
        "Assign": "x = a + b;",
        "Attribute": "obj.name();",
        "AugAssign": "x += 1;",
        "Call": "f(a, b);",
        "Case": "switch (x) { case 1: a(); }",
        "Do": "do { a(); } while (b);",
        "For": "for (String x : s) { use(x); } for (i = 0; i < n; i++) { a(); }",
        "If": "if (t) { a(); } else { b(); }",
        "IfExp": "x = t ? a : b;",
        "InfixExpr": "x = a + b;",
        "InstanceofExpr": "x = a instanceof List;",
        "LabeledStatement": "outer: while (t) { }",
        "Lambda": "g(x -> x + 1);",
        "New": "new Point(a, b);",
        "Raise": "throw e;",
        "Return": "return a + b;",
        "Subscript": "x = s[i];",
        "Switch": "switch (x) { case 1: a(); }",
        "Try": "try { a(); } catch (E e) { b(); } finally { c(); }",
        "UnaryOp": "x = !t;",
        "While": "while (t) { a(); }",
        "With": "try (var in = open(p)) { use(in); }",
        "Yield": "x = switch (y) { default -> { yield 1; } };",
    },
)
