"""Verify a masking result: some functions are masked and restored again, and compared with its ledger.

*Which functions.* Drawn without replacement, with a probability proportional to their share of the means of the node
types, the same weight for each type; every type is drawn at least once.

*What is compared.* Every copy of these functions. Seeds and numbers of masked sub-tokens must be equal; hits and
similarities, too, unless rounding could decide a prediction (`Filled.unsure`), as on another machine, and
log-probabilities up to rounding. One copy that differs by more rejects the result. If what differs within these bounds
favours one arm by more than MOST_BIASED standard deviations over functions, the result is rejected, too.

*What a forger can gain.* As in `probing.evidence.verify`: an invented share g of a mean goes undetected with a
probability of at most exp(-g n / 2), where n functions are drawn. Copies that rounding can decide are one in a hundred
for real models; a model made to find all sub-tokens equally likely could hide more, but restores nothing.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

from codesyntax_dataset.errors import CodeSyntaxError, DatasetError, HubError, ModelError, UnknownName
from probing.evidence.checks import MOST_BIASED, Check, Verification, in_deviations, same, without_replacement
from probing.prediction.ledger import HITS, SIMILARITIES, MaskingLedger
from probing.prediction.mask import PART, MaskJob, prepare
from probing.prediction.result import MaskResult
from probing.runs.data import find_data, read_functions
from probing.runs.saved import ledger_path, read_text

_EXACT = ("function", "node_type", "copy", "seed", "masked")

_ROUNDED = 0.0015
"""The most by which two roundings of one log-probability to three decimals differ, and an error of 0.0005 in it."""


def verify_masked(
    result: str | os.PathLike,
    *,
    model: Any,
    data: Any,
    device: str | torch.device | None,
    functions: int | None,
    seed: int | None,
) -> Verification:
    """Check a masking result and the ledger beside it; arguments and errors as of `probing.evidence.verify.verify`."""
    text = read_text(result)
    ledger = MaskingLedger.load(ledger_path(result))
    found = MaskResult.from_ledger(ledger)
    settings, difference = found.settings, found.difference(text)
    said = f"numbers differ from the ledger's: {difference}" if difference else "every number follows from the ledger"
    checks = [Check("scores", difference is None, said)]
    of = len(np.unique(ledger.rows["function"]))
    try:
        place = find_data(result, settings) if data is None else data
        job = prepare(
            model or settings.model,
            read_functions(place, settings.config, settings.split, limit=settings.limit),
            revision=None if model else settings.revision,
            device=None if device is None else str(device),
            **{
                name: getattr(settings, name) for name in ("protocol", "rate", "control", "draws", "seed", "max_length")
            },
            node_types=list(settings.node_types),
        )
    except (DatasetError, ModelError, HubError, UnknownName) as error:
        return Verification([*checks, Check("model and data", None, str(error))], of=of)
    except CodeSyntaxError as error:
        return Verification([*checks, Check("model and data", False, str(error))], of=of)
    ours = job.provenance
    checks += [
        same("model", settings.revision, ours.settings.revision, model is not None),
        same("data", settings.labels, ours.settings.labels, data is not None),
    ]
    if None in (checks[-2].passed, checks[-1].passed):
        return Verification(checks, of=of)
    if found.run.parser != ours.run.parser:  # others see other trees, which is nobody's fault
        said = f"the trees are of {found.run.parser}, here are {ours.run.parser}: install these versions"
        return Verification([*checks, Check("parser", None, said)], of=of)
    checks += [same("skips", found.skips, ours.skips), same("dropped", found.dropped, ours.dropped)]
    copies = {source.index: source.copies for source in job.functions}
    claimed = dict(zip(*(part.tolist() for part in np.unique(ledger.rows["function"], return_counts=True))))
    checks.append(Check("copies", claimed == copies, f"{len(ledger)} copies of {of} functions"))
    if not checks[-1].passed:
        return Verification(checks, of=of)
    drawn = set(claimed) if functions is None else _draw(ledger, functions, np.random.default_rng(seed))
    return Verification([*checks, _restored_again(ledger, job, drawn)], len(drawn), of, ledger.digest())


def _draw(ledger: MaskingLedger, number: int, rng: np.random.Generator) -> set[int]:
    """Draw at least `number` functions, by their share of the node types, including one of every type."""
    first = ledger.rows[ledger.rows["copy"] == 0]
    functions, place = np.unique(first["function"], return_inverse=True)
    size = np.bincount(first["node_type"])
    weight = np.bincount(place, weights=1 / size[first["node_type"]])
    drawn = set(functions[without_replacement(weight / weight.sum(), number, rng)].tolist())
    for node_type in np.unique(first["node_type"]):
        holding = first["function"][first["node_type"] == node_type]
        if not drawn & set(holding.tolist()):
            drawn.add(int(rng.choice(holding)))
    return drawn


def _restored_again(ledger: MaskingLedger, job: MaskJob, drawn: set[int]) -> Check:
    """Whether the copies of the drawn functions come out again, except for unbiased rounding."""
    sources = [source for source in job.functions if source.index in drawn]
    parts = [job.rows(sources[at : at + PART], tqdm(disable=True)) for at in range(0, len(sources), PART)]
    again = MaskingLedger(ledger.node_types, np.concatenate([rows for rows, _ in parts]), ledger.settings)
    order = np.lexsort((again.rows["copy"], again.rows["node_type"], again.rows["function"]))
    ours, unsure = again.rows[order], np.concatenate([counts for _, counts in parts])[order]
    theirs = ledger.only(np.array(sorted(drawn))).rows
    text = f"{len(drawn)} functions masked again, "
    wrong = np.logical_or.reduce([theirs[name] != ours[name] for name in _EXACT])
    for name in HITS:
        wrong |= np.abs(theirs[name] - ours[name]) > unsure
    wrong |= np.abs(theirs["log_probability"] - ours["log_probability"]) > _ROUNDED
    other = np.logical_or.reduce([~np.isclose(theirs[name], ours[name], 0, 1e-9, True) for name in SIMILARITIES])
    wrong |= other & (unsure == 0)
    if count := int(wrong.sum()):
        row = theirs[wrong.argmax()]
        where = f"copy {row['copy']} of {ledger.node_types[row['node_type']]} in function {row['function']}"
        return Check("copies again", False, f"{text}{count} of {len(ours)} differ by more than rounding, as {where}")
    bias = _bias(theirs, ours)
    if bias > MOST_BIASED:
        return Check("copies again", False, f"{text}differences favour one arm by {bias:.1f} standard deviations")
    return Check("copies again", True, f"{text}{int(other.sum())} of {len(ours)} differ, all of them by rounding")


def _bias(theirs: np.ndarray, ours: np.ndarray) -> float:
    """By how many standard deviations over functions the differences favour an arm, by any number."""
    starts = np.flatnonzero(np.diff(ours["function"], prepend=-1))
    most = 0.0
    for name in (*HITS, "log_probability", *SIMILARITIES):
        gained = np.nan_to_num(theirs[name] - ours[name])
        for arm in (ours["copy"] == 0, ours["copy"] > 0):
            most = max(most, float(np.abs(in_deviations(np.add.reduceat(np.where(arm, gained, 0.0), starts)))))
    return most
