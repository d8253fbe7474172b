"""Load models from the Hub, a folder, a package or memory, and check whether they can be probed.

Weights are read from safetensors only, and no code from a model's repository is run.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping
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
from probing.models import gguf_file
from probing.models.cubert.tokenizer import CubertTokenizer
from probing.models.device import default_device
from probing.models.encoder import Encoder, attention_of
from probing.models.files import sha256
from probing.models.identity import digest_of, digest_of_head
from probing.models.language_model import LanguageModel
from probing.models.loaded import (
    DTYPES,
    Check,
    FailedCheck,
    Loaded,
    check_weights,
    lacking,
    quiet,
    warn_once,
)
from probing.models.location import Location, ModelSource, loading, locate
from probing.models.masked import InfillingModel, MaskedModel, RestoringModel, ScoringModel
from probing.models.selfcheck import self_check
from probing.models.untrusted import check_parts, check_raw, check_size
from probing.models.wrapped import adapted, unwrapped


def load(model: ModelSource, **options: Any) -> Encoder:
    """Load an encoder from a Hub id, a local folder, the name of the embedded one, or a (model,
    tokenizer) pair.

    Options are `revision`; `dtype`; `device`: by default a CUDA GPU if there is one; a pair stays
    on its device by default, and must already have the precision `dtype`; `max_length`: the most
    sub-tokens, special tokens included, of a function, if the model can read so many;
    `random_weights`: a seed, to use the model's architecture with initial weights instead of its
    own.

    Raises ModelError if the model does not exist, cannot be loaded, or cannot be probed.
    """
    loaded, _ = _loaded(model, eager=True, **options)
    return self_check(Encoder(loaded))


def load_restoring(model: ModelSource, **options: Any) -> RestoringModel:
    """Load a masked language model, or a decoder that fills in the middle; options as of `load`.

    None of its weights may be missing. Raises ModelError if the model does not exist, cannot be
    loaded, or is neither.
    """
    loaded, head = _loaded(model, with_head=True, **options)
    return (MaskedModel if head is MASKED_HEAD else InfillingModel)(loaded).examine()


def load_scoring(model: ModelSource, **options: Any) -> ScoringModel:
    """Load a masked language model or a decoder; options as of `load`. None of its weights may be
    missing.

    Raises ModelError if the model does not exist, cannot be loaded, or has no language-model head.
    """
    loaded, head = _loaded(model, with_head=True, **options)
    return ScoringModel(loaded, head is MASKED_HEAD).examine()


def load_language_model(model: ModelSource, **options: Any) -> LanguageModel:
    """Load a masked language model or a decoder whose heads can be silenced; options as of `load`.

    Raises ModelError if the model does not exist, cannot be loaded, has no language-model head, or
    heads that cannot be silenced.
    """
    loaded, head = _loaded(model, with_head=True, eager=True, **options)
    return self_check(LanguageModel(loaded, head is MASKED_HEAD)).examine()


class Diagnosis(NamedTuple):
    """The self-check of a model: `path` is `captured`, `eager` or `refused`; `summary` is one line
    of text."""

    path: str
    summary: str
    checks: list[Check]

    def to_json(self) -> str:
        fields = self._asdict() | {"checks": [check._asdict() for check in self.checks]}
        return json.dumps(fields, indent=1) + "\n"

    def text(self) -> str:
        width = max(len(check.name) for check in self.checks)
        lines = [
            f"{'ok    ' if check.passed else 'FAILED'} {check.name:{width}}  {check.measured}"
            for check in self.checks
        ]
        return "\n".join([*lines, "", self.summary])


def doctor(model: ModelSource, **options: Any) -> Diagnosis:
    """Whether a model can be probed: load it like `probe` and return its self-check; options as of
    `load`.

    Raises ModelError if it cannot be loaded.
    """
    try:
        encoder = load(model, **options)
    except FailedCheck as failed:
        return Diagnosis("refused", str(failed), failed.checks)
    how = (
        "from our attention function"
        if encoder.path == "captured"
        else f"from its eager attention maps: {encoder.why}"
    )
    sees = "no later sub-tokens" if encoder.causal else "all sub-tokens"
    return Diagnosis(
        encoder.path,
        f"{encoder.name} can be probed, {how}. {encoder.layers} layers of {encoder.heads} attention heads, "
        f"which see {sees}; functions of up to {encoder.longest} sub-tokens.",
        encoder.checks,
    )


class Head(NamedTuple):
    """A kind of head. `names`: model type -> the class with it; `use`: the model to use instead of
    one without."""

    name: str
    auto: Any
    names: Mapping[str, str]
    use: str

    def missing(self, model: str, why: str) -> ModelError:
        return ModelError(
            f"{model} has no {self.name} head ({why}): use a model trained to {self.use}"
        )


MASKED_HEAD = Head(
    "masked-LM",
    AutoModelForMaskedLM,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    "restore masked sub-tokens",
)
CAUSAL_HEAD = Head(
    "causal-LM",
    AutoModelForCausalLM,
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    "predict the next sub-token",
)


def head_in(model: Any) -> Head | None:
    """The language-model head of a model in memory, which may be of a class that transformers does
    not know; None without any."""
    names = {parent.__name__ for parent in type(model).__mro__}
    known = (head for head in (MASKED_HEAD, CAUSAL_HEAD) if names & {*head.names.values()})
    if (head := next(known, None)) is not None:
        return head
    if getattr(model, "lm_head", None) is None and model.get_output_embeddings() is None:
        return None
    if any("MaskedLM" in name for name in names):
        return MASKED_HEAD
    return CAUSAL_HEAD if names & {"GenerationMixin"} else None


def _head_of(config: transformers.PreTrainedConfig, name: str) -> Head:
    """The language-model head of a model with this configuration: of two, the first, for a decoder
    the last.

    Raises ModelError if it does not predict single sub-tokens.
    """
    if config.is_encoder_decoder:
        raise ModelError(
            f"{name} ({config.model_type}) restores spans: its mask stands for any number of sub-tokens, so its "
            "predictions cannot be compared with the masked sub-tokens; use a model of BERT's kind"
        )
    known = [head for head in (MASKED_HEAD, CAUSAL_HEAD) if config.model_type in head.names]
    if not known:
        raise MASKED_HEAD.missing(name, f"transformers has none for {config.model_type}")
    return known[-1 if getattr(config, "is_decoder", False) else 0]


@checked
def _loaded(
    model: ModelSource,
    *,
    with_head: bool = False,
    eager: bool = False,
    revision: str | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device | None = None,
    max_length: Positive = PAPER_LENGTH,
    random_weights: Natural | None = None,
) -> tuple[Loaded, Head | None]:
    """A model on its device, and its head if it shall have one; options as of `load`.

    `eager`: with eager attention, because some families fix their attention when they are built.
    """
    precision = str(dtype).removeprefix("torch.")
    if precision not in DTYPES:
        raise ModelError(f"dtype is {precision!r}, expected one of {', '.join(DTYPES)}")
    target = None if isinstance(model, tuple) and device is None else _device_named(device)
    options = with_head, eager, precision, max_length
    if isinstance(model, tuple):
        if revision is not None:
            raise ModelError(f"revision is {revision!r}, but the model is in memory: load that one")
        loaded, head = _of_pair(model, *options)
    else:
        loaded, head = _of_files(os.fspath(model), revision, *options)
    with loading(loaded.name), quiet():
        weights = loaded.model
        if random_weights is not None:
            weights = with_random_weights(weights, random_weights, head.auto if head else AutoModel)
        if target is not None:
            torch.nn.Module.to(weights, target)
    prompt = None if random_weights is not None else loaded.prompt
    return loaded._replace(model=weights, prompt=prompt), head


def _of_files(
    model: str, revision: str | None, with_head: bool, eager: bool, dtype: str, max_length: int
) -> tuple[Loaded, Head | None]:
    """A model from its files; of a head, no weights may be missing."""
    files = described_model(model, revision)
    # the names of an adapter's weights are those in a model with its head
    head = _head_of(files.config, files.name) if with_head or files.adapter else None
    with loading(model), quiet(files.name):
        check_size(files.source, files.config)
        weights, info = (head.auto if head else AutoModel).from_pretrained(
            files.source.path,
            config=files.config,
            revision=files.source.commit,
            dtype=DTYPES[dtype],
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported by check_weights, which says which
            **({"attn_implementation": "eager"} if eager else {}),
        )
        missing = check_weights(weights, info)
        weights, prompt = adapted(weights, files.adapter) if files.adapter else (weights, None)
    if head and missing:
        raise head.missing(files.name, lacking(missing))
    known = files.revision or digest_of(weights, files.tokenizer, prompt)
    of_head = digest_of_head(weights, files.tokenizer) if head and not files.revision else ""
    return Loaded(
        weights,
        files.tokenizer,
        files.name,
        known,
        dtype,
        max_length,
        files.quantization,
        of_head,
        prompt,
    ), head


def _of_pair(
    pair: tuple, with_head: bool, eager: bool, dtype: str, max_length: int
) -> tuple[Loaded, Head | None]:
    """A model in memory, and its head by its class."""
    if len(pair) != 2:
        raise ModelError(
            f"the model is a tuple of {len(pair)}, expected two: a transformers model and its tokenizer"
        )
    (model, prompt), tokenizer = unwrapped(pair[0]), pair[1]
    _check_pair(model, tokenizer, dtype)
    kind = type(model).__name__
    # its name is that of its folder, its Hub id, or its class
    name = model.config.name_or_path or kind
    name = Path(name).resolve().name if Path(name).is_dir() else name
    head, of_head = None, ""
    if with_head:
        head = head_in(model)
        if head is None or model.config.is_encoder_decoder:
            usual = _head_of(model.config, name)
            raise usual.missing(name, f"it is a {kind}; load it with {usual.auto.__name__}")
        of_head = "" if isinstance(pair, Changing) else digest_of_head(model, tokenizer)
    if eager:
        with attention_of(model, "eager"):
            if model.config._attn_implementation != "eager":
                raise ModelError(
                    f"{kind} fixes its attention when it is built, and this one has "
                    f"{model.config._attn_implementation}: build it with attn_implementation='eager'"
                )
    revision = CHANGING if isinstance(pair, Changing) else digest_of(model, tokenizer, prompt)
    return Loaded(
        model, tokenizer, name, revision, dtype, max_length, head=of_head, prompt=prompt
    ), head


CHANGING = "in training"


class Changing(NamedTuple):
    """A model and its tokenizer, whose weights change: no digest of them is made, and no result of
    them is kept."""

    model: Any
    tokenizer: Any


def _check_pair(model: object, tokenizer: object, dtype: str) -> None:
    """Raise ModelError for a pair in memory that is not a whole model of this precision and a
    tokenizer."""
    if not isinstance(model, transformers.PreTrainedModel):
        raise ModelError(
            f"the model is a {type(model).__name__}, expected a transformers model, or the name of one"
        )
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


class Described(NamedTuple):
    """A model before its weights: `source` is that of its files, `name` and `revision` are those of
    signatures.

    `revision`: the commit, or the SHA-256 of a GGUF file; of a folder empty, until its weights are
    loaded. `adapter`: the folder of one of PEFT, whose base model is at `source`; or empty.
    """

    source: Location
    config: transformers.PreTrainedConfig
    tokenizer: Any
    name: str
    revision: str
    quantization: str
    adapter: str = ""


_WRONG_SPLIT = "fix_mistral_regex"
"""The option of tokenizers that were saved before transformers 5 with another pattern than Mistral
trained with: transformers tells them, and says to use it."""


def described_model(model: str, revision: str | None) -> Described:
    """The configuration and tokenizer of a model; of a GGUF file, after it was converted."""
    with loading(model), quiet(model) as warnings:
        source, quantization = locate(model, revision), ""
        name, known = source.name, source.contents() if source.commit or source.is_gguf else ""
        if source.is_gguf:
            folder = gguf_file.converted(Path(source.path), sha256(Path(source.path)))
            quantization = gguf_file.quantization_of(folder)
            source = Location(str(folder), name, None)
        adapter, pieces = "", source
        if source.base is not None:
            adapter, source = source.path, source.base
            if not (Path(adapter) / "tokenizer_config.json").exists():
                pieces = source
        options: dict[str, Any] = {"revision": source.commit, "trust_remote_code": False}
        check_raw(source)
        config = AutoConfig.from_pretrained(source.path, **options)
        config._attn_implementation = None  # ours, and no kernel of the Hub that a model names
        check_parts(config)
        options["revision"] = pieces.commit
        fields = get_tokenizer_config(pieces.path, revision=pieces.commit)
        tokenizer: Any
        if fields.get("tokenizer_class") == "CubertTokenizer":
            commit = pieces.commit or "main"
            tokenizer = CubertTokenizer.from_pretrained(pieces.path, revision=commit)
        else:
            tokenizer = AutoTokenizer.from_pretrained(pieces.path, config=config, **options)
            others = [warning for warning in warnings if _WRONG_SPLIT not in warning]
            if others != warnings:
                warnings[:] = others
                options |= {_WRONG_SPLIT: True}
                tokenizer = AutoTokenizer.from_pretrained(pieces.path, config=config, **options)
                warn_once(
                    f"{name}: its tokenizer has the split that is known to be wrong for Mistral's models, and is read "
                    "with theirs (fix_mistral_regex); to keep it, load both, and give the pair"
                )
        if not isinstance(tokenizer.model_max_length, (int, float)):
            raise ModelError(
                f"its tokenizer's model_max_length is a {type(tokenizer.model_max_length).__name__}, no number"
            )
        return Described(source, config, tokenizer, name, known, quantization, adapter)


def _device_named(name: str | torch.device | None) -> torch.device:
    name = name or default_device()
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            f"device {str(name)!r} cannot be used here, such as cpu: {str(error).splitlines()[0]}"
        ) from None
    return device


def with_random_weights(
    model: PreTrainedModel, seed: int = 0, auto: Any = AutoModel
) -> PreTrainedModel:
    """A new model with the same configuration, precision and device, and initial weights: with the
    head of `auto`, by default without any.

    Raises ModelError if the model cannot be built from its configuration.
    """
    config = copy.deepcopy(model.config)
    with torch.random.fork_rng(), torch.device("cpu"):  # weights do not depend on the device
        torch.manual_seed(seed)
        try:
            fresh = auto.from_config(config, dtype=model.dtype, attn_implementation="eager")
        except ValueError as error:
            raise ModelError(
                f"{type(model).__name__} cannot be built from its configuration: {error}"
            ) from error
    return fresh.to(model.device).eval()
