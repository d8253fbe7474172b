"""The ledgers of earlier probes: the same probe again answers at once. And self-checks that models have passed.

They lie in the folder `codesyntax` of the Hugging Face cache (`$HF_HOME`), or in the one that CODESYNTAX_CACHE names;
if that is empty, nothing is kept and nothing read. They can be deleted at any time. A ledger is found again by a
digest of everything that its ranks follow from: the commit of the model and of every model of `also_fits`, or the
files of a local folder; the labels as they are now; all settings; the type of the device; the versions of the
libraries, and the code of ours. A dataset in memory counts by its labels. A model in memory is always probed: it may
run any code.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from huggingface_hub.constants import HF_HOME

import codesyntax_metric
import probing
from codesyntax_dataset.errors import LedgerError
from probing.attention.ledger import RankLedger
from probing.attention.result import versions
from probing.models.location import loading, locate, sha256
from probing.runs.controls import labels_of
from probing.runs.data import label_digest, load_functions

logger = logging.getLogger(__name__)


class Slot(NamedTuple):
    """The place of one probe's ledger: `<key>-<SHA-256 of the file>.parquet` in `folder`, if there is one."""

    folder: Path
    key: str
    revision: str
    labels: str

    def load(self) -> RankLedger | None:
        """The ledger, as it was saved; None where there is none, or only damaged ones."""
        for file in sorted(self.folder.glob(f"{self.key}-*.parquet")):
            try:
                if file.stem == f"{self.key}-{sha256([file])}":
                    return RankLedger.load(file)
            except (OSError, LedgerError):
                pass
            logger.warning("%s is damaged: the model is probed again", file)
        return None

    def save(self, ledger: RankLedger) -> None:
        """Keep a ledger, unless model or data changed while it was made; that it cannot be kept is no error."""
        settings = ledger.settings["settings"]
        if (settings["revision"], settings["labels"]) != (self.revision, self.labels):
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(prefix=".", dir=self.folder) as beside:
                file = Path(beside, "ledger.parquet")
                ledger.save(file)
                os.replace(file, self.folder / f"{self.key}-{sha256([file])}.parquet")
        except (OSError, LedgerError) as error:
            logger.warning("the ledger is not kept for the next time: %s", error)


def slot(
    model: str | tuple,
    data: Any,
    config: str,
    split: str,
    *,
    revision: str | None,
    device: str | None,
    limit: int | None,
    also_fits: Sequence[str],
    control: str | None,
    seed: int,
    **settings: Any,
) -> Slot | None:
    """The place of the ledger of a probe with these arguments, as of `probe`; None where none is kept.

    Reads the labels and asks for the model's commit, but loads and tokenizes nothing. Raises what `probe` raises for a
    model or a dataset that does not exist.
    """
    if folder() is None or not isinstance(model, str):
        return None
    dataset, name = load_functions(data, config, split)
    dataset = labels_of(dataset, control, seed)
    labels = label_digest(dataset, limit)
    identity = _identity(model, revision)
    makes = {
        "model": identity,
        "also_fits": [(other, *_identity(other)) for other in also_fits],
        "data": [name, config, split, labels, limit],
        "device": (device or ("cuda" if torch.cuda.is_available() else "cpu")).partition(":")[0],
        "control": control and [control, seed],
        "settings": settings,
        "versions": versions(),
        "code": _code(),
    }
    return Slot(folder(), _key(makes), identity[1], labels)


def self_check(revision: str, *settings: Any) -> Path | None:
    """Where the self-check of a model's files is kept: found again by their commit or digest, all else that it was made
    with, the versions of the libraries, and the code of ours. None where nothing is kept."""
    if folder() is None:
        return None
    return folder() / f"{_key([revision, settings, versions(), _code()])}.self-check.json"


def folder() -> Path | None:
    """The folder of the cache; None where nothing is kept."""
    name = os.environ.get("CODESYNTAX_CACHE", os.path.join(HF_HOME, "codesyntax"))
    return Path(name) if name else None


def _key(makes: Any) -> str:
    return hashlib.sha256(json.dumps(makes, sort_keys=True).encode()).hexdigest()[:32]


def _identity(model: str, revision: str | None = None) -> tuple[str, str]:
    """A model's name in results, and its commit or digest."""
    with loading(model):
        location = locate(model, revision)
        return location.name, location.revision()


@functools.cache
def _code() -> str:
    """A digest of the modules that ranks come from: a version stays the same while its code is worked on."""
    folders = (Path(probing.__file__).parent, Path(codesyntax_metric.__file__).parent)
    return sha256(file for folder in folders for file in sorted(folder.rglob("*.py")))
