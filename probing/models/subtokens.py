"""The sub-tokens of texts, and the characters that they cover."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from codesyntax_dataset.errors import ModelError
from codesyntax_dataset.safe_files import printable

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


def tells_characters(tokenizer: Any) -> bool:
    """True if a tokenizer tells which characters a sub-token covers: fast ones do, and CuBERT's."""
    return getattr(tokenizer, "is_fast", False) or exact_offsets(tokenizer)


def exact_offsets(tokenizer: Any) -> bool:
    """True if the characters that a tokenizer tells are those that each sub-token stands for, white
    space included.

    Those of others may include the space in front of a word.
    """
    return getattr(tokenizer, "exact_offsets", False)


def check_language(tokenizer: Any, name: str, language: str) -> None:
    """Raise ModelError if the tokenizer called `name` reads another language only, as CuBERT's
    do."""
    reads = getattr(tokenizer, "language", None)
    if reads not in (None, language):
        raise ModelError(
            f"{name} reads {reads} only, but the functions are in {language}: use a model that reads {language}"
        )


def encode(
    tokenizer: Any, texts: Sequence[str]
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Sub-tokens of each text: ids (S,), character offsets (S, 2), and which are special (S,).

    The tokenizer must tell characters. Raises ModelError if it fails.
    """
    with no_panic():
        encoding = tokenizer(
            list(texts),
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            truncation=False,
            verbose=False,
        )
    for ids, offsets, special in zip(
        encoding["input_ids"], encoding["offset_mapping"], encoding["special_tokens_mask"]
    ):
        yield (
            np.asarray(ids, np.int32),
            np.asarray(offsets, np.int32).reshape(-1, 2),
            np.asarray(special, bool),
        )


def word_ends(tokenizer: Any, text: str, positions: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Where the words of the sub-tokens at some `positions` (M,) of a text end: (M,). `offsets`:
    those of all sub-tokens (S, 2).

    Words are what the tokenizer divides a text into before it makes sub-tokens, and end at white
    space; of a tokenizer that does not tell, there is white space between them.
    """
    start, end = offsets[positions].T
    # an offset may leave out the space in front of a word
    spaces = [text[at : at + 1].isspace() and not text[at - 1 : at].isspace() for at in end[:-1]]
    begins = (np.diff(positions) > 1) | (start[1:] >= end[:-1]) & np.array(spaces, bool)
    if getattr(tokenizer, "is_fast", False):
        own = np.array(tokenizer(text, truncation=False, verbose=False).word_ids())[positions]
        begins |= own[1:] != own[:-1]
    word = np.cumsum(np.append(False, begins))[: len(positions)]
    return positions[np.searchsorted(word, word, side="right") - 1] + 1


def begin_token(tokenizer: Any) -> int | None:
    """The token that stands before the text of a decoder whose `tokenizer` puts none there: the
    beginning of text, or its end, which separates texts in training, if there is no other; None if
    the tokenizer puts one there, or has none.
    """
    first = next((special[:1].any() for _, _, special in encode(tokenizer, ["a"])), False)
    candidates = (tokenizer.bos_token_id, tokenizer.eos_token_id)
    return None if first else next((token for token in candidates if token is not None), None)


def positions(config: PreTrainedConfig) -> int | None:
    """The number of positions in a configuration; None: any number of sub-tokens."""
    config = config.get_text_config()
    numbers = (getattr(config, name, None) for name in ("max_position_embeddings", "max_seq_len"))
    return next((number for number in numbers if number and number > 0), None)


@contextmanager
def no_panic() -> Iterator[None]:
    """Turn a panic of the tokenizers library, such as for a pattern that takes too long, into a
    ModelError."""
    try:
        yield
    except BaseException as error:  # the class of panics is hidden, and no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise ModelError(
            f"its tokenizer fails: {printable(' '.join(str(error).split()))}"
        ) from None


def common_prefix(first: np.ndarray, other: np.ndarray) -> int:
    """How many ids of two texts, from the first on, are equal."""
    shortest = min(len(first), len(other))
    return int(np.append(first[:shortest] != other[:shortest], True).argmax())
