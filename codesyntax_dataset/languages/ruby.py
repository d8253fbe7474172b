"""Ruby, up to version 3.4."""

from __future__ import annotations

import re

from codesyntax_dataset.languages import editing
from codesyntax_dataset.languages.blocks import by_indentation
from codesyntax_dataset.languages.tables.operators import Level, Operators
from codesyntax_dataset.languages.tables.record import language_by
from codesyntax_dataset.languages.tables.table import BACKWARD, Rule, Table

_CONTINUED = re.compile(
    rb"[ \t]*(?P<break>\n)(?!\s*(?:[])}]|(?:do|else|elsif|end|ensure|in|rescue|then|when)\b))"
)
_STATEMENTS = "*<!empty_statement>"
_IF = {
    "if": "'if elsif unless'",
    "test": "condition",
    "body": f"consequence/{_STATEMENTS}",
    "else": "alternative/'else elsif'",
    "orelse": f"alternative<elsif> | alternative/{_STATEMENTS}",
}
_LOOP = {"while": "'while until'", "test": "condition"}
_LOOP_BEHIND = {
    part: f"{path} unless body<begin>" for part, path in (_LOOP | {"body": "body"}).items()
}
_TRY = {
    "body": "*<!rescue|else|ensure|empty_statement>",
    "handler": "*<rescue>",
    "orelse": f"*<else>/{_STATEMENTS}",
    "finalbody": f"*<ensure>/{_STATEMENTS}",
}
_AFTER_BEGIN = "body<begin>/^/condition"
_ARGUMENTS = "arguments/*"
_KEYWORDS = "pair|hash_splat_argument"
_STRINGS = frozenset(
    "bare_string bare_symbol delimited_symbol heredoc_body regex string subshell".split()
)

_LOCALS = re.compile(rb"->\s*\([^()]*;[^()]*\)")  # names of a lambda alone, `->(a; b) { }`

_LEVELS = (  # of `parse.y`; `rescue` has two orders, which the grammar knows
    Level("left", "if_modifier unless_modifier until_modifier while_modifier"),
    Level("prefix", "break next return"),
    Level("left", "binary", "and or"),
    Level("function", "unary", "not"),
    Level("postfix", "match_pattern test_pattern"),
    Level("function", "unary", "defined?"),
    Level("target", "assignment operator_assignment"),
    Level("right", "conditional"),
    Level("range", "range", ".. ..."),
    Level("left", "binary", "||"),
    Level("left", "binary", "&&"),
    Level("none", "binary", "<=> == === != =~ !~"),
    Level("left", "binary", "< <= > >="),
    Level("left", "binary", "| ^"),
    Level("left", "binary", "&"),
    Level("left", "binary", "<< >>"),
    Level("left", "binary", "+ -"),
    Level("left", "binary", "* / %"),
    Level("prefix", "unary", "-"),
    Level("right", "binary", "**"),
    Level("prefix", "unary", "! ~ +"),
)

TABLE = Table(
    grammar="tree_sitter_ruby",
    functions={"lambda": "^<assignment>/left", "method": "name", "singleton_method": "name"},
    scopes={"class": "name", "module": "name", "singleton_method": "object<!self>"},
    operators=Operators(_LEVELS, wrappers={"argument_list"}, continued={"range": _CONTINUED}),
    brackets=frozenset({"parenthesized_pattern", "parenthesized_statements"}),
    trailing=frozenset({";", "heredoc_body"}),
    whole=_STRINGS,
    interpolated=_STRINGS | {"interpolation"},
    literal=frozenset(
        '" ` / :" #{ } string_content escape_sequence heredoc_content heredoc_end'.split()
    ),
    text=frozenset({"heredoc_body"}),
    flat=frozenset(
        "argument_list block_body block_parameters body_statement do empty_statement in lambda_parameters "
        "method_parameters parenthesized_statements pattern program then".split()
    ),
    backward=BACKWARD - {"If:body->test", "While:body->test"},
    enclosed=(
        re.compile(rb"(?s)\A\s*def\s[^\n=]+[ \t]=[ \t](?P<inside>.*\S)"),  # `def f(x) = puts x`
        re.compile(
            rb"(?m)^\s+(?:\w+[ \t]+)*def[ \t][^\n=]+[ \t]=[ \t](?P<inside>(?!\w+ [-*&\[]\w)[^\n]*[^\s])[ \t]*$"
        ),
        # a command, as in `for x in f y do` and `class << f y`; a name before ` -b` may be a variable
        re.compile(
            rb"(?m)(?:\bfor\s[^\n;]*?\sin\s++|\bclass\s*<<\s*+(?!self\b))"
            rb"(?P<inside>(?!\w+ [-*&\[][\w([])[^\n;]+?)(?=\s+do\b|\s*(?:;|$))"
        ),
        re.compile(rb"->\s*(?P<inside>\w+(?::|\s*=)[^{}()\n]*?)(?=\s*\{)"),  # `-> a: b { }`
        re.compile(rb" &(?P<inside>)(?=\s*(?:}|end\b|\Z))"),  # the block of the method, `f x, &`
    ),
    respelled=((_LOCALS, lambda names: names[0].replace(b";", b",")),),
    refused=r"""
        (call receiver: (call block: (do_block)) @bracketed) ; `f x do end.g { }`
        ([(argument_list (identifier) @refused) (binary left: (identifier) @refused)
          (call !receiver method: (identifier) @refused)]
          (#eq? @refused "do")) ; `f x do end.g do end`
        (call arguments: ((argument_list . (hash)) @refused (#match? @refused "^\\{"))) ; `f { a => b }`, a block
        ((binary left: [(call !arguments) (super) (yield)] operator: "+") @refused
          (#match? @refused "^[@$\\w.:?!]+[ \t]+[+]\\S")) ; `a.b +c`, a call of `b`
        ((call arguments: (argument_list . (block_argument))) @refused
          (#match? @refused "^[@$\\w.:?!]+&[^.&]")) ; `a&b`, taken for `a &b`
        (rescue_modifier body: (assignment left: (left_assignment_list)) @refused) ; the values are rescued
        ((method body: (binary) @refused) (#match? @refused "^[a-z_]\\w*[ ]+[-*&]\\w"))
        ([(for value: (in (binary) @refused)) (singleton_class value: (binary) @refused)]
          (#match? @refused "^[a-z_]\\w*[ ]+[-*&]\\S"))
        (call receiver: (unary) @refused (#match? @refused "^not\\s")) ; `not (a).b`, taken for `not(a).b`
    """,
    rules=(
        Rule("assignment", "Assign", {"target": "left", "value": "right"}),
        Rule("call", "Attribute", {"value": "receiver", "attr": "method"}),
        Rule("scope_resolution", "Attribute", {"value": "scope", "attr": "name"}),
        Rule("operator_assignment", "AugAssign", {"target": "left", "value": "right"}),
        Rule(
            "call",
            "Call",
            {
                "func": "method | receiver",
                "args": f"{_ARGUMENTS} unless {_ARGUMENTS}<{_KEYWORDS}> | {_ARGUMENTS}<!{_KEYWORDS}|block_argument>",
                "keywords": f"{_ARGUMENTS}<{_KEYWORDS}> .. {_ARGUMENTS}<{_KEYWORDS}|block_argument>",
                "block": "block",
            },
        ),
        Rule("in_clause", "Case", {"test": "pattern", "body": f"body/{_STATEMENTS}"}),
        Rule("when", "Case", {"test": "pattern", "body": f"body/{_STATEMENTS}"}),
        Rule("keyword_parameter", "Default", {"name": "name", "value": "value"}),
        Rule("optional_parameter", "Default", {"name": "name", "value": "value"}),
        Rule("hash/pair", "Dict", {"key": "key", "value": "value"}),
        *(
            Rule(
                node,
                "Do",
                {"do": "body/'begin'", "body": f"body<begin>/{_STATEMENTS}", "test": _AFTER_BEGIN},
            )
            for node in ("while_modifier", "until_modifier")
        ),
        Rule(
            "for",
            "For",
            {"for": "'for'", "target": "pattern", "iter": "value/*", "body": f"body/{_STATEMENTS}"},
        ),
        *(Rule(node, "If", _IF) for node in ("if", "unless", "elsif")),
        *(
            Rule(node, "If", {"if": "'if unless'", "test": "condition", "body": "body"})
            for node in ("if_modifier", "unless_modifier")
        ),
        Rule(
            "conditional",
            "IfExp",
            {"test": "condition", "body": "consequence", "orelse": "alternative"},
        ),
        Rule("binary", "InfixExpr", {"left": "left", "right": "right"}),
        Rule("block", "Lambda", {"params": "parameters/*", "body": f"body/{_STATEMENTS}"}),
        Rule("do_block", "Lambda", {"params": "parameters/*", "body": f"body/{_STATEMENTS}"}),
        Rule("lambda", "Lambda", {"params": "parameters/*", "body": f"body/body/{_STATEMENTS}"}),
        Rule("range", "Range", {"lower": "begin", "upper": "end"}),
        Rule("return", "Return", {"return": "'return'", "value": "*/*"}),
        *(
            Rule(node, "Spread", {"spread": "*/^", "value": "*"})
            for node in ("hash_splat_argument", "splat_argument")
        ),
        Rule(
            "element_reference", "Subscript", {"value": "object", "slice": "*[1:]<!block|do_block>"}
        ),
        Rule("case", "Switch", {"switch": "'case'", "expr": "value", "statement": "*<when|else>"}),
        Rule(
            "case_match",
            "Switch",
            {"switch": "'case'", "expr": "value", "statement": "*<in_clause|else>"},
        ),
        Rule("begin", "Try", _TRY),
        Rule("body_statement", "Try", _TRY),
        Rule("rescue_modifier", "Try", {"body": "body", "handler": "'rescue' .. handler"}),
        Rule(
            "unary",
            "UnaryOp",
            {
                "op": "*/^",
                "operand": "operand unless '- +'/^/operand<integer|float|rational|complex>",
            },
        ),
        *(
            Rule(node, "While", _LOOP | {"body": f"body/{_STATEMENTS}"})
            for node in ("while", "until")
        ),
        Rule("while_modifier", "While", _LOOP_BEHIND),
        Rule("until_modifier", "While", _LOOP_BEHIND),
        Rule("yield", "Yield", {"yield": "'yield'", "value": "*/*"}),
    ),
    sketch="def f\n  ...\nend",
    examples={
        "Assign": "x = a + b",
        "Attribute": "obj.name",
        "AugAssign": "x += 1",
        "Call": "f(a, key: 1) { |x| x }",
        "Case": "case x when 1 then a end",
        "Default": "def g(a = 1, k: 2) end",
        "Dict": "x = { k => v }",
        "Do": "begin; a; end while t",
        "For": "for x in s do use(x) end",
        "If": "if t then a else b end; c if t",
        "IfExp": "t ? a : b",
        "InfixExpr": "a + b",
        "Lambda": "s.each { |x| use(x) }",
        "Range": "(1..n)",
        "Return": "return a, b",
        "Spread": "f(*a)",
        "Subscript": "s[i]",
        "Switch": "case x when 1 then a end",
        "Try": "begin; a; rescue E; b; else c; ensure d; end",
        "UnaryOp": "x = !t",
        "While": "while t do a end; a while t",
        "Yield": "yield x",
    },
)

RUBY = language_by(
    TABLE,
    name="ruby",
    title="Ruby",
    suffixes=(".rb",),
    kindred=(".erb", ".gemspec", ".rake", ".ru"),
    program="ruby",
    keywords=tuple(  # reserved words
        "BEGIN END __ENCODING__ __FILE__ __LINE__ alias and begin break case class def defined? do else elsif end "
        "ensure false for if in module next nil not or redo rescue retry return self super then true undef unless "
        "until when while yield".split()
    ),
    blocks=by_indentation,
    codesearchnet="ruby",
    editing=editing.RUBY,
    node_types=tuple(
        "binary block call conditional do_block if if_modifier method_parameters return string unless".split()
    ),
    same_syntax=(
        ("assignment", "Assign:*"),
        ("operator_assignment", "AugAssign:*"),
        ("argument_list", "Call:*"),
        ("pair", "Dict:*"),
        ("for", "For:*"),
        ("conditional", "IfExp:*"),
        ("binary", "InfixExpr:*"),
        ("block_parameters", "Lambda:*"),
        ("range", "Range:*"),
        ("element_reference", "Subscript:*"),
        ("case", "Switch:*"),
        ("rescue", "Try:*"),
        ("yield", "Yield:*"),
    ),
)
