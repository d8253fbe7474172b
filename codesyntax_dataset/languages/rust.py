"""Rust, up to its edition of 2024, by the table of its exact labels. What is in macros has tokens,
but no labels."""

from __future__ import annotations

import re

from codesyntax_dataset.languages import editing
from codesyntax_dataset.languages.tables.operators import Level, Operators
from codesyntax_dataset.languages.tables.record import language_by
from codesyntax_dataset.languages.tables.table import BACKWARD, Rule, Table

# `break (a, b)` is no call
_FUNCTION = "function<generic_function>/function | function<!break_expression>"

_BINARY = "binary_expression"
_LEVELS = (  # of the Rust Reference
    Level("prefix", "break_expression closure_expression return_expression"),
    Level("prefix", "closure_expression", "| ||"),
    Level("right", "assignment_expression compound_assignment_expr"),
    Level("ending", "range_expression", ".. ... ..="),
    Level("left", _BINARY, "||"),
    Level("left", _BINARY, "&&"),
    Level("none", _BINARY, "== != < > <= >="),
    Level("left", _BINARY, "|"),
    Level("left", _BINARY, "^"),
    Level("left", _BINARY, "&"),
    Level("left", _BINARY, "<< >>"),
    Level("left", _BINARY, "+ -"),
    Level("left", _BINARY, "* / %"),
    Level("postfix", "type_cast_expression"),
    Level("prefix", "reference_expression unary_expression", "- ! * & &&"),
    Level("postfix", "call_expression index_expression", "arguments ["),
    Level("postfix", "await_expression field_expression try_expression"),
)

TABLE = Table(
    grammar="tree_sitter_rust",
    operators=Operators(_LEVELS, openings={"arguments", "["}, labels={"label"}),
    brackets=frozenset({"parenthesized_expression"}),
    soft=re.compile(  # names that the grammar takes for keywords
        rb"(?<![#\w])(?:raw\b(?!\s+(?:const|mut)\b)|(?:auto|default|union)\b(?!\s+\w))"
    ),
    respelled=(
        (re.compile(rb"(?<=[{,] )\d+(?=\s*:)"), lambda field: b"x" * len(field[0])),
        (  # `A { a, .. } = b`
            re.compile(rb"(?:[;{}]|\A)\s*[\w:]+\s*\{[^{}]*\.\.\s*\}\s*=(?!=)"),
            lambda assigned: assigned[0].replace(b"..", b"__"),
        ),
    ),
    suspect=re.compile(rb"\.\.|\bbreak\b|[-*!&]\s*return\b|\}\s*\["),
    refused="""
        (assignment_expression left: [(unary_expression) (reference_expression) (binary_expression)] @refused
          (#match? @refused "[.][.]$")) ; `g(-..=a)`
        (binary_expression left: [(range_expression) (break_expression)] operator: ["<" "|"] @refused) ; `a..<B>::c()`
        (unary_expression (return_expression)) @refused ; `*return a = b`
        (expression_statement (assignment_expression
          left: (index_expression . (macro_invocation (token_tree . "{"))) @refused)) ; `a! { }` is a statement
        (block (expression_statement (async_block)) .
          (expression_statement (assignment_expression left: (array_expression))) @refused)
    """,
    enclosed=(  # `where fn(A): B`
        re.compile(
            rb"\bwhere\s+(?P<inside>(?:dyn|impl|fn|unsafe|[!(])[^:{}]*(?:::[^:{}]*)*?)(?=\s*:[^:])"
        ),
        re.compile(  # `..&mut a`, `break [a]`
            rb"(?:\.\.=?|\bbreak(?:\s+'\w+)?)\s*(?P<inside>&(?:raw\s+(?:const|mut)|mut)\s+[\w.]+|\[[^][]*\]"
            rb"|<[\w ]+>(?:::\w+)+\([^()]*\)|\|[^|]*\|\s*(?:\{[^{}]*\}|\w+|\(\)))(?=\s*[;,)}\]])"
        ),
    ),
    completed=(  # `A<-1>`, as `A<{-1}>`
        (re.compile(rb"<(?=-\d\w*\s*[,>])"), b"{"),
        (re.compile(rb"<-\d\w*(?=\s*[,>])"), b"}"),
    ),
    backward=BACKWARD - {"Await:value->await"} | {"Await:await->value"},
    whole=frozenset({"char_literal", "label", "lifetime", "raw_string_literal", "string_literal"}),
    flat=frozenset(
        "arguments closure_parameters else_clause function_modifiers match_block match_pattern parameters source_file "
        "token_tree trait_bounds type_arguments type_parameters".split()
    ),
    rules=(
        Rule(
            "assignment_expression",
            "Assign",
            # `..=n` is `.. = n` to the grammar
            {"target": "left<!range_expression>", "value": "right"},
        ),
        Rule("const_item", "Assign", {"target": "name", "value": "value"}),
        Rule(
            "let_condition",
            "Assign",
            {"target": "pattern<mut_pattern>/*<!mutable_specifier> | pattern", "value": "value"},
        ),
        Rule("let_declaration", "Assign", {"target": "pattern", "value": "value"}),
        Rule("type_item", "Assign", {"target": "name", "value": "type"}),
        Rule("static_item", "Assign", {"target": "name", "value": "value"}),
        Rule("field_expression", "Attribute", {"value": "value", "attr": "field"}),
        Rule("scoped_identifier", "Attribute", {"value": "path", "attr": "name"}),
        Rule("scoped_type_identifier", "Attribute", {"value": "path", "attr": "name"}),
        Rule("compound_assignment_expr", "AugAssign", {"target": "left", "value": "right"}),
        Rule("await_expression", "Await", {"value": "*", "await": "'await'"}),
        Rule(
            "call_expression", "Call", {"func": _FUNCTION, "args": "arguments/*<!attribute_item>"}
        ),
        Rule("match_arm", "Case", {"test": "pattern", "body": "value"}),
        Rule("field_initializer", "Dict", {"key": "field", "value": "value"}),
        Rule(
            "for_expression",
            "For",
            {"for": "'for'", "target": "pattern", "iter": "value", "body": "body"},
        ),
        Rule(
            "if_expression",
            "If",
            {
                "if": "'if'",
                "test": "condition",
                "body": "consequence",
                "else": "alternative/'else'",
                "orelse": "alternative/*",
            },
        ),
        Rule("binary_expression", "InfixExpr", {"left": "left", "right": "right"}),
        *(
            Rule("let_chain", "InfixExpr", {"left": "*[0]", "right": f"*[{index}]"})
            for index in range(1, 10)
        ),
        Rule("block", "LabeledStatement", {"label": "*<label>", "body": "'{' .. '}'"}),
        Rule("for_expression", "LabeledStatement", {"label": "*<label>", "body": "'for' .. body"}),
        Rule(
            "loop_expression", "LabeledStatement", {"label": "*<label>", "body": "'loop' .. body"}
        ),
        Rule(
            "while_expression", "LabeledStatement", {"label": "*<label>", "body": "'while' .. body"}
        ),
        Rule("closure_expression", "Lambda", {"params": "parameters/*", "body": "body"}),
        Rule("range_expression", "Range", {"lower": "*[0]", "upper": "*[1]"}),
        Rule("return_expression", "Return", {"return": "'return'", "value": "*"}),
        Rule("base_field_initializer", "Spread", {"spread": "*/^", "value": "*"}),
        Rule("index_expression", "Subscript", {"value": "*[0]", "slice": "*[1]"}),
        Rule(
            "match_expression",
            "Switch",
            {"switch": "'match'", "expr": "value", "statement": "body/* .. body/*[-1]/value"},
        ),
        Rule("reference_expression", "UnaryOp", {"op": "value/^", "operand": "value"}),
        Rule("negative_literal", "UnaryOp", {"op": "*/^", "operand": "*"}),
        Rule("unary_expression", "UnaryOp", {"op": "*/^", "operand": "*"}),
        Rule("loop_expression", "While", {"while": "'loop'", "body": "body"}),
        Rule(
            "while_expression", "While", {"while": "'while'", "test": "condition", "body": "body"}
        ),
    ),
    functions={"function_item": "name"},
    scopes={"impl_item": "type/type | type", "mod_item": "name", "trait_item": "name"},
    sketch="fn f() { ... }",
    examples={
        "Assign": "let x = a + b;",
        "Attribute": "obj.name;",
        "AugAssign": "x += 1;",
        "Await": "x.await;",
        "Call": "f(a, b);",
        "Case": "match x { 1 => a(), _ => b() }",
        "Dict": "let p = Point { x: 1 };",
        "For": "for x in s { push(x); }",
        "If": "if t { a() } else { b() }",
        "InfixExpr": "x = a + b;",
        "LabeledStatement": "'outer: while t { a(); }",
        "Lambda": "let g = |a| a + 1;",
        "Range": "let r = 1..n;",
        "Return": "return a + b;",
        "Spread": "let p = Point { x: 1, ..q };",
        "Subscript": "x = s[i];",
        "Switch": "match x { 1 => a(), _ => b() }",
        "UnaryOp": "x = !t;",
        "While": "while t { a(); }",
    },
)

RUST = language_by(
    TABLE,
    name="rust",
    title="Rust",
    suffixes=(".rs",),
    keywords=tuple(
        "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod "
        "move mut pub ref return self Self static struct super trait true type unsafe use where while".split()
    ),
    editing=editing.RUST,
    node_types=tuple(
        "binary_expression call_expression for_expression identifier if_expression let_declaration match_expression "
        "parameters return_expression string_literal while_expression".split()
    ),
    same_syntax=(
        ("field_expression", "Attribute:*"),
        ("compound_assignment_expr", "AugAssign:*"),
        ("arguments", "Call:*"),
        ("field_initializer", "Dict:*"),
        ("for_expression", "For:*"),
        ("if_expression", "If:*"),
        ("binary_expression", "InfixExpr:*"),
        ("label", "LabeledStatement:*"),
        ("closure_expression", "Lambda:*"),
        ("range_expression", "Range:*"),
        ("index_expression", "Subscript:*"),
        ("match_expression", "Switch:*"),
    ),
)
