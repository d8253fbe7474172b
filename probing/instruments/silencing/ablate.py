"""Does the head that looks also serve? The best head of each relation is chosen on validation, and
silenced on test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tqdm import tqdm

from codesyntax_dataset.arguments import Natural, Positive, StrPath, checked
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.instruments.attention.probe import Probing, default_direction
from probing.instruments.masking.fill import Copy
from probing.instruments.silencing.choose import choose_heads
from probing.instruments.silencing.result import (
    LEFT_OUT,
    LOSS_DECIMALS,
    Chosen,
    SilencingLedger,
    SilencingResult,
)
from probing.instruments.silencing.silence import (
    Predictor,
    SilencedFunction,
    Targets,
    targets_of,
)
from probing.models.location import ModelSource
from probing.runs.data import read_functions, read_validation
from probing.runs.experiment import NO_SETTING, Experiment, Prepared, run
from probing.runs.session import Session

if TYPE_CHECKING:
    from probing.models.language_model import LanguageModel

DRAWS = 20
"""The most heads that the best one is compared with."""

REFERENCE = 256
"""The most functions of validation over which the output of a head is averaged: the first that the
model reads."""


@checked
def ablate(
    model: ModelSource | Session,
    data: Any,
    config: str = "python",
    *,
    draws: Positive = DRAWS,
    seed: Natural = 0,
    revision: str | None = None,
    device: str | torch.device | None = None,
    limit: Positive | None = None,
    sample: Positive | None = None,
    direction: str | None = None,
    max_length: Positive | None = None,
    output: StrPath | None = None,
    shard: str | None = None,
) -> SilencingResult | None:
    """Measure the loss of a language model if the best heads of each relation are silenced.

    Both splits are probed, or read from `output` or the cache if they were: the best head of each
    relation (rule first, k = 1) is chosen on the edges of every other function of `validation` that
    are not at the relation's best offset, must beat a guess by distance on the rest
    (`beats_guess`), and is silenced on `test`. A masked language model restores the end of the
    edges whose row of attention the head is, all those of a relation masked together. A decoder
    predicts the first token of each dependent that comes after its head token. A silenced head puts
    out the mean of its outputs over the sub-tokens of the first functions of validation, 256 at
    most. Beside it, other heads of the same layer are silenced in the same way. The model runs in
    float32.

    The same arguments give the same result for any number of processes. A repeated run is answered
    from the cache (see `probing.models.cache_dir`), unless the model is a pair. Under `accelerate
    launch` or `torchrun` the processes share the work; the main process returns the result of a
    single one, the others None.

    Args:
        model: a Hub id, a local folder or file, the name of an embedded model, or a (model,
            tokenizer) pair, with a masked-LM or causal-LM head; or a `probing.Session` in float32,
            which loads it once for several calls.
        data: a folder that `codesyntax build` wrote, a dataset id on the Hub, or a loaded
            `DatasetDict`.
        config: the labels, such as `python`, `java` or `python_exact`.
        draws: how many other heads of the layer are silenced beside the best one, or all if the
            layer has no more.
        seed: of `draws` and `sample`.
        revision: a branch, tag or commit on the Hub, or the name of a checkpoint in a local folder.
        device: such as `cpu` or `cuda:1`; by default a CUDA GPU if there is one, and for a pair
            where it is.
        limit: silence heads in the first so many functions of test only; the result says so.
        sample: silence heads in so many functions of test only, drawn by `seed`.
        direction: `head-to-dependent`, as published for code, or `dependent-to-head`, as published
            for natural language and the only one of models that cannot see later tokens; by default
            that of the language, if the model supports it.
        max_length: the most sub-tokens of a function, special tokens included: by default 511, as
            in the paper. Longer ones are skipped and counted.
        output: a folder for the result and its ledger, in which an interrupted run continues where
            it stopped.
        shard: such as `2/7`: run only the second of seven shards of the functions, and write it to
            `output` for `probing.merge`. Every shard needs both probes whole.

    Returns:
        The costs by relation: the mean log-probability of the sub-tokens that are asked for by the
        whole model, less that with the silenced head, in nats; None with a `shard`, and in other
        processes than the main one.

    Raises:
        ArgumentError: an argument of another kind, or one that contradicts another.
        UnknownName: a config, split or other name that does not exist.
        DatasetError: data that do not exist, are damaged, or lack what is asked for.
        ModelError: a model that cannot be loaded, or does not fit.
        LedgerError: nothing can be scored, or `output` has damaged or other files.

    Examples:
        >>> import probing
        >>> result = probing.ablate("tiny-code-lm", "codesyntax", draws=1, limit=1)
        >>> result.relations["children:parent->child"].edges
        71
    """
    session = Session.of(
        model, revision=revision, dtype="float32", device=device, max_length=max_length
    )
    test = read_functions(data, config, "test", limit=limit, sample=sample, seed=seed)
    ablation = Ablation(session, test, direction, draws, seed, output)
    result = run(ablation, output, shard)
    if output is not None:
        ablation.heads  # noqa: B018 - the probes belong there, even if the cache has the result
    return result


@dataclass
class Ablation(Experiment[SilencedFunction, SilencingResult]):
    """Silences the best head of each relation, and heads to compare it with; arguments as of
    `ablate`. `probes`: the folder in which both probes are."""

    RESULT = SilencingResult

    direction: str | None = None
    draws: int = DRAWS
    seed: int = 0
    probes: StrPath | None = field(
        default=None, metadata={NO_SETTING: "probes are the same wherever they are"}
    )

    @property
    def learned_from(self) -> Mapping[str, str | None]:
        return {"chosen_on": self.validation.data.labels}

    @cached_property
    def probing(self) -> Probing:
        """The probe of the same functions, which reads them."""
        return Probing(self.session, self.data, self.direction)

    @cached_property
    def validation(self) -> Probing:
        """That of the split validation."""
        return Probing(self.session, read_validation(self.data), self.direction)

    @cached_property
    def model(self) -> LanguageModel:
        return self.session.language_model()

    @cached_property
    def reference(self) -> list[np.ndarray]:
        """The functions (S,) over which the outputs of heads are averaged."""
        return [function.ids for function in self.validation.encoded.functions[:REFERENCE]]

    @cached_property
    def heads(self) -> Mapping[str, Chosen]:
        """The heads of each relation that both probes choose, in the main process."""
        validation = run(self.validation, self.probes)
        test = run(self.probing, self.probes)
        chosen = None
        if validation is not None and test is not None:
            chosen = choose_heads(validation, test, self.draws, self.seed)
        return self.session.processes.share(chosen)

    def prepare(self) -> Prepared[SilencedFunction]:
        model = self.model  # it may be refused, before anything is probed
        heads = self.heads
        encoded, relations, skips = self.probing.encoded
        left_out = Counter(dict.fromkeys(LEFT_OUT, 0))
        masked = model.mask is not None
        direction = self.probing.direction or default_direction(model, self.data.config)
        of_heads = masked and direction == HEAD_TO_DEPENDENT  # the end that heads read from
        functions = [
            SilencedFunction(function.index, function.ids, targets)
            for function in encoded
            if (targets := targets_of(function, relations, heads, masked, of_heads, left_out))
        ]
        names = {targets.relation for function in functions for targets in function.targets}
        return self.prepared(
            model,
            functions,
            skips,
            f"has a dependent to predict, edges left out {dict(left_out)}",
            settings={
                "revision": model.with_head,
                "begin": model.begin,
                "direction": direction,
                "reference": len(self.reference),
            },
            run={
                "predicts": "masked" if masked else "next",
                "layers": model.layers,
                "heads": model.heads,
            },
            functions=len(functions),
            left_out=left_out,
            heads={name: heads[name] for name in sorted(names)},
        )

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self.model, self.model.stand_ins(self.reference))

    def run(self, part: Sequence[SilencedFunction], bar: tqdm) -> SilencingLedger:
        heads = self.provenance.heads
        names = list(heads)
        cells = []
        for function in part:
            for targets, predicted in self._predicted(function, heads):
                about = function.index, names.index(targets.relation)
                cells += [
                    (*about, number, targets.edges, round(float(mean), LOSS_DECIMALS))
                    for number, mean in enumerate(predicted.mean(axis=1))
                ]
            bar.update(1)
        return self.ledger(names, cells)

    def _predicted(
        self, function: SilencedFunction, heads: Mapping[str, Chosen]
    ) -> Iterator[tuple[Targets, np.ndarray]]:
        """The log-probabilities of the targets of each relation, for each of its silenced heads
        (heads, M)."""
        masked = self.model.mask is not None
        # what is masked is that of one relation; a decoder predicts all that is asked for
        for group in [[each] for each in function.targets] if masked else [function.targets]:
            positions = np.unique(np.concatenate([targets.positions for targets in group]))
            sets = [heads[targets.relation].silenced for targets in group]
            text = Copy(function.ids, positions)
            (log_probabilities,) = self._predictor.find([text], [*chain.from_iterable(sets)])
            for targets, of_sets in zip(
                group, np.split(log_probabilities, np.cumsum([*map(len, sets)])[:-1])
            ):
                yield targets, of_sets[:, np.searchsorted(positions, targets.positions)]
