"""Random code, most of it almost right: functions of the embedded sample with small changes, and what no one would write."""

from __future__ import annotations

import functools
import random

from codesyntax_dataset import corpus, tokenize
from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.schema import Skips

LANGUAGES_OF_CODE = [name for name, language in LANGUAGES.items() if not language.of_treebanks]

STRANGE = (
    *"\0\x0b\f\r\x1b\x1c\x7f\x85\xa0\u0301\u200b\u200d\u2028\u2029\u202e\u2066\ufeff\ufffd",
    "\ud800",
    "\udfff",
    "\U0001f600",
    "\U0001d518",
    "e\u0301\u0301\u0301",
    "\r\n",
    "\n\r",
    "\\\r\n",
    "é",
    "ſ",
    "ﬁ",
    "١",
)
PIECES = (
    *"()[]{}<>,;:.?!@#$%^&*-+=|\\/~`'\"_ \t\n0aZ",
    *"''' \"\"\" f' rb\" \\N{ \\x \\u{ -> => :: ... .. ?. ?? ** // /* */ <!-- <?php ?> << <<< >> &&".split(),
    *"|| := <=> === 0x 0b1 1e 1_ 1__1 0777 9j 1.e5 r#\" b' #{ ${ %w[ <<~E\n ]] {{ }}".split(" "),
    *"if else for while return def class lambda async await yield match case try except finally with import".split(),
    *"new public static void int final switch default do throw throws catch instanceof assert enum record var".split(),
    *"function const let of in typeof delete interface type extends implements enum func go defer chan range".split(),
    *"fn mut impl trait where unsafe dyn move loop end begin rescue ensure unless until elsif then foreach echo".split(),
)
BRACKETS = ("()", "[]", "{}", "<>", "''", '""', "``")


@functools.cache
def functions(language: str) -> tuple[str, ...]:
    """The functions of the sample in a language."""
    return tuple(function.code for function in corpus.read("sample", language, Skips()))


@functools.cache
def pieces(language: str, number: int) -> tuple[str, ...]:
    """A function of the sample as tokens and what is between them."""
    code, parts, end = functions(language)[number], [], 0
    try:
        for token in tokenize(code, language):
            parts += [code[end : token.start], token.text]
            end = token.start + len(token.text)
    except CodeSyntaxError:
        return (code,)
    return (*(part for part in parts if part), code[end:])


def code(rng: random.Random, language: str) -> str:
    """Text for an annotator of `language`."""
    kind = rng.random()
    if kind < 0.62:
        return mutated(rng, language)
    if kind < 0.74:
        return "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 60)))
    if kind < 0.82:
        return spliced(rng, language)
    if kind < 0.90:
        return "".join(rng.choice(STRANGE + PIECES[:40]) for _ in range(rng.randint(0, 40)))
    if kind < 0.97:
        return nested(rng, language, rng.choice([3, 30, 90, 110, 250, 1000]))
    if kind < 0.9985:
        return repeated(rng, language, rng.choice([300, 3_000, 12_000]))
    return large(rng, language)


def mutated(rng: random.Random, language: str) -> str:
    parts = [*pieces(language, rng.randrange(len(functions(language))))]
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3, 6])):
        if parts:
            rng.choice(MUTATIONS)(rng, parts, language)
    return "".join(parts)


def spliced(rng: random.Random, language: str) -> str:
    """The beginning of a function, and the end of another, perhaps of another language."""
    other = rng.choice([language, rng.choice(LANGUAGES_OF_CODE)])
    first = pieces(language, rng.randrange(len(functions(language))))
    second = pieces(other, rng.randrange(len(functions(other))))
    return "".join(
        [*first[: rng.randrange(len(first) + 1)], *second[rng.randrange(len(second) + 1) :]]
    )


def nested(rng: random.Random, language: str, levels: int) -> str:
    """Something in many brackets, in which something may be left open."""
    opens, closes = zip(*(rng.choice(BRACKETS) for _ in range(rng.randint(1, 3))))
    start = rng.choice(
        ["", "x", "if ", "a=", "f", "- ", "not ", "\n", "a," * 3, "lambda: ", "x ? "]
    )
    middle = rng.choice(["", "x", "1", functions(language)[0]])
    inside = start.join(opens) * (levels // len(opens))
    whole = (
        inside
        + middle
        + "".join(reversed(closes)) * (levels // len(closes) - rng.choice([0, 0, 1, levels]))
    )
    return whole if rng.random() < 0.3 else within(rng, language, whole)


def repeated(rng: random.Random, language: str, length: int) -> str:
    """A few tokens again and again, which takes long if anything is done for each pair of them."""
    parts = pieces(language, rng.randrange(len(functions(language))))
    at = rng.randrange(len(parts))
    piece = rng.choice(
        [
            "".join(parts[at : at + rng.randint(1, 12)]),
            "".join(rng.choices(PIECES, k=rng.randint(1, 4))),
        ]
    )
    many = (piece or " ") * (length // max(1, len(piece)) + 1)
    return many if rng.random() < 0.3 else within(rng, language, many)


def large(rng: random.Random, language: str) -> str:
    """What nobody writes: 100,000 levels, a line of 10 MB, a number of 100,000 digits."""
    return rng.choice(
        [
            lambda: nested(rng, language, 100_000),
            lambda: repeated(rng, language, rng.choice([60_000, 200_000])),
            lambda: "x" * 10_000_000,
            lambda: within(rng, language, rng.choice("17") * 100_000),
            lambda: within(rng, language, "'" + "a" * 900_000 + "'"),
        ]
    )()


def within(rng: random.Random, language: str, text: str) -> str:
    """A text in place of a token of a function."""
    parts = [*pieces(language, rng.randrange(len(functions(language))))]
    parts[rng.randrange(len(parts))] = text
    return "".join(parts)


def _delete(rng: random.Random, parts: list[str], language: str) -> None:
    at = rng.randrange(len(parts))
    del parts[at : at + rng.choice([1, 1, 1, 2, 5])]


def _double(rng: random.Random, parts: list[str], language: str) -> None:
    at, size = rng.randrange(len(parts)), rng.choice([1, 2, 8])
    parts[at:at] = parts[at : at + size] * rng.choice([1, 1, 2, 40])


def _swap(rng: random.Random, parts: list[str], language: str) -> None:
    one, other = rng.randrange(len(parts)), rng.randrange(len(parts))
    parts[one], parts[other] = parts[other], parts[one]


def _insert(rng: random.Random, parts: list[str], language: str) -> None:
    parts.insert(rng.randrange(len(parts) + 1), rng.choice(rng.choice([PIECES, STRANGE])))


def _borrow(rng: random.Random, parts: list[str], language: str) -> None:
    """Tokens of another function, perhaps of another language."""
    other = rng.choice([language, language, rng.choice(LANGUAGES_OF_CODE)])
    theirs = pieces(other, rng.randrange(len(functions(other))))
    at, size = rng.randrange(len(theirs)), rng.choice([1, 3, 10])
    place = rng.randrange(len(parts) + 1)
    parts[place:place] = theirs[at : at + size]


def _character(rng: random.Random, parts: list[str], language: str) -> None:
    at = rng.randrange(len(parts))
    text = parts[at]
    inside = rng.randrange(len(text) + 1)
    parts[at] = text[:inside] + rng.choice(STRANGE + PIECES) + text[inside + rng.choice([0, 1]) :]


def _lines(rng: random.Random, parts: list[str], language: str) -> None:
    """Other ends of lines, all or some."""
    end, some = (
        rng.choice(["\r", "\r\n", "\f\n", "\n\f", "\n\n", "", "\\\n", "\u2028"]),
        rng.random() < 0.5,
    )
    parts[:] = [part if some and rng.random() < 0.5 else part.replace("\n", end) for part in parts]


def _cut(rng: random.Random, parts: list[str], language: str) -> None:
    del parts[rng.randrange(len(parts)) :]


def _wrap(rng: random.Random, parts: list[str], language: str) -> None:
    (left, right), times = rng.choice(BRACKETS), rng.choice([1, 1, 3, 120])
    at = rng.randrange(len(parts))
    parts[at] = left * times + parts[at] + right * times


def _number(rng: random.Random, parts: list[str], language: str) -> None:
    parts[rng.randrange(len(parts))] = rng.choice(["0x", "", "-", "1e", "0."]) + rng.choice(
        "019_"
    ) * rng.choice([5, 5000])


MUTATIONS = (_delete, _double, _swap, _insert, _borrow, _character, _lines, _cut, _wrap, _number)
