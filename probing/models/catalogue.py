"""Models known to work, described from their configurations: reads no weights and no tokenizers, needs no torch.

`models.json` holds their ids with facts from their configurations, and the outcome of each family (`model_type`), which
tests/models/test_architectures.py tests.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from huggingface_hub import hf_hub_download
from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError
from transformers import AutoConfig, PreTrainedConfig

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import ModelError
from codesyntax_dataset.network import hub_answers
from probing.models.location import DECODER, EMBEDDED_MODELS, embedded_folder, is_gguf, loading, locate
from probing.models.subtokens import positions

_KNOWN = json.loads(Path(__file__).with_name("models.json").read_text(encoding="utf-8"))

_THREADS = 8


@dataclass(frozen=True)
class Description:
    """The facts about a model that are known before it is loaded.

    `family`: its `model_type`; `layers`: the number of attention layers, and `heads` of each; `longest`: the most
    sub-tokens, special tokens included, that it has positions for, None for any number; `directions`: those in which it
    can be probed; `path`: `captured` or `eager` as in `probing.models.encoder.Encoder`, `refused`, `untested` if its
    family was never tested, or `unknown` if its configuration cannot be read; `why`: the reason for the last three.
    """

    model: str
    path: str
    why: str = ""
    family: str | None = None
    layers: int | None = None
    heads: int | None = None
    longest: int | None = None
    directions: tuple[str, ...] = ()


@checked
def available(models: Sequence[str | os.PathLike] = (), *, refresh: bool = False) -> Iterator[Description]:
    """Yield descriptions of `models` (Hub ids or local folders), or of all models known to work, in order.

    Models known to work are described from this package's data, without a network; with `refresh`, from their
    configurations on the Hub, like `models`.
    """
    if not models and not refresh:
        yield from (_read(model, False) for model in EMBEDDED_MODELS)
        yield from (_outcome(model, **facts) for model, facts in _KNOWN["models"].items())
        return
    asked = [os.fspath(model) for model in models] or [*EMBEDDED_MODELS, *_KNOWN["models"]]
    reached = any(model not in EMBEDDED_MODELS and not os.path.exists(model) for model in asked) and hub_answers()
    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(lambda model: _read(model, reached), asked)


def to_json(descriptions: Iterable[Description]) -> str:
    """The descriptions as a JSON list."""
    return json.dumps([asdict(description) for description in descriptions], indent=1) + "\n"


def describe(model: str, config: PreTrainedConfig) -> Description:
    """Describe a model from its configuration and the outcome of its family."""
    layers, heads = (getattr(config, name, None) for name in ("num_hidden_layers", "num_attention_heads"))
    kinds = getattr(config, "layer_types", None)
    if kinds:  # other kinds of layers have no attention heads, and are not counted
        layers = sum(kind.endswith("attention") and kind != "linear_attention" for kind in kinds)
    longest = positions(config)
    outcome = _KNOWN["families"].get(config.model_type, {})
    if outcome.get("positions") == "behind padding" and longest:
        longest -= config.pad_token_id + 1
    return _outcome(model, config.model_type, layers, heads, longest)


def _outcome(model: str, family: str, layers: int | None, heads: int | None, longest: int | None) -> Description:
    """Combine the outcome of a model's family with the facts from its configuration."""
    outcome = _KNOWN["families"].get(family)
    directions: tuple[str, ...]
    if outcome is None:
        path, why, directions = "untested", "untested family: run `codesyntax doctor`", ()
    elif outcome["path"] == "refused":
        path, why, directions = "refused", outcome["why"], ()
    else:
        path, why = outcome["path"], ""
        directions = ("dependent-to-head",) if outcome["causal"] else ("head-to-dependent", "dependent-to-head")
    return Description(model, path, why, family, layers, heads, longest, directions)


def _config(model: str, reached: bool) -> PreTrainedConfig:
    if model in EMBEDDED_MODELS:
        folder = embedded_folder(model)
    elif is_gguf(model) or (os.path.isdir(model) and locate(model).is_gguf):
        from probing.models.gguf_file import config_of  # torch takes seconds to import

        return config_of(Path(locate(model).place))
    elif os.path.isdir(model):
        folder = Path(model)
    else:
        folder = Path(hf_hub_download(model, "config.json", local_files_only=not reached)).parent
    return AutoConfig.from_pretrained(folder, trust_remote_code=False)


def _read(model: str, reached: bool) -> Description:
    """Describe a model from its configuration, from the Hub if it can be `reached`, otherwise from the cache."""
    try:
        with loading(model):
            if model == DECODER:  # its file takes seconds to read
                embedded_folder(model)  # raises if its package is not installed
                return _outcome(model, **_KNOWN["decoder"])
            return describe(model, _config(model, reached))
    except ModelError as error:
        reason = {
            GatedRepoError: "gated: accept its terms on the Hub, and log in",
            RepositoryNotFoundError: "no such model on the Hub",
            LocalEntryNotFoundError: "not in the cache, and the Hub cannot be reached",
        }
        why = next((text for kind, text in reason.items() if isinstance(error.__cause__, kind)), str(error))
        return Description(model, "unknown", why)
