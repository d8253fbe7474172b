"""Tables in LaTeX: by hand, and compiled where there is a pdfLaTeX."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from probing.report import folder
from probing.report.document import Column, Section, Table
from probing.report.kinds import CODE, COUNT, DIFFERENCE, NAME, PERCENT

HOSTILE = '50 % of $x_1$ & {#2} \\input{x} ~^<>| "q" −3 ÿĀ → мΔ\n\n名'

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

DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs}
\begin{document}
\input{tables/relations.tex}
\end{document}
"""


def test_a_table_by_hand():
    begin, top, groups, names, *rows = TABLE.to_latex().splitlines()
    assert (begin, top) == (r"\begin{tabular}{lrrlr}", r"\toprule")
    assert groups == r" & \multicolumn{2}{c}{a\_group} &  & held-out \\"
    assert names == r"relation & edges & score & code & vs best \\"
    assert rows[0] == r"\midrule"
    assert rows[1] == (r"If:if->test & 1,234 & 92.5 & a\_b & -1.2 [-2.0, +0.5; p 0.031] \\")
    assert rows[2].startswith(r"50 \% of \$x\_1\$ \& \{\#2\} \textbackslash input\{x\}")
    assert "ÿ[U+0100] → [U+043C]Delta [U+540D] &" in rows[2]
    assert rows[3:] == [r"mean &  & 46.3 &  &  \\", r"\bottomrule", r"\end{tabular}"]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on the PATH")
@pytest.mark.slow
def test_a_table_compiles(tmp_path):
    report = folder.Report("report", "", "T", [Section("s", "S", [TABLE])], format="latex")
    folder.write(report, tmp_path)
    (tmp_path / "paper.tex").write_text(DOCUMENT)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
