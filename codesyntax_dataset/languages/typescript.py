"""TypeScript: the rules of JavaScript with a grammar that reads types.

Types give no edges but those of names with dots, aliases, and children. The grammar (0.23.2) reads `a || b!` as
`(a || b)!`, `a ?? b as C` as `(a ?? b) as C`, `a as B.C.D` as `(a as B.C).D`, `await f<T>(x).y` as
`(await f)<T>(x).y`, and `a < (b) || (c) > (d)` as a call with types: functions with such nodes are refused. Where a
single call is awaited, `await f<T>(x)`, it is clear what is meant.
"""

from __future__ import annotations

import re
from dataclasses import replace

from codesyntax_dataset.languages import editing
from codesyntax_dataset.languages.javascript import JAVASCRIPT
from codesyntax_dataset.languages.javascript import TABLE as JAVASCRIPT_TABLE
from codesyntax_dataset.languages.language import Dialect
from codesyntax_dataset.languages.tables.record import language_by

_WORDS = "await case delete do else in instanceof new of return throw typeof void yield".replace(" ", "|")
_NAME = rf"(?<![\w$])(?:(?<=\.)|(?!(?:{_WORDS})!))[^\W\d][\w$]*"
_CLOSED = r"(?<=\])|(?<=\))(?=![\s.,;:?)\]}<>=&|*%]|!\Z)"  # not that of `if (a)!b()`
_ASSERTED = re.compile(rf"(?:{_NAME}|{_CLOSED})(?P<sign>!)(?!=[^=>]|==)".encode())
_MISREAD = """
    (non_null_expression
      [(as_expression) (binary_expression) (satisfies_expression) (type_assertion) (unary_expression)] @refused)
    (call_expression function: (non_null_expression (new_expression) @refused))
    (member_expression object: [(as_expression) (satisfies_expression) (unary_expression)] @refused)
    (_ [object: (call_expression function: (await_expression) @refused)
        function: (call_expression function: (await_expression) @refused)])
    (non_null_expression (call_expression function: (await_expression) @refused))
    (as_expression (binary_expression ["??" "||" "&&" "|" "&" "^" "==" "!=" "===" "!=="]) @refused)
    (satisfies_expression (binary_expression ["??" "||" "&&" "|" "&" "^" "==" "!=" "===" "!=="]) @refused)
    (call_expression function: (arrow_function) @refused arguments: (template_string)) ; a tag with types: sql<T>`...`
    ((binary_expression ">" right: (_) @refused) (#match? @refused "^`"))
    (union_type "|" . (union_type . "|") @refused) ; `||` in what it takes for types
    (intersection_type "&" . (intersection_type . "&") @refused)
"""

TABLE = replace(
    JAVASCRIPT_TABLE,
    grammar="tree_sitter_typescript.language_typescript",
    suffixed=_ASSERTED,
    unread=re.compile(  # `I<in out T>`, `export type * from`
        rb"(?<=[<,\s])(?:in|out)(?=\s+(?:out\s+)?[A-Z]\w*\s*(?:[,>=]|extends\b))|(?<=^export )type(?=\s+\*)",
        re.MULTILINE,
    ),
    refused=JAVASCRIPT_TABLE.refused + _MISREAD,
    dialects=(
        Dialect(
            "tree_sitter_typescript.language_tsx",
            JAVASCRIPT_TABLE.refused + _MISREAD.replace("(type_assertion) ", ""),
        ),
    ),
)

TYPESCRIPT = language_by(
    TABLE,
    name="typescript",
    title="TypeScript",
    editing=editing.TYPESCRIPT,
    suffixes=(".ts", ".tsx", ".mts", ".cts"),
    keywords=JAVASCRIPT.keywords
    + tuple("abstract as declare implements interface keyof namespace private protected public readonly type".split()),
    node_types=JAVASCRIPT.node_types,
    same_syntax=JAVASCRIPT.same_syntax,
)
