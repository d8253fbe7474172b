"""TypeScript: the rules of JavaScript with a grammar that reads types.

Types give no edges but those of names with dots, and children. The grammar (0.23.2) reads `a || b!` as `(a || b)!` and
`a as b.c.d` as `(a as b.c).d`, which no code without brackets means: functions with such nodes are refused.
"""

from __future__ import annotations

from dataclasses import replace

from codesyntax_dataset.languages.javascript import JAVASCRIPT
from codesyntax_dataset.languages.javascript import TABLE as JAVASCRIPT_TABLE
from codesyntax_dataset.languages.tables.record import language_by

_MISREAD = (
    *(f"member_expression/{inner}_expression" for inner in ("as", "satisfies", "unary")),
    *(f"non_null_expression/{inner}_expression" for inner in ("as", "binary", "satisfies", "unary")),
    *("non_null_expression/type_assertion", "call_expression/non_null_expression/new_expression"),
)

TABLE = replace(
    JAVASCRIPT_TABLE,
    grammar="tree_sitter_typescript.language_typescript",
    refused=JAVASCRIPT_TABLE.refused.union(_MISREAD),
)

TYPESCRIPT = language_by(
    TABLE,
    name="typescript",
    title="TypeScript",
    suffixes=(".ts", ".mts", ".cts"),
    keywords=JAVASCRIPT.keywords
    + tuple("abstract as declare implements interface keyof namespace private protected public readonly type".split()),
    node_types=JAVASCRIPT.node_types,
    same_syntax=JAVASCRIPT.same_syntax,
)
