"""What words and positions tell of a pair of tokens, on one function by hand."""

from __future__ import annotations

import numpy as np

from probing.instruments.information.pairs import Surface, WordClasses, words_of

CODE = "if a:\n    b(a, 'x')"
WORDS = ["if", "a", ":", "b", "(", "a", ",", "'x'", ")"]


def row():
    starts, place = [], 0
    for word in WORDS:
        place = CODE.index(word, place)
        starts.append(place)
        place += len(word)
    return {"code": CODE, "token_start": starts, "token_end": [s + len(w) for s, w in zip(starts, WORDS)]}


def cells(surface, head):
    """The codes of each row, from 0 in each."""
    codes, _ = surface.pairs(head)
    return codes - np.cumsum([0, *surface.sizes[:-1]])[:, None]


def test_every_feature_by_hand():
    one = row()
    assert words_of(one) == WORDS
    surface = Surface.of(one, WordClasses([]))  # without frequent words, all are shapes
    word, behind, before, length, ends, begin, end, offset, power, line, indent, depth, same = cells(surface, 1)
    name, number, text, mark, outside = range(5)
    assert word.tolist() == [name, name, mark, name, mark, name, mark, text, mark]
    assert behind.tolist() == [*word[1:], outside] and before.tolist() == [outside, *word[:-1]]
    assert length.tolist() == [2, 1, 1, 1, 1, 1, 1, 3, 1]
    assert ends.tolist() == [1, 0, 2, 1, 0, 0, 0, 0, 2]  # of a line
    assert begin.tolist() == [0, 1, 1, 2, 2, 2, 2, 3, 3] and end.tolist() == [3, 3, 3, 2, 2, 2, 2, 1, 1]
    assert (offset - 25).tolist() == [-1, 0, 1, 2, 3, 4, 5, 6, 7]
    assert power.tolist() == [1, 0, 11, 11, 12, 12, 12, 12, 13]  # both sides apart
    assert (line - 8).tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert (indent - 16).tolist() == [0, 0, 0, 4, 4, 4, 4, 4, 4]
    assert (depth - 4).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 0]
    assert same.tolist() == [0, 1, 0, 0, 0, 1, 0, 0, 0]
    assert number not in word


def test_far_tokens_share_codes():
    long = {"code": "a " * 90, "token_start": list(range(0, 180, 2)), "token_end": list(range(1, 180, 2))}
    offset = cells(Surface.of(long, WordClasses([long])), 40)[7]
    assert offset[:16].tolist() == [0] * 16 and offset[16] == 1 and offset[65:].tolist() == [50] * 25


def test_frequent_words_have_classes_of_their_own():
    classes = WordClasses([row(), row()])
    assert len({*classes.of(["a", "if", ":"]).tolist()}) == 3
    assert classes.of(["a"]).tolist() == classes.of(["a"]).tolist() != classes.of(["unknown"]).tolist()
    assert classes.of(["zz", "unknown"]).tolist() == [0, 0] and classes.of(["7"]).tolist() == [1]
    assert Surface.of(row(), classes).pairs(0)[0].max() < Surface.of(row(), classes).indicators
