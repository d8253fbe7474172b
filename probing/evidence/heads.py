"""What each attention head finds of each relation, as one table: the numbers of a report's map."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from codesyntax_dataset.arguments import Paths, StrPath, checked
from codesyntax_dataset.protocol import TABLE_KS
from codesyntax_metric.topk_uas import RULES, RankCounts
from probing.evidence.gather import alike, files_of
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import Offsets, best_offsets, is_hard
from probing.instruments.attention.result import ProbeResult, load

HEAD_COLUMNS = {
    "model": "the model, by the name that it was given",
    "revision": "its commit on the Hub, or the digest of its files",
    "step": "its step in training, if it is a checkpoint",
    "control": "what was measured instead of its attention weights, if it is a control",
    "config": "the config of the dataset",
    "split": "the split that is scored",
    "direction": "the direction in which heads search",
    "relation": "the relation",
    "layer": "the layer of the head, from 0",
    "head": "the head in its layer, from 0; of an untrained copy each again, with averaged weights",
    "match": "which token of a dependent counts: first, any or last",
    "k": "the number of guesses",
    "edges": "the edges of the relation",
    "score": "top-k UAS: the percentage of the edges that the head finds",
    "offset": "the distance from head to dependent that is most frequent, on validation if that was probed, too",
    "hard_edges": "the edges that do not begin at that offset",
    "beyond_offset": "the percentage of these that the head finds; none if there are none",
}
"""The columns of the table, and what they mean."""


@checked
def heads(results: Paths | StrPath) -> Any:
    """What each attention head finds of each relation, as a table. No head is chosen, so there are
    no intervals.

    Args:
        results: files or folders that `probing.probe` wrote, or one of them, each scored alone, on
            the split that was probed: a report scores models on the functions that all of them
            read.

    Returns:
        A pandas.DataFrame with HEAD_COLUMNS: a row for each head, relation, match and k, with its
        score in percent; layers and heads count from 0.

    Raises:
        LedgerError: what are no results.

    Examples:
        >>> import probing
        >>> heads = probing.heads("results")
        >>> heads.loc[heads.k == 1, "score"].between(0, 100).all()
        np.True_
    """
    import pandas

    paths = [results] if isinstance(results, StrPath) else results
    probed = {file: load(file) for file in files_of(paths)}
    tables = [
        pandas.DataFrame(columns)
        for result in probed.values()
        for columns in _of_result(result, _chosen_offsets(result, probed))
    ]
    frame = pandas.concat(tables, ignore_index=True)
    return frame.astype({"step": "Int64", "offset": "Int64"})[list(HEAD_COLUMNS)]


def _chosen_offsets(result: ProbeResult, others: dict[Path, ProbeResult]) -> Offsets:
    """The best offsets, those on validation if the same model was probed on it."""
    for other in others.values():
        if other.settings.split == "validation" and alike(other) == alike(result):
            return {**best_offsets(result.ledger), **best_offsets(other.ledger)}
    return best_offsets(result.ledger)


def _of_result(result: ProbeResult, offsets: Offsets) -> Iterator[dict[str, Any]]:
    """The columns of each relation, match and k of a result."""
    ledger: RankLedger = result.ledger
    settings = result.settings
    every = ledger.counts()
    hard = ledger.take(is_hard(ledger, offsets)).counts()
    about = {
        "model": settings.model,
        "revision": settings.revision,
        "step": result.run.step,
        "control": ", ".join(settings.deviations),
        "config": settings.config,
        "split": settings.split,
        "direction": settings.direction,
    }
    layer, head = np.indices((every.layers, every.heads)).reshape(2, -1)
    for relation, match, k in product(sorted(every.counts), RULES, map(int, TABLE_KS)):
        edges, score = _percentages(every, relation, match, k)
        hard_edges, beyond = _percentages(hard, relation, match, k)
        yield {
            **about,
            "relation": relation,
            "layer": layer,
            "head": head,
            "match": match,
            "k": k,
            "edges": edges,
            "score": score,
            "offset": offsets[relation],
            "hard_edges": hard_edges,
            "beyond_offset": beyond,
        }


def _percentages(
    counts: RankCounts, relation: str, match: str, k: int
) -> tuple[int, np.ndarray | float]:
    """The edges of a relation, and the percentage of them that each head finds: (layers * heads,)."""
    if relation not in counts.counts:
        return 0, np.nan
    edges = counts.edges(relation)
    return edges, 100 * counts.hits(relation, match, k)[..., -1].reshape(-1) / edges
