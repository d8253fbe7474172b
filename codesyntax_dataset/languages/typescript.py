"""TypeScript: the rules of JavaScript with a grammar that reads types.

Types give no edges but those of names with dots, aliases, and children. Where the grammar (0.23.2)
groups operators otherwise than the compiler, such as `a || b!`, `a ?? b as C` or `await f<T>(x).y`,
they are regrouped. It reads `a < (b) || (c) > (d)` as a call with types: functions with such nodes
are refused.
"""

from __future__ import annotations

import re
from dataclasses import replace

from codesyntax_dataset.languages import editing
from codesyntax_dataset.languages.javascript import JAVASCRIPT
from codesyntax_dataset.languages.javascript import TABLE as JAVASCRIPT_TABLE
from codesyntax_dataset.languages.language import Dialect
from codesyntax_dataset.languages.tables.operators import Level, Operators
from codesyntax_dataset.languages.tables.record import language_by

_WORDS = "await case delete do else in instanceof new of return throw typeof void yield".replace(
    " ", "|"
)
_NAME = rf"(?<![\w$])(?:(?<=\.)|(?!(?:{_WORDS})!))[^\W\d][\w$]*"
_CLOSED = r"(?<=\])|(?<=\))(?=![\s.,;:?)\]}<>=&|*%]|!\Z)"  # not that of `if (a)!b()`
_ASSERTED = re.compile(rf"(?:{_NAME}|{_CLOSED})(?P<sign>!)(?!=[^=>]|==)".encode())
_TYPES = r"(?:[^<>`]|=>|<(?:[^<>`]|=>|<(?:[^<>`]|=>)*>)*>)*"
_TAGGED = re.compile(  # sql<T>`...`, which is read with brackets around the template
    rf"[\w$.\])]<{_TYPES}>".encode() + rb"(?P<inside>`(?:[^`\\$]|\\.|\$(?!\{)|\$\{[^{}`]*\})*`)",
    re.DOTALL,
)
_MEMBER = re.compile(  # such as `<T>(d: e): f` on the line after `(a: b): c`
    rb"(?<=[^\s(<,=|&?:{;])\s*\n\s*(?=<\s*[A-Za-z_$]|in(?:stanceof)?\s*\??:)"
)
_IMPORT = r"import\s*\([^()\n]*\)(?:\s*\.\s*\w+)?"
_NAMES = re.compile(  # of types, each of several tokens
    rf"(?P<alias>\btype\s[^=;\n]*=[^;\n]*?(?:\(|\.\.\.)(?=import\b))?(?P<name>(?(alias){_IMPORT}|(?!))"
    rf"|{_IMPORT}(?=\s*(?:<|\[\]))|(?<=\btypeof ){_IMPORT}|(?<=\bkeyof ){_IMPORT}|(?<=\bextends ){_IMPORT}"
    rf"|(?<=\bsatisfies ){_IMPORT}|(?<=[<|&(] ){_IMPORT}|(?<=<){_IMPORT}|(?<=\): ){_IMPORT}"
    r"|(?<=[<,\s])(?:in\s+out|in|out)\s+[A-Z]\w*(?=\s*(?:[,>=]|extends\b)))".encode()
)
_KEYWORDS = "any|bigint|boolean|never|number|object|string|symbol|unknown"
_CONTEXTUAL = "module|namespace|type"
_RESPELLED = (
    # `accessor` is read in some places only
    (re.compile(rb"(?<![\w$.])accessor(?=\s+[\w$#\['\"])"), b"readonly"),
    (  # a type of text with escapes, or with other types inside than names
        re.compile(
            rb"\btype\s+[\w$]+(?:<[^;`]*?>)?\s*=\s*(?:[^;`]*?[?:|]\s*)?(?P<text>`(?:[^`\\]|\\.)*`)"
        ),
        lambda alias: (
            alias[0][: alias.start("text") - alias.start()]
            + b"`"
            + re.sub(rb"[^\n]", b"_", alias["text"][1:-1])
            + b"`"
        ),
    ),
)
_SOFT = re.compile(  # names that the grammar takes for keywords
    rf"(?<=[(,])\s*(?:{_KEYWORDS})(?=\s*[,)?:])|(?:(?<=[<(,])|(?<=\.\.\.))\s*(?:{_CONTEXTUAL})(?=\s*[>),\]])"
    r"|(?<![\w$.])accessor(?=\s*(?:[(;:=?!<}]|\n))|\babstract(?=\s*=[^=>])"
    r"|(?:(?<=\blet )|(?<=\byield ))(?:as|satisfies)\b|(?<=\(let )of(?= in\b)"
    r"|(?<![\w$.])(?<![\w$.] )(?:as|satisfies)(?=\s*[=.,;)\]])".encode()
)
_MISREAD = """
    (call_expression function: (non_null_expression (new_expression) @refused))
    (non_null_expression (binary_expression right: (new_expression !arguments)) @refused) ; `a || new B!(c)`
    (non_null_expression (unary_expression (new_expression !arguments)) @refused)
    (non_null_expression (await_expression (new_expression !arguments)) @refused)
    (member_expression object: (as_expression (nested_type_identifier) @bracketed) property: (_) @bracketed)
    (member_expression object: (as_expression) @refused) ; `a as B.C.D`
    (instantiation_expression
      (member_expression object: (as_expression (nested_type_identifier) @bracketed)) (type_arguments) @bracketed)
    (instantiation_expression (as_expression) @refused)
    (member_expression
      object: (satisfies_expression (nested_type_identifier) @bracketed) property: (_) @bracketed)
    (member_expression object: (satisfies_expression) @refused)
    (call_expression function: (as_expression) arguments: (_) @statement)
    (call_expression function: (satisfies_expression) arguments: (_) @statement)
    (call_expression function: [(as_expression) (update_expression)] type_arguments: (_) @refused)
    (subscript_expression object: (as_expression) "[" @statement)
    (lookup_type "[" @statement)
    (type_query (call_expression arguments: (_) @statement))
    (new_expression (call_expression (new_expression)) @refused) ; `new new a(b)(c)`
    (call_expression function: (arrow_function) @refused arguments: (template_string)) ; a tag with types: sql<T>`...`
    ((binary_expression operator: ">" right: (_) @right) @refused (#match? @right "^`")
      (#match? @refused "[^ ]>`"))
    ((binary_expression operator: ">>" right: (_) @right) @refused (#match? @right "^`")
      (#match? @refused "[^ ]>>`"))
    (binary_expression left: (binary_expression operator: "<" right: (unary_expression operator: "typeof"
      argument: (call_expression function: (import)) @name)))
    (binary_expression left: (binary_expression operator: "<"
      right: [(call_expression) (member_expression)] @name) operator: ">" (#match? @name "^import\\s*[(]"))
    (binary_expression operator: "<" right: (binary_expression
      left: [(call_expression) (member_expression)] @name operator: "<") (#match? @name "^import\\s*[(]"))
    (binary_expression left: (binary_expression operator: "<" right: (identifier) @refused) operator: ">"
      right: [(parenthesized_expression) (template_string)] (#any-of? @refused "module" "namespace" "type"))
    (arrow_function return_type: (type_annotation (parenthesized_type [(predefined_type) (type_identifier)]))
      body: (arrow_function parameter: _) @refused) ; `(any) => a` as a type
    (binary_expression left: (instantiation_expression) operator: ["+" "-"] @refused)
    (binary_expression left: (new_expression type_arguments: (_) !arguments) operator: ["+" "-"] @refused)
    (subscript_expression object: (instantiation_expression) @refused)
    (non_null_expression (instantiation_expression) @refused)
    (subscript_expression object: (new_expression type_arguments: (_) !arguments) @refused)
    (call_expression function: (_) @bracketed type_arguments: (type_arguments
      [(union_type . (_) @bracketed . "|" . (union_type . "|") @refused)
       (intersection_type . (_) @bracketed . "&" . (intersection_type . "&") @refused)])) ; `a < (b) || (c) > (d)`
    (union_type "|" . (union_type . "|") @refused) ; `||` in what it takes for types
    (intersection_type "&" . (intersection_type . "&") @refused)
"""

_MISREAD += "".join(  # `x<y, z>(w)`, `x<y, (any) => a>(z)`, `x<y, import("a").B<C>>(z)`
    f"""
    ({node} [(binary_expression operator: "<")
             (assignment_expression right: (binary_expression operator: "<"))] . "," . [
      (binary_expression operator: ">" right: (parenthesized_expression)) @refused
      (arrow_function body: (binary_expression operator: ">" right: (parenthesized_expression))) @refused
      (binary_expression left: [(call_expression) (member_expression)] @name operator: "<")]
      (#match? @name "^import\\s*[(]"))
    """
    for node in ("arguments", "sequence_expression")
)
_WITH_TYPES = (
    "conditional_type constraint constructor_type default_type index_signature intersection_type lookup_type "
    "mapped_type_clause opting_type_annotation optional_type parenthesized_type readonly_type rest_type tuple_type "
    "type_annotation type_arguments type_predicate type_query union_type"
).split()
_MISREAD += '([{}] (#match? @name "^import\\\\s*[(]"))'.format(  # `import("a").B` as a type
    " ".join(
        f"({node} [(call_expression) (member_expression)] @name)"
        for node in (
            *_WITH_TYPES,
            'as_expression "as" .',
            "function_type return_type:",
            'satisfies_expression "satisfies" .',
            "type_alias_declaration value:",
        )
    )
)

_BINARY = "binary_expression"
_LEVELS = (  # of the compiler, which has `as` beside `<`
    Level("left", _BINARY, "|| ??"),
    Level("left", _BINARY, "&&"),
    Level("left", _BINARY, "|"),
    Level("left", _BINARY, "^"),
    Level("left", _BINARY, "&"),
    Level("left", _BINARY, "== != === !=="),
    Level("postfix", "as_expression satisfies_expression"),
    Level("left", _BINARY, "< <= > >= in instanceof"),
    Level("left", _BINARY, "<< >> >>>"),
    Level("left", _BINARY, "+ -"),
    Level("left", _BINARY, "* / %"),
    Level("right", _BINARY, "**"),
    Level("prefix", "await_expression type_assertion unary_expression"),
    Level(
        "postfix",
        "call_expression instantiation_expression member_expression non_null_expression subscript_expression",
    ),
)

TABLE = replace(
    JAVASCRIPT_TABLE,
    grammar="tree_sitter_typescript.language_typescript",
    suffixed=_ASSERTED,
    unread=re.compile(  # `I<in out T>`, `export type * from`
        rb"(?<=[<,\s])(?:in|out)(?=\s+(?:out\s+)?[A-Z]\w*\s*(?:[,>=]|extends\b))|(?<=^export )type(?=\s+\*)",
        re.MULTILINE,
    ),
    suites=(*JAVASCRIPT_TABLE.suites, ("interface A {", "\n}")),
    operators=Operators(_LEVELS),
    enclosed=(_TAGGED,),
    completed=(
        (re.compile(rb"(?<=[\w$])<(?=<[^<>()]*>\()"), b" "),  # `f<<A>(b: A) => c>()`
        (  # `(a): (B) => c => d`, `f<a, (B) => c>(d)`
            re.compile(rb"(?:\)\s*:\s*|<[^<>()\n]*,\s*)\([\w$]+(?=\)\s*=>[^<>()\n]*(?:=>|>\())"),
            b"?",
        ),
    ),
    names=_NAMES,
    respelled=(*JAVASCRIPT_TABLE.respelled, *_RESPELLED),
    soft=_SOFT,
    begins=_MEMBER,
    refused=JAVASCRIPT_TABLE.refused + _MISREAD,
    runs_on=re.compile(b""),  # behind a type, too
    dialects=(Dialect("tree_sitter_typescript.language_tsx", JAVASCRIPT_TABLE.refused + _MISREAD),),
)

TYPESCRIPT = language_by(
    TABLE,
    name="typescript",
    title="TypeScript",
    editing=editing.TYPESCRIPT,
    suffixes=(".ts", ".tsx", ".mts", ".cts"),
    kindred=(".svelte", ".vue"),
    keywords=JAVASCRIPT.keywords
    + tuple(
        "abstract as declare implements interface keyof namespace private protected public readonly type".split()
    ),
    node_types=JAVASCRIPT.node_types,
    same_syntax=JAVASCRIPT.same_syntax,
)
