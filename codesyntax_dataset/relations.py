"""The relations of CodeSyntax: which exist, in which languages, and what they mean (Shen et al. 2022, Tables 1 and 8).

A relation is named `Node:head->dependent`. Whether it counts in the mean over relations is a matter of the score and
stands in `codesyntax_metric/topk_uas.py`.
"""

from __future__ import annotations

from typing import NamedTuple


class Relation(NamedTuple):
    name: str
    languages: tuple[str, ...]
    category: str
    example: str  # `head` => `dependent`, in a line of code of its first language


_BOTH, _PYTHON, _JAVA = ("python", "java"), ("python",), ("java",)

RELATIONS: dict[str, Relation] = {
    name: Relation(name, languages, category, example)
    for name, languages, category, example in [
        ("Assign:target->value", _BOTH, "assignment", "x = a + b: x => a + b"),
        ("Attribute:value->attr", _BOTH, "access", "obj.name: obj => name"),
        ("AugAssign:target->value", _PYTHON, "assignment", "x += 1: x => 1"),
        ("BinOp:left->right", _PYTHON, "operator", "a + b: a => b"),
        ("BoolOp:value->value", _PYTHON, "operator", "a and b: a => b"),
        ("Call:args->keywords", _PYTHON, "call", "f(a, k=1): a => k=1"),
        ("Call:func->args", _BOTH, "call", "f(a, b): f => a, b"),
        ("Call:func->keywords", _PYTHON, "call", "f(a, k=1): f => k=1"),
        ("Compare:left->comparator", _PYTHON, "operator", "a < b: a => b"),
        ("Dict:key->value", _PYTHON, "collection", "{k: v}: k => v"),
        ("DictComp:key->generator", _PYTHON, "comprehension", "{k: v for k in s}: k => k in s"),
        ("DictComp:key->value", _PYTHON, "comprehension", "{k: v for k in s}: k => v"),
        ("DictComp:value->generator", _PYTHON, "comprehension", "{k: v for k in s}: v => k in s"),
        ("Do:body->test", _JAVA, "control flow", "do { a(); } while (b); : a() => b"),
        ("Do:do->body", _JAVA, "control flow", "do { a(); } while (b); : do => a();"),
        ("Do:do->test", _JAVA, "control flow", "do { a(); } while (b); : do => b"),
        ("For:for->body", _BOTH, "control flow", "for x in s: use(x): for => use(x)"),
        ("For:for->initializers", _JAVA, "control flow", "for (i = 0; i < n; i++) { } : for => i = 0"),
        ("For:for->iter", _PYTHON, "control flow", "for x in s: use(x): for => s"),
        ("For:for->target", _PYTHON, "control flow", "for x in s: use(x): for => x"),
        ("For:for->test", _JAVA, "control flow", "for (i = 0; i < n; i++) { } : for => i < n"),
        ("For:for->updaters", _JAVA, "control flow", "for (i = 0; i < n; i++) { } : for => i++"),
        ("For:initializers->body", _JAVA, "control flow", "for (i = 0; i < n; i++) { a(); } : i => a();"),
        ("For:initializers->test", _JAVA, "control flow", "for (i = 0; i < n; i++) { } : i => i < n"),
        ("For:initializers->updaters", _JAVA, "control flow", "for (i = 0; i < n; i++) { } : i => i++"),
        ("For:iter->body", _PYTHON, "control flow", "for x in s: use(x): s => use(x)"),
        ("For:target->body", _PYTHON, "control flow", "for x in s: use(x): x => use(x)"),
        ("For:target->iter", _PYTHON, "control flow", "for x in s: use(x): x => s"),
        ("For:test->body", _JAVA, "control flow", "for (i = 0; i < n; i++) { a(); } : i => a();"),
        ("For:test->updaters", _JAVA, "control flow", "for (i = 0; i < n; i++) { } : i => i++"),
        ("For:updaters->body", _JAVA, "control flow", "for (i = 0; i < n; i++) { a(); } : i => a();"),
        ("GeneratorExp:elt->generator", _PYTHON, "comprehension", "sum(x for x in s): x => x in s"),
        ("If:body->orelse", _BOTH, "control flow", "if t: a() else: b(): a() => b()"),
        ("If:if->body", _BOTH, "control flow", "if t: a(): if => a()"),
        ("If:if->else", _BOTH, "control flow", "if t: a() else: b(): if => else"),
        ("If:if->test", _BOTH, "control flow", "if t: a(): if => t"),
        ("If:test->body", _BOTH, "control flow", "if t: a(): t => a()"),
        ("If:test->orelse", _BOTH, "control flow", "if t: a() else: b(): t => b()"),
        ("IfExp:body->orelse", _BOTH, "conditional expression", "a if t else b: a => b"),
        ("IfExp:body->test", _PYTHON, "conditional expression", "a if t else b: a => t"),
        ("IfExp:test->body", _JAVA, "conditional expression", "t ? a : b: t => a"),
        ("IfExp:test->orelse", _BOTH, "conditional expression", "a if t else b: t => b"),
        ("InfixExpr:left->right", _JAVA, "operator", "a + b: a => b"),
        ("InstanceofExpr:expr->type", _JAVA, "operator", "x instanceof List: x => List"),
        ("LabeledStatement:label->body", _JAVA, "control flow", "outer: while (t) { } : outer => while (t) { }"),
        ("ListComp:elt->generator", _PYTHON, "comprehension", "[x for x in s]: x => x in s"),
        ("SetComp:elt->generator", _PYTHON, "comprehension", "{x for x in s}: x => x in s"),
        ("Slice:lower->upper", _PYTHON, "access", "s[1:n]: 1 => n"),
        ("Subscript:value->slice", _BOTH, "access", "s[i]: s => i"),
        ("Switch:expr->statement", _JAVA, "control flow", "switch (x) { case 1: a(); } : x => case 1: a();"),
        ("Switch:switch->expr", _JAVA, "control flow", "switch (x) { case 1: a(); } : switch => x"),
        ("Switch:switch->statement", _JAVA, "control flow", "switch (x) { case 1: a(); } : switch => case 1: a();"),
        ("Try:body->finalbody", _BOTH, "control flow", "try: a() finally: b(): a() => b()"),
        ("Try:body->handler", _BOTH, "control flow", "try: a() except E: b(): a() => except E: b()"),
        ("Try:body->orelse", _PYTHON, "control flow", "try: a() except E: b() else: c(): a() => c()"),
        ("Try:handler->finalbody", _BOTH, "control flow", "except E: b() finally: c(): except => c()"),
        ("Try:handler->orelse", _PYTHON, "control flow", "except E: b() else: c(): except => c()"),
        ("While:test->body", _BOTH, "control flow", "while t: a(): t => a()"),
        ("While:while->body", _BOTH, "control flow", "while t: a(): while => a()"),
        ("While:while->test", _BOTH, "control flow", "while t: a(): while => t"),
        ("With:item->body", _PYTHON, "control flow", "with open(p) as f: use(f): open => use(f)"),
        ("children:parent->child", _BOTH, "tree", "every node => each of its children"),
        ("comprehension:target->iter", _PYTHON, "comprehension", "[x for x in s]: x => s"),
    ]
}


def relations_of(language: str) -> list[str]:
    """The names of the relations of `language`, in the order of the table."""
    return [relation.name for relation in RELATIONS.values() if language in relation.languages]
