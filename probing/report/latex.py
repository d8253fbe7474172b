"""Texts and documents in LaTeX, for pdfLaTeX and its successors; they need the packages booktabs and graphicx."""

from __future__ import annotations

import re
import unicodedata

_ESCAPED = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "−": "$-$",
    "×": r"$\times$",
    "≥": r"$\geq$",
    "Δ": r"$\Delta$",
    "→": r"$\to$",
    "–": "--",
    "…": r"\ldots{}",
    "«": r"\guillemotleft{}",
    "»": r"\guillemotright{}",
    "\n": r" \textbar{} ",
}

DOCUMENT = r"""%% %s
\documentclass{article}
\usepackage[a4paper,margin=2cm]{geometry}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{booktabs,graphicx}
\newsavebox{\fitting}
\newcommand{\fit}[1]{\par\noindent\sbox{\fitting}{#1}%%
  \ifdim\wd\fitting>\linewidth\sbox{\fitting}{\resizebox{\linewidth}{!}{\usebox{\fitting}}}\fi
  \ifdim\ht\fitting>.4\textheight\sbox{\fitting}{\raisebox{\depth}{\usebox{\fitting}}}\fi
  \ifdim\ht\fitting>.8\textheight\resizebox{!}{.8\textheight}{\usebox{\fitting}}\else\usebox{\fitting}\fi\par}
\setlength{\parindent}{0pt}
\setlength{\parskip}{.6em}
\sloppy
\begin{document}
%s
\end{document}
"""


def escaped(text: str) -> str:
    """A text on one line, whatever characters it has; those that pdfLaTeX lacks are named by their code points."""
    return "".join(_character(one) for one in re.sub(r"[ \t]*[\r\n]+[ \t]*", "\n", text))


def _character(one: str) -> str:
    if one in _ESCAPED:
        return _ESCAPED[one]
    if " " <= one <= "~" or (one <= "\u017f" and unicodedata.category(one)[0] == "L"):
        return one
    return f"[U+{ord(one):04X}]"
