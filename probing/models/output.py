"""The output layer of a language model: loaded with its body, and computed only at the positions that are read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from codesyntax_dataset.errors import ModelError
from probing.models.common import (
    DTYPES,
    borrowed,
    both_of_pair,
    check_weights,
    checked_pair,
    config_and_tokenizer,
    device_named,
    digest_of_pair,
    full_precision,
    name_of_pair,
    quiet,
    without_cache,
)
from probing.models.location import loading, locate
from probing.models.selfcheck import DRIFT, Check
from probing.models.untrusted import check_size

_NUMBERS = 1 << 24  # of logits in memory at once, 64 MB


class OutputLayer:
    """The output layer of a `model`, with a `vocabulary` of as many sub-tokens as it has embeddings.

    `why`: empty if it is computed at the positions that are read only, or why it is at all positions.
    """

    def __init__(self, model: transformers.PreTrainedModel, vocabulary: float):
        self.model, self.why = model, ""
        self._body_options, self._options = without_cache(model.base_model), without_cache(model)
        self._at_once = max(1, _NUMBERS // max(1, int(min(vocabulary, _NUMBERS))))

    def logits(
        self, inputs: Mapping[str, torch.Tensor], rows: torch.Tensor, columns: torch.Tensor
    ) -> Iterator[torch.Tensor]:
        """The logits at some positions of a batch, in order: (m, vocabulary) at a time."""
        with borrowed(self.model), full_precision(), torch.inference_mode():
            if self.why:
                yield self.model(**inputs, **self._options, return_dict=True).logits[rows, columns]
                return
            hidden = self.model.base_model(**inputs, **self._body_options, return_dict=True)[0][rows, columns]
            for start in range(0, len(hidden), self._at_once):
                yield self._of(hidden[start : start + self._at_once])

    def everywhere(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The logits as the model reports them: float32 (B, S, vocabulary)."""
        with borrowed(self.model), full_precision(), torch.inference_mode():
            return self.model(**inputs, **self._options, return_dict=True).logits.float()

    def examine(
        self,
        inputs: Mapping[str, torch.Tensor],
        rows: torch.Tensor,
        columns: torch.Tensor,
        expected: torch.Tensor,
        dtype: str,
    ) -> Check:
        """Whether the logits at some positions are the `expected` ones of `everywhere`; otherwise `why` is set."""
        bound = DRIFT[dtype]
        try:
            found = torch.cat([logits.float() for logits in self.logits(inputs, rows, columns)])
            apart = found - expected if found.shape == expected.shape else torch.tensor(float("inf"))
            difference = apart.abs().nan_to_num(nan=float("inf")).max().item()
            said = f"logits differ by {difference:.2g}, at most {bound:.0e}"
        except Exception as error:  # a model's code may fail in any way when its parts are called on their own
            difference, said = float("inf"), f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        meaning = "its output layer cannot be computed on its own"
        if difference > bound:
            self.why = f"{meaning} ({said})"
        return Check("output layer at the positions that are read only", difference <= bound, said, meaning)

    def _of(self, hidden: torch.Tensor) -> torch.Tensor:
        """The logits (M, vocabulary) that the model's own code computes from hidden states (M, width)."""
        body = self.model.base_model
        ids = torch.zeros(1, len(hidden), dtype=torch.long, device=hidden.device)
        own = body.__dict__.get("forward")
        body.forward = lambda *_, **__: BaseModelOutput(last_hidden_state=hidden[None])
        try:
            return self.model(input_ids=ids, attention_mask=torch.ones_like(ids), return_dict=True).logits[0]
        finally:
            if own is None:
                del body.forward
            else:
                body.forward = own


class Head(NamedTuple):
    """A kind of head. `names`: model type -> the class with it; `use`: the model to use instead of one without."""

    name: str
    auto: Any
    names: Mapping[str, str]
    use: str

    def missing(self, model: str, why: str) -> ModelError:
        return ModelError(f"{model} has no {self.name} head ({why}): use a model trained to {self.use}")


MASKED = Head("masked-LM", AutoModelForMaskedLM, MODEL_FOR_MASKED_LM_MAPPING_NAMES, "restore masked sub-tokens")
CAUSAL = Head("causal-LM", AutoModelForCausalLM, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, "predict the next sub-token")


class WithHead(NamedTuple):
    """A model with a head, on its device, its tokenizer, and its name and revision in signatures."""

    model: Any
    tokenizer: Any
    name: str
    revision: str
    head: Head


def load_with_head(
    model: str | os.PathLike | tuple,
    heads: Sequence[Head],
    *,
    revision: str | None = None,
    dtype: str = "float32",
    device: str | torch.device | None = None,
    **options: Any,
) -> WithHead:
    """Load a language model from a Hub id, a local folder, or a (model, tokenizer) pair; `options` of transformers.

    `heads`: the kinds that it may have; of two that its family has, the first, for a decoder the last. Other arguments
    as of `probing.models.encoder.load`. Weights are read from safetensors only, none may be missing, and no code from
    the model's repository is run.

    Raises ModelError if the model does not exist, cannot be loaded, or has no such head.
    """
    if isinstance(model, tuple):
        one, tokenizer = both_of_pair(model)
        checked_pair(one, tokenizer, dtype)
        name = name_of_pair(one)
        classes = {kind.__name__ for kind in type(one).__mro__}
        head = next((head for head in heads if classes & {*head.names.values()}), None)
        if head is None:
            head = _head_of(one.config, name, heads)
            raise head.missing(name, f"it is a {type(one).__name__}; load it with {head.auto.__name__}")
        _head_of(one.config, name, [head])
        if device is not None:
            torch.nn.Module.to(one, device_named(device))
        return WithHead(one, tokenizer, name, digest_of_pair(one, tokenizer), head)
    model = os.fspath(model)
    target = device_named(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    with loading(model), quiet():
        source = locate(model, revision)
        config, tokenizer = config_and_tokenizer(source)
    head = _head_of(config, source.name, heads)
    with loading(model), quiet():
        check_size(source, config)
        loaded, info = head.auto.from_pretrained(
            source.place,
            config=config,
            revision=source.commit,
            dtype=DTYPES[dtype],
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported by check_weights, which says which
            **options,
        )
        missing = check_weights(loaded, info)
    if missing:
        others = " and others" if len(missing) > 3 else ""
        raise head.missing(source.name, f"its weights lack {', '.join(missing[:3])}{others}")
    return WithHead(loaded.to(target), tokenizer, source.name, source.revision(), head)


def _head_of(config: transformers.PreTrainedConfig, name: str, heads: Sequence[Head]) -> Head:
    """The head of a model with this configuration; raises ModelError if it does not predict single sub-tokens."""
    if config.is_encoder_decoder:
        raise ModelError(
            f"{name} ({config.model_type}) restores spans: its mask stands for any number of sub-tokens, which a "
            "decoder writes, so that none can be compared with the one masked; use a model of BERT's kind"
        )
    known = [head for head in heads if config.model_type in head.names]
    if not known:
        raise heads[0].missing(name, f"transformers has none for {config.model_type}")
    return known[-1 if getattr(config, "is_decoder", False) else 0]
