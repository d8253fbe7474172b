"""PHP, up to version 8.4: functions, and methods as CodeSearchNet has them, without their class."""

from __future__ import annotations

import re

from codesyntax_dataset.languages import editing
from codesyntax_dataset.languages.language import Dialect
from codesyntax_dataset.languages.tables.operators import Level, Operators
from codesyntax_dataset.languages.tables.record import language_by
from codesyntax_dataset.languages.tables.table import BACKWARD, Rule, Table

# all but `instanceof`
_OPERATORS = "'| + - * / % ** . << >> < > <= >= == != <> === !== <=> & ^ && || and or xor ?? |>'"
_STRINGS = "encapsed_string heredoc nowdoc shell_command_expression string".split()
_LISTS = frozenset(
    "argument arguments attribute_list colon_block formal_parameters match_block named_type program "
    "switch_block".split()
)
_ACCESS = "member_access_expression nullsafe_member_access_expression scoped_property_access_expression".split()
_CALLS = "member_call_expression nullsafe_member_call_expression scoped_call_expression".split()
_HTML = "~[0]<text_interpolation>"
"""The last one of a body with a colon stands behind it in the tree, or behind its clause."""
_COLON = "{0}<!colon_block> | {0}/* .. {1} | {0}/* | {1}"
_BODY = _COLON.format("body", f"body/{_HTML}")
_IF = {"if": "'if elseif'", "test": "condition", "body": _BODY}
_CLAUSES = "else_if_clause|else_clause|text_interpolation"
_ELSE = "{0}<else_if_clause>[0] .. {1} | " + _COLON.format(
    "{0}/body", f"{{0}}<else_clause>/{_HTML}"
)
_ARGUMENTS = "arguments/*<argument>"

_MISREAD = "(if_statement body: (if_statement !alternative) @refused alternative: (_))"  # `else` is of the inner `if`

_BINARY = "binary_expression"
_LEVELS = (  # of `zend_language_parser.y`
    Level("prefix", "throw_expression"),
    Level("prefix", "arrow_function"),
    Level(
        "prefix",
        "include_expression include_once_expression require_expression require_once_expression",
    ),
    Level("left", _BINARY, "or"),
    Level("left", _BINARY, "xor"),
    Level("left", _BINARY, "and"),
    Level("prefix", "print_intrinsic"),
    Level("prefix", "yield_expression"),
    Level("target", "assignment_expression augmented_assignment_expression"),
    Level("left", "conditional_expression"),
    Level("right", _BINARY, "??"),
    Level("left", _BINARY, "||"),
    Level("left", _BINARY, "&&"),
    Level("left", _BINARY, "|"),
    Level("left", _BINARY, "^"),
    Level("left", _BINARY, "&"),
    Level("none", _BINARY, "== != <> === !== <=>"),
    Level("none", _BINARY, "< <= > >="),
    Level("left", _BINARY, "|>"),
    Level("left", _BINARY, "."),
    Level("left", _BINARY, "<< >>"),
    Level("left", _BINARY, "+ -"),
    Level("left", _BINARY, "* / %"),
    Level("prefix", "unary_op_expression", "!"),
    Level("postfix", _BINARY, "instanceof"),
    Level("prefix", "cast_expression error_suppression_expression unary_op_expression"),
    Level("right", _BINARY, "**"),
    Level("prefix", "clone_expression"),
    Level("left", "reference_assignment_expression"),  # of names only
)

TABLE = Table(
    grammar="tree_sitter_php.language_php_only",
    file_grammar="tree_sitter_php.language_php",
    frames=(("class A {", "\n}"), ("", ""), ("if (1) {", "\n;}")),
    refused=_MISREAD,
    dialects=(
        Dialect(
            "tree_sitter_php.language_php",
            _MISREAD,
            frames=(("<?php class A {", "\n}"), ("<?php {", "\n}"), ("<?php {", "\n;}")),
        ),
    ),
    text=frozenset({"text"}),  # outside of PHP
    soft=re.compile(
        rb"(?<![\w$>\\:])(?:(?i:binary|bool(?:ean)?|double|enum|float|int(?:eger)?|object|string|unset)(?=\s*(?:::|;))|readonly(?=\s*\())"
    ),
    enclosed=(
        re.compile(  # `clone -$a`, `(int) match ($a) { }`
            rb"(?:\bclone|\((?:array|bool|float|int|object|string)\))\s+"
            rb"(?P<inside>(?:[-+!~@]\s*[\w$]+(?:\(\))?|clone\s+\$\w+|match\b[^;]*\}"
            rb"|(?:include|require)(?:_once)?\b[^;]*|(?:\$\w+|list\([^()]*\)|\[[^]\[]*\])\s*[-+*/.%?]*=(?![=>])[^;]*))"
            rb"(?=\s*;)"
        ),
        re.compile(rb"(?P<inside>\$\w+\s+instanceof\s+[\w$\\]+)(?=\s+instanceof\b)"),
    ),
    functions={
        "anonymous_function": "^<assignment_expression>/left",
        "arrow_function": "^<assignment_expression>/left",
        "function_definition": "body/^/name",
        "method_declaration": "body/^/name",
    },
    scopes=dict.fromkeys(("class_declaration", "enum_declaration", "trait_declaration"), "name"),
    operators=Operators(_LEVELS, wrappers={"array_element_initializer"}),
    brackets=frozenset({"parenthesized_expression"}),
    # as in PHP's own tokens
    whole=frozenset({*_STRINGS, "qualified_name", "relative_name", "variable_name"}),
    interpolated=frozenset("encapsed_string heredoc heredoc_body shell_command_expression".split()),
    literal=frozenset(
        '" ` { } <<< string_content escape_sequence heredoc_start heredoc_end'.split()
    ),
    flat=_LISTS,
    backward=BACKWARD - {"For:iter->target"} | {"For:target->iter"},
    rules=(
        Rule("assignment_expression", "Assign", {"target": "left", "value": "right"}),
        Rule("reference_assignment_expression", "Assign", {"target": "left", "value": "right"}),
        Rule("const_element", "Assign", {"target": "*[0]", "value": "*[1]"}),
        Rule("property_element", "Assign", {"target": "name", "value": "default_value"}),
        Rule("static_variable_declaration", "Assign", {"target": "name", "value": "value"}),
        Rule(
            "class_constant_access_expression",
            "Attribute",
            {"value": "*[0] unless ^<use_as_clause|use_instead_of_clause>", "attr": "*[1]"},
        ),
        *(
            Rule(node, "Attribute", {"value": "object | scope", "attr": "name"})
            for node in _ACCESS + _CALLS
        ),
        Rule("augmented_assignment_expression", "AugAssign", {"target": "left", "value": "right"}),
        *(
            Rule(
                node,
                "Call",
                {
                    "func": "function | name",
                    "args": f"{_ARGUMENTS}[!name]/*",
                    "keywords": f"{_ARGUMENTS}[name]",
                },
            )
            for node in ("function_call_expression", *_CALLS)
        ),
        Rule("exit_statement", "Call", {"func": "'exit'", "args": "*"}),
        Rule("unset_statement", "Call", {"func": "'unset'", "args": "*"}),
        Rule(
            "case_statement",
            "Case",
            {"test": "value", "body": f"*[1:] .. {_HTML} | *[1:] | {_HTML}"},
        ),
        Rule(
            "match_conditional_expression",
            "Case",
            {"test": "conditional_expressions/*", "body": "return_expression"},
        ),
        Rule("property_promotion_parameter", "Default", {"name": "name", "value": "default_value"}),
        Rule("simple_parameter", "Default", {"name": "name", "value": "default_value"}),
        Rule(
            "array_creation_expression/array_element_initializer",
            "Dict",
            {"key": "'=>'/^/*[0]", "value": "'=>'/~"},
        ),
        Rule("do_statement", "Do", {"do": "'do'", "body": "body", "test": "condition"}),
        Rule(
            "foreach_statement",
            "For",
            {
                "for": "'foreach'",
                "iter": "*[0]",
                "target": "*[1]",
                "body": f"{_BODY} | ';' unless body",
            },
        ),
        Rule(
            "for_statement",
            "For",
            {
                "for": "'for'",
                "initializers": "initialize",
                "test": "condition",
                "updaters": "update",
                "body": f"':'/~ | {_BODY} | ';'[2] unless 'endfor'",
            },
        ),
        Rule(
            "if_statement",
            "If",
            _IF
            | {
                "else": "alternative[0]/'else elseif'",
                "orelse": _ELSE.format("alternative", f"*<{_CLAUSES}>[-1]"),
            },
        ),
        Rule(
            "else_if_clause",
            "If",
            _IF
            | {
                "body": _COLON.format("body", _HTML),
                "else": "~<else_if_clause|else_clause>[0]/'else elseif'",
                "orelse": _ELSE.format("~", "~[-1]"),
            },
        ),
        Rule(
            "conditional_expression",
            "IfExp",
            {"test": "condition", "body": "body", "orelse": "alternative"},
        ),
        Rule("binary_expression", "InfixExpr", {"left": "left", "right": f"{_OPERATORS}/^/right"}),
        Rule(
            "binary_expression", "InstanceofExpr", {"expr": "left", "type": "'instanceof'/^/right"}
        ),
        Rule("anonymous_function", "Lambda", {"params": "parameters/*", "body": "body"}),
        Rule("arrow_function", "Lambda", {"params": "parameters/*", "body": "body"}),
        Rule(
            "object_creation_expression",
            "New",
            {"class": "*<!arguments>[0]", "args": "*<arguments>/*/*"},
        ),
        Rule("anonymous_class", "New", {"class": "'class'", "args": "*<arguments>/*/*"}),
        Rule("throw_expression", "Raise", {"raise": "'throw'", "value": "*"}),
        Rule("return_statement", "Return", {"return": "'return'", "value": "*"}),
        Rule("variadic_unpacking", "Spread", {"spread": "*/^", "value": "*"}),
        Rule("subscript_expression", "Subscript", {"value": "*[0]", "slice": "*[1]"}),
        Rule(
            "match_expression",
            "Switch",
            {"switch": "'match'", "expr": "condition", "statement": "body/*"},
        ),
        Rule(
            "switch_statement",
            "Switch",
            {
                "switch": "'switch'",
                "expr": "condition",
                "statement": "body/*<!text_interpolation>[0] .. body/*[-1]",
            },
        ),
        Rule(
            "try_statement",
            "Try",
            {"body": "body", "handler": "*<catch_clause>", "finalbody": "*<finally_clause>/body"},
        ),
        Rule("unary_op_expression", "UnaryOp", {"op": "*/^", "operand": "*"}),
        Rule("while_statement", "While", {"while": "'while'", "test": "condition", "body": _BODY}),
        Rule(
            "yield_expression",
            "Yield",
            {"yield": "*/^", "value": "*<array_element_initializer>/* | *"},
        ),
    ),
    sketch="public function f() { ... }",
    examples={
        "Assign": "$x = $a + $b;",
        "Attribute": "$o->name;",
        "AugAssign": "$x += 1;",
        "Call": "f($a, key: 1);",
        "Case": "switch ($x) { case 1: a(); }",
        "Default": "$f = fn($a = 1) => $a;",
        "Dict": "$x = ['k' => $v];",
        "Do": "do { a(); } while ($t);",
        "For": "foreach ($s as $x) { use_it($x); } for ($i = 0; $i < $n; $i++) { a(); }",
        "If": "if ($t) { a(); } else { b(); }",
        "IfExp": "$x = $t ? $a : $b;",
        "InfixExpr": "$x = $a + $b;",
        "InstanceofExpr": "$x = $a instanceof Point;",
        "Lambda": "$f = fn($a) => $a + 1;",
        "New": "new Point($a, $b);",
        "Raise": "throw $e;",
        "Return": "return $a + $b;",
        "Spread": "f(...$a);",
        "Subscript": "$x = $s[$i];",
        "Switch": "switch ($x) { case 1: a(); }",
        "Try": "try { a(); } catch (E $e) { b(); } finally { c(); }",
        "UnaryOp": "$x = !$t;",
        "While": "while ($t) { a(); }",
        "Yield": "yield $x;",
    },
)

PHP = language_by(
    TABLE,
    name="php",
    title="PHP",
    suffixes=(".php",),
    kindred=(".inc", ".phpt", ".phtml"),
    program="php",
    keywords=tuple(  # reserved words of PHP 8.4 that stand in functions, but for seldom ones, and literals
        "and array as break case catch class clone const continue default do echo else elseif empty endfor endforeach "
        "endif endswitch endwhile eval exit extends false finally fn for foreach function global if include "
        "include_once instanceof isset list match new null or parent print private protected public readonly require "
        "require_once return self static switch throw true try unset use while yield".split()
    ),
    codesearchnet="php",
    editing=editing.PHP,
    node_types=tuple(
        "binary_expression conditional_expression for_statement foreach_statement formal_parameters if_statement "
        "parenthesized_expression return_statement string variable_name while_statement".split()
    ),
    same_syntax=(
        ("augmented_assignment_expression", "AugAssign:*"),
        ("arguments", "Call:*"),
        ("do_statement", "Do:*"),
        ("for_statement", "For:*initializers* For:*test* For:*updaters*"),
        ("foreach_statement", "For:*iter* For:*target*"),
        ("if_statement", "If:*"),
        ("conditional_expression", "IfExp:*"),
        ("object_creation_expression", "New:*"),
        ("subscript_expression", "Subscript:*"),
        ("try_statement", "Try:*"),
        ("while_statement", "While:*"),
        ("yield_expression", "Yield:*"),
    ),
)
