"""The edges of a language's own parser, next to ours: both as places in the code.

A reference is a module or program in `tests/reference` that reads the language's own tree. It gives, for each function,
edges as `(relation, head, start, end)`: the offset of the head token's first character (of its end, for a relation whose
head is a last token), and the offsets of the dependent's first character and of its end. Offsets count characters.
"""

from __future__ import annotations

import atexit
import base64
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from codesyntax_dataset import annotate, tokenize
from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.languages.tables.constructs import CHILDREN, FROM_LAST_TOKEN
from codesyntax_dataset.languages.variants import EXACT
from codesyntax_dataset.schema import Annotation, Token

Place = tuple[str, int, int, int]


def compared(language: str) -> str:
    """The variant that references have the edges of: with those inside of strings, where `ast` knows their places."""
    known = language != "python" or sys.version_info >= (3, 12)
    return LANGUAGES[language].variant_names[-1] if known else EXACT.name


def places(annotation: Annotation) -> Counter[Place]:
    """Our edges but for those of any nodes, which each parser has its own of."""
    tokens, edges = annotation
    return Counter(
        (
            edge.relation,
            tokens[edge.head].end if edge.relation in FROM_LAST_TOKEN else tokens[edge.head].start,
            tokens[edge.first].start,
            tokens[edge.last].end,
        )
        for edge in edges
        if edge.relation != CHILDREN
    )


def balanced(tokens: Sequence[Token], start: int, end: int) -> tuple[int, int]:
    """The span with the brackets whose partner is inside: `a), (b` of `f((a), (b))` becomes `(a), (b)`.

    Trees without nodes for brackets that only group tell where the first of several elements is inside them.
    """
    inside = [
        index for index, token in enumerate(tokens) if start <= token.start and token.end <= end
    ]
    first, last, depth, missing = inside[0], inside[-1], 0, 0
    for index in inside:
        depth += (tokens[index].text in ("(", "[", "{")) - (tokens[index].text in (")", "]", "}"))
        missing = max(missing, -depth)
    for _ in range(missing):
        first -= 1
    for _ in range(depth + missing):
        last += 1
    return tokens[first].start, tokens[last].end


def verdict(code: str, language: str, reference: ModuleType) -> str:
    """What our labels of some code are by the language's own parser, and a second one where there is one.

    `equal`, `wrong`, `refused`, or `no code` of the language.
    """
    variant = compared(language)
    try:
        ours = annotate(code, language, variant)
    except ParseError:
        ours = None
    try:
        theirs = reference.edges(code, ours.tokens if ours else tokenize(code, language, variant))
        if hasattr(reference, "OTHER"):
            reference.OTHER.edges(code)
    except SyntaxError:
        return "no code"
    if ours is None:
        return "refused"
    return "equal" if places(ours) == theirs else "wrong"


class Program:
    """A program in `tests/reference` that writes the edges of the functions that it reads.

    It is started once, in that folder. Each line that it reads is a function's UTF-8 in Base64. For each it writes
    lines `relation head start end`, or the line `error` if the function does not parse, and then the line `end`. `npm`:
    a package that it needs, with its version; it is installed once, in the user's cache.
    """

    def __init__(self, needs: str, command: Sequence[str], npm: str | None = None):
        self._needs, self._command, self._npm = needs, command, npm
        self._process: subprocess.Popen[str] | None = None

    def edges(self, code: str) -> Counter[Place]:
        """The edges of a function; raises SyntaxError if it does not parse, and skips the test without the program."""
        if self._process is None:
            if shutil.which(self._needs) is None:
                pytest.skip(f"{self._needs} is not installed, whose parser this test compares with")
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parents[2] / "reference",
                env=os.environ | ({"NODE_PATH": _installed(self._npm)} if self._npm else {}),
            )
            atexit.register(self._process.kill)
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin
        assert stdout
        stdin.write(base64.b64encode(code.encode()).decode() + "\n")
        stdin.flush()
        found: Counter[Place] = Counter()
        while (line := stdout.readline().rstrip("\n")) != "end":
            if not line:
                raise RuntimeError(f"{' '.join(self._command)} ended")
            if line == "error":
                found["error", 0, 0, 0] += 1
                continue
            relation, head, start, end = line.split(" ")
            found[relation, int(head), int(start), int(end)] += 1
        if ("error", 0, 0, 0) in found:
            raise SyntaxError(f"{self._needs} cannot read it")
        return found


def _installed(package: str) -> str:
    """The folder of a package of npm, installed on the first call; skips the test where that fails."""
    folder = Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache",
        "codesyntax",
        "reference",
        package,
    )
    modules = folder / "node_modules"
    if not modules.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        command = [
            "npm",
            "install",
            "--prefix",
            str(folder),
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            package,
        ]
        try:
            subprocess.run(
                [*command, "--fetch-retries=0"], check=True, capture_output=True, timeout=120
            )
        except (OSError, subprocess.SubprocessError):
            pytest.skip(f"npm cannot install {package}, whose parser this test compares with")
    return str(modules)
