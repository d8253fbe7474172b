"""What fills a held-out list of predictors comes from validation, never from the scored split."""

from __future__ import annotations

import datasets

from probing.evidence.baselines import chosen_on, read_edges


def edges_of(*words: str, split: str):
    """A function of these words, with one edge from the first to the second."""
    starts = [sum(map(len, words[:number])) + number for number in range(len(words))]
    row = {
        "id": 0,
        "code": " ".join(words),
        "token_start": starts,
        "token_end": [start + len(word) for start, word in zip(starts, words)],
        "relations": [{"relation": "r", "head": 0, "first": 1, "last": 1}],
    }
    return read_edges(
        datasets.DatasetDict({split: datasets.Dataset.from_list([row])}), "python", split
    )


def test_keywords_come_by_their_frequency_on_validation():
    validation = edges_of("x", "else", "in", "in", "y", "while", split="validation")
    test = edges_of("x", "else", "while", "while", "while", "y", split="test")
    picks, _ = chosen_on(validation, test)
    assert picks.names("keyword", "first", "r")[:3] == ["else", "in", "while"]
