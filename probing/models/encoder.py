"""Any Hugging Face encoder, encoder half or decoder, ready to be probed: loaded, checked, and run batch by batch."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
import xxhash
from transformers import AutoConfig, AutoModel, AutoTokenizer

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import ModelError
from codesyntax_dataset.protocol import PAPER_LENGTH
from probing.models import capture, kept, subtokens
from probing.models.catalogue import positions
from probing.models.location import Location, loading, locate
from probing.models.random_weights import with_random_weights
from probing.models.selfcheck import examine, recall, remember

logger = logging.getLogger(__name__)

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class Encoder:
    """A model and its tokenizer, on a device, with the attention path that the self-check found correct for it.

    `layers`, `heads`: the number of its attention layers, and of heads in each; `causal`: whether no sub-token attends
    to a later one; `longest`: the most sub-tokens, special tokens included, of a function; `checks`: the self-check;
    `path`: `captured` if attention is read in our attention function, `eager` if that differs from what the model
    computes, for the reason in `why`.

    Of an encoder-decoder, the encoder is probed; of a model with a head, the body. The model is left unchanged:
    whatever a run changes, such as evaluation mode, is restored when the run ends or fails.

    `findings`: the file in which the self-check of the same model files is kept, if any.

    Raises ModelError if the model or its tokenizer cannot be probed.
    """

    def __init__(
        self,
        model: transformers.PreTrainedModel,
        tokenizer: transformers.PreTrainedTokenizerBase,
        name: str,
        revision: str,
        dtype: str,
        max_length: int = PAPER_LENGTH,
        findings: Path | None = None,
    ):
        self.model, self.tokenizer = _body(model), tokenizer
        config = getattr(self.model, "config", model.config)  # the encoder of fsmt has none of its own
        assert isinstance(config, transformers.PreTrainedConfig)
        self.family = config.model_type
        self.name, self.revision, self.dtype = name, revision, dtype
        self.device = next(self.model.parameters()).device
        self.longest = min(max_length, _positions(model) or max_length)
        self._vocabulary = _vocabulary(model)
        padding = tokenizer.pad_token_id
        # decoders often have no padding token, or one without a row in the embeddings; padding is masked anyway
        self._padding = padding if padding is not None and padding < self._vocabulary else 0
        # decoders would otherwise keep the keys and values of all layers
        self._options = {"use_cache": False} if "use_cache" in inspect.signature(self.model.forward).parameters else {}
        self_check = recall(findings) if findings else None
        if self_check is None:
            self_check = examine(self)
            if findings:
                remember(self_check, findings)
        self.layers, self.heads, self.causal, self.checks, self.why = self_check
        self.path = "eager" if self.why else "captured"
        if self.why:
            logger.warning("%s is probed with eager attention maps: %s", name, self.why)

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Sub-tokens of each text: ids (S,), character offsets (S, 2), and which are special (S,)."""
        return subtokens.encode(self.tokenizer, texts)

    def inputs(self, ids: Sequence[np.ndarray]) -> dict[str, torch.Tensor]:
        """A padded batch: input_ids and attention_mask (B, S), padding on the right."""
        length = max(map(len, ids))
        input_ids = np.full((len(ids), length), self._padding, np.int64)
        mask = np.zeros((len(ids), length), np.int64)
        for row, one in enumerate(ids):
            input_ids[row, : len(one)] = one
            mask[row, : len(one)] = 1
        if input_ids.max() >= self._vocabulary:
            raise ModelError(
                f"the tokenizer of {self.name} gives the id {input_ids.max()}, but the model has embeddings for "
                f"{self._vocabulary} only: do the two belong together?"
            )
        tensors = {"input_ids": torch.from_numpy(input_ids), "attention_mask": torch.from_numpy(mask)}
        if self.device.type == "cuda":
            return {name: x.pin_memory().to(self.device, non_blocking=True) for name, x in tensors.items()}
        return {name: x.to(self.device) for name, x in tensors.items()}

    def forward(self, inputs: Mapping[str, torch.Tensor], listener: capture.Listener) -> None:
        """Run the model over a padded batch, calling `listener` once per layer.

        Raises ModelError if the model does not call its attention exactly once per layer.
        """
        heard = 0

        def listen(rows: capture.Rows) -> torch.Tensor | None:
            nonlocal heard
            heard += 1
            return listener(rows) if heard <= self.layers else None

        if self.path == "captured":
            with capture.listen(listen):
                self.run(inputs, capture.NAME)
        else:
            for maps in self.maps(inputs):
                listen(capture.rows_of(maps))
        if heard != self.layers:
            raise ModelError(
                f"{self.name} called its attention {heard} times, expected once for each of {self.layers} layers"
            )

    def maps(self, inputs: Mapping[str, torch.Tensor]) -> Sequence[torch.Tensor]:
        """The attention maps (B, H, S, S) of each layer, as the model reports them in eager mode."""
        length = inputs["input_ids"].shape[1]
        layers = self.run(inputs, "eager", output_attentions=True)["attentions"]
        for maps in layers:
            if maps.shape[2:] != (length, length):  # some families use another kind of attention for long inputs
                raise ModelError(
                    f"{self.name} reports attention maps of the shape {tuple(maps.shape)} for {length} sub-tokens: "
                    "lower --max-length to where its attention changes"
                )
        return layers

    def run(self, inputs: Mapping[str, torch.Tensor], attention: str, **options: Any) -> transformers.utils.ModelOutput:
        """The model's output for a padded batch, computed with the attention function registered as `attention`."""
        with _borrowed(self.model), _attention_of(self.model, attention), _full_precision(), torch.inference_mode():
            return self.model(**inputs, **self._options, **options, return_dict=True)


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

    Weights are read from safetensors only, and no code from the model's repository is run. `device`: by default a CUDA
    GPU if there is one; a pair stays on its device by default, and must already have the precision `dtype`.
    `max_length`: the most sub-tokens, special tokens included, of a function, if the model can read so many.
    `random_weights`: a seed, to use the model's architecture with initial weights instead of its own.

    Raises ModelError if the model does not exist, cannot be loaded, or cannot be probed.
    """
    dtype = str(dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise ModelError(f"dtype is {dtype!r}, expected one of {', '.join(DTYPES)}")
    if isinstance(model, tuple):
        if len(model) != 2:
            raise ModelError(
                f"the model is a tuple of {len(model)}, expected two: a transformers model and its tokenizer"
            )
        return _of_pair(*model, dtype, device, max_length, random_weights)
    model = os.fspath(model)
    target = _device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    with loading(model), _quiet():
        source = locate(model, revision)
        config, tokenizer = _config_and_tokenizer(source)
        loaded, info = AutoModel.from_pretrained(
            source.place,
            config=config,
            revision=source.commit,
            dtype=DTYPES[dtype],
            use_safetensors=True,
            trust_remote_code=False,
            attn_implementation="eager",  # some families fix it when they are built
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported by _check_weights, which says which
        )
        _check_weights(loaded, info)
        if random_weights is not None:
            loaded = with_random_weights(loaded, random_weights)
        loaded = loaded.to(target)
    revision = source.revision()
    # kept for weights read from files; a control and a model in memory are checked each time
    findings = kept.self_check(revision, dtype, target.type, max_length) if random_weights is None else None
    return Encoder(loaded, tokenizer, source.name, revision, dtype, max_length, findings)


def load_tokenizer(model: str, *, max_length: int = PAPER_LENGTH) -> tuple[Any, int]:
    """A model's tokenizer, and the most sub-tokens of a function for it, without loading its weights."""
    with loading(model), _quiet():
        config, tokenizer = _config_and_tokenizer(locate(model))
        with torch.device("meta"):
            empty = AutoModel.from_config(config)
    return tokenizer, min(max_length, _positions(empty) or max_length)


def _of_pair(
    model: object,
    tokenizer: object,
    dtype: str,
    device: str | torch.device | None,
    max_length: int,
    random_weights: int | None,
) -> Encoder:
    if not isinstance(model, transformers.PreTrainedModel):
        raise ModelError(f"the model is a {type(model).__name__}, expected a transformers model, or the name of one")
    if not isinstance(tokenizer, transformers.PreTrainedTokenizerBase):
        raise ModelError(
            f"the tokenizer is a {type(tokenizer).__name__}, expected a transformers tokenizer: the model's own"
        )
    if any(part.device.type == "meta" for part in (*model.parameters(), *model.buffers())):
        raise ModelError(
            f"{type(model).__name__} has weights on the meta device, which have no values: load it completely, with "
            "from_pretrained and without device_map"
        )
    if model.dtype != DTYPES[dtype]:
        raise ModelError(
            f"the model's weights are {str(model.dtype).removeprefix('torch.')}, but dtype is {dtype}: use the same "
            f"precision for both; model.to(torch.{dtype}) converts the model"
        )
    with _attention_of(model, "eager"):
        if model.config._attn_implementation != "eager":
            raise ModelError(
                f"{type(model).__name__} fixes its attention when it is built, and this one has "
                f"{model.config._attn_implementation}: build it with attn_implementation='eager'"
            )
    if device is not None:
        torch.nn.Module.to(model, _device(device))
    name = model.config.name_or_path or type(model).__name__
    name = Path(name).resolve().name if Path(name).is_dir() else name
    identity = _digest_of_pair(model, tokenizer)
    if random_weights is not None:
        model = with_random_weights(model, random_weights)
    return Encoder(model, tokenizer, name, identity, dtype, max_length)


def _config_and_tokenizer(source: Location) -> tuple[transformers.PreTrainedConfig, Any]:
    options: dict[str, Any] = {"revision": source.commit, "trust_remote_code": False}
    config = AutoConfig.from_pretrained(source.place, **options)
    return config, AutoTokenizer.from_pretrained(source.place, config=config, **options)


def _check_weights(model: transformers.PreTrainedModel, info: Mapping[str, Any]) -> None:
    """Raise ModelError for missing weights, which would be random; heads and poolers do not affect attention."""
    if info["mismatched_keys"]:
        name, got, expected = min(info["mismatched_keys"])
        raise ModelError(f"its weights {name} have the shape {tuple(got)}, its configuration says {tuple(expected)}")
    parts = dict(model.named_parameters(remove_duplicate=False))
    body = {id(parameter) for parameter in _body(model).parameters()}
    lost = sorted(
        name
        for name in info["missing_keys"]
        if id(parts.get(name)) in body and not any(part in name for part in ("pooler", "_head"))
    )
    if lost:
        raise ModelError(f"its weights lack {', '.join(lost[:3])}{' and others' if len(lost) > 3 else ''}")


def _body(model: transformers.PreTrainedModel) -> torch.nn.Module:
    """The model without its head; of an encoder-decoder, the encoder."""
    body = model.base_model
    assert isinstance(body, transformers.PreTrainedModel)
    assert isinstance(body, transformers.PreTrainedModel)
    return body.get_encoder() if body.config.is_encoder_decoder and hasattr(body, "get_encoder") else body


def _positions(model: transformers.PreTrainedModel) -> int | None:
    """The number of positions of the model, or that its configuration gives if positions are relative; None: any."""
    for name, module in _body(model).named_modules():
        table = getattr(module, "weight", None)
        if name.rpartition(".")[2] == "position_embeddings" and table is not None:
            # RoBERTa and its descendants count positions from after the padding index
            padding = getattr(module, "padding_idx", None)
            return len(table) - (0 if padding is None else padding + 1)
    return positions(model.config)


def _vocabulary(model: transformers.PreTrainedModel) -> float:
    """The number of ids with an embedding; infinite for models that hash their ids instead."""
    try:
        embedding = model.get_input_embeddings()
    except (NotImplementedError, AttributeError):
        return float("inf")
    weight = getattr(embedding, "weight", None)
    return len(weight) if isinstance(weight, torch.Tensor) else float("inf")


@contextlib.contextmanager
def _borrowed(model: torch.nn.Module) -> Iterator[None]:
    """Put the model in evaluation mode; afterwards restore the mode of each part, and undo what its own code leaves.

    That is: hooks of transformers that collect requested outputs, and BigBird's switch to full attention on a short
    text, which would otherwise persist for long ones.
    """
    parts = list(model.modules())
    training = [part.training for part in parts]
    hooks = [set(part._forward_hooks) for part in parts]
    listening = ["_output_capturing_hooks_installed" in part.__dict__ for part in parts]
    kind, set_kind = getattr(model, "attention_type", None), getattr(model, "set_attention_type", None)
    model.eval()
    try:
        yield
    finally:
        if kind is not None and set_kind is not None and model.attention_type != kind:
            set_kind(kind)
        for part, was_training, before, listened in zip(parts, training, hooks, listening):
            part.training = was_training
            for hook in set(part._forward_hooks) - before:
                del part._forward_hooks[hook]
            if not listened:
                part.__dict__.pop("_output_capturing_hooks_installed", None)


@contextlib.contextmanager
def _attention_of(model: torch.nn.Module, name: str) -> Iterator[None]:
    """Let the model compute with the attention function registered as `name`, if its code supports this."""
    if not isinstance(model, transformers.PreTrainedModel):
        yield
        return
    before = model.config._attn_implementation
    with _quiet():
        model.set_attn_implementation(name)
    try:
        yield
    finally:
        with _quiet():
            model.set_attn_implementation(before)


def _device(name: str | torch.device) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"device {str(name)!r} cannot be used: {str(error).splitlines()[0]}") from None
    return device


@contextlib.contextmanager
def _full_precision() -> Iterator[None]:
    """Compute float32 products in float32, without TF32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence transformers' long warnings about missing weights and attention, which our messages cover."""
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(before)


def _digest_of_pair(model: transformers.PreTrainedModel, tokenizer: transformers.PreTrainedTokenizerBase) -> str:
    """A digest of a model and a tokenizer in memory."""
    config = {
        name: value
        for name, value in model.config.to_diff_dict().items()
        if name not in ("transformers_version", "dtype")
    }
    text = json.dumps(config, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode())
    if getattr(tokenizer, "is_fast", False):
        pipeline = json.loads(tokenizer.backend_tokenizer.to_str())
        pipeline.update(padding=None, truncation=None)  # left over from the last call, and set by each of our calls
        digest.update(json.dumps(pipeline, sort_keys=True).encode())
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        # 20 times as fast as SHA-256, which takes as long as the self-check. Nothing is loaded by this digest, so that
        # it need not withstand weights made to have the digest of others.
        digest.update(xxhash.xxh3_128_digest(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()))
    return digest.hexdigest()
