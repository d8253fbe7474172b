"""What words and positions tell of a pair of tokens, on one function by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from probing.instruments.information.surface import (
    _SET_SIZES,
    INDICATORS,
    SETS,
    Surface,
    WordClasses,
)
from probing.runs.data import words_of

CODE = "if a:\n    b(a, 'x')"
WORDS = "if a : b ( a , 'x' )".split()


def row():
    starts, place = [], 0
    for word in WORDS:
        place = CODE.index(word, place)
        starts.append(place)
        place += len(word)
    return {
        "code": CODE,
        "token_start": starts,
        "token_end": [s + len(w) for s, w in zip(starts, WORDS)],
    }


def digits(text):
    return [*map(int, text)]


def cells(surface, head):
    """The codes of each row, from 0 in each."""
    codes, _ = surface.pairs(head)
    return codes - np.cumsum([0, *_SET_SIZES[:-1]])[:, None]


def test_every_feature_by_hand():
    one = row()
    assert words_of(one) == WORDS
    surface = Surface.of(one, WordClasses([]))  # without frequent words, all are shapes
    positions = cells(surface, 1)[: SETS["positions"][0]]
    word, behind, before, length, ends, begin, end, offset, power, line, indent, depth, same = (
        positions
    )
    name, number, text, mark, outside = range(5)
    assert word.tolist() == [name, name, mark, name, mark, name, mark, text, mark]
    assert behind.tolist() == [*word[1:], outside]
    assert before.tolist() == [outside, *word[:-1]]
    assert length.tolist() == digits("211111131")
    assert ends.tolist() == digits("102100002")  # of a line
    assert begin.tolist() == digits("011222233")
    assert end.tolist() == digits("333222211")
    assert (offset - 25).tolist() == [-1, 0, 1, 2, 3, 4, 5, 6, 7]
    assert power.tolist() == [1, 0, 11, 11, 12, 12, 12, 12, 13]  # both sides apart
    assert (line - 8).tolist() == digits("000111111")
    assert (indent - 16).tolist() == digits("000444444")
    assert (depth - 4).tolist() == digits("000011110")
    assert same.tolist() == digits("010001000")
    assert number not in word


def test_far_tokens_share_codes():
    long = {
        "code": "a " * 90,
        "token_start": list(range(0, 180, 2)),
        "token_end": list(range(1, 180, 2)),
    }
    offset = cells(Surface.of(long, WordClasses([long])), 40)[7]
    assert offset[:16].tolist() == [0] * 16
    assert offset[16] == 1
    assert offset[65:].tolist() == [50] * 25


def test_frequent_words_have_classes_of_their_own():
    classes = WordClasses([row(), row()])
    assert len({*classes.of(["a", "if", ":"]).tolist()}) == 3
    assert (
        classes.of(["a"]).tolist() == classes.of(["a"]).tolist() != classes.of(["unknown"]).tolist()
    )
    assert classes.of(["zz", "unknown"]).tolist() == [0, 0]
    assert classes.of(["7"]).tolist() == [1]
    assert Surface.of(row(), classes).pairs(0)[0].max() < INDICATORS


def test_structure_by_hand():
    """Of `if a :`, a line, `b ( a , 'x' )`: what encloses a token, and what stands between it and the head token."""
    surface = Surface.of(row(), WordClasses([]))
    rows = slice(SETS["positions"][0], SETS["structure"][0])
    back2, ahead2, first, opener, caller, step, levels, same_back, same, starts, bracket, commas = (
        cells(surface, 3)[rows]
    )
    name, _, text, mark, outside = range(5)
    word = [name, name, mark, name, mark, name, mark, text, mark]
    assert back2.tolist() == [outside, outside, *word[:-2]]
    assert ahead2.tolist() == [
        *word[2:],
        outside,
        outside,
    ]
    assert first.tolist() == [name] * 9
    assert opener.tolist() == [outside] * 5 + [mark] * 3 + [outside]
    assert caller.tolist() == [outside] * 5 + [name] * 3 + [outside]
    assert step.tolist() == digits("322522222")  # deeper or not, and whether a line begins
    least, level = levels // 7 - 3, levels % 7 - 3
    assert level.tolist() == digits("000011110")
    assert least.tolist() == [0] * 9
    between, after = same % 8 // 2, same % 2
    assert after.tolist() == digits("000011111")
    assert (same // 8).tolist() == word
    assert between.tolist() == digits("100000102")  # of names or marks
    assert (same_back // 8).tolist() == [outside, *word[:-1]]
    assert (starts // 4).tolist() == [0] * 9
    assert (starts % 2).tolist() == digits("100100000")
    # before, inside, and the closing bracket
    assert bracket.tolist() == digits("444433330")
    assert (commas // 2).tolist() == [0] * 9  # at the head token's depth
    assert (cells(surface, 5)[rows][-1] // 2).tolist() == [0] * 7 + [1, 1]


def test_lines_that_begin_no_deeper_than_the_head_token_are_counted():
    """Between the first and the last there is one that is deeper, and one that is not."""
    one = {
        "code": " a\n  b\n c\n d",
        "token_start": [1, 5, 8, 11],
        "token_end": [2, 6, 9, 12],
    }
    starts = cells(Surface.of(one, WordClasses([])), 0)[SETS["positions"][0] + 9]
    assert (starts // 4).tolist() == [0, 0, 0, 1]


MORE = "if a : 7 ( a , b ) 'x' [ b ] 8".split()


def test_grams_share_a_code_where_their_parts_are_equal():
    """The parts of each gram are features of the other sets, which are worked out by hand above."""
    code = "if a:\n    " + "".join(MORE[3:])
    ends = [2, 4, 5, *(10 + np.cumsum([len(word) for word in MORE[3:]])).tolist()]
    starts = [end - len(word) for end, word in zip(ends, MORE)]
    one = {"code": code, "token_start": starts, "token_end": ends}
    assert words_of(one) == MORE
    surface = Surface.of(one, WordClasses([]))
    for head in (1, 4, 6):
        rows = cells(surface, head)
        known, ahead, back, *_ = rows
        back2, _, first, opener, caller, _, levels, *_, bracket, _ = rows[13:25]
        here = np.arange(len(MORE))
        commas = np.eye(len(MORE), dtype=int)[MORE.index(",") + 1]  # before the second argument
        parts = [
            (back, known),
            (back2, back),
            (known, ahead),
            (first, known),
            (opener, commas),
            (caller, known),
            (known,),  # beside the head token's
            (back,),  # beside the word after the head token
            (here - head, known),
            (bracket, levels, known),
            (known,),  # beside the word before the head token
        ]
        assert len(rows) - 25 == len(parts)
        for gram, of in zip(rows[25:], parts):
            alike = np.all([part[:, None] == part for part in of], axis=0)
            assert ((gram[:, None] == gram) == alike).all()
    assert [SETS[name][0] for name in SETS] == [13, 25, 36]
    first, second, third = (cells(surface, head)[25:] for head in (0, 1, 3))  # name, name, number
    assert (first[6] == second[6]).all()
    assert (first[6] != third[6]).all()
    assert (first[7] != second[7]).all()  # a name and a mark follow
    assert (first[10] != second[10]).all()  # nothing and a name stand before


def test_values_by_hand():
    """How far a candidate is: in tokens and characters on either side, and from both ends."""
    head = 3
    values = Surface.of(row(), WordClasses([])).pairs(head)[1]
    starts = row()["token_start"]
    for place, told in enumerate(values.tolist()):
        expected = []
        for apart in (place - head, starts[place] - starts[head]):
            near, far = 1 / (1 + abs(apart)), math.log(1 + abs(apart)) / 2
            expected += [far, near] if apart > 0 else [0, 0]
            expected += [far, near] if apart < 0 else [0, 0]
        expected += [
            math.log(1 + place) / 2,
            1 / (1 + place),
            math.log(1 + len(WORDS) - place) / 2,
        ]
        assert told == pytest.approx(expected)
