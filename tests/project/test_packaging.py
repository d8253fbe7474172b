"""What an installed CodeSyntax is made of: its dependencies, and the wheel."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from codesyntax_dataset.languages import LANGUAGES

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("codesyntax_dataset", "codesyntax_metric", "probing")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# What runs the metric's Space: the Hub installs it there, and `app.py` is run nowhere else.
OF_THE_SPACE = {"gradio"}

# The grammars of the languages, which the similarity of syntax trees imports by the language's name.
GRAMMARS = {
    record.grammar.partition(".")[0].replace("_", "-")
    for record in LANGUAGES.values()
    if record.grammar
}


def declared(requirements: Iterable[str]) -> set[str]:
    return {canonical(re.match(r"[\w.-]+", requirement).group()) for requirement in requirements}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(files: Iterable[Path]) -> set[str]:
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
    roots -= own | sys.stdlib_module_names | OF_THE_SPACE
    return {canonical(distributions[root][0]) for root in roots}


def sources(*folders: str) -> list[Path]:
    return [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if "sample" not in path.parts
    ]


@pytest.mark.slow
def test_dependencies_are_what_is_imported():
    assert declared(PROJECT["dependencies"]) == imported(sources(*PACKAGES)) | GRAMMARS


@pytest.mark.slow
def test_tests_import_nothing_undeclared():
    extras = [name for extra in PROJECT["optional-dependencies"].values() for name in extra]
    assert imported(sources("tests")) <= declared([*PROJECT["dependencies"], *extras])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the packages as they stand here, built by the installed setuptools: nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    run(
        sys.executable,
        "-c",
        f"from setuptools.build_meta import build_wheel; build_wheel({str(folder)!r})",
        cwd=tree,
    )
    (path,) = folder.glob("*.whl")
    return path


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    keep = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=keep | environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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
def test_wheel_works_where_nothing_else_is(wheel, tmp_path):
    """In an environment without the repository: a model of the wheel on a few functions, and `evaluate.load` by path."""
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=tmp_path)
    python = venv / "bin" / "python"
    site = Path(
        run(
            python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path
        ).strip()
    )
    # dependencies are those of this environment; an editable install is not among them, for its .pth file is not read
    packages = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site / "dependencies.pth").write_text("\n".join(packages))
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--no-compile",
        wheel,
        cwd=tmp_path,
    )
    assert run(venv / "bin" / "codesyntax", "--version", cwd=tmp_path).startswith("codesyntax")
    commands = """build --source sample --config python
probe tiny-code-mlm --split test --split validation --limit 3 --output results
report results"""
    # in one process, which imports torch once; then the example of the metric's card
    script = f"""
import sys
unused = dict.fromkeys(("transformers", "scipy"))  # evaluate imports them where it can: seconds, for nothing here
sys.modules |= unused
import evaluate, numpy
for name in unused:
    del sys.modules[name]
import probing
from probing.cli import main
print(probing.__file__)
for command in {commands!r}.splitlines():
    main(command.split(), standalone_mode=False)
attention = numpy.zeros((1, 2, 4, 4))
attention[0, :, 0] = [[0.4, 0.3, 0.1, 0.2], [0.1, 0.2, 0.2, 0.5]]
metric = evaluate.load({str(site / "codesyntax_metric")!r})
metric.add(prediction=attention, reference=[("If:if->test", 0, 1, 1), ("If:if->body", 0, 3, 3)])
print(metric.compute(k=[1, 2])["scores"])
"""
    found, *_, scores = run(python, "-c", script, cwd=tmp_path).splitlines()
    assert Path(found) == site / "probing" / "__init__.py"
    assert scores == "{'1': 100.0, '2': 100.0}"
    assert "tiny-code-mlm" in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
