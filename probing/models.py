"""Models known to work, and what their configurations say: reads no weights and no tokenizers, needs no torch.

`models.json` holds their ids, and how each family (`model_type`) came out when it was tried, which
tests/test_architectures.py does for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)
from transformers import AutoConfig, PreTrainedConfig

from codesyntax_dataset.errors import ModelError
from probing.identity import EMBEDDED, embedded_folder, loading

_KNOWN = json.loads(Path(__file__).with_name("models.json").read_text(encoding="utf-8"))

_SECONDS = 4  # for the Hub to answer
_THREADS = 8


@dataclass(frozen=True)
class Description:
    """What is known of a model before it is loaded.

    `family`: its `model_type`; `layers`: those with attention, and `heads` of each; `longest`: sub-tokens, special
    tokens included, that it has positions for, None for any number; `directions`: those that it can be read in; `path`:
    `captured` or `eager` as of `probing.encoder.Encoder`, `refused`, `untested` where the family was never tried, or
    `unknown` where there is no configuration to read; `why`: the reason for the last three.
    """

    model: str
    path: str
    why: str = ""
    family: str | None = None
    layers: int | None = None
    heads: int | None = None
    longest: int | None = None
    directions: tuple[str, ...] = ()


def available(models: Sequence[str] = ()) -> Iterator[Description]:
    """Descriptions of `models`, Hub ids or local folders, or else of those known to work, in order, as they come."""
    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(_read, models or [EMBEDDED, *_KNOWN["models"]])


def to_json(descriptions: Iterable[Description]) -> str:
    """The descriptions as a JSON list."""
    return json.dumps([asdict(description) for description in descriptions], indent=1) + "\n"


def describe(model: str, config: PreTrainedConfig) -> Description:
    """What a configuration and the outcome of its family say of a model."""
    outcome = _KNOWN["families"].get(config.model_type)
    layers, heads = (getattr(config, name, None) for name in ("num_hidden_layers", "num_attention_heads"))
    kinds = getattr(config, "layer_types", None)
    if kinds:  # layers of other kinds than attention have no heads, and are not counted
        layers = sum(kind.endswith("attention") and kind != "linear_attention" for kind in kinds)
    longest = positions(config)
    if outcome is None:
        path, why, directions = "untested", "no model of its family was tried: ask `codesyntax doctor`", ()
    elif outcome["path"] == "refused":
        path, why, directions = "refused", outcome["why"], ()
    else:
        path, why = outcome["path"], ""
        directions = ("dependent-to-head",) if outcome["causal"] else ("head-to-dependent", "dependent-to-head")
        if outcome["positions"] == "behind padding" and longest:
            longest -= config.pad_token_id + 1
    return Description(model, path, why, config.model_type, layers, heads, longest, directions)


def positions(config: PreTrainedConfig) -> int | None:
    """How many positions a configuration names; None: any number of sub-tokens."""
    config = config.get_text_config()
    numbers = (getattr(config, name, None) for name in ("max_position_embeddings", "max_seq_len"))
    return next((number for number in numbers if number and number > 0), None)


def _read(model: str) -> Description:
    try:
        with loading(model):
            return describe(model, AutoConfig.from_pretrained(_folder(model), trust_remote_code=False))
    except ModelError as error:
        reason = {
            GatedRepoError: "gated: accept its terms on the Hub, and log in",
            RepositoryNotFoundError: "no such model on the Hub",
            LocalEntryNotFoundError: "not in the cache, and the Hub cannot be reached",
        }
        why = next((text for kind, text in reason.items() if isinstance(error.__cause__, kind)), str(error))
        return Description(model, "unknown", why)


def _folder(model: str) -> Path:
    """The folder with a model's configuration, fetched from the Hub where it is an id."""
    if model == EMBEDDED:
        return embedded_folder()
    if Path(model).is_dir():
        return Path(model)
    return Path(hf_hub_download(model, "config.json", local_files_only=not _reached(model))).parent


def _reached(model: str) -> bool:
    """Whether the Hub answers soon: a download of a file that is not in the cache would try for minutes.

    Raises what huggingface_hub raises where the Hub says no.
    """
    try:
        get_hf_file_metadata(hf_hub_url(model, "config.json"), timeout=_SECONDS)
    except (HfHubHTTPError, HFValidationError):
        raise
    except Exception:  # whatever the HTTP client of this huggingface_hub raises where there is no connection
        return False
    return True
