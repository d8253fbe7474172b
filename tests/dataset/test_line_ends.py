"""Files of any line ends and encodings are read alike by `build`, `show` and `annotate`; configs name languages, too."""

from __future__ import annotations

import pytest
from support.references.reference_parsers import places

from codesyntax_dataset import annotate
from codesyntax_dataset.errors import SourceError, UnknownName
from codesyntax_dataset.languages.variants import EXACT
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import read
from probing.report.pages import shown

FILES = {
    "python": ("a.py", "# Ä\ndef f(x):\n    # é\n    return x.y\n"),
    "java": ("A.java", "class A {\n// Ä\nvoid f() {\n    // é\n    x.y();\n}\n}\n"),
    "javascript": ("a.js", "// Ä\nfunction f() {\n    // é\n    return x.y;\n}\n"),
    "typescript": ("a.ts", "// Ä\nfunction f() {\n    // é\n    return x.y!;\n}\n"),
    "go": ("a.go", "package a\n// Ä\nfunc f() {\n    // é\n    x = y.z\n}\n"),
    "php": ("a.php", "<?php\n// Ä\nfunction f() {\n    // é\n    return $x->y;\n}\n"),
    "ruby": ("a.rb", "# Ä\ndef f\n  # é\n  x.y\nend\n"),
    "rust": ("a.rs", "// Ä\nfn f() {\n    // é\n    x.y;\n}\n"),
}

every_language = pytest.mark.parametrize("language", FILES)


@every_language
@pytest.mark.parametrize("ends", ["\r", "\r\n"])
def test_functions_of_files_are_the_same_but_for_their_line_ends(tmp_path, language, ends):
    name, text = FILES[language]
    config = language if language not in ("python", "java") else f"{language}_exact"
    (tmp_path / name).write_bytes(text.encode())
    [expected] = read(tmp_path, config, Skips())
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", ends).encode())
    [function] = read(tmp_path, config, Skips())
    assert function.code.replace("\r\n", "\n") == expected.code
    labels = annotate(function.code, language, EXACT.name)
    assert labels.edges == annotate(expected.code, language, EXACT.name).edges != []


@every_language
def test_labels_of_code_with_carriage_returns_are_at_the_same_places(language):
    _, text = FILES[language]
    code = {
        "java": "void f() {\n// é\nx.y();\n}",
        "go": "func f() {\n// é\nx = y.z\n}",
        "php": "function f() {\n# é\n$x->y;\n}",
    }
    code = code.get(language, text)
    assert places(annotate(code.replace("\n", "\r"), language, EXACT.name)) == places(
        annotate(code, language, EXACT.name)
    )


def test_a_file_is_shown_in_its_own_encoding_and_line_ends(tmp_path):
    file = tmp_path / "f.py"
    file.write_bytes("# coding: latin-1\rdef f(x):\r    # é\r    return x.y\r".encode("latin-1"))
    function = shown(file, None, None, "python_exact", "test")
    assert function.code == "# coding: latin-1\ndef f(x):\n    # é\n    return x.y\n"
    assert "Attribute:value->attr" in {edge.relation for edge in function.edges}


@pytest.mark.parametrize("data", [b"\xff", b"# coding: nonsense\n"])
def test_what_is_no_text_is_not_shown(tmp_path, data):
    file = tmp_path / "f.py"
    file.write_bytes(data)
    with pytest.raises(
        SourceError, match=r"f\.py is no text in UTF-8 or the encoding that it declares"
    ):
        shown(file, None, None, "python_exact", "test")


@pytest.mark.parametrize(
    "config, language, variant", [("java_exact", "java", "exact"), ("python", "python", None)]
)
def test_a_config_names_its_language_and_variant(config, language, variant):
    code = FILES["python"][1] if language == "python" else "void f() { x.y(); }"
    assert annotate(code, config) == annotate(code, language, variant)


@pytest.mark.parametrize(
    "language, variant", [("java_exact", "exact"), ("java_pairs", None), ("jav", None)]
)
def test_what_is_no_language_nor_config_of_labels_is_refused(language, variant):
    with pytest.raises(UnknownName, match="language"):
        annotate("void f() {}", language, variant)
