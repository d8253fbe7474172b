"""A byte-level tokenizer in which every byte is a sub-token, so that masks can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

SPECIAL = ("<s>", "</s>", "<pad>", "<unk>", "<mask>")


def byte_tokenizer(
    merges: tuple[tuple[str, str], ...] = (), trim_offsets: bool = True
) -> PreTrainedTokenizerFast:
    """Ids: the special tokens, the bytes in the order of ByteLevel's alphabet, what the merges make (`Ġ` is a space)."""
    texts = [
        *SPECIAL,
        *sorted(pre_tokenizers.ByteLevel.alphabet()),
        *("".join(pair) for pair in merges),
    ]
    pipeline = Tokenizer(
        models.BPE({text: number for number, text in enumerate(texts)}, list(merges))
    )
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    pipeline.decoder = decoders.ByteLevel()
    pipeline.post_processor = processors.RobertaProcessing(
        ("</s>", 1), ("<s>", 0), trim_offsets=trim_offsets, add_prefix_space=False
    )
    names = dict(zip(("bos_token", "eos_token", "pad_token", "unk_token", "mask_token"), SPECIAL))
    return PreTrainedTokenizerFast(
        tokenizer_object=pipeline, cls_token="<s>", sep_token="</s>", **names
    )


def all_but(letters: str, wrong: str = "~") -> Callable:
    """`MaskedModel.scores` of a model that restores every byte but those of some letters, for which it says `wrong`."""
    import torch

    tokenizer = byte_tokenizer()
    ids, said = (tokenizer.convert_tokens_to_ids(of) for of in (sorted(set(letters)), wrong))

    def scores(inputs, rows, columns):
        truth = inputs["input_ids"][rows, columns]
        lost = torch.isin(truth, torch.tensor(ids, device=truth.device))
        predicted = torch.where(lost, said, truth)
        return torch.stack([predicted, ~lost, -1.0 - 2 * lost, 0 * lost], dim=1).double()

    return scores
