"""Verify a result: a part of it is run again, in other batches, and compared with its ledger.

*Which functions.* Those on which published scores depend: `probing.evidence.checks` says how many, and what a forger
can still gain, for each number. The draw follows from the digest of the ledger, so that verifying the same ledger again
changes nothing. *What is compared* depends on the instrument: see `verify_attention` and `verify_masked`.

*What remains.* Who alters a ledger gets another draw, and may alter it until one misses what is forged: by the bounds,
after some twenty trials. A maintainer's own `seed`, which nobody knew before, ends that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import CodeSyntaxError, DatasetError, HubError, LedgerError, ModelError, UnknownName
from probing.attention.probe import Probing
from probing.evidence.ablate import Ablation, HeadsVerifier
from probing.evidence.checks import Criterion, Draw, E, Influence, Verification, Verifier, same
from probing.evidence.usable import MEASURED, by_function
from probing.evidence.verify_attention import RanksVerifier
from probing.evidence.verify_masked import CopiesVerifier
from probing.information.inform import Informing
from probing.information.result import InformationResult
from probing.prediction.likelihood import Preferring, Surprising
from probing.prediction.likelihood_results import SCORES
from probing.prediction.mask import Masking
from probing.runs.data import find_data
from probing.runs.experiment import Experiment
from probing.runs.ledger_file import ATTENTION, INFORMATION, MASKING, PREFERENCE, SILENCING, SURPRISAL, instrument_of
from probing.runs.saved import ledger_path, read_text
from probing.runs.session import Session


@checked
def verify(result: str | os.PathLike, **options: Any) -> Verification:
    """What `verify_each` yields for one result; raises LedgerError if there is no readable one."""
    (verification,) = verify_each([result], **options)
    if isinstance(verification, LedgerError):
        raise verification
    return verification


@checked
def verify_each(
    results: Sequence[str | os.PathLike],
    *,
    model: Any = None,
    data: Any = None,
    device: str | torch.device | None = None,
    functions: Positive | None = None,
    everything: bool = False,
    seed: Natural | None = None,
) -> Iterator[Verification | LedgerError]:
    """Check result files and the ledgers beside them: scores, labels, model and, by running them again, some functions.

    Yields the checks of each result, or the error if there is no readable one; results of one model share one that is
    loaded. `model` and `data`: their locations, if not those in the results. `functions`: about how many are run again,
    by default as many as bound each mean to half a point; or `everything`. `seed`: for a draw of one's own, which
    otherwise follows from the ledger.
    """
    sessions: dict[tuple, Session] = {}

    def session_of(file: Path, settings: Any) -> Session:
        session = Session.again(file, settings, model, device)
        of_model = session.model, session.revision, session.dtype, session.max_length
        return sessions.setdefault((*of_model, session.weights, session.pool), session)

    def again(verifier: Verifier) -> tuple[Criterion, Draw]:
        rng = rng_of(verifier.ledger.digest(), seed)
        return verifier.again(functions, everything, rng)

    for result in results:
        try:
            yield _verified(Path(result), session_of, data, again)
        except LedgerError as error:
            yield error


def _verified(
    file: Path,
    session_of: Callable[[Path, Any], Session],
    data: Any,
    again: Callable[[Verifier], tuple[Criterion, Draw]],
) -> Verification:
    """The checks of a result. `session_of`: loads the model of a result with these settings; `again`: runs a part of it
    again."""
    instrument = instrument_of(ledger_path(file)) or ATTENTION
    if instrument not in VERIFIERS:
        raise LedgerError(f"{ledger_path(file)} is of {instrument!r:.40}, expected one of {', '.join(VERIFIERS)}")
    experiment, verifier = VERIFIERS[instrument]
    text = read_text(file)
    result = experiment.RESULT.from_file(ledger_path(file))
    made, difference = result.PROVENANCE.of(result.ledger), result.difference(text)
    found = f"numbers differ from the ledger's: {difference}" if difference else "every number follows from the ledger"
    checks = [Criterion("scores", difference is None, found)]
    verification = Verification(checks, of=len(verifier.places(result.ledger)))
    try:
        place = find_data(file, made.settings) if data is None else data
        here = experiment.again(made, session_of(file, made.settings), place)
        ours = here.settings
    except CodeSyntaxError as error:
        missing = isinstance(error, (DatasetError, ModelError, HubError, UnknownName))
        checks.append(Criterion("model and data", None if missing else False, str(error)))
        return verification
    session, revision = here.session, made.settings.revision
    checks += [
        same("model", revision, revision if session.is_of(revision) else ours.revision, session.named),
        same("data", _version_and_labels(made.settings), _version_and_labels(ours), data is not None),
    ]
    against = verifier(file, result, here)
    if all(check.passed is not None for check in checks):
        checks += against.unlike()
    if all(check.passed is not None for check in checks):
        checks += against.counted()
        if checks[-1].passed:
            check, drawn = again(against)
            checks.append(check)
            verification.functions, verification.bounds = len(drawn.places), drawn.bounds
            verification.ledger = result.ledger.digest()
    return verification


def rng_of(digest: str, seed: int | None) -> np.random.Generator:
    """The draw of a ledger with this digest, or that of a seed for it."""
    return np.random.default_rng([*bytes.fromhex(digest), *([] if seed is None else [seed])])


class InformationVerifier(Verifier[Informing]):
    """Fits an information probe again, and compares the rows of some functions."""

    COUNTED = ("skips", "left_out")

    def influence(self) -> Influence:
        """In percent, and hundredths of a bit: what functions contribute to the means over relations."""
        result = InformationResult.from_ledger(self.ledger)
        names, edges, sums = by_function(self.ledger)
        counted = [place for place, name in enumerate(names) if result.relations[name].in_mean] or [*range(len(names))]
        each = sums[:, counted] / edges[:, counted].sum(axis=0)[:, None] / len(counted)  # (F, R, 6)
        each[..., -2:] *= 100
        points = dict(zip(MEASURED, np.maximum(each.sum(axis=1), 0).T))
        least = (edges[:, counted] / edges[:, counted].sum(axis=0)).sum(axis=1) / len(counted)
        return Influence(self.places(self.ledger), points, {}, least)


_ROUNDED = {"float32": 0.02, "bfloat16": 8.0}
"""Nats by which the log-probability of a text may differ in other batches or on another machine."""


class _LogProbabilities(Verifier[E]):
    """Scores some texts again."""

    @property
    def rounded(self) -> float:
        return _ROUNDED[self.experiment.settings.precision]


class SurprisalVerifier(_LogProbabilities[Surprising]):
    """Measures some functions again."""

    COUNTED = ("skips", "unmatched")


class PreferenceVerifier(_LogProbabilities[Preferring]):
    """Scores some pairs again."""

    def influence(self) -> Influence:
        """In percent of the mean over phenomena."""
        _, at, pairs = np.unique(self.ledger.rows["phenomenon"], return_inverse=True, return_counts=True)
        points = 100 / pairs[at] / len(pairs)
        return Influence(self.places(self.ledger), dict.fromkeys(SCORES, points), {}, points)


VERIFIERS: dict[str, tuple[type[Experiment], type[Verifier]]] = {
    ATTENTION: (Probing, RanksVerifier),
    MASKING: (Masking, CopiesVerifier),
    SILENCING: (Ablation, HeadsVerifier),
    INFORMATION: (Informing, InformationVerifier),
    PREFERENCE: (Preferring, PreferenceVerifier),
    SURPRISAL: (Surprising, SurprisalVerifier),
}
"""Instrument -> what is run again, and how it is compared."""


def _version_and_labels(settings: Any) -> str:
    """The version and labels of the data, without its name, because a copy may have another name."""
    return f"{settings.data.rpartition('@')[2]} {settings.labels}"
