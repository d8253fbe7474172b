"""What a probe found: scores, their signature, and everything needed to trust and repeat them. Needs no torch."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codesyntax_dataset.errors import LedgerError
from codesyntax_metric.topk_uas import RULES, SCORING_VERSION, score
from probing.align import NOT_PREDICTED
from probing.files import write, writing
from probing.ledger import RankLedger

KS = range(1, 21)
"""The k of the published curves (Shen et al. 2022, Figure 4)."""

TABLE_KS = ("1", "3", "10", "20")
"""Those of its tables, as keys of results."""

LARGEST = 16 * 2**20
"""Bytes that the JSON of a result may have, many times what it takes."""

PAPER_LENGTH = 511
"""A function is used only if it has at most so many sub-tokens, special tokens included (Shen et al. 2022)."""

VERSIONS = ("codesyntax", "torch", "transformers", "tokenizers", "datasets", "numpy")
"""What ranks may depend on: us and the libraries."""

@dataclass(frozen=True)
class ProbeSettings:
    """What determines a probe's ranks. The defaults are the published protocol (Shen et al. 2022, section 4)."""

    model: str
    revision: str  # commit on the Hub, or digest of a local model
    data: str  # name@version
    labels: str  # digest of the labels that were read
    config: str
    split: str
    direction: str
    dtype: str
    max_length: int  # sub-tokens, special tokens included, that a function may have
    also_fits: tuple[str, ...]  # other models that a function must fit
    limit: int | None  # only the first functions of the split: a partial run
    control: str | None = None  # one of probing.controls.CONTROLS: not the model or not the labels, but a comparison
    seed: int | None = None  # of the control

    def __post_init__(self) -> None:
        """Raises TypeError for settings of other types: a ledger may come from a stranger."""
        texts = (self.model, self.revision, self.data, self.labels, self.config, self.split, self.direction, self.dtype)
        if not all(isinstance(text, str) for text in (*texts, *self.also_fits)):
            raise TypeError("expected text for every name")

    @property
    def name(self) -> str:
        """A file name that two different runs never share."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]
        model = re.sub(r"[^A-Za-z0-9._-]+", "--", self.model)
        control = "" if self.control is None else f".{self.control}"
        partial = "" if self.limit is None else ".partial"
        return f"{model}{control}.{self.config}.{self.split}{partial}.{digest}"


@dataclass
class ProbeResult:
    """Scores of one model on one split.

    `scores`: {rule: {k: percent}}, the mean over relations. `relations`: {relation: {"edges": n, "in_mean": bool, rule: {k:
    {"score": percent, "layer": int, "head": int}}}}. k is a string from "1" to "20"; layers and heads count from 0.
    `functions`: how many were scored; `skips`: {reason: how many were not}.
    """

    signature: str
    scores: dict[str, dict[str, float | None]]
    relations: dict[str, dict[str, Any]]
    functions: int
    skips: dict[str, int]
    settings: dict[str, Any]
    versions: dict[str, str]
    ledger: RankLedger

    @classmethod
    def from_ledger(cls, ledger: RankLedger) -> ProbeResult:
        """Every number of the result, computed from the ledger by the metric's own functions.

        Raises LedgerError where the ledger does not tell what made it.
        """
        made, counts = ledger.settings, ledger.counts()
        scores, relations = {}, {}
        for rule in RULES:
            result = score(counts, KS, rule)
            scores[rule] = result["scores"]
            for name, entry in result["relations"].items():
                chosen = {str(k): entry[str(k)] for k in KS}
                relations.setdefault(name, {"edges": entry["edges"], "in_mean": entry["in_mean"]})[rule] = chosen
        try:
            return cls(
                signature=signature(ProbeSettings(**made["settings"]), counts.functions, len(ledger)),
                scores=scores,
                relations=relations,
                functions=counts.functions,
                skips=made["skips"],
                settings={**made["settings"], "layers": counts.layers, "heads": counts.heads, **made["run"]},
                versions=made["versions"],
                ledger=ledger,
            )
        except (KeyError, TypeError) as error:
            raise LedgerError(f"the settings in the ledger are not those of a probe ({error}): probe again") from error

    def to_json(self) -> str:
        """The result as JSON, without the ledger; the same result gives the same text."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "ledger"}
        try:
            return json.dumps(fields, indent=1, allow_nan=False) + "\n"
        except (ValueError, RecursionError) as error:
            raise LedgerError(f"the settings in the ledger are not those of a probe ({error}): probe again") from error

    def paths(self, folder: str | os.PathLike) -> tuple[Path, Path]:
        """Where `save` puts the result and the ledger: `<name>.json` and `<name>.ledger.parquet` in `folder`."""
        name = ProbeSettings(**self.ledger.settings["settings"]).name
        return Path(folder) / f"{name}.json", Path(folder) / f"{name}.ledger.parquet"

    def save(self, path: str | os.PathLike) -> Path:
        """Write the result and its ledger into the folder `path`; returns the path of the result's JSON."""
        target, ledger = self.paths(path)
        with writing(target.parent):
            target.parent.mkdir(parents=True, exist_ok=True)
        self.ledger.save(ledger)
        return write(target, self.to_json())


def versions() -> dict[str, str]:
    """The versions of VERSIONS as they are installed."""
    return {name: importlib.metadata.version(name) for name in VERSIONS}


def ledger_path(result: str | os.PathLike) -> Path:
    """Where the ledger of a result lies: beside its JSON."""
    path = Path(result)
    return path.with_name(path.name.removesuffix(".json") + ".ledger.parquet")


def read_text(path: str | os.PathLike) -> str:
    """The text of a result's JSON; raises LedgerError where there is none."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise LedgerError(f"cannot read the result {path}: it is larger than {LARGEST:,} bytes")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(f"cannot read the result {path}: {error}; expected the JSON that `codesyntax probe` wrote") from error


def read(path: str | os.PathLike) -> ProbeResult:
    """The result at `path`, computed again from the ledger beside it.

    Raises LedgerError where one of the two is missing or damaged, or the JSON says anything else than its ledger.
    """
    text = read_text(path)
    result = ProbeResult.from_ledger(RankLedger.load(ledger_path(path)))
    if result.to_json() != text:
        raise LedgerError(
            f"the numbers of {path} do not follow from its ledger: one of the two was altered, or another version of "
            "codesyntax wrote them; `codesyntax score` computes them again"
        )
    return result


def signature(settings: ProbeSettings, functions: int, edges: int) -> str:
    """What a number must share with another to be compared with it, and what it was measured on."""
    parts: dict[str, Any] = {
        "model": f"{settings.model}@{settings.revision[:12]}",
        "data": f"{settings.data}/{settings.config}/{settings.split}",
        "labels": settings.labels,
        "direction": settings.direction,
        "pool": "sum-mean",
        "max-length": settings.max_length,
        "also-fits": ",".join(settings.also_fits) or "-",
        "dtype": settings.dtype,
        "functions": functions,
        "edges": edges,
        "scoring": SCORING_VERSION,
    }
    if settings.control is not None:
        parts["control"] = f"{settings.control}/{settings.seed}"
    if without := NOT_PREDICTED.get(settings.config):
        parts["not-predicted"] = without
    if settings.limit is not None:
        parts["partial"] = settings.limit
    return "uas|" + "|".join(f"{name}:{value}" for name, value in parts.items())
