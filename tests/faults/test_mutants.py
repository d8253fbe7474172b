"""The command that makes mutants, on a package of one function."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from equivalent_mutants import EQUIVALENT
from support.attacks.mutations import edits

CORE = '''"""The core."""

LIMIT = 3


def smallest(values):
    """The smallest of some, up to a limit."""
    best = LIMIT
    while values:
        if values[0] < best:
            best = values[0]
        values = values[1:]
    return best


def unused():
    return 1
'''

TESTS = """import core, pytest

@pytest.fixture(scope="module")
def found():
    return core.smallest([2, 1, 4])

def test_the_limit():
    assert core.smallest([]) == 3

def test_the_smallest(found):
    assert found == 1

def test_that_fails_anyway():
    assert core.smallest([5]) == 5
"""


def test_edits_are_valid_and_leave_alone_what_people_read():
    found = edits(CORE)
    for edit in found:
        assert ast.dump(ast.parse(edit.apply(CORE))) != ast.dump(ast.parse(CORE))
    by_line = {edit.texts(CORE) for edit in found}
    assert by_line >= {
        ("if values[0] < best:", "if values[0] <= best:"),
        ("if values[0] < best:", "if not (values[0] < best):"),
        ("if values[0] < best:", "if values[1] < best:"),
        ("values = values[1:]", "values = values[2:]"),
        ("values = values[1:]", "pass"),
        ("LIMIT = 3", "LIMIT = 4"),
        ("return best", "return None"),
    }
    assert not any("core" in before or "smallest" in before for before, _ in by_line)


GUARD = """def check(columns, share, test, validation):
    for name in ("n", "hits"):
        least(columns[name], share, twice=True)
    return corrected(share) <= ALPHA and fit(validation.labels, "test", 1)
"""


def test_edits_drop_cases_corrections_and_arguments_move_bounds_and_exchange_splits():
    by_kind: dict[str, set[str]] = {}
    for edit in edits(GUARD):
        ast.parse(edit.apply(GUARD))
        by_kind.setdefault(edit.kind, set()).add(edit.texts(GUARD)[1])
    returned = 'return corrected(share) <= ALPHA and fit(validation.labels, "test", 1)'
    assert by_kind["case dropped"] == {'for name in ("hits"):', 'for name in ("n",):'}
    assert by_kind["call dropped"] == {returned.replace("corrected(share)", "(share)")}
    assert by_kind["bound moved"] == {returned.replace("ALPHA", "10 * (ALPHA)")}
    assert by_kind["split exchanged"] == {returned.replace('"test"', '"validation"')}
    assert by_kind["argument dropped"] == {
        "least(columns[name], share)",
        "least(columns[name], twice=True)",
        returned.replace(", 1)", ")"),
    }


@pytest.mark.parametrize("module", EQUIVALENT)
def test_equivalent_mutants_are_mutants_of_the_code_as_it_is(module):
    source = (ROOT / module).read_text("utf-8")
    assert EQUIVALENT[module].keys() <= {edit.texts(source) for edit in edits(source)}


SCRIPT = """
import json, sys
from pathlib import Path

import mutants

from support.attacks import tests_by_line

tests_by_line.PATIENCE = 1
root, folder, wanted = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
same = ("if values[0] < best:", "if values[0] <= best:")
mutants.EQUIVALENT["core.py"] = {same: "equal values are the same"}
repository = mutants.Repository(root, folder, ["core.py"], ["test_core.py"])
made = [mutant for mutant in mutants.draw(root, ["core.py"], 1000, 0) if list(mutant.edit.texts(mutant.source)) in wanted]
fates = list(mutants.fates(repository, made))
told = [[*fate.mutant.edit.texts(fate.mutant.source), fate.name, fate.by] for fate in fates]
print(json.dumps([told, mutants.row(fates).outcome]))
"""


@pytest.mark.long
def test_the_fate_of_each_mutant(tmp_path: Path):
    """Of a constant, a statement that only a fixture executes, one that no test executes, and one nobody can tell apart."""
    root, folder = tmp_path / "root", tmp_path / "folder"
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / "core.py").write_text(CORE)
    (root / "test_core.py").write_text(TESTS)
    expected = [
        ["LIMIT = 3", "LIMIT = 4", "killed", "test_core.py::test_the_limit"],
        ["if values[0] < best:", "if values[0] <= best:", "equivalent", None],
        ["values = values[1:]", "pass", "does not end", "test_core.py::test_the_smallest"],
        ["return 1", "return 2", "lives", None],
    ]
    arguments = [str(root), str(folder), json.dumps([texts for *texts, _, _ in expected])]
    command = [sys.executable, "-c", SCRIPT, *arguments]
    ran = subprocess.run(command, cwd=ROOT / "tests/faults", capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    told, row = json.loads(ran.stdout.splitlines()[-1])
    assert sorted(told) == sorted(expected)
    assert row == "2 killed, 1 of them by a time limit; 1 equivalent; 1 live"
    assert (root / "core.py").read_text() == CORE
