"""Loads models: from the Hub, a folder, an embedded one or a (model, tokenizer) pair, and lets them be checked.

Weights are read from safetensors only, and no code from a model's repository is run.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedModel,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)
from transformers.models.auto.tokenization_auto import get_tokenizer_config

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import ModelError
from codesyntax_dataset.protocol import PAPER_LENGTH
from probing.models import cache_dir, gguf_file
from probing.models.cubert.tokenizer import CubertTokenizer
from probing.models.encoder import Encoder, attention_of
from probing.models.identity import digest_of, digest_of_head
from probing.models.infilling import InfillingModel, RestoringModel
from probing.models.loaded import DTYPES, Loaded, check_weights, positions_of, quiet
from probing.models.location import Location, loading, locate, sha256
from probing.models.masked import MaskedModel, ScoringModel
from probing.models.selfcheck import self_check
from probing.models.silencing import LanguageModel
from probing.models.untrusted import check_growth, check_parts, check_size


@checked
def load(
    model: str | os.PathLike | tuple,
    *,
    revision: str | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device | None = None,
    max_length: Positive = PAPER_LENGTH,
    random_weights: Natural | None = None,
) -> Encoder:
    """Load an encoder from a Hub id, a local folder, the name of the embedded one, or a (model, tokenizer) pair.

    `device`: by default a CUDA GPU if there is one; a pair stays on its device by default, and must already have the
    precision `dtype`. `max_length`: the most sub-tokens, special tokens included, of a function, if the model can read
    so many. `random_weights`: a seed, to use the model's architecture with initial weights instead of its own.

    Raises ModelError if the model does not exist, cannot be loaded, or cannot be probed.
    """
    dtype = _dtype_named(dtype)
    if isinstance(model, tuple):
        return self_check(Encoder(_encoder_of_pair(model, dtype, device, max_length, random_weights)))
    model, target = os.fspath(model), _device_named(device)
    found = described(model, revision)
    # some families fix their attention when they are built
    weights, _ = _weights(model, found, AutoModel, dtype, attn_implementation="eager")
    with loading(model), quiet():
        loaded = found.loaded(weights, dtype, max_length)
        if random_weights is not None:
            weights = with_random_weights(weights, random_weights)
        loaded = loaded._replace(model=weights.to(target))
    if random_weights is not None:  # a control and a model in memory are checked each time
        return self_check(Encoder(loaded))
    return self_check(Encoder(loaded), cache_dir.self_check(loaded.revision, dtype, target.type, max_length))


@checked
def load_restoring(
    model: str | os.PathLike | tuple,
    *,
    revision: str | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device | None = None,
    max_length: Positive = PAPER_LENGTH,
    random_weights: Natural | None = None,
) -> RestoringModel:
    """Load a masked language model, or a decoder that fills in the middle; arguments as of `load`.

    None of its weights may be missing. Raises ModelError if the model does not exist, cannot be loaded, or is neither.
    """
    loaded, head = _with_weights(model, (MASKED, CAUSAL), revision, dtype, device, max_length, random_weights)
    return (MaskedModel if head is MASKED else InfillingModel)(loaded).examine()


@checked
def load_scoring(
    model: str | os.PathLike | tuple,
    *,
    revision: str | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device | None = None,
    max_length: Positive = PAPER_LENGTH,
    random_weights: Natural | None = None,
) -> ScoringModel:
    """Load a masked language model or a decoder; arguments as of `load`. None of its weights may be missing.

    Raises ModelError if the model does not exist, cannot be loaded, or has no language-model head.
    """
    loaded, head = _with_weights(model, (MASKED, CAUSAL), revision, dtype, device, max_length, random_weights)
    return ScoringModel(loaded, head is MASKED).examine()


def _with_weights(
    model: str | os.PathLike | tuple,
    heads: Sequence[Head],
    revision: str | None,
    dtype: str | torch.dtype,
    device: str | torch.device | None,
    max_length: int,
    random_weights: int | None,
) -> tuple[Loaded, Head]:
    """`_with_head`, with initial weights instead of its own if there is a seed for them."""
    loaded, head = _with_head(model, heads, revision, _dtype_named(dtype), device, max_length)
    if random_weights is not None:
        loaded = loaded._replace(model=with_random_weights(loaded.model, random_weights, head.auto))
    return loaded, head


def load_language_model(
    model: str | os.PathLike | tuple,
    *,
    revision: str | None = None,
    device: str | torch.device | None = None,
    max_length: int,
) -> LanguageModel:
    """Load a masked language model or a decoder in float32; arguments as of `load`.

    Raises ModelError if the model does not exist, cannot be loaded, has no language-model head, or heads that cannot be
    silenced.
    """
    # some families fix their attention when they are built
    options = {"attn_implementation": "eager"}
    loaded, head = _with_head(model, (MASKED, CAUSAL), revision, "float32", device, max_length, **options)
    language_model = LanguageModel(loaded, head is MASKED)
    self_check(language_model)
    return language_model.examine()


def load_tokenizer(model: str, *, max_length: int = PAPER_LENGTH) -> tuple[Any, int]:
    """A model's tokenizer, and the most sub-tokens of a function for it, without loading its weights."""
    with loading(model), quiet():
        found = described(model, None)
        with torch.device("meta"):
            empty = AutoModel.from_config(found.config)
    return found.tokenizer, min(max_length, positions_of(empty) or max_length)


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


def _with_head(
    model: str | os.PathLike | tuple,
    heads: Sequence[Head],
    revision: str | None,
    dtype: str,
    device: str | torch.device | None,
    max_length: int,
    **options: Any,
) -> tuple[Loaded, Head]:
    """A language model, and its head: of two that its family has, the first, for a decoder the last."""
    if isinstance(model, tuple):
        weights, tokenizer = _both_of_pair(model)
        _check_pair(weights, tokenizer, dtype)
        name = _name_of_pair(weights)
        classes = {kind.__name__ for kind in type(weights).__mro__}
        head = next((head for head in heads if classes & {*head.names.values()}), None)
        if head is None:
            head = _head_of(weights.config, name, heads)
            raise head.missing(name, f"it is a {type(weights).__name__}; load it with {head.auto.__name__}")
        _head_of(weights.config, name, [head])
        if device is not None:
            torch.nn.Module.to(weights, _device_named(device))
        loaded = Loaded(weights, tokenizer, name, digest_of(weights, tokenizer), dtype, max_length)
        return loaded._replace(head=digest_of_head(weights, tokenizer)), head
    model, target = os.fspath(model), _device_named(device)
    found = described(model, revision)
    head = _head_of(found.config, found.name, heads)
    weights, missing = _weights(model, found, head.auto, dtype, **options)
    if missing:
        others = " and others" if len(missing) > 3 else ""
        raise head.missing(found.name, f"its weights lack {', '.join(missing[:3])}{others}")
    loaded = found.loaded(weights, dtype, max_length)
    if not found.revision:
        loaded = loaded._replace(head=digest_of_head(weights, found.tokenizer))
    return loaded._replace(model=weights.to(target)), head


def _head_of(config: transformers.PreTrainedConfig, name: str, heads: Sequence[Head]) -> Head:
    """The head of a model with this configuration; raises ModelError if it does not predict single sub-tokens."""
    if config.is_encoder_decoder:
        raise ModelError(
            f"{name} ({config.model_type}) restores spans: its mask stands for any number of sub-tokens, so its "
            "predictions cannot be compared with the masked sub-tokens; use a model of BERT's kind"
        )
    known = [head for head in heads if config.model_type in head.names]
    if not known:
        raise heads[0].missing(name, f"transformers has none for {config.model_type}")
    return known[-1 if getattr(config, "is_decoder", False) else 0]


class Described(NamedTuple):
    """A model before its weights: `source` is that of its files, `name` and `revision` are those of signatures.

    `revision`: the commit, or the SHA-256 of a GGUF file; of a folder empty, until its weights are loaded.
    """

    source: Location
    config: transformers.PreTrainedConfig
    tokenizer: Any
    name: str
    revision: str
    quantization: str

    def loaded(self, weights: Any, dtype: str, max_length: int) -> Loaded:
        revision = self.revision or digest_of(weights, self.tokenizer)
        return Loaded(weights, self.tokenizer, self.name, revision, dtype, max_length, self.quantization)


def described(model: str, revision: str | None) -> Described:
    """The configuration and tokenizer of a model; of a GGUF file, after it was converted."""
    with loading(model), quiet():
        source, quantization = locate(model, revision), ""
        name, known = source.name, source.contents() if source.commit or source.is_gguf else ""
        if source.is_gguf:
            file = Path(source.place)
            quantization = gguf_file.read_header(file).quantization
            source = Location(str(gguf_file.converted(file, sha256([file]))), name, None)
        return Described(source, *config_and_tokenizer(source), name, known, quantization)


def _weights(model: str, found: Described, auto: Any, dtype: str, **options: Any) -> tuple[Any, list[str]]:
    """The model that a class of transformers loads, and the names of missing weights outside of its body."""
    with loading(model), quiet():
        source, config = found.source, found.config
        check_size(source, config)
        weights, info = auto.from_pretrained(
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
        return weights, check_weights(weights, info)


def _encoder_of_pair(
    pair: tuple, dtype: str, device: str | torch.device | None, max_length: int, random_weights: int | None
) -> Loaded:
    model, tokenizer = _both_of_pair(pair)
    _check_pair(model, tokenizer, dtype)
    with attention_of(model, "eager"):
        if model.config._attn_implementation != "eager":
            raise ModelError(
                f"{type(model).__name__} fixes its attention when it is built, and this one has "
                f"{model.config._attn_implementation}: build it with attn_implementation='eager'"
            )
    if device is not None:
        torch.nn.Module.to(model, _device_named(device))
    name, identity = _name_of_pair(model), digest_of(model, tokenizer)
    if random_weights is not None:
        model = with_random_weights(model, random_weights)
    return Loaded(model, tokenizer, name, identity, dtype, max_length)


def _dtype_named(dtype: str | torch.dtype) -> str:
    """The name of a precision; raises ModelError for one that is not in DTYPES."""
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise ModelError(f"dtype is {name!r}, expected one of {', '.join(DTYPES)}")
    return name


def config_and_tokenizer(source: Location) -> tuple[transformers.PreTrainedConfig, Any]:
    options: dict[str, Any] = {"revision": source.commit, "trust_remote_code": False}
    config = AutoConfig.from_pretrained(source.place, **options)
    check_parts(config)
    if get_tokenizer_config(source.place, revision=source.commit).get("tokenizer_class") == CubertTokenizer.__name__:
        return config, CubertTokenizer.from_pretrained(source.place, revision=source.commit or "main")
    tokenizer = AutoTokenizer.from_pretrained(source.place, config=config, **options)
    if not isinstance(tokenizer.model_max_length, (int, float)):
        raise ModelError(
            f"its tokenizer's model_max_length is a {type(tokenizer.model_max_length).__name__}, no number"
        )
    check_growth(tokenizer)
    return config, tokenizer


def _both_of_pair(pair: tuple) -> tuple[Any, Any]:
    """A model and a tokenizer; raises ModelError if these are not two."""
    if len(pair) != 2:
        raise ModelError(f"the model is a tuple of {len(pair)}, expected two: a transformers model and its tokenizer")
    model, tokenizer = pair
    return model, tokenizer


def _check_pair(model: object, tokenizer: object, dtype: str) -> None:
    """Raise ModelError for a pair in memory that is not a whole model of this precision and a tokenizer."""
    if not isinstance(model, transformers.PreTrainedModel):
        raise ModelError(f"the model is a {type(model).__name__}, expected a transformers model, or the name of one")
    if not isinstance(tokenizer, transformers.PreTrainedTokenizerBase):
        raise ModelError(
            f"the tokenizer is a {type(tokenizer).__name__}, expected a transformers tokenizer: the model's own"
        )
    if any(part.device.type == "meta" for part in (*model.parameters(), *model.buffers())):
        raise ModelError(
            f"{type(model).__name__} has weights on the meta device, which have no values: load it with "
            "from_pretrained and without device_map"
        )
    if model.dtype != DTYPES[dtype]:
        raise ModelError(
            f"the model's weights are {str(model.dtype).removeprefix('torch.')}, but dtype is {dtype}: use the same "
            f"precision for both; model.to(torch.{dtype}) converts the model"
        )


def _name_of_pair(model: transformers.PreTrainedModel) -> str:
    """The name of a model in memory: that of its folder, its Hub id, or its class."""
    name = model.config.name_or_path or type(model).__name__
    return Path(name).resolve().name if Path(name).is_dir() else name


def _device_named(name: str | torch.device | None) -> torch.device:
    name = name or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"device {str(name)!r} cannot be used: {str(error).splitlines()[0]}") from None
    return device


def with_random_weights(model: PreTrainedModel, seed: int = 0, auto: Any = AutoModel) -> PreTrainedModel:
    """A new model with the same configuration, precision and device, and initial weights: with the head of `auto`, by
    default without any.

    Raises ModelError if the model cannot be built from its configuration.
    """
    config = copy.deepcopy(model.config)
    with torch.random.fork_rng(), torch.device("cpu"):  # weights do not depend on the device
        torch.manual_seed(seed)
        try:
            fresh = auto.from_config(config, dtype=model.dtype, attn_implementation="eager")
        except ValueError as error:
            raise ModelError(f"{type(model).__name__} cannot be built from its configuration: {error}") from error
    return fresh.to(model.device).eval()
