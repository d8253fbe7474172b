"""The embedded sample: enough of it, every relation in both partitions, nothing twice, and what its README says."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from conftest import ROOT
from support.references.published_relations import published_relations

from codesyntax_dataset import annotate
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import SPLITS
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import read

SAMPLE = ROOT / "codesyntax_dataset" / "sample"

LEAST = {
    **dict.fromkeys(["python", "java"], (60, 20)),
    **dict.fromkeys("javascript typescript go php ruby rust".split(), (20, 10)),
}
"""Language -> the functions that each partition has at least."""

every_language = pytest.mark.parametrize("language", LEAST)
both_treebanks = pytest.mark.parametrize("language", ["english", "german"])


@cache
def functions(language):
    skips = Skips()
    found = list(read("sample", language, skips))
    assert skips.counts == {}, skips.names
    return found


def sizes(language):
    return Counter(function.partition for function in functions(language))


@every_language
def test_has_enough_functions(language):
    assert all(
        sizes(language)[split] >= least
        for split, least in zip(("test", "validation"), LEAST[language])
    )


@pytest.mark.slow
@every_language
def test_every_relation_occurs_in_both_partitions(language):
    counts = {split: Counter() for split in SPLITS}
    for function in functions(language):
        counts[function.partition].update(
            edge.relation for edge in annotate(function.code, language).edges
        )
    relations = {relation.name for relation in published_relations(language)}
    assert set(counts["test"]) == set(counts["validation"]) == relations
    assert {name: n for name, n in counts["test"].items() if n < 3} == {}


@every_language
def test_no_function_occurs_twice(language):
    bodies = Counter(" ".join(function.code.split()) for function in functions(language))
    assert [body for body, n in bodies.items() if n > 1] == []


@both_treebanks
def test_every_relation_of_a_treebank_occurs_in_both_partitions(language):
    found = {split: set() for split in SPLITS}
    for sentence in functions(language):
        found[sentence.partition] |= {edge.relation for edge in sentence.annotation.edges}
    assert found["test"] == found["validation"]
    assert len(found["test"]) >= 35
    known = LANGUAGES[language].relation_names
    assert {name.partition(":")[0] for name in found["test"]} <= set(known)
    texts = Counter(sentence.code for sentence in functions(language))
    assert sizes(language)["test"] >= 60
    assert max(texts.values()) == 1


TAGS = {
    "aux": "AUX",
    "case": "ADP PART",
    "cc": "CCONJ ADV",
    "compound": "NOUN PROPN ADP ADV",
    "cop": "AUX",
    "det": "DET",
    "discourse": "INTJ",
    "expl": "PRON",
    "mark": "SCONJ PART",
    "nummod": "NUM",
    "punct": "PUNCT",
}
"""The tags that words of a relation may have, as in the guidelines."""

NO_CHILDREN = {*"aux case cc cop expl fixed mark punct".split()}


def trees(language):
    """Sentence by sentence, the rows of a treebank's words, read line by line without a parser."""
    for file in sorted((SAMPLE / "treebanks").glob(f"{LANGUAGES[language].tag}_*.conllu")):
        for block in file.read_text("utf-8").split("\n\n"):
            rows = [line.split("\t") for line in block.splitlines() if not line.startswith("#")]
            if rows:
                yield block.splitlines()[1].removeprefix("# text = "), rows


@both_treebanks
def test_trees_follow_the_guidelines(language):
    """One root, no circles, no crossing arcs, tags that fit relations, and words that lead what they may lead."""
    for text, rows in trees(language):
        words = [row for row in rows if "-" not in row[0]]
        heads = [0, *(int(row[6]) for row in words)]
        names = ["", *(row[7].partition(":")[0] for row in words)]

        def above(number, heads=heads):
            while number:
                yield (number := heads[number])

        assert names.count("root") == heads[1:].count(0) == 1 and heads[names.index("root")] == 0, (
            text
        )
        for number, (head, name, row) in enumerate(zip(heads[1:], names[1:], words), start=1):
            assert [int(row[0]), len(row)] == [number, 10], text
            between = range(min(number, head) + 1, max(number, head)) if head else ()
            assert all(head in above(inner) for inner in between), (text, row[1], "crosses")
            assert row[3] in TAGS.get(name, row[3]).split(), (text, row)
            assert (row[3] == "PUNCT") == (name == "punct"), (text, row)
            assert names[head] not in NO_CHILDREN or name == "fixed", (text, row)
            assert name not in {"appos", "conj", "fixed", "flat", "list"} or head < number, (
                text,
                row,
            )
        for head in range(1, len(heads)):
            led = [names[number] for number in range(len(heads)) if heads[number] == head]
            assert led.count("nsubj") + led.count("csubj") <= 1 and led.count("obj") <= 1, text
        units = [row for row in rows if "-" in row[0] or row[9] != "_" or not covered(rows, row)]
        spelled = "".join(row[1] + ("" if row[9] == "SpaceAfter=No" else " ") for row in units)
        assert spelled.strip() == text


def covered(rows, row):
    """Whether a word is part of a multi-word range, so that the range is in the text instead."""
    ranges = [[int(number) for number in other[0].split("-")] for other in rows if "-" in other[0]]
    return any(first <= int(row[0]) <= last for first, last in ranges)
