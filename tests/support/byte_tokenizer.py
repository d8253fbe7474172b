"""A byte-level tokenizer in which every byte is a sub-token, so that masks can be worked out by hand."""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

SPECIAL = ("<s>", "</s>", "<pad>", "<unk>", "<mask>")


def byte_tokenizer(merges: tuple[tuple[str, str], ...] = (), trim_offsets: bool = True) -> PreTrainedTokenizerFast:
    """Ids: the special tokens, the bytes in the order of ByteLevel's alphabet, what the merges make (`Ġ` is a space)."""
    texts = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in merges)]
    pipeline = Tokenizer(models.BPE({text: number for number, text in enumerate(texts)}, list(merges)))
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    pipeline.decoder = decoders.ByteLevel()
    pipeline.post_processor = processors.RobertaProcessing(
        ("</s>", 1), ("<s>", 0), trim_offsets=trim_offsets, add_prefix_space=False
    )
    names = dict(zip(("bos_token", "eos_token", "pad_token", "unk_token", "mask_token"), SPECIAL))
    return PreTrainedTokenizerFast(tokenizer_object=pipeline, cls_token="<s>", sep_token="</s>", **names)
