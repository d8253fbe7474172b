"""The rooms of the packages, and that imports run downward only."""

from __future__ import annotations

import ast
import importlib.util
from functools import cache
from graphlib import TopologicalSorter

import pytest
from conftest import ROOT

ROOMS = (
    "codesyntax_dataset",
    "codesyntax_metric",
    "probing.models",
    "probing.runs",
    "probing.stats",
    "probing.instruments",
    "probing.evidence",
    "probing.publish",
    "probing.report",
    "probing.paper",
    "probing",
    "probing.cli",
    "probing.__main__",
)
"""From the bottom up: a module may import what is in its own room or in one before it. `probing` is its `__init__` alone."""


@cache
def modules():
    """The name of every module of the packages, and its file."""
    files = [
        path
        for package in ("codesyntax_dataset", "codesyntax_metric", "probing")
        for path in sorted((ROOT / package).rglob("*.py"))
    ]
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files
    }
    return {name: path for name, path in names.items() if "sample" not in name.split(".")}


def room(module):
    return max((room for room in ROOMS if f"{module}.".startswith(f"{room}.")), key=len)


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(module, types=True):
    """The modules of the packages that `module` imports: at its top, in functions, or if `types` for types only."""
    known, imported, left = modules(), set(), [tree(modules()[module])]
    while left:
        node = left.pop()
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            is_package = known[module].name == "__init__.py"
            package = module if is_package else module.rpartition(".")[0]
            source = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            inner = {f"{source}.{alias.name}" for alias in node.names}
            imported |= {name if name in known else source for name in inner}
        elif isinstance(node, ast.If) and not types and _is_for_types(node):
            left += node.orelse
        elif not isinstance(node, ast.expr):
            left += ast.iter_child_nodes(node)
    return {name for name in imported if name in known} - {module}


def _is_for_types(node):
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@pytest.mark.slow
def test_imports_run_downward():
    known = modules()
    assert {room(name) for name in known} == set(ROOMS)
    upward = [
        f"{name} imports {other}"
        for name in known
        for other in imports(name)
        if ROOMS.index(room(other)) > ROOMS.index(room(name))
    ]
    assert upward == []


@pytest.mark.slow
def test_no_circles_and_few_levels():
    """No module imports itself by way of others, not even for types; and rooms stand on at most ten levels."""
    known = modules()
    TopologicalSorter({name: imports(name) for name in known}).prepare()  # raises CycleError
    rooms: dict[str, set[str]] = {name: set() for name in ROOMS}
    for name in known:
        rooms[room(name)] |= {room(other) for other in imports(name, types=False)} - {room(name)}
    levels: dict[str, int] = {}
    for name in TopologicalSorter(rooms).static_order():
        levels[name] = 1 + max((levels[other] for other in rooms[name]), default=0)
    assert max(levels.values()) <= 10
