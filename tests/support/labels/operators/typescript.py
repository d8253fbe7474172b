"""TypeScript 5.9: the operators of JavaScript, and those of types, by its compiler."""

from __future__ import annotations

from support.labels.operators import Operator, Syntax
from support.labels.operators.javascript import FRAMES, OPERATORS

SYNTAX = Syntax(
    operators=(
        *OPERATORS,
        Operator("_!", 20, "left"),
        Operator("_<T>(_)", 20, "left"),
        Operator("_<T>`s`", 20, "left"),
        Operator("new _<T>(_)", 20),
        Operator("<T>_", 17, "right"),
        Operator("_ as T", 12, "left"),
        Operator("_ as T[]", 12, "left"),
        Operator("_ as N.T<U>", 12, "left"),
        Operator("_ as const", 12, "left"),
        Operator("_ as T | U", 12, "left"),
        Operator("_ as typeof v", 12, "left"),
        Operator("_ satisfies T", 12, "left"),
        Operator("(v: T): U => _", 4, "right"),
        Operator("<T>(v: T) => _", 4, "right"),
    ),
    frames=(
        *FRAMES,
        "async function* f() { const x: T = _; }",
        "async function* f() { let x!: T; x = _; }",
        "async function* f() { await using x = _; }",
        "async function* f() { using x = _; }",
        "async function* f(x: T = _): U { g(); }",
        "async function* f() { x = _ as T; }",
        "async function* f() { enum E { A = _ } }",
    ),
)
