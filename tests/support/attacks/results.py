"""Forged results of a probe, in a folder of honest ones: RESULTS are refused by `submit` before anything is sent."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.attacks.attack import Attack

from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult
from probing.runs.saved import ledger_path

TOO_LARGE = 200 * 10**6


def result_file(folder: Path, split: str = "test") -> Path:
    (file,) = folder.glob(f"*.{split}.*.json")
    return file


def recomputed(
    folder: Path, change: Callable[[RankLedger], RankLedger], splits=("test", "validation")
) -> None:
    """Ledgers changed, and numbers that follow from them."""
    for split in splits:
        file = result_file(folder, split)
        ledger = change(RankLedger.load(ledger_path(file)))
        file.unlink()
        ledger_path(file).unlink()
        ProbeResult.from_ledger(ledger).save(folder)


def with_settings(**changed: Any) -> Callable[[RankLedger], RankLedger]:
    def change(ledger: RankLedger) -> RankLedger:
        settings = {**ledger.settings["settings"], **changed}
        return dataclasses.replace(ledger, settings={**ledger.settings, "settings": settings})

    return change


def set_to(**changed: Any) -> Callable[[Path], None]:
    """Other settings, and numbers that follow."""
    return lambda folder: recomputed(folder, with_settings(**changed))


def score_above_100(folder: Path) -> None:
    """The JSON of the test split changed by hand, its ledger left as it is."""
    content = json.loads(result_file(folder).read_text())
    content["scores"]["first"]["1"] = 101.0
    result_file(folder).write_text(json.dumps(content, indent=1) + "\n")


def halved(ledger: RankLedger) -> RankLedger:
    return dataclasses.replace(ledger, ranks=ledger.ranks // 2)


def altered_alone(folder: Path) -> None:
    """A ledger without the numbers that follow from it."""
    path = ledger_path(result_file(folder))
    halved(RankLedger.load(path)).save(path)


def cut(ledger: RankLedger) -> RankLedger:
    """The tokenizer of the model was told to cut, and the settings are those of the task."""
    return dataclasses.replace(
        ledger, settings={**ledger.settings, "skips": {"more than 48 sub-tokens": 3}}
    )


def other_relation(ledger: RankLedger) -> RankLedger:
    names = [name.replace("If:if->test", "If:if->why") for name in ledger.relations]
    return dataclasses.replace(ledger, relations=names)


def chosen_on_the_test_split(folder: Path) -> None:
    """The ledger of the test split passed off as that of validation: held-out numbers as good as the published ones."""
    file = result_file(folder, "validation")
    settings = RankLedger.load(ledger_path(file)).settings["settings"]
    file.unlink()
    ledger_path(file).unlink()
    test = RankLedger.load(ledger_path(result_file(folder)))
    ProbeResult.from_ledger(
        with_settings(split="validation", labels=settings["labels"])(test)
    ).save(folder)


def without_settings(folder: Path) -> None:
    path = ledger_path(result_file(folder))
    dataclasses.replace(RankLedger.load(path), settings={"settings": {"model": 5}}).save(path)


EDITED = "do not follow from its ledger"

FORGERIES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a score above 100": (score_above_100, EDITED),
    "a deeply nested result": (lambda folder: result_file(folder).write_text("[" * 10**6), EDITED),
    "a result of 200 MB": (
        lambda folder: os.truncate(result_file(folder), TOO_LARGE),
        "larger than",
    ),
    "a result that is no text": (
        lambda folder: result_file(folder).write_bytes(b"\xff\xfe\x00"),
        "cannot read the result",
    ),
    "no ledger": (
        lambda folder: ledger_path(result_file(folder)).unlink(),
        "results of the split validation only",
    ),
    "no validation": (
        lambda folder: result_file(folder, "validation").unlink(),
        "no counterpart on the split",
    ),
    "a ledger that is none": (
        lambda folder: ledger_path(result_file(folder)).write_bytes(b"PAR1"),
        "no rank ledger",
    ),
    "a ledger without settings": (without_settings, "scoring 1; this is scoring 2"),
    "an altered ledger": (altered_alone, EDITED),
    "chosen on the test split": (chosen_on_the_test_split, "edges on validation are not those"),
    "a part": (set_to(limit=20), "partial run"),
    "short functions": (
        set_to(max_length=48),
        "--max-length 48, but a task needs --max-length 511",
    ),
    "a model made short": (
        lambda folder: recomputed(folder, cut),
        "lacks the functions of more than 48 sub-tokens",
    ),
    "a control": (set_to(control="random-weights", seed=0), "a control is not a model"),
    "a wrong config": (set_to(config="perl"), "config .*'perl'"),
    "a wrong direction": (set_to(direction="sideways"), "direction .*'sideways'"),
    "an unknown relation": (
        lambda folder: recomputed(folder, other_relation),
        "the edges on test are not those of the data",
    ),
    "other labels": (set_to(labels="0" * 12), "labels"),
    "no revision": (set_to(revision="main"), "revision is 'main', expected a commit"),
    "HTML in the model's name": (set_to(model="<b>best</b>"), "model is"),
    "a model out of the folder": (set_to(model="../../best"), "model is"),
}
RESULTS = [Attack(name, forge, reason) for name, (forge, reason) in FORGERIES.items()]
