"""Treebanks: what is read from CoNLL-U and plain text, and that malformed files are left out or refused, never fatal."""

from __future__ import annotations

import pytest

from codesyntax_dataset import annotate, corpus
from codesyntax_dataset.build import build
from codesyntax_dataset.check import check_folder
from codesyntax_dataset.errors import ArgumentError, DatasetError, SourceError
from codesyntax_dataset.schema import LABELS, Edge, Skips, check
from codesyntax_dataset.sources import read

GERMAN = """\
# sent_id = im-haus
# text = Im Haus bellt's.
1-2	Im	_	_	_	_	_	_	_	_
1	In	in	ADP	_	_	3	case	_	_
2	dem	der	DET	_	_	3	det	_	_
3	Haus	Haus	NOUN	_	_	4	obl	_	_
4-5	bellt's	_	_	_	_	_	_	_	SpaceAfter=No
4	bellt	bellen	VERB	_	_	0	root	_	_
5	's	es	PRON	_	_	4	expl:pv	_	_
5.1	laut	laut	ADV	_	_	_	_	4:advmod	_
6	.	.	PUNCT	_	_	4	punct	_	SpacesAfter=\\n

# sent_id = ja
1	Ja	ja	INTJ	_	_	0	root	_	SpaceAfter=No
2	!	!	PUNCT	_	_	1	punct	_	_

"""
PLAIN = "The 2-det\ndogs 3-nsubj\nbark 0-root\n. 3-punct\n\nYes 0-root\n"


def words(*rows):
    """A sentence of (form, head, relation) rows in CoNLL-U."""
    return "".join(
        f"{i}\t{form}\t_\t_\t_\t_\t{head}\t{name}\t_\t_\n"
        for i, (form, head, name) in enumerate(rows, 1)
    )


GOOD = words(("Dogs", 2, "nsubj"), ("bark", 0, "root"))


def file_of(folder, text, name="de_own-ud-test.conllu"):
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(file)


def sentences(folder, text, config="german", skips=None, **options):
    """What is read of a file with such a text."""
    return list(read(file_of(folder, text, **options), config, skips or Skips()))


def test_words_ids_and_edges(tmp_path):
    """Ranges and empty nodes are no words; an edge leads from the head to the word; the root has none."""
    first, second = sentences(tmp_path, GERMAN)
    assert first.code == "In dem Haus bellt 's ."
    assert second.code == "Ja !"
    tokens, edges = check(first.annotation, first.code)
    assert (
        [token.text for token in tokens]
        == [first.code[start:end] for _, start, end in tokens]
        == first.code.split()
    )
    assert edges == [
        Edge("case", 2, 0, 0),
        Edge("det", 2, 1, 1),
        Edge("obl", 3, 2, 2),
        Edge("expl:pv", 3, 4, 4),
        Edge("punct", 3, 5, 5),
    ]
    assert (first.repo, first.path, first.func_name, first.url, first.partition) == (
        "de_own",
        "de_own-ud-test.conllu",
        "im-haus",
        "de_own-ud-test.conllu#L1-L11",
        "test",
    )
    assert second.url.endswith("#L13-L15")


def test_spaces_as_in_the_text(tmp_path):
    """Words of a range have no space between them if together they spell it, such as bellt's, but not `Im`."""
    found = sentences(tmp_path, GERMAN, "german_space_after")
    assert [sentence.code for sentence in found] == ["In dem Haus bellt's.", "Ja!"]


def test_plain_text(tmp_path):
    first, second = sentences(tmp_path, PLAIN, "english", name="wsj.txt")
    assert first.code == "The dogs bark ."
    assert second.code == "Yes"
    assert first.annotation.edges == [
        Edge("det", 1, 0, 0),
        Edge("nsubj", 2, 1, 1),
        Edge("punct", 2, 3, 3),
    ]
    assert (first.repo, first.func_name, second.url) == ("wsj", "1", "wsj.txt#L6-L6")
    with pytest.raises(SourceError, match=r"wsj.txt .* expected CoNLL-U"):
        sentences(tmp_path, PLAIN, "english_space_after", name="wsj.txt")


def test_windows_line_ends_a_mark_and_an_unfinished_end(tmp_path):
    plainly = sentences(tmp_path, GERMAN)
    windows = b"\xef\xbb\xbf" + GERMAN.rstrip("\n").replace("\n", "\r\n").encode()
    assert sentences(tmp_path, windows) == plainly


def test_a_folder_has_partitions_and_languages(tmp_path):
    for name in ("en_own-ud-test", "en_own-ud-dev", "en_own-ud-train", "fr_own-ud-test", "notes"):
        file_of(tmp_path, GOOD.replace("Dogs", name), f"{name}.conllu")
    file_of(tmp_path, PLAIN, "dev.txt")
    file_of(tmp_path, PLAIN, "README.txt")

    def found(config):
        return [
            (one.code.split()[0], one.partition) for one in read(str(tmp_path), config, Skips())
        ]

    dev = [("The", "validation"), ("Yes", "validation"), ("en_own-ud-dev", "validation")]
    assert found("english") == [("en_own-ud-test", "test"), *dev]
    assert found("ud") == [("en_own-ud-test", "test"), ("fr_own-ud-test", "test"), *dev]
    with pytest.raises(
        SourceError,
        match="is not a treebank in German",
    ):
        list(read(str(tmp_path / "en_own-ud-test.conllu"), "german", Skips()))


MALFORMED = {
    "has a line without ten columns": GOOD.replace("\t_\t_\n", "\n", 1),
    "has an id or a head that is not a number": GOOD.replace("\t2\t", "\ttwo\t"),
    "has ids that do not count from 1": GOOD.replace("2\tbark", "3\tbark"),
    "has a head that is none of its words": GOOD.replace("\t2\tnsubj", "\t3\tnsubj"),
    "has a head that is none of its words ": "1\tDogs" + "\t" * 8 + "\n",
    "has ids that do not count from 1 ": GOOD.replace("1\tDogs", "_\tDogs"),
    "has no root, or several": GOOD.replace("\t2\tnsubj", "\t0\troot"),
    "has heads that run in a circle": words(("a", 2, "dep"), ("b", 1, "dep"), ("c", 0, "root")),
    "has multi-word ranges that overlap": ("1-2\tDogsbark" + "\t_" * 8 + "\n") * 2 + GOOD,
    "has a word without text": GOOD.replace("Dogs", " "),
    "has a relation without a proper name": GOOD.replace("nsubj", "<b>"),
    "has the relation root below a word": GOOD.replace("nsubj", "root"),
    "has a line of more than 1,048,576 characters": GOOD.replace("Dogs", "D" * 10_000_000),
}


@pytest.mark.parametrize("reason", MALFORMED)
def test_a_malformed_sentence_is_left_out_and_counted(tmp_path, reason):
    skips = Skips()
    found = sentences(tmp_path, f"{GOOD}\n{MALFORMED[reason]}\n{GOOD}", skips=skips)
    assert [sentence.code for sentence in found] == ["Dogs bark"] * 2
    assert skips.names == {f"sentence {reason.strip()}": ["de_own-ud-test.conllu, line 4"]}


@pytest.mark.parametrize(
    "line",
    ["dogs", "2-nsubj", "dogs two-nsubj", "dogs 2", "dogs -1-nsubj", f"dogs{' ' * 900_000}!"],
)
def test_a_malformed_line_of_plain_text(tmp_path, line):
    skips = Skips()
    (_,) = sentences(tmp_path, f"{line}\n\nYes 0-root\n", "english", skips, name="wsj.txt")
    assert sum(skips.counts.values()) == 1


def test_a_file_without_any_sentence_is_refused(tmp_path):
    file = file_of(tmp_path, "Dogs bark.\nCats do not.\n")
    with pytest.raises(SourceError, match=r"without ten columns: 1, first .*conllu, line 1"):
        list(corpus.read(file, "german", Skips()))


def test_bytes_that_are_no_text_are_refused(tmp_path):
    with pytest.raises(SourceError, match=r"de_own-ud-test.conllu, line 2: byte 0xe9 is not UTF-8"):
        sentences(tmp_path, GOOD.replace("bark", "bellé").encode("latin-1"))


@pytest.mark.slow
def test_the_dataset_of_a_treebank(tmp_path):
    """Its card names the language, the treebank and the sentences left out; a config of code has none there."""
    file = file_of(
        tmp_path, f"{GERMAN}{MALFORMED['has heads that run in a circle']}", "gsw_own-ud-test.conllu"
    )
    report = build(file, ["ud", "ud_space_after"], tmp_path / "data")
    assert f"ud {LABELS}." in report.text()
    assert "test 2 sentences, 6 edges" in report.text()
    card = (tmp_path / "data" / "README.md").read_text(encoding="utf-8")
    for line in (
        "language:\n- gsw\n",
        "- Treebanks of `ud`: gsw_own.\n",
        "- Labels: those of the treebank, made by people, unchanged; `root` is no edge, because it has no head.\n",
        "- `ud`: sentence has heads that run in a circle: 1 (gsw_own-ud-test.conllu, line 17)\n",
    ):
        assert line in card
    assert check_folder(tmp_path / "data").configs["ud"].treebanks == ["gsw_own"]
    with pytest.raises(
        DatasetError,
        match="holds ud from treebank, `gsw_own-ud-test.conllu`",
    ):
        build("sample", ["english"], tmp_path / "data")
    with pytest.raises(SourceError, match="none of the known forms"):
        build(file, ["python"], tmp_path / "code")


def test_sentences_are_not_labelled_by_rules():
    with pytest.raises(ArgumentError, match="people label English in treebanks, and no rules do"):
        annotate("Dogs bark .", "english")
