"""Minimal pairs of code: two texts that differ in one place, of which only one is valid.

The valid text is a function as it is. The other one exchanges a word, a bracket or the like
(`phenomena`), such that something far away has no licence any more: a `break` that is in no loop,
since its `while` became `if`. What stands beside a change must not tell: the licensor is at least
`FAR` tokens away, and of all pairs only those are kept on which an n-gram model and a bag of tokens
are at chance (`rivals`).

Two parsers certify a pair where the computer has them: that of tree-sitter, or, for what its
grammar does not know, the condition of the phenomenon on its tree, and the language's own
(`programs`). What is drawn depends on the code alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages import LANGUAGES, bounded
from codesyntax_dataset.languages.grammar import parse_framed
from codesyntax_dataset.languages.native import NATIVE
from codesyntax_dataset.pairs.code import Code
from codesyntax_dataset.pairs.phenomena import PHENOMENA
from codesyntax_dataset.pairs.programs import (
    INVALID,
    UNFINISHED,
    UNKNOWN,
    VALID,
    native,
    parses_as_python,
)
from codesyntax_dataset.pairs.words import Site
from codesyntax_dataset.schema import SourceFunction

FAR = 5
"""Tokens from the licensor to the critical token: further than a 5-gram sees."""

LONGEST = 5_000
"""Characters of a function: a model must read a text as a whole."""

PARSER, COMPILER = "parser", "compiler"
"""What refuses an invalid text: a parser, or only a later check of the compiler on its tree."""

MOST = 3
"""Pairs of a function in which the same word becomes the same other one."""


@dataclass(frozen=True)
class Pair:
    """A pair; its fields are columns of the dataset (`codesyntax_dataset.features.PAIR_COLUMNS`).

    Before it is certified, `certified` is `rule`, where a condition on the tree says that `bad` is
    invalid, or empty; and `refused_by` is empty, then PARSER or COMPILER.
    """

    good: str
    bad: str
    phenomenon: str
    relation: str
    start: int
    end: int
    distance: int
    depth: int
    prefix: bool = False
    certified: str = ""
    refused_by: str = ""


def minimal_pairs(code: str, language: str) -> list[Pair]:
    """The certified pairs of a function; rivals are not asked.

    >>> code = "def f(q):\\n    while q.ready():\\n        a = q.get()\\n        if not a:\\n            break\\n"
    >>> [pair.bad.splitlines()[1] for pair in minimal_pairs(code, "python") if pair.phenomenon == "loop-or-conditional"]
    ['    if q.ready():']
    """
    certified = certify(candidates(code, language)[0], language)
    return [pair for pair in certified if isinstance(pair, Pair)]


def candidates(code: str, language: str) -> tuple[list[Pair], list[str]]:
    """Pairs of a function that wait to be certified, and the reasons why others are none."""
    if len(code) > LONGEST:
        return [], [f"the function is longer than {LONGEST:,} characters"]
    try:
        read = Code(code, language)
    except ParseError:
        return [], ["the function does not parse"]
    pairs: list[Pair] = []
    reasons: list[str] = []
    for phenomenon in PHENOMENA:
        if language in phenomenon.languages:
            far = [
                site for site in phenomenon.sites(read) if abs(site.critical - site.licensor) >= FAR
            ]
            pairs += [_pair(read, phenomenon.name, site) for site in _drawn(read, far)]
    return pairs, reasons


def _drawn(code: Code, sites: Sequence[Site]) -> list[Site]:
    """Up to MOST sites of each exchange."""
    taken: Counter[tuple[str, str]] = Counter()
    drawn = []
    for site in code.draws.shuffled(sites):
        exchange = code.text[site.start : site.end], site.text
        if taken[exchange] < MOST and exchange[0] != exchange[1]:
            taken[exchange] += 1
            drawn.append(site)
    return sorted(drawn)


def _pair(code: Code, phenomenon: str, site: Site) -> Pair:
    return Pair(
        good=code.text,
        bad=code.text[: site.start] + site.text + code.text[site.end :],
        phenomenon=phenomenon,
        relation=site.relation if LANGUAGES[code.language].has_relation(site.relation) else "",
        start=site.start,
        end=site.end,
        distance=abs(site.critical - site.licensor),
        depth=code.depth(site.licensor, site.critical),
        certified="rule" if site.rule else "",
    )


def certify(pairs: Sequence[Pair], language: str) -> Iterator[Pair | str]:
    """Each pair with what certifies it and whether a prefix decides, or the reason why it is
    none."""
    parser = native(language)
    if parser is None:
        for pair in pairs:
            certified = _by_tree(pair, language)
            if certified:
                yield replace(
                    pair, certified=certified, refused_by=_refuser(pair, certified, language)
                )
            else:
                yield "the changed text is valid"
        return
    name, check = NATIVE[language].parser, parser
    goods = list(dict.fromkeys(pair.good for pair in pairs))
    frames = NATIVE[language].frames
    framed: dict[str, tuple[str, str]] = {}
    for frame in frames:
        left = [good for good in goods if good not in framed]
        verdicts = check([(frame[0], good, frame[1]) for good in left])
        framed |= {good: frame for good, verdict in zip(left, verdicts) if verdict == VALID}
    said: list[list[str]] = []
    for before, behind in frames:
        said.append(check([(before, pair.bad, behind) for pair in pairs]))
    for index, pair in enumerate(pairs):
        if pair.good not in framed:
            yield f"{name} cannot read the function"
            continue
        by_frame = [verdicts[index] for verdicts in said]
        verdict = VALID if VALID in by_frame else by_frame[frames.index(framed[pair.good])]
        certified = _by_tree(pair, language)
        if certified and verdict in (INVALID, UNFINISHED):
            yield replace(
                pair,
                certified=f"{certified}+{name}",
                prefix=verdict == INVALID,
                refused_by=_refuser(pair, certified, language),
            )
        elif verdict == UNKNOWN:
            yield f"{name} cannot say whether the changed text is valid"
        elif certified:
            yield f"parsers disagree: {name} reads the changed text, {certified} refuses it"
        elif verdict == VALID:
            yield "the changed text is valid"
        else:
            yield f"parsers disagree: tree-sitter reads the changed text, {name} refuses it"


def _refuser(pair: Pair, certified: str, language: str) -> str:
    """PARSER or COMPILER, by Python's own parser, and in other languages by the grammar of
    tree-sitter."""
    parses = certified == "rule"
    if language == "python":
        parses = parses_as_python(pair.bad)
    return COMPILER if parses else PARSER


def _by_tree(pair: Pair, language: str) -> str:
    """What tells without the language's own parser that the changed text is invalid; empty if
    nothing does."""
    tree, length = parse_framed(pair.good, language)
    text = tree.root_node.text or b""
    before, behind = text[:length], text[length + len(pair.good.encode()) :]
    try:
        changed = bounded.parse(tree.language, before + pair.bad.encode() + behind)
        refused = changed.root_node.has_error and (
            native(language) is not None or parse_framed(pair.bad, language)[0].root_node.has_error
        )
    except ParseError:
        refused = False  # it may be valid or not: the search took too long
    return "tree-sitter" if refused else pair.certified


def to_rows(function: SourceFunction) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of the pairs of a function that wait to be certified, and the reasons why others are
    none."""
    pairs, reasons = candidates(function.code, function.language)
    rows = [
        {
            "id": f"{function.id}-{number}",
            **asdict(pair),
            "repo": function.repo,
            "path": function.path,
        }
        for number, pair in enumerate(pairs)
    ]
    return rows, reasons
