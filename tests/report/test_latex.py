"""Tables in LaTeX: by hand, and compiled where there is a pdfLaTeX."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from probing.report import folder
from probing.report.document import Column, Section, Table, latex_escaped
from probing.report.kinds import CODE, COUNT, DIFFERENCE, NAME, PERCENT

HOSTILE = '50 % of $x_1$ & {#2} \\input{x} ~^<>| "q" −3 “‘é✗ \u202e中\nnext'

TABLE = Table(
    "relations",
    "What heads find",
    [
        Column("rule"),
        Column("relation", NAME),
        Column("edges", COUNT, "a_group"),
        Column("score", PERCENT, "a_group"),
        Column("code", CODE),
        Column("vs\nbest", DIFFERENCE, "held-out"),
    ],
    [
        ["first", "If:if->test", 1234, 92.54, "a_b", [-1.25, -2.0, 0.5, 0.0312]],
        ["first", HOSTILE, None, None, HOSTILE, None],
        ["last", "not shown", 1, 2.0, "", None],
    ],
    filters=1,
    totals=[["", "mean", "", 46.3, "", ""]],
)


def in_latex() -> str:
    return folder._macros("tex").table(TABLE)


def test_a_table_by_hand():
    assert in_latex().splitlines()[:7] == [
        "% What heads find (rule first; the CSV file has all)",
        r"\begin{tabular}{lrrlr}",
        r"\toprule",
        r"\multicolumn{1}{c}{} & \multicolumn{2}{c}{a\_group} & \multicolumn{1}{c}{} & \multicolumn{1}{c}{held-out} \\",
        r"\cmidrule(lr){2-3}\cmidrule(lr){5-5}",
        r"relation & edges & score & code & vs best \\",
        r"\midrule",
    ]
    first, second, rule, mean, *end = in_latex().splitlines()[7:]
    assert first == (
        r"If:if-\textgreater{}test & 1,234 & 92.5 & \texttt{a\_b} & "
        r"$-$1.2 {\scriptsize ($-$2.0 to +0.5; p 0.031)} \\"
    )
    assert second.startswith(
        r"50 \% of \$x\_1\$ \& \{\#2\} \textbackslash{}input\{x\} \textasciitilde{}"
    )
    assert "[U+202E][U+4E2D]" in second and "é[U+2717]" in second and "not shown" not in in_latex()
    assert (rule, mean) == (r"\midrule", r"mean &  & 46.3 &  &  \\")
    assert end == [r"\bottomrule", r"\end{tabular}"]


DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{booktabs}
\begin{document}
\input{tables/relations.tex}
\end{document}
"""


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on the PATH")
@pytest.mark.slow
def test_a_table_compiles(tmp_path):
    folder.write(
        folder.Report("report", "", "T", [Section("s", "S", [TABLE])], format="latex"), tmp_path
    )
    (tmp_path / "paper.tex").write_text(DOCUMENT)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    assert not re.search(r"Missing character|Undefined", done.stdout)


def test_every_ascii_character_is_kept_or_escaped():
    special = set("&%$#_{}\\~^")
    for one in map(chr, range(33, 127)):
        made = latex_escaped(one)
        assert made == one or one in special | set('<>|"')
        assert not (one in special and made == one)
