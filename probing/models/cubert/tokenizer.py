"""CuBERT's tokenizer as one of transformers, which records the characters of every sub-token while it encodes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from transformers import BatchEncoding, PreTrainedTokenizer

from codesyntax_dataset import safe_files
from codesyntax_dataset.atomic import write
from codesyntax_dataset.errors import ModelError, UnknownName
from probing.models.cubert import DROPPABLE, LANGUAGES
from probing.models.cubert.lexemes import KINDS, NEWLINE, Lexeme, lex, pieces
from probing.models.cubert.vocabulary import CLS, MASK, PAD, SEP, UNKNOWN, Vocabulary, named, spelled

_LARGEST = 1 << 24  # bytes of a vocabulary


class CubertTokenizer(PreTrainedTokenizer):
    """The tokenizer of CuBERT as of 2021, with which the models of that year and the paper's scores were made.

    Its predecessor dropped Python's comments and joined blank lines of Java, its successor splits what it cannot lex.

    `vocab_file`: the vocabulary of a release; `language`: `python` or `java`; `drop`: tokens that the model shall not
    see, of DROPPABLE. By default it sees all, as in Shen et al. (2022); CuBERT was pretrained without comments.

    An offset says which characters a sub-token stands for. The first sub-token of an indentation stands for all of it,
    and one that only ends a piece for the last character of the piece. DEDENT, and a NEWLINE behind the last character
    of the code, stand for none.

    Raises ModelError for a file that is not a vocabulary, UnknownName for another language, or other tokens to drop.
    """

    vocab_files_names = {"vocab_file": "vocab.txt"}  # noqa: RUF012 - as in transformers
    model_input_names = ["input_ids", "token_type_ids", "attention_mask"]  # noqa: RUF012
    exact_offsets = True

    def __init__(self, vocab_file: str | os.PathLike, language: str, drop: Sequence[str] = (), **options: Any):
        if language not in LANGUAGES:
            raise UnknownName("language of CuBERT", language, LANGUAGES)
        for name in drop:
            if name not in DROPPABLE:
                raise UnknownName("kind of token to drop", name, DROPPABLE)
        self.language, self.drop = language, tuple(sorted(set(drop)))
        self.vocabulary = read_vocabulary(vocab_file)
        self._dropped = {KINDS[name] for name in drop}
        options |= {"language": language, "drop": self.drop, "special_tokens_pattern": "cls_sep"}
        options |= {"pad_token": PAD, "cls_token": CLS, "sep_token": SEP, "mask_token": MASK, "unk_token": UNKNOWN}
        super().__init__(**options)

    @property
    def vocab_size(self) -> int:
        return len(self.vocabulary.entries)

    def get_vocab(self) -> dict[str, int]:
        return dict(self.vocabulary.ids)

    def subtokens(self, code: str) -> Iterator[tuple[int, int, int]]:
        """The sub-tokens of code: the id, and from which character to which (exclusive) it stands for."""
        lexemes, places = lex(self.language, code)
        lexemes = [lexeme for lexeme in lexemes if lexeme.kind not in self._dropped]
        if lexemes and lexemes[-1].kind != NEWLINE:
            behind = lexemes[-1].end
            lexemes.append(Lexeme(NEWLINE, "", behind, behind, "NEWLINE"))
        for kind, spelling, start, end, name in lexemes:
            if name:
                marker = named(name)
                for number, first, _ in self.vocabulary.encode(marker + spelling, False):
                    yield number, places[start if first < len(marker) else end], places[end]
                continue
            parts = list(pieces(kind, spelling))
            for place, part in enumerate(parts, 1):
                for number, first, last in self.vocabulary.encode(part, place < len(parts)):
                    yield number, places[start + first], places[start + last + 1]
                start += len(part)

    def tokenize(self, text: str, *arguments: Any, **options: Any) -> list[str]:
        return [self.vocabulary.entries[number] for number, _, _ in self.subtokens(text)]

    def _encode_plus(self, text: Any, *arguments: Any, **options: Any) -> BatchEncoding:
        told = options.pop("return_offsets_mapping", False)
        encoding = super()._encode_plus(text, *arguments, **options)
        if told:
            one = isinstance(text, str)
            added = [(0, 0)] if options.get("add_special_tokens", True) else []
            offsets = [
                [*added, *((start, end) for _, start, end in self.subtokens(code)), *added]
                for code in ([text] if one else text)
            ]
            encoding["offset_mapping"] = offsets[0] if one else offsets
        return encoding

    def _convert_token_to_id(self, token: str) -> int:
        return self.vocabulary.ids.get(token, self.vocabulary.ids[UNKNOWN])

    def _convert_id_to_token(self, index: int) -> str:
        return self.vocabulary.entries[index] if 0 <= index < self.vocab_size else UNKNOWN

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return spelled(tokens)

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        name = f"{filename_prefix}-" if filename_prefix else ""
        return (str(write(Path(save_directory, f"{name}vocab.txt"), self.vocabulary.text())),)


def read_vocabulary(file: str | os.PathLike) -> Vocabulary:
    """The vocabulary in a file of a release; raises ModelError if there is none."""
    try:
        return Vocabulary(safe_files.read(file, _LARGEST).decode())
    except (OSError, UnicodeDecodeError, TypeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"the vocabulary {file} cannot be read: {reason}; expected a text file in UTF-8") from error
