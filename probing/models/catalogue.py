"""Models known to work, and what their configurations say: reads no weights and no tokenizers, needs no torch.

`models.json` holds their ids with what their configurations say, and how each family (`model_type`) came out when it was tried, which
tests/models/test_architectures.py does for all of them.
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
from probing.models.location import EMBEDDED, embedded_folder, loading

_KNOWN = json.loads(Path(__file__).with_name("models.json").read_text(encoding="utf-8"))

_THREADS = 8


@dataclass(frozen=True)
class Description:
    """What is known of a model before it is loaded.

    `family`: its `model_type`; `layers`: those with attention, and `heads` of each; `longest`: sub-tokens, special
    tokens included, that it has positions for, None for any number; `directions`: those that it can be read in; `path`:
    `captured` or `eager` as of `probing.models.encoder.Encoder`, `refused`, `untested` where the family was never tried, or
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


@checked
def available(models: Sequence[str | os.PathLike] = (), *, refresh: bool = False) -> Iterator[Description]:
    """Descriptions of `models`, Hub ids or local folders, or else of those known to work, in order, as they come.

    Those known to work are described from what comes with this package, without a network; `refresh`: from their
    configurations on the Hub, as those of `models` always are.
    """
    if not models and not refresh:
        yield _read(EMBEDDED, False)
        yield from (_outcome(model, **facts) for model, facts in _KNOWN["models"].items())
        return
    asked = [os.fspath(model) for model in models] or [EMBEDDED, *_KNOWN["models"]]
    reached = any(model != EMBEDDED and not os.path.isdir(model) for model in asked) and hub_answers()
    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(lambda model: _read(model, reached), asked)


def to_json(descriptions: Iterable[Description]) -> str:
    """The descriptions as a JSON list."""
    return json.dumps([asdict(description) for description in descriptions], indent=1) + "\n"


def describe(model: str, config: PreTrainedConfig) -> Description:
    """What a configuration and the outcome of its family say of a model."""
    layers, heads = (getattr(config, name, None) for name in ("num_hidden_layers", "num_attention_heads"))
    kinds = getattr(config, "layer_types", None)
    if kinds:  # layers of other kinds than attention have no heads, and are not counted
        layers = sum(kind.endswith("attention") and kind != "linear_attention" for kind in kinds)
    longest = positions(config)
    outcome = _KNOWN["families"].get(config.model_type, {})
    if outcome.get("positions") == "behind padding" and longest:
        longest -= config.pad_token_id + 1
    return _outcome(model, config.model_type, layers, heads, longest)


def _outcome(model: str, family: str, layers: int | None, heads: int | None, longest: int | None) -> Description:
    """What is known of a model's family, put to what its configuration says."""
    outcome = _KNOWN["families"].get(family)
    if outcome is None:
        path, why, directions = "untested", "no model of its family was tried: ask `codesyntax doctor`", ()
    elif outcome["path"] == "refused":
        path, why, directions = "refused", outcome["why"], ()
    else:
        path, why = outcome["path"], ""
        directions = ("dependent-to-head",) if outcome["causal"] else ("head-to-dependent", "dependent-to-head")
    return Description(model, path, why, family, layers, heads, longest, directions)


def positions(config: PreTrainedConfig) -> int | None:
    """How many positions a configuration names; None: any number of sub-tokens."""
    config = config.get_text_config()
    numbers = (getattr(config, name, None) for name in ("max_position_embeddings", "max_seq_len"))
    return next((number for number in numbers if number and number > 0), None)


def _read(model: str, reached: bool) -> Description:
    """From a model's configuration, fetched from the Hub where that can be `reached`, else from the cache."""
    try:
        with loading(model):
            if model == EMBEDDED:
                folder = embedded_folder()
            elif os.path.isdir(model):
                folder = Path(model)
            else:
                folder = Path(hf_hub_download(model, "config.json", local_files_only=not reached)).parent
            return describe(model, AutoConfig.from_pretrained(folder, trust_remote_code=False))
    except ModelError as error:
        reason = {
            GatedRepoError: "gated: accept its terms on the Hub, and log in",
            RepositoryNotFoundError: "no such model on the Hub",
            LocalEntryNotFoundError: "not in the cache, and the Hub cannot be reached",
        }
        why = next((text for kind, text in reason.items() if isinstance(error.__cause__, kind)), str(error))
        return Description(model, "unknown", why)
