"""The alignment of CuBERT's sub-tokens with code tokens as CodeSyntax made it: by searching, with what it misses.

A plain form of the published procedure, to hold the reference alignments against; ours comes from character offsets.
"""

from __future__ import annotations

_NL, _NEWLINE, _INDENT = r"\u\u\uNL\u\u\u_", r"\u\u\uNEWLINE\u\u\u_", r"\u\u\uINDENT\u\u\u "
_WIDTHS = {" " * width for width in (4, 7, 8, 12, 16, 20)}


def published_alignment(tokenizer, code_tokens: list[str], sequence: list[str]) -> list[list[int]]:
    """The positions in `sequence`, all sub-tokens of a function, of those of each code token."""
    found, cursor = [], 0
    for token in code_tokens:
        positions: list[int] = []
        if token in ("\n", "\r\n"):
            if sequence[cursor + 1 : cursor + 2] in ([_NL], [_NEWLINE]):
                positions = [cursor + 1]
        elif own := _alone(tokenizer, token):
            for place in range(cursor + 1, len(sequence) - len(own) + 1):
                if sequence[place : place + len(own)] == own and not sequence[place - 1].endswith(
                    "u^_"
                ):
                    positions = list(range(place, place + len(own)))
                    break
        found.append(positions)
        cursor = positions[-1] if positions else cursor
    return found


def _alone(tokenizer, token: str) -> list[str]:
    """The sub-tokens of a code token by itself; none for what is skipped."""
    if tokenizer.language == "python":
        if token in _WIDTHS:
            return [_INDENT]
        if token in set("()[]{}"):
            return [f"{token}_"]
        if not token.strip():
            return []
    own = tokenizer.tokenize(token)
    if own[-1:] == [_NEWLINE]:
        own.pop()
    return [] if own[:1] == ["#^_"] else own
