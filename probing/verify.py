"""Was this result made as it says? Part of it is probed again, by other batches, and compared with its ledger."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from tqdm.auto import tqdm

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import CodeSyntaxError
from probing.ledger import RankLedger
from probing.result import ProbeResult, ProbeSettings, ledger_path, read_text
from probing.run import Runner, Task, prepare_again

MOST_DIFFERING = {"float32": 0.001, "bfloat16": 0.25}
"""Share of ranks that may differ when a function is probed again: other batches round sums differently, which swaps
neighbours. Measured with the embedded encoder on 40 functions, batches of 1 and of 16: 0.000005 in float32, 0.07 in
bfloat16; of a run in float16 or bfloat16 that says float32, 0.02 and 0.15."""


class Check(NamedTuple):
    """One thing that was looked at: what it is, whether it held, and what was found."""

    name: str
    passed: bool
    found: str


@dataclass
class Verification:
    """The checks of one result; `accepted` if all held."""

    checks: list[Check]

    @property
    def accepted(self) -> bool:
        return all(check.passed for check in self.checks)


@checked
def verify(
    result: str | os.PathLike,
    *,
    model: Any = None,
    data: Any = None,
    device: str | torch.device | None = None,
    functions: Positive = 24,
    seed: Natural | None = None,
) -> Verification:
    """Check a result file and the ledger beside it: scores, labels, model, and the ranks of some random functions.

    `model` and `data` say where to find what the result names, if not under these names; `functions` of the ledger's, drawn
    by `seed` (by default differently each time), are probed again. Raises LedgerError where there is no result to read.
    """
    text = read_text(result)
    ledger = RankLedger.load(ledger_path(result))
    settings = ProbeSettings(**ledger.settings["settings"])
    same = ProbeResult.from_ledger(ledger).to_json() == text
    checks = [Check("scores", same, "every number follows from the ledger" if same else "numbers differ from the ledger's")]
    try:
        task = prepare_again(settings, model=model, data=data, device=device)
    except CodeSyntaxError as error:
        return Verification([*checks, Check("model and data", False, str(error))])
    checks += [
        _same("model", settings.revision, task.settings.revision),
        _same("data", _version_and_labels(settings), _version_and_labels(task.settings)),
        _same("skips", ledger.settings["skips"], dict(sorted(task.skips.items()))),
        _same("ties", ledger.settings["ties"], task.made()["ties"]),
        _edges(ledger, task),
    ]
    if checks[-1].passed:
        checks.append(_ranks(ledger, task, functions, np.random.default_rng(seed)))
    return Verification(checks)


def _same(name: str, theirs: Any, ours: Any) -> Check:
    return Check(name, theirs == ours, f"{theirs}" if theirs == ours else f"the result says {theirs}, here it is {ours}")


def _version_and_labels(settings: ProbeSettings) -> str:
    """Of the data; the name is left out, as a copy may have another."""
    return f"{settings.data.rpartition('@')[2]} {settings.labels}"


def _edges(ledger: RankLedger, task: Task) -> Check:
    """Whether the ledger's edges are those of the data, all of them, in order."""
    ours = task.ledger(task.functions, np.empty((0, 0, 0, 0), np.uint8), {})
    order = np.argsort(ours.function, kind="stable")
    names = np.asarray(ours.relations, dtype=object)[ours.relation[order]]
    if len(ledger) != len(order):
        return Check("edges", False, f"the ledger has {len(ledger)} edges, the data {len(order)}")
    differing = np.asarray(ledger.relations, dtype=object)[ledger.relation] != names
    for column in ("function", "head", "first", "last", "tokens"):
        differing |= getattr(ledger, column) != getattr(ours, column)[order]
    if ledger.ranks.shape[2:] != (task.encoder.layers, task.encoder.heads):
        return Check("edges", False, f"the ledger has ranks of {ledger.ranks.shape[2:]} layers and heads")
    count = int(differing.sum())
    return Check("edges", count == 0, f"{count} of {len(ledger)} differ from the data's")


def _ranks(ledger: RankLedger, task: Task, functions: int, rng: np.random.Generator) -> Check:
    """Whether the ranks of some functions come out again."""
    order = rng.permutation(len(task.functions))[:functions]
    chosen = sorted((task.functions[place] for place in order), key=lambda function: -len(function.ids))
    again = Runner(task.encoder, task.settings.direction, None).run(chosen, tqdm(disable=True))
    theirs = np.concatenate([ledger.ranks[:, _places(ledger, function.index)] for function in chosen], axis=1)
    share = float((again != theirs).mean())
    most = MOST_DIFFERING[task.settings.dtype]
    found = f"{share:.3%} of {again.size} ranks of {len(chosen)} functions differ, at most {most:.1%} may"
    return Check("ranks", share <= most, found)


def _places(ledger: RankLedger, function: int) -> slice:
    """Where the edges of a function stand in a sorted ledger."""
    return slice(*np.searchsorted(ledger.function, [function, function + 1]))


def report(verification: Verification) -> Sequence[str]:
    """A line for each check, and the verdict."""
    lines = [f"{'ok  ' if check.passed else 'FAIL'} {check.name}: {check.found}" for check in verification.checks]
    return [*lines, "accepted" if verification.accepted else "REJECTED"]
