"""What the languages' own parsers say about texts, where this computer has them.

A program in this folder reads a line for each text: the number of its last line that is not of a
frame, and its UTF-8 in Base64; and writes a line, its verdict. Go's and Rust's compilers read
files, many at a time. Nothing is run of a text; each program is told by its language's own means to
read it only.
"""

from __future__ import annotations

import ast
import atexit
import base64
import codeop
import functools
import json
import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from codesyntax_dataset.languages.native import NATIVE

VERDICTS = VALID, INVALID, UNFINISHED, UNKNOWN = ("valid", "invalid", "unfinished", "unknown")
"""`invalid`: whatever might follow the text, it would be; `unfinished`: refused, but something
might follow."""

Text = tuple[str, str, str]
"""What stands before a text, the text, and what stands behind it."""

_TIME = 300.0  # seconds, for a batch


Parser = Callable[[Sequence[Text]], list[str]]
"""From texts to verdicts."""


def native(language: str) -> Parser | None:
    """The language's own parser; None if it is not on this computer."""
    return _parser(NATIVE[language].parser)


_COMMANDS = {
    "javac": ["java", "java.java"],
    "v8": ["node", "javascript.cjs"],
    "tsc": ["node", "javascript.cjs", "typescript"],
    "php": ["php", "-d", "display_errors=0", "php.php"],
    "ruby": ["ruby", "--disable-gems", "ruby.rb"],
}
"""Parser -> the program in this folder that asks it."""


@functools.cache
def _parser(name: str) -> Parser | None:
    if name == "ast":
        return _by_python
    if name == "go" or name == "rustc":
        return (_by_go if name == "go" else _by_rust) if shutil.which(name) else None
    program = _Program(_COMMANDS[name])
    return (
        program.verdicts
        if shutil.which(_COMMANDS[name][0]) and program.verdict(("", "", "")) == VALID
        else None
    )


def _by_python(texts: Sequence[Text]) -> list[str]:
    return [_of_python("".join(text)) for text in texts]


def _of_python(text: str) -> str:
    """It is invalid, and not only unfinished, if the parser stops before the end, as it reads from
    left to right."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "f", "exec", dont_inherit=True, optimize=0)
            return VALID
        except SyntaxError:
            pass
        except (ValueError, RecursionError, MemoryError):
            return UNKNOWN
        try:
            flags = ast.PyCF_ONLY_AST | codeop.PyCF_ALLOW_INCOMPLETE_INPUT  # type: ignore[attr-defined] # since 3.11
            compile(text, "f", "exec", flags, dont_inherit=True)
        except SyntaxError as error:
            return UNFINISHED if "incomplete input" in str(error) else INVALID
    return INVALID  # its tree is fine, but not what stands where in it


def parses_as_python(text: str) -> bool:
    """Whether a text has a syntax tree, which the compiler may refuse later."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


class _Program:
    """A program in this folder, started when it is asked first and again when it has ended."""

    def __init__(self, command: Sequence[str]):
        self._command = command
        self._process: subprocess.Popen[str] | None = None

    def verdicts(self, texts: Sequence[Text]) -> list[str]:
        return [self.verdict(text) for text in texts]

    def verdict(self, text: Text) -> str:
        """The verdict on a text; UNKNOWN if there is none."""
        before, code, behind = text
        last = (before + code).count("\n") + 1
        line = f"{last} {base64.b64encode(''.join((before, code, behind, chr(10))).encode()).decode()}\n"
        for _ in range(2):  # the process may have ended after its last answer
            process = self._process = self._process or self._started()
            assert process.stdin and process.stdout
            try:
                process.stdin.write(line)
                process.stdin.flush()
                answer = process.stdout.readline().strip()
            except OSError:
                answer = ""
            if answer in VERDICTS:
                return answer
            process.kill()
            self._process = None
        return UNKNOWN

    def _started(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=Path(__file__).parent,
        )
        atexit.register(process.kill)
        return process


def _by_go(texts: Sequence[Text]) -> list[str]:
    """By the compiler's parser, which also knows where `break` may stand; one more file keeps types
    from being checked.

    What a compiler would write goes into the folder: it replaces or removes what is there, be it a
    device.
    """
    with tempfile.TemporaryDirectory() as folder:
        names = _write(folder, texts, ".go")
        (Path(folder) / "last.go").write_text("package", encoding="utf-8")
        command = ["go", "tool", "compile", "-e", "-o", "out", "-p", "p", *names, "last.go"]
        output = _output(command, folder)
        if "last.go:" not in output:
            return [UNKNOWN] * len(texts)
        first: dict[str, str] = {}
        for name, message in re.findall(
            r"^(?:\./)?(\w+\.go):\d+(?::\d+)?: (.*)", output, flags=re.MULTILINE
        ):
            first.setdefault(name, message)
        return [
            VALID if name not in first else _end(first[name], "unexpected EOF") for name in names
        ]


_RUST = frozenset({"E0267", "E0268", "E0426", "E0571", "E0586", "E0695", "E0728"})
"""The errors with a number that are about where something stands."""

_RUST_NAMES = re.compile(r"cannot (find|determine)|no rules expected|environment")
"""How errors without a number begin that are about names and macros."""


def _by_rust(texts: Sequence[Text]) -> list[str]:
    """By the compiler: first what its parser says, then, of what remains, where `break` and the
    like stand."""
    verdicts = [VALID] * len(texts)
    with tempfile.TemporaryDirectory() as folder:
        names = _write(folder, texts, ".rs")
        while True:
            open_ = [name for name, verdict in zip(names, verdicts) if verdict == VALID]
            modules = "".join(f"mod {name.removesuffix('.rs')};\n" for name in open_)
            (Path(folder) / "lib.rs").write_text(modules, encoding="utf-8")
            command = [
                "rustc",
                "--edition=2024",
                "--crate-type=lib",
                "--error-format=json",
                "--emit=metadata",
            ]
            output = _output([*command, "-Awarnings", "--out-dir", "out", "lib.rs"], folder)
            if not output and not (Path(folder) / "out" / "liblib.rmeta").exists():
                return [UNKNOWN] * len(texts)  # it did not end in time
            problems: dict[str, str] = {}
            parsed = True
            for line in output.splitlines():
                if not line.startswith("{"):
                    continue
                error = json.loads(line)
                number, spans = (error["code"] or {}).get("code"), error["spans"]
                if error["level"] != "error" or not spans:
                    continue
                syntax = number is None and not _RUST_NAMES.match(error["message"])
                if syntax or number in _RUST:
                    problems.setdefault(Path(spans[0]["file_name"]).name, error["message"])
                parsed &= number is not None or not syntax
            verdicts = [
                _end(problems[name], "unclosed delimiter") if name in problems else verdict
                for name, verdict in zip(names, verdicts)
            ]
            if parsed or not problems:
                return verdicts


def _write(folder: str, texts: Sequence[Text], suffix: str) -> list[str]:
    names = [f"f{number}{suffix}" for number in range(len(texts))]
    for name, text in zip(names, texts):
        (Path(folder) / name).write_text("".join(text), encoding="utf-8", newline="")
    return names


def _output(command: Sequence[str], folder: str) -> str:
    """What a command prints; nothing if it does not end in time."""
    try:
        ended = subprocess.run(command, cwd=folder, capture_output=True, timeout=_TIME, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return (ended.stdout + ended.stderr).decode("utf-8", "replace")


def _end(message: str, end: str) -> str:
    return UNFINISHED if end in message else INVALID
