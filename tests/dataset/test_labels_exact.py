"""Exact labels: golden pairs, each construct's example, each language's own parser, and code that does not parse."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from functools import cache

import pytest
from support.labels.golden_pairs import GOLDEN, cases, spell_edges, spell_tokens
from support.references.reference_parsers import compared, places

from codesyntax_dataset import annotate, tokenize
from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages.go import TABLE as GO
from codesyntax_dataset.languages.java.exact import TABLE as JAVA
from codesyntax_dataset.languages.javascript import TABLE as JAVASCRIPT
from codesyntax_dataset.languages.php import TABLE as PHP
from codesyntax_dataset.languages.python.exact import TABLE as PYTHON
from codesyntax_dataset.languages.ruby import TABLE as RUBY
from codesyntax_dataset.languages.rust import TABLE as RUST
from codesyntax_dataset.languages.tables.constructs import CHILDREN, CONSTRUCTS
from codesyntax_dataset.languages.tables.parts import compiled
from codesyntax_dataset.languages.typescript import TABLE as TYPESCRIPT
from codesyntax_dataset.languages.variants import EXACT, INTERPOLATED
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import read

TABLES = {
    "python": PYTHON,
    "java": JAVA,
    "javascript": JAVASCRIPT,
    "typescript": TYPESCRIPT,
    "go": GO,
    "php": PHP,
    "ruby": RUBY,
    "rust": RUST,
}
"""Language -> its table."""

INTERPOLATING = [name for name, table in TABLES.items() if table.interpolated]

every_language = pytest.mark.parametrize("language", TABLES)


def exact(code, language):
    return annotate(code, language, EXACT.name)


@cache
def sample(language, variant):
    """The functions of the sample with their labels."""
    codes = [function.code for function in read("sample", language, Skips())]
    return [(code, annotate(code, language, variant)) for code in codes]


def golden():
    return [
        pytest.param(language, *case.values, id=f"{language}-{case.id}")
        for language in TABLES
        for case in cases(language, of=[EXACT.name, INTERPOLATED.name])
    ]


@pytest.mark.parametrize("language, code, variant, tokens, edges", golden())
@pytest.mark.slow
def test_golden_pairs(language, code, variant, tokens, edges):
    annotation = annotate(code, language, variant)
    assert spell_tokens(annotation.tokens) == tokens
    assert spell_edges(annotation) == edges


def test_golden_pairs_are_of_registered_languages():
    """Those of another are not compared."""
    for folder in {*GOLDEN.iterdir()} - {GOLDEN / "pairs"}:  # which has minimal pairs
        assert folder.name in TABLES, (
            f"register {folder.name} in codesyntax_dataset/languages/__init__.py and above"
        )


@every_language
def test_the_example_of_a_construct_has_its_relations(language):
    table, missing = TABLES[language], {}
    constructs = dict.fromkeys(rule.construct for rule in table.rules)
    assert set(table.examples) == set(constructs)
    for construct in constructs:
        edges = exact(table.sketch.replace("...", table.examples[construct]), language).edges
        expected = {
            relation.name
            for relation in table.relations
            if relation.name.split(":")[0] == construct
        }
        assert expected
        missing[construct] = expected - {edge.relation for edge in edges}
    assert {construct: names for construct, names in missing.items() if names} == {}


def test_every_construct_is_one_of_some_language():
    assert {rule.construct for table in TABLES.values() for rule in table.rules} <= set(CONSTRUCTS)


@pytest.mark.slow
@every_language
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.long), 2])
def test_the_sample_by_the_language_s_own_parser(language, step):
    """Edge for edge, but those of any nodes, which each parser has its own of; of each function, or each second one."""
    reference = importlib.import_module(f"reference.{language}")
    differing, edges = Counter(), 0
    for code, ours in sample(language, compared(language))[::step]:
        theirs = reference.edges(code, ours.tokens)
        edges += sum(theirs.values())
        differing.update((places(ours) - theirs) + (theirs - places(ours)))
    assert edges > 300
    assert differing == {}


@pytest.mark.slow
@every_language
def test_tokens_and_edges_of_the_sample(language):
    """Tokens are all that is no white space and no comment; edges point forward; every relation occurs."""
    relations = set()
    for code, (tokens, edges) in sample(language, EXACT.name):
        assert tokens == tokenize(code, language, EXACT.name)
        assert all(code[token.start : token.end] == token.text != "" for token in tokens)
        assert all(edge.head < edge.first <= edge.last < len(tokens) for edge in edges)
        relations |= {edge.relation for edge in edges}
    assert relations <= {relation.name for relation in TABLES[language].relations}


@pytest.mark.slow
@pytest.mark.parametrize("language", INTERPOLATING)
def test_interpolation_adds_what_is_inside_of_strings_and_nothing_else(language):
    functions = Counter()
    both = zip(sample(language, EXACT.name), sample(language, INTERPOLATED.name))
    for (code, whole), (_, opened) in both:
        assert opened.tokens == tokenize(code, language, INTERPOLATED.name)
        strings = [token for token in whole.tokens if token not in opened.tokens]
        functions[bool(strings)] += 1
        spans = {(token.start, token.end): "" for token in strings}
        for token in opened.tokens:
            if token not in whole.tokens:
                [around] = [
                    span for span in spans if span[0] <= token.start and token.end <= span[1]
                ]
                spans[around] += token.text
        assert ["".join(text.split()) for text in spans.values()] == [
            "".join(token.text.split()) for token in strings
        ]
        assert not places(whole) - places(opened)
        for _, head, start, end in places(opened) - places(whole):
            assert any(
                span[0] < head <= span[1] and span[0] < start and end < span[1] for span in spans
            )
        if not strings:
            assert opened == whole
    assert functions[True] > 0
    assert functions[False] > 0


def names_and_nodes(tree):
    """Those of a tree in the order of the text, but for strings, lists and constants."""
    left = isinstance(tree, (ast.JoinedStr, ast.FormattedValue, ast.List, ast.Constant, ast.Load))
    inside = [name for child in ast.iter_child_nodes(tree) for name in names_and_nodes(child)]
    return inside if left else [getattr(tree, "id", type(tree).__name__), *inside]


@pytest.mark.parametrize(
    "string",
    [
        "f'a {x.y!r:>{w[0]}.{g(p)}} ({q}) {{z}} {s = } {t!s}'",
        "f'{x:%H:%M}{ {1: y.z}[1] }{(lambda v: v + 1)(2):a{b}c}{a != b} {a if b else c:.3f}'",
        "f'{f\"{deep.er}\"} {(*s, t)}' + F'é{ü.ö}é'.join(f'{[k for k in m if not k]}')",
        "rf'''\\d\n{\nu\n}\n''' % f'{x = :d}'",
    ],
)
def test_expressions_in_strings_by_python_s_parser(string):
    """They are labelled like the elements of a list in place of the string, whose text becomes brackets and commas."""
    code = listed = f"def f(x):\n    return {string}\n"
    labels = annotate(code, "python", INTERPOLATED.name)
    for piece, start, end in labels.tokens:
        if re.search("['\"{}]", piece) and piece not in ("{", "}"):  # of a dictionary
            opens = "[" if piece[0] not in "}!=:" else ","
            bracket = opens.ljust(end - start) if piece[-1] == "{" else "]".rjust(end - start)
            listed = listed[:start] + bracket + listed[end:]
    assert names_and_nodes(ast.parse(listed)) == names_and_nodes(ast.parse(code))
    theirs = importlib.import_module("reference.python").edges(
        listed, exact(listed, "python").tokens
    )
    assert places(labels) == theirs
    assert theirs.total() > 1


def test_a_format_that_begins_with_an_equals_sign_is_no_assignment():
    edges = annotate("def f(x):\n    return f'{x:=9}{(y:=9)}'\n", "python", INTERPOLATED.name).edges
    assert [edge.head for edge in edges if edge.relation == "Assign:target->value"] == [13]


@every_language
@pytest.mark.parametrize("code", ["(", "\0", "a\0b", "\ud800", "x = '\ud800'", "}{", "\ufeff ( é"])
def test_code_that_does_not_parse_is_refused(language, code):
    with pytest.raises(ParseError):
        exact(code, language)


@pytest.mark.parametrize(
    "language, code, line, column",
    [
        ("python", "def f(x):\n    return x\n    y = = 1\n", 3, 8),
        ("java", "void f() {\n  g();\n  x = = a;\n}", 3, 6),
        ("javascript", "function f(a) {\n  g(a);\n  x = = a;\n}", 3, 6),
        ("typescript", "function f(a: T) {\n  let b: = a;\n}", 2, 7),
        ("go", "func f() {\n\tg()\n\tif x { y( }\n}", 3, 9),
        ("php", "function f() {\n  g();\n  $x = ;\n}", 3, 5),
        ("ruby", "def f\n  g\n  x = )\nend", 3, 4),
        ("rust", "fn f() {\n    g();\n    let x = ;\n}", 3, 10),
    ],
)
def test_what_cannot_be_read_has_its_place(language, code, line, column):
    with pytest.raises(ParseError) as refused:
        exact(code, language)
    assert (refused.value.line, refused.value.column) == (line, column)


@pytest.mark.parametrize(
    "language, misread, read",
    [
        ("java", "void f() { g((a.b) - c * d); }", "void f() { g(((a.b)) - c * d); }"),
        ("java", "void f() { g((a.b) /* e */ - c); }", "void f() { g(((a.b)) - c); }"),
        (
            "php",
            "function f() { if ($a) if ($b) c(); else d(); }",
            "function f() { if ($a) { if ($b) c(); else d(); } }",
        ),
        ("ruby", "x = a&b", "x = a & b"),
        ("ruby", "x = @a.c&b", "x = @a.c & b"),
        ("ruby", "x = not (a).b", "x = not((a).b)"),
        ("ruby", "x = a.b +c", "x = a.b(+c)"),
        ("ruby", "a.b { c => d }", "a.b { (c => d) }"),
        ("typescript", "x = f<T>! + g", "x = (f < T) > !(+g)"),
        ("typescript", "x = a++ <T>(b)", "x = (a++) < T > (b)"),
        ("typescript", "x = new new a(b)(c)", "x = new (new a(b))(c)"),
    ],
)
def test_what_a_grammar_misreads_is_refused(language, misread, read):
    assert exact(read, language).edges
    with pytest.raises(ParseError):
        exact(misread, language)


READ = {
    "go": [
        "func f() { x = new(a + 1); y = new([]int); z = new(g(b)) }",
        "func f() { x = new([]T{{a: b.c}}); y = new(<-d); z = new([]byte(e)); w = new(struct{ g int }) }",
        "func f() { x = *a[b, c]; *d[e, g] = h }",
        'func f() { var (a = "x"); const (b, c = 1, 2) }',
    ],
    "java": [
        "int f() { return 1__2 + 0xFF__FFL + 0b1__0; }",
        "double f() { return 1__0.0 + 2_3; }",
        "class A extends B { A(o p) { p.super(m); } }",
        "boolean f() { return a instanceof @A B c && d instanceof final E.F g; }",
        "void f() { enum A { B(1), C { int d = 2; }; A(int b) { } } }",
        "Object f() { x = @A B::new; g(@A(c = d) B[]::new, @A B::e); return @A B::new; }",
    ],
    "javascript": [
        "function f() { { a: b } if (c) { d: e } }",
        "() => { a: b }",
        'function f() { return <A to="b?c=d&e=g" h={i.j}>k</A> }',
        "async () => await (a).b(c)",
        "async function f() { return (await (await g(x)).y()) }",
        "async m(x) { await (x)[0]; a < b, c > d; return <p>{x.y}</p>; }",
    ],
    "php": [
        "function f() { for (;;): endfor; for ($i = 0; ; ): endfor; }",
        "function f() { for (;;): ?>a<?php endfor; for (;;): b(); endfor; }",
        "function f() { switch ($a) { case 1: ?> b <?php c(); case 2: d(); ?> e <?php default: ?> g <?php } }",
        "function f() { enum::a(); readonly($b); return $c->enum; }",
        "function f() { new class { use A, B { A::c insteadof B; B::c as d; } }; }",
        "function f() { foreach ($s as $k => $x); }",
        "function f() { return A::$$b + A::${$c} + A::$d + A::E; }",
        "function f() { x($a, String::A, Int::b(), new Float(Object::$c), (binary) Binary::D); }",
        "function f() { $x = clone -$a; $y = clone $b = c($d); $z = (bool) include 'a' . e(); }",
        "function f() { $x = clone match ($a) { 1 => b(), 2 => c() }; $y = $d instanceof E instanceof $g; }",
    ],
    "python": [
        "() = x",
        "def f():\n    for () in x: ()",
        "[y for () in x if ()]",
        "def f():\n    match x:\n        case (): y\n        case (1 | 2) as z: y\n        case (a), b: y\n        case ([]): y",
        "def f(x: a[b].c, *y: d.e[g].h) -> a[b].d: x: a[b].c = ()",
        "(x := a if b else c)",
        "f(x := a or b, y)",
        "type(a.b).c = type (a)[0] = d",
        "print (x.y) % z; exec (x) in y",
    ],
    "ruby": [
        "case x\nin (1..) | 'a' then y\nin (1) then y\nin (A) | (B) then y\nin ((1..2)) then z\nend",
        "->(x; y) { x.z }",
        "x = ->(a, b = 1; c, d) do a end",
        "begin; a; rescue E; b; else; c; ensure; d; end",
        "case x when 1; y; when 2; z; else; w; end",
        "x = !1 && ~2 && -3 && (not 4)",
        "def f\n  if x\n    y\n  elsif z\n    h <<~A\n      b\n    A\n  end\nend",
        "class A\n  private def f(x) = raise E, x\n  def g = h x.y\nend",
        "def f(x) = puts x, y.z",
        "def f\n  for x in a b, c.d do y.z end\n  for x, y in g.h k\n    z\n  end\nend",
        "def f\n  class << a.b c\n    x.y\n  end\n  f -> a: b.c, d: e { g.h }, i\nend",
        "def self.f = raise E",
        "def f(x, &)\n  h(&)\n  g x.y, &\nend",
        "def f\n  g x do |y| y.z end.each do |z|\n    z.w\n  end\nend",
        "def f\n  x = g y do z end.map { |w| w.v }\nend",
        "def f\n  x = (a)..\n    b\n  begin\n    c...\n  ensure\n    d\n  end\nend",
        "def f\n  x = defined?(@y) && @y ? not(z) || y : w\nend",
    ],
    "rust": [
        "fn f() { let x: Option<raw> = a; let raw = &raw const b; raw.c(); }",
        "fn f(x: union, y: &default) -> Vec<raw> { let auto = x; A { 0: auto } }",
        "fn f() { break (a).b }",
        "fn f() { if let mut a = b.c { d() } while let mut e = g.h { i() } let mut j = k; }",
        "fn f(x: A<-1>) -> B<-2, C> { D::<-3>::e(x.y); if a < -1 { b } else { c } }",
        "fn f() { A { a, .. } = b.c; d.e(); A::B { .. } = g; let A { a, .. } = h; }",
        "fn f<A>() where fn(A): B, A: C { a.b() }",
        "fn f() { break (a) + b }",
        "fn f() { break (a)(b); break [a][0]; break || a; break ..a; }",
        "fn f() { x = a..b..=c; y = ..d += e; z = g.. + h; w = ..=i.j == ..; }",
        "fn f() { x = -..=a; y = ..&mut b; z = c..[d, e]; break <G>::h(i); ..|j| k; }",
        "fn f() { let x = y..; s..[n][0]; for i in -5..-1 { return ..(a + b) } }",
    ],
    "typescript": [
        "let x: import('y').Z = a",
        "x = a < (b) || (c) > (d)",
        "x = a < (b.c) && (d) > (e) ? y : z",
        "x = [...f<T>, -a.b<c>, typeof f<T>, a ** f<T>]",
        "let g = (x): (A) => b.c => d, h = (x): (any) => b => y(z)",
        "f<a, (any) => b>(z); f<<A>(b: A) => c>(y); f<<A>(b: A) => c, d>(y)",
        "f<type>(x); f<module, a>(x); a.b<namespace>`c`; new A<type>(b)",
        "type A = { [B in C]?: import('d').E }; f<g, import('h').I<J>>(k)",
        "type A = keyof (import('b').C); type D = [...import('e').F, ...type]; type G = A | (module)",
        "function* f() { yield as; for (let of in x) y }",
        "x = a satisfies N.B.C.D",
        "let x: import('y').Z<import('w').A.B> | typeof import('z') = a",
        "async () => { const x = await import('y') as import('y').A.B; f(import('z').c) }",
        "function f(a: import('b'), c?: import('d').E[]): import('g').H.I<J> { return a.b }",
        "type A = (any) => void; type B = (string, number?: c) => d",
        "class A { static accessor z = 1; accessor() {} accessor; @d accessor x: T; accessor = 2 }",
        "class A { private accessor y: B = c\n  accessor #z = d }",
        "interface A { (a: b): c\n<T>(d: e): f }",
        "type A = { x: B\n  <U>(b: U): void\n  in: c\n  <V>(d: V): W }",
        "type A = `a \\` ${B[]} c`",
        'type A<B extends C = ""> = `a \\` ${B} c`; type D<E> = F.G',
        "let as = a.b; as = as.c; f(as, abstract)",
        "() => sql<A<B<C>>>`x${a.b}`",
        "function f() { interface A<in B, in out C> { d: B } type E<out F> = () => F }",
        "function F(x: P) { return <A b={x.c}>{x.d as E}</A>; }",
        "const f = <T,>(x: T) => <B {...x.y} />;",
        "async () => { x = await f<T>(y); return a.b(await c.d<E[]>(z, w)) }",
        "async () => await f<T>(x).y[await f<T>(x)(y)]",
        "x = [a as N.B.C, (a as N.B.C<D> | E).f, a as N.B.C.D]",
        "() => sql<A>`x`",
        "async () => await sql<A & B>`x${y.z}`.c",
        "x = a > `b${c.d}`",
        "x = a || b!.c",
        "x = a || b[0]!.c && (d)!.e[f]! < g()!",
        "x = !b()!.c",
        "if (a.b[i + 2]! - c[1]! === (d)!) f[0]!(g)",
        "x = !b!.c",
        "y = new W!(u)",
        "() => { y = f<module, type>(x) }",
        "x = a && b! || new C!(d!)",
        "async () => x + await new C!(d) || !new E!(f)",
        "x = <T>y!",
        "x = a < b < c && f(new C!(d), e!)",
        "y = delete a!.b",
        "if (!compare!(x, y)) return!x!.z === a.return!().b",
        "z = toHex(a! ?? b!) + 'c!' + `${d!}!`",
        "z = a! != b! && a! !== b! || !a!",
    ],
}
"""Language -> code that its grammar reads in another way than the ones it is near to."""


@pytest.mark.parametrize(
    "language, code", [(language, code) for language in READ for code in READ[language]]
)
@pytest.mark.slow
def test_what_another_grammar_reads(language, code):
    annotation = annotate(code, language, compared(language))
    reference = importlib.import_module(f"reference.{language}")
    assert annotation.edges
    assert places(annotation) == reference.edges(code, annotation.tokens)


@pytest.mark.parametrize(
    "code", ["function f(x: number) { return await (x).y }", "(x) => x as y", "f<T>(await (x).y)!"]
)
def test_types_are_no_javascript(code):
    with pytest.raises(ParseError):
        exact(code, "javascript")


@every_language
@pytest.mark.slow
def test_tokens_can_be_told_where_nothing_parses(language):
    tokens = tokenize("é ( § b", language, EXACT.name)
    assert "".join(token.text for token in tokens) == "é(§b"
    assert [token.start for token in tokens] == [0, 2, 4, 6]


def test_a_comment_over_which_a_grammar_stumbles():
    """Python ignores the columns of comments; its grammar takes that of one in front of a body for the body's."""
    bare = "def f(x):\n\n    return x.y\n"
    code = "def f(x):\n        # about é\n    return x.y\n"
    assert spell_edges(exact(code, "python")) == spell_edges(exact(bare, "python"))


@pytest.mark.parametrize(("opening", "closing"), ["()", "[]", "{}"])
def test_a_line_break_in_brackets_over_which_a_grammar_stumbles(opening, closing):
    """Python ignores columns inside brackets; its grammar takes less of them in a call of `print` for a block's end."""
    lines = (
        f"def f(x):\n    if x:\n        print('%s' %\n     {opening}x.y, # y\n  2{closing})\n"
        "    else:\n        print('' %\n (x))\n"
        "        x[0] = \\\n    x.y\n"
    )
    code = lines.replace(" %\n", " % ").replace(" # y\n", "").replace("\\\n", "")
    assert spell_edges(exact(lines, "python")) == spell_edges(exact(code, "python"))
    with pytest.raises(ParseError):
        exact("def f(x):\n    print(x\n", "python")


def test_a_value_of_break_in_brackets_is_no_argument():
    assert "Call:func->args" not in {
        edge.relation for edge in exact("fn f() { loop { break (a, b); } }", "rust").edges
    }


def test_a_safe_call_with_a_block_is_read():
    relations = [edge.relation for edge in exact("f&.x(&b); c &b", "ruby").edges]
    assert relations.count("Call:func->args") == 2


def test_what_is_no_path_is_refused():
    with pytest.raises(ValueError, match="'a b' is not a step"):
        compiled("a b")


def test_only_python_s_exact_labels_have_the_tree_of_today():
    code = "def f(x):\n    match x:\n        case 1:\n            pass\n"
    assert Counter(
        edge.relation for edge in exact(code, "python").edges if edge.relation != CHILDREN
    ) == {
        "Case:test->body": 1,
        "Switch:expr->statement": 1,
        "Switch:switch->expr": 1,
        "Switch:switch->statement": 1,
    }
    with pytest.raises(ParseError):
        annotate(code, "python")


@pytest.mark.parametrize(
    "code, expected",
    [  # of Java 21: head, and the first and last token of the dependent
        ("switch (x) { case final A a -> b(); }", {("Case:test->body", "final", "b", ";")}),
        ("switch (x) { case A(final B b) -> c(); }", {("Case:test->body", "A", "c", ";")}),
        (
            "boolean y = o instanceof Geo.Box(int w, int h);",
            {
                ("Assign:target->value", "y", "o", ")"),
                ("Attribute:value->attr", "Geo", "Box", "Box"),
                ("InstanceofExpr:expr->type", "o", "Geo", ")"),
            },
        ),
        (
            "switch (x) { case a.B.C(var d) -> e(); }",
            {
                ("Attribute:value->attr", "a", "B", "B"),
                ("Attribute:value->attr", "a", "C", "C"),
                ("Case:test->body", "a", "e", ";"),
            },
        ),
    ],
)
def test_patterns_of_java_that_its_grammar_cannot_read(code, expected):
    tokens, edges = exact(f"void f() {{ {code} }}", "java")
    assert "".join(token.text for token in tokens) == f"void f() {{ {code} }}".replace(" ", "")
    assert expected == {
        (edge.relation, *(tokens[index].text for index in edge[1:]))
        for edge in edges
        if not edge.relation.startswith(("children", "Switch"))
    }


@pytest.mark.parametrize(
    "language, code",
    [
        ("python", "x < ("),
        ("rust", "fn f() { g(-..=a) }"),
        ("rust", "fn f() { *return a = b; }"),
        ("rust", "fn f() { a!{ b }[c] = d; }"),
        ("typescript", "new A<b> + y"),
        ("typescript", "(a) => a || (b) => c"),
        ("ruby", "a, b = c, d rescue e"),
        ("ruby", "for x in a -b do y end"),
        ("ruby", "class << a -b; y; end"),
    ],
)
def test_what_is_read_otherwise_is_refused(language, code):
    with pytest.raises(ParseError):
        exact(code, language)


def test_letters_of_java_are_spelled_with_escapes():
    code, plain = r"void f() { int \u0066 = '\u0061'; }", "void f() { int abcdef = '\\u0061'; }"
    assert places(exact(code, "java")) == places(exact(plain, "java"))
    assert "\\u0066" in [token.text for token in exact(code, "java").tokens]


def test_defaults_of_type_parameters_are_read():
    """Of Python 3.13: they have no edges."""
    code = "def f[T = int, U = str](x: T) -> U:\n    return x.y\n"
    plain = "def f[T,       U      ](x: T) -> U:\n    return x.y\n"
    assert places(exact(code, "python")) == places(exact(plain, "python"))
    assert [token.text for token in exact(code, "python").tokens][
        :8
    ] == "def f [ T = int , U".split()
