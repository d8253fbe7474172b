"""The relations of Java (Shen et al. 2022, Tables 1 and 8): what each is, by an example."""

from __future__ import annotations

from codesyntax_dataset.languages.language import Relation

RELATIONS = (
    Relation("Assign:target->value", "assignment", "x = a + b; : x => a + b"),
    Relation("Attribute:value->attr", "access", "obj.name(); : obj => name"),
    Relation("Call:func->args", "call", "f(a, b); : f => a, b"),
    Relation("Do:body->test", "control flow", "do { a(); } while (b); : a() => b"),
    Relation("Do:do->body", "control flow", "do { a(); } while (b); : do => a();"),
    Relation("Do:do->test", "control flow", "do { a(); } while (b); : do => b"),
    Relation("For:for->body", "control flow", "for (i = 0; i < n; i++) { a(); } : for => a();"),
    Relation("For:for->initializers", "control flow", "for (i = 0; i < n; i++) { } : for => i = 0"),
    Relation("For:for->test", "control flow", "for (i = 0; i < n; i++) { } : for => i < n"),
    Relation("For:for->updaters", "control flow", "for (i = 0; i < n; i++) { } : for => i++"),
    Relation(
        "For:initializers->body", "control flow", "for (i = 0; i < n; i++) { a(); } : i => a();"
    ),
    Relation("For:initializers->test", "control flow", "for (i = 0; i < n; i++) { } : i => i < n"),
    Relation(
        "For:initializers->updaters", "control flow", "for (i = 0; i < n; i++) { } : i => i++"
    ),
    Relation("For:test->body", "control flow", "for (i = 0; i < n; i++) { a(); } : i => a();"),
    Relation("For:test->updaters", "control flow", "for (i = 0; i < n; i++) { } : i => i++"),
    Relation("For:updaters->body", "control flow", "for (i = 0; i < n; i++) { a(); } : i => a();"),
    Relation("If:body->orelse", "control flow", "if (t) { a(); } else { b(); } : a(); => b();"),
    Relation("If:if->body", "control flow", "if (t) { a(); } : if => a();"),
    Relation("If:if->else", "control flow", "if (t) { a(); } else { b(); } : if => else"),
    Relation("If:if->test", "control flow", "if (t) { a(); } : if => t"),
    Relation("If:test->body", "control flow", "if (t) { a(); } : t => a();"),
    Relation("If:test->orelse", "control flow", "if (t) { a(); } else { b(); } : t => b();"),
    Relation("IfExp:body->orelse", "conditional expression", "t ? a : b: a => b"),
    Relation("IfExp:test->body", "conditional expression", "t ? a : b: t => a"),
    Relation("IfExp:test->orelse", "conditional expression", "t ? a : b: t => b"),
    Relation("InfixExpr:left->right", "operator", "a + b: a => b"),
    Relation("InstanceofExpr:expr->type", "operator", "x instanceof List: x => List"),
    Relation(
        "LabeledStatement:label->body",
        "control flow",
        "outer: while (t) { } : outer => while (t) { }",
    ),
    Relation("Subscript:value->slice", "access", "s[i]: s => i"),
    Relation(
        "Switch:expr->statement", "control flow", "switch (x) { case 1: a(); } : x => case 1: a();"
    ),
    Relation("Switch:switch->expr", "control flow", "switch (x) { case 1: a(); } : switch => x"),
    Relation(
        "Switch:switch->statement",
        "control flow",
        "switch (x) { case 1: a(); } : switch => case 1: a();",
    ),
    Relation("Try:body->finalbody", "control flow", "try { a(); } finally { b(); } : a(); => b();"),
    Relation(
        "Try:body->handler",
        "control flow",
        "try { a(); } catch (E e) { b(); } : a(); => catch (E e) { b(); }",
    ),
    Relation(
        "Try:handler->finalbody",
        "control flow",
        "try { a(); } catch (E e) { b(); } finally { c(); } : catch => c();",
    ),
    Relation("While:test->body", "control flow", "while (t) { a(); } : t => a();"),
    Relation("While:while->body", "control flow", "while (t) { a(); } : while => a();"),
    Relation("While:while->test", "control flow", "while (t) { a(); } : while => t"),
    Relation("children:parent->child", "tree", "every node => each of its children"),
)

SAME_SYNTAX = (
    ("assignment_expression", "Assign:*"),
    ("method_invocation", "Attribute:*"),  # no other node has the relation
    ("argument_list", "Call:*"),
    ("do_statement", "Do:*"),
    ("for_statement", "For:*"),
    ("if_statement", "If:*"),
    ("ternary_expression", "IfExp:*"),
    ("binary_expression", "InfixExpr:*"),
    ("instanceof_expression", "InstanceofExpr:*"),
    ("labeled_statement", "LabeledStatement:*"),
    ("array_access", "Subscript:*"),
    ("switch_expression", "Switch:*"),  # the grammar's type of statements, too
    ("try_statement", "Try:*"),  # with resources it is a node of another type, seldom
    ("while_statement", "While:*"),
)
"""Node types of the grammar, and the relations of the same syntax."""
