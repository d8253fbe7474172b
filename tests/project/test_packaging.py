"""What an installed CodeSyntax is made of: its dependencies, and the wheel."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import numpy as np
import pytest
from support.commands import python
from support.processes import ended, start

from codesyntax_dataset.languages import LANGUAGES

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("codesyntax_dataset", "codesyntax_metric", "probing")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

COMMANDS = (
    "build --source sample --config python",
    "probe tiny-code-mlm --split test --limit 3 --output results",
)

# What an extra installs: what imports it says which, where it is missing.
OF_AN_EXTRA = {"gradio", "peft"}

# The grammars of the languages, which the similarity of syntax trees imports by the language's name.
GRAMMARS = {
    record.grammar.partition(".")[0].replace("_", "-")
    for record in LANGUAGES.values()
    if record.grammar
}


def declared(requirements):
    return {canonical(re.match(r"[\w.-]+", requirement).group()) for requirement in requirements}


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(files):
    """The distributions that the files import, wherever the import stands."""
    roots: set[str] = set()
    own = set(PACKAGES)
    for path in files:
        # what stands beside a file: the tests' helpers, the metric of its Space
        own |= {
            path.stem,
            path.parent.name,
        }
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                roots |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                roots.add(node.module.partition(".")[0])
    distributions = packages_distributions()
    roots -= own | sys.stdlib_module_names
    return {canonical(distributions.get(root, [root])[0]) for root in roots}


def sources(*folders):
    return [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if "sample" not in path.parts
    ]


@pytest.mark.slow
def test_dependencies_are_what_is_imported():
    every = imported(sources(*PACKAGES)) | GRAMMARS
    assert declared(PROJECT["dependencies"]) == every - OF_AN_EXTRA
    assert every >= OF_AN_EXTRA <= {*PROJECT["optional-dependencies"], "gradio"}


@pytest.mark.slow
def test_tests_import_nothing_undeclared():
    extras = [name for extra in PROJECT["optional-dependencies"].values() for name in extra]
    assert imported(sources("tests")) <= declared([*PROJECT["dependencies"], *extras])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of the packages as they stand here, built by the installed setuptools: nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    python(f"from setuptools.build_meta import build_wheel; build_wheel({str(folder)!r})", cwd=tree)
    (path,) = folder.glob("*.whl")
    return path


@pytest.mark.slow
def test_wheel_holds_every_file_of_the_packages(wheel):
    expected = {
        path.relative_to(ROOT).as_posix()
        for name in PACKAGES
        for path in (ROOT / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == expected
    assert {f"{name}/py.typed" for name in PACKAGES} <= held


@pytest.mark.slow
def test_wheel_works_where_nothing_else_is(wheel, evaluate, tmp_path):
    """Unpacked, away from the repository: a model of the wheel on a few functions, and `evaluate.load` by path.

    In a child of this process, which has imported the libraries, and forgets what it has of the packages.
    """
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    (entry_points,) = site.glob("*.dist-info/entry_points.txt")
    assert entry_points.read_text() == "[console_scripts]\ncodesyntax = probing.cli:main\n"
    folder = tmp_path / "work"
    folder.mkdir()

    def prepare():
        os.chdir(folder)
        sys.path.insert(0, str(site))
        for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
            del sys.modules[name]

    def work():
        probing, cli = (importlib.import_module(name) for name in ("probing", "probing.cli"))
        assert Path(probing.__file__) == site / "probing" / "__init__.py"
        for command in COMMANDS:
            cli.main(command.split(), standalone_mode=False)
        # the example of the metric's card
        attention = np.zeros((1, 2, 4, 4))
        attention[0, :, 0] = [[0.4, 0.3, 0.1, 0.2], [0.1, 0.2, 0.2, 0.5]]
        metric = evaluate.load(str(site / "codesyntax_metric"))
        edges = [("If:if->test", 0, 1, 1), ("If:if->body", 0, 3, 3)]
        metric.add(prediction=attention, reference=edges)
        assert metric.compute(k=[1, 2])["scores"] == {"1": 100.0, "2": 100.0}

    log = tmp_path / "log"
    assert ended(start(work, log, prepare=prepare)) == 0, log.read_text()
    assert "tiny-code-mlm" in next((folder / "results").glob("*.json")).read_text("utf-8")
