"""Every module of the packages has a test that is found: by its name, or by the table in tests/README.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from conftest import ROOT
from test_rooms import modules, tree

README = "tests/README.md"
ROOMS = {"codesyntax_dataset": "dataset", "codesyntax_metric": "metric"}


def table() -> dict[str, str]:
    """A module, or a folder of modules below a room -> the test file in whose row it stands."""
    rows = re.findall(
        r"^\| `(tests/\S+)` \| (.*) \|$",
        (ROOT / README).read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    return {path: test for test, paths in rows for path in re.findall(r"`([^`]+)`", paths)}


def by_name(module: Path) -> Path:
    """Where the test of a module stands if it has its name: tests/ROOM/test_NAME.py."""
    package, *inner = (
        module.with_suffix("").parts if module.name != "__init__.py" else module.parent.parts
    )
    if inner[:1] == ["instruments"] and len(inner) > 2:
        inner = inner[1:]  # an instrument's tests stand in tests/INSTRUMENT
    room = ROOMS.get(package) or (inner[0] if len(module.parts) > 2 else "project")
    return ROOT / "tests" / room / f"test_{inner[-1] if inner else package}.py"


def does_something(path: Path) -> bool:
    """Whether it has more than a docstring and imports."""
    only = ast.Expr, ast.Import, ast.ImportFrom
    return any(not isinstance(node, only) for node in tree(path).body)


@pytest.mark.slow
def test_every_module_has_a_test_that_is_found():
    rows = table()
    paths = [path.relative_to(ROOT) for path in modules().values() if does_something(path)]
    hidden = [
        str(path)
        for path in paths
        if not by_name(path).exists()
        and str(path) not in rows
        and not any(f"{folder}/" in rows for folder in path.parents)
    ]
    told = f"name its test tests/ROOM/test_NAME.py, or put it into a row of {README}"
    assert not hidden, "\n".join(f"{path} has no test that is found: {told}" for path in hidden)


def test_the_table_names_modules_and_tests_that_there_are():
    for path, test in table().items():
        assert (ROOT / path).exists(), (
            f"{path} in {README} is gone: remove it there, or give its new name"
        )
        assert (ROOT / test).is_file(), (
            f"{test} in {README} is gone: put its modules into the row of the test they have now"
        )
        assert path.endswith("/") or not by_name(Path(path)).exists(), (
            f"{path} is found by name: remove it in {README}"
        )
