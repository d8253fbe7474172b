"""JavaScript, as of ECMAScript 2025, with JSX, by the table of its exact labels; the rules are
TypeScript's, too."""

from __future__ import annotations

import re

from codesyntax_dataset.languages import editing
from codesyntax_dataset.languages.language import Dialect
from codesyntax_dataset.languages.tables.record import language_by
from codesyntax_dataset.languages.tables.table import Rule, Table

_INFIX = "'| & ^ + - * / % ** << >> >>> && || ?? == != === !== < <= > >= in'/^"
_ARGUMENTS = "arguments<arguments>/* | arguments<template_string>"
_LAMBDA = {"params": "parameters/* | parameter", "body": "body"}
_PARAMETERS = ("required_parameter", "optional_parameter")  # of TypeScript
_MISREAD = """
    (program (statement_block) @refused) ; a method, whose name and parameters look like a call
    ((call_expression function: (identifier) @refused) (#eq? @refused "await")) ; such as `await (a).b`
    (call_expression function: [(arrow_function) (update_expression)] arguments: (_) @statement)
    (subscript_expression object: [(arrow_function) (update_expression)] "[" @statement)
    (binary_expression left: (arrow_function) operator: _ @statement)
    (binary_expression right: (arrow_function) @refused)
    (expression_statement . (object . "{" @opened)) ; a block
    (arrow_function body: (object . "{" @opened))
    ((ERROR) . (expression_statement . (template_string)) @statement)
"""
_TYPED = """
    [(as_expression) (non_null_expression) (satisfies_expression) (type_annotation) (type_arguments)
     (type_parameters)] @refused ; TypeScript's grammar reads all of JavaScript, and types
"""
_NAME = (  # of a function or class that is a value
    "^<variable_declarator>/name | ^<assignment_expression>/left | ^<pair>/key | ^<field_definition>/property | "
    "^<public_field_definition>/name | name | ^<export_statement>/'default'"
)
_BLOCK = "body<statement_block|parenthesized_expression|jsx_element|jsx_self_closing_element>/^"
_CALLED = f"{_BLOCK}/^<arguments>/^<call_expression>"
_LABEL = f"{_BLOCK}/^<arguments>/*[0]<string|template_string>"
_CALLBACK = (  # `const F = memo(() => {...})`, `const F = memo(forwardRef(() => {...}))`, `app.get("/", () => {...})`
    f"{_CALLED}/^<variable_declarator>/name | {_CALLED}/^<arguments>/^<call_expression>/^<variable_declarator>/name | "
    f"{_CALLED}/function<identifier> .. {_LABEL} | {_CALLED}/function/object<identifier|this>/^ .. {_LABEL} | "
    f"{_CALLED}/function/property .. {_LABEL}"
)

TABLE = Table(
    grammar="tree_sitter_javascript",
    frames=(("", ""), ("class A {", "\n}")),
    brackets=frozenset({"parenthesized_expression", "parenthesized_type"}),
    whole=frozenset({"regex", "string", "template_literal_type", "template_string"}),
    interpolated=frozenset({"template_string", "template_substitution"}),
    literal=frozenset("` string_fragment escape_sequence ${ }".split()),
    text=frozenset({"jsx_text"}),
    flat=frozenset(
        "arguments asserts_annotation class_body else_clause enum_body formal_parameters optional_chain program "
        "switch_body type_annotation type_arguments type_parameters type_predicate_annotation".split()
    ),
    respelled=(  # `&` in the text of an attribute
        (re.compile(rb"(?<=\w=)\"[^\"\n]*\""), lambda text: text[0].replace(b"&", b"_")),
    ),
    refused=_MISREAD,
    runs_on=re.compile(
        rb"[}+-](?:\s*(?://[^\n]*|/\*(?:[^*]|\*(?!/))*\*/))*[ \t]*\r?\n\s*(?:[(\[`+-]|/(?![/*]))"
    ),
    dialects=(Dialect("tree_sitter_typescript.language_tsx", _MISREAD + _TYPED),),
    functions=dict.fromkeys(
        "arrow_function function_declaration function_expression generator_function generator_function_declaration "
        "method_definition".split(),
        _NAME,
    ),
    callbacks=dict.fromkeys(("arrow_function", "function_expression"), _CALLBACK),
    scopes=dict.fromkeys(
        "abstract_class_declaration class class_declaration internal_module object".split(), _NAME
    ),
    suites=(("", ""), ("class A {", "\n}"), ("({", "\n})")),
    rules=(
        Rule("assignment_expression", "Assign", {"target": "left", "value": "right"}),
        Rule("enum_assignment", "Assign", {"target": "name", "value": "value"}),
        Rule("field_definition", "Assign", {"target": "property", "value": "value"}),
        Rule("type_alias_declaration", "Assign", {"target": "name", "value": "value"}),
        Rule("public_field_definition", "Assign", {"target": "name", "value": "value"}),
        Rule("variable_declarator", "Assign", {"target": "name", "value": "value"}),
        Rule("member_expression", "Attribute", {"value": "object", "attr": "property"}),
        Rule(
            "nested_identifier",
            "Attribute",
            {"value": "object unless ^<internal_module|module>", "attr": "property"},
        ),
        Rule("nested_type_identifier", "Attribute", {"value": "module", "attr": "name"}),
        Rule("augmented_assignment_expression", "AugAssign", {"target": "left", "value": "right"}),
        Rule(
            "await_expression",
            "Await",
            {"await": "'await' unless */'using'", "value": "* .. ^<call_expression>/arguments | *"},
        ),
        Rule("call_expression", "Call", {"func": "function", "args": _ARGUMENTS}),
        Rule("switch_case", "Case", {"test": "value", "body": "body"}),
        Rule("formal_parameters/assignment_pattern", "Default", {"name": "left", "value": "right"}),
        *(Rule(node, "Default", {"name": "pattern", "value": "value"}) for node in _PARAMETERS),
        Rule("pair", "Dict", {"key": "key", "value": "value"}),
        Rule("do_statement", "Do", {"do": "'do'", "body": "body", "test": "condition"}),
        Rule(
            "for_in_statement",
            "For",
            {"for": "'for'", "target": "left", "iter": "right", "body": "body"},
        ),
        Rule(
            "for_statement",
            "For",
            {
                "for": "'for'",
                "initializers": "initializer .. initializer/*<variable_declarator> | initializer<!empty_statement>",
                "test": "condition<!empty_statement>",
                "updaters": "increment",
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
                "else": "alternative/'else'",
                "orelse": "alternative/*",
            },
        ),
        Rule(
            "ternary_expression",
            "IfExp",
            {"test": "condition", "body": "consequence", "orelse": "alternative"},
        ),
        Rule(
            "binary_expression", "InfixExpr", {"left": f"{_INFIX}/left", "right": f"{_INFIX}/right"}
        ),
        Rule(
            "binary_expression",
            "InstanceofExpr",
            {"expr": "'instanceof'/^/left", "type": "'instanceof'/^/right"},
        ),
        Rule("labeled_statement", "LabeledStatement", {"label": "label", "body": "body"}),
        Rule("arrow_function", "Lambda", _LAMBDA),
        Rule("function_expression", "Lambda", _LAMBDA),
        Rule("generator_function", "Lambda", _LAMBDA),
        Rule("new_expression", "New", {"class": "constructor", "args": "arguments/*"}),
        Rule("throw_statement", "Raise", {"raise": "'throw'", "value": "*"}),
        Rule("return_statement", "Return", {"return": "'return'", "value": "*"}),
        Rule("spread_element", "Spread", {"spread": "*/^", "value": "*"}),
        Rule("subscript_expression", "Subscript", {"value": "object", "slice": "index"}),
        Rule(
            "switch_statement",
            "Switch",
            {"switch": "'switch'", "expr": "value", "statement": "body/*"},
        ),
        Rule(
            "try_statement",
            "Try",
            {"body": "body", "handler": "handler", "finalbody": "finalizer/body"},
        ),
        Rule("unary_expression", "UnaryOp", {"op": "*/^", "operand": "argument"}),
        Rule("while_statement", "While", {"while": "'while'", "test": "condition", "body": "body"}),
        Rule("yield_expression", "Yield", {"yield": "'yield'", "value": "*"}),
    ),
    sketch="async function* f() { ... }",
    examples={
        "Assign": "x = a + b;",
        "Attribute": "obj.name;",
        "AugAssign": "x += 1;",
        "Await": "await x;",
        "Call": "f(a, b);",
        "Case": "switch (x) { case 1: a(); }",
        "Default": "g((a = 1) => a);",
        "Dict": "x = {k: v};",
        "Do": "do { a(); } while (b);",
        "For": "for (const x of s) { use(x); } for (i = 0; i < n; i++) { a(); }",
        "If": "if (t) { a(); } else { b(); }",
        "IfExp": "x = t ? a : b;",
        "InfixExpr": "x = a + b;",
        "InstanceofExpr": "x = a instanceof Map;",
        "LabeledStatement": "outer: while (t) { }",
        "Lambda": "g(x => x + 1);",
        "New": "new Point(a, b);",
        "Raise": "throw e;",
        "Return": "return a + b;",
        "Spread": "x = [...s];",
        "Subscript": "x = s[i];",
        "Switch": "switch (x) { case 1: a(); }",
        "Try": "try { a(); } catch (e) { b(); } finally { c(); }",
        "UnaryOp": "x = !t;",
        "While": "while (t) { a(); }",
        "Yield": "yield x;",
    },
)

JAVASCRIPT = language_by(
    TABLE,
    name="javascript",
    title="JavaScript",
    editing=editing.JAVASCRIPT,
    suffixes=(".js", ".mjs", ".cjs", ".jsx"),
    kindred=(".svelte", ".vue"),
    program="node",
    keywords=tuple(
        "async await break case catch class const continue debugger default delete do else enum export extends false "
        "finally for function if import in instanceof let new null of return static super switch this throw true try "
        "typeof undefined var void while with yield".split()
    ),
    codesearchnet="javascript",
    node_types=tuple(
        "arrow_function binary_expression for_in_statement for_statement formal_parameters identifier if_statement "
        "return_statement string ternary_expression while_statement".split()
    ),
    same_syntax=(
        ("member_expression", "Attribute:*"),
        ("augmented_assignment_expression", "AugAssign:*"),
        ("arguments", "Call:*"),
        ("pair", "Dict:*"),
        ("do_statement", "Do:*"),
        ("for_in_statement", "For:*iter*"),
        ("for_statement", "For:*updaters*"),
        ("if_statement", "If:*"),
        ("ternary_expression", "IfExp:*"),
        ("binary_expression", "InfixExpr:* InstanceofExpr:*"),
        ("labeled_statement", "LabeledStatement:*"),
        ("new_expression", "New:*"),
        ("subscript_expression", "Subscript:*"),
        ("switch_statement", "Switch:*"),
        ("try_statement", "Try:*"),
        ("while_statement", "While:*"),
        ("yield_expression", "Yield:*"),
    ),
)
