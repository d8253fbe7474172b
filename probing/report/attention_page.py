"""The attention of a model over one function, as a self-contained web page."""

from __future__ import annotations

import base64
import os
from typing import Any, NamedTuple

import numpy as np
import torch

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import language_of, variant_of
from codesyntax_dataset.protocol import ATTENTION, SUM
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, RULES
from probing.attention.align import align
from probing.attention.edges import EdgeTable
from probing.attention.probe import default_direction
from probing.attention.ranking import BatchListener, EncodedFunction, Plan, Pooled
from probing.attention.result import ProbeResult
from probing.attention.result import load as load_result
from probing.models.encoder import Encoder
from probing.models.load import load
from probing.models.subtokens import check_language
from probing.report.pages import Page, Shown, check_length, lines_of, page, relations_of, shown

KEPT = 20
"""The number of largest weights that a page keeps of each token's row; fewer if they would take more than `BYTES`."""

BYTES = 3_000_000
"""The most bytes that a page's weights may take before base64: three each, two for the token and one for the weight."""


@checked
def show(
    model: str | os.PathLike | tuple,
    code: str | os.PathLike | None = None,
    *,
    id: int | None = None,
    data: Any = "codesyntax",
    config: str = "python",
    split: str = "test",
    relation: str | None = None,
    revision: str | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device | None = None,
    result: str | os.PathLike | ProbeResult | None = None,
) -> Page:
    """A page with the gold edges of a function and the predictions of each attention head of a model for them.

    The drawings follow Shen et al. (2022, Figures 5 and 9 to 15). The function is either `code` (text or the path of a
    file, annotated with the language and variant of `config`) or the one with this `id` in a split of `data`. `model`,
    `data`, `config`, `split`, `revision`, `dtype` and `device` are as in `probe`; so are pooling, the default direction
    and the maximum length. `relation`: the one to open with, by default the first of the function in alphabetical
    order. `result`: a result of `probe` with the same model and config, or its JSON file; the page then also marks the
    best head over the whole split.

    Raises ParseError, with line and column, for code that does not parse; SourceError for a file that cannot be read;
    ModelError for a model that cannot be probed, or a function that is too long for it; DatasetError for an unknown id;
    UnknownName for an unknown config, split or relation; and LedgerError for a result of another model or config.
    """
    function = shown(code, id, data, config, split)
    names = relations_of(function.name, function.edges, relation)
    encoder = load(model, revision=revision, dtype=dtype, device=device)
    attention = attention_over(encoder, function, config)
    unit = language_of(config).unit
    whole = None if result is None else _fitting(result, encoder, config, attention.direction)
    relations = [
        {
            "name": name,
            "edges": [edge[1:] for edge in function.edges if edge.relation == name],
            "best": {} if whole is None else _best(whole, name),
        }
        for name in names
    ]
    content = {
        "layers": encoder.layers,
        "heads": encoder.heads,
        "byHead": attention.direction == HEAD_TO_DEPENDENT,
        "rules": RULES,
        "lines": lines_of(function.code, function.start.tolist(), function.end.tolist()),
        "relations": relations,
        "relation": names.index(relation) if relation else 0,
        "readers": attention.readers.tolist(),
        "kept": attention.tokens.shape[-1],
        "tokens": base64.b64encode(attention.tokens.astype("<u2").tobytes()).decode(),
        "weights": base64.b64encode(attention.weights.tobytes()).decode(),
    }
    return page(
        "Attention page",
        "attention.html.jinja",
        model=encoder.name,
        revision=encoder.revision[:12],
        function=function.name,
        unit=unit,
        direction=attention.direction,
        dtype=encoder.dtype,
        whole=None if whole is None else f"{whole.title}, {whole.functions:,} {unit}s",
        page=content,
    )


def _fitting(result: str | os.PathLike | ProbeResult, encoder: Encoder, config: str, direction: str) -> ProbeResult:
    """The result, if it belongs to this encoder, config and direction."""
    if not isinstance(result, ProbeResult):
        result = load_result(result)
    made = result.settings
    for what, got, expected in (
        ("the model", f"{made.model}@{made.revision[:12]}", f"{encoder.name}@{encoder.revision[:12]}"),
        ("the config", made.config, config),
        ("the direction", made.direction, direction),
        ("the weights", made.weights, ATTENTION),
        ("the pool", made.pool, SUM),
        ("the control", made.control or "none", "none"),
    ):
        if got != expected:
            raise LedgerError(
                f"the result has {what} {got}, but the page has {expected}: give a result of `codesyntax probe` with it"
            )
    return result


def _best(result: ProbeResult, relation: str) -> dict[str, list[float]]:
    """Rule -> layer, head and score at k = 1; without rules by which no head finds any edge."""
    best = result.relations.get(relation)
    cells = {rule: best[rule]["1"] for rule in RULES} if best else {}
    return {rule: [cell["layer"], cell["head"], cell["score"]] for rule, cell in cells.items() if cell["score"]}


class Attention(NamedTuple):
    """For every attention head, the tokens to which each token attends most, with weights.

    `readers` (rows,): the tokens that have sub-tokens, ascending. `tokens`, uint16, and `weights`, uint8, (layers,
    heads, rows, kept): by descending weight, equal ones by lower token, so that the first token is the prediction. A
    weight w is stored as 255 times its square root, which preserves small weights.
    """

    direction: str
    readers: np.ndarray
    tokens: np.ndarray
    weights: np.ndarray


def attention_over(encoder: Encoder, function: Shown, config: str) -> Attention:
    """The attention of a model over one function; raises ModelError for one that is too long for it."""
    check_language(encoder.tokenizer, encoder.name, language_of(config).name)
    ((ids, offsets, special),) = encoder.encode([function.code])
    check_length(function, len(ids), encoder.name, encoder.longest)
    alignment = align(function.code, function.start, function.end, offsets, special, exact=encoder.exact_offsets)
    alignment = alignment.without(variant_of(config).never_predicted, function.code, function.start, function.end)
    row = {
        "token_start": function.start,
        "relations": [dict(zip(("relation", "head", "first", "last"), edge)) for edge in function.edges],
    }
    whole = _WholeFunction(0, ids, alignment, EdgeTable.from_rows([(0, row)]))
    direction = default_direction(encoder, config)
    readers = whole.readers(direction)
    fitting = BYTES // (3 * encoder.layers * encoder.heads * max(1, len(readers)))
    listener = _TopTokens(whole, encoder, direction, min(KEPT, len(readers), max(1, fitting)))
    encoder.forward(encoder.inputs([ids]), listener)
    return Attention(direction, readers, np.stack(listener.tokens), np.stack(listener.weights))


class _WholeFunction(EncodedFunction):
    """A function of which every token reads, not only those of its edges, because any of them may be clicked."""

    def readers(self, direction: str) -> np.ndarray:
        return np.flatnonzero(self.alignment.mapped)


class _TopTokens(BatchListener):
    """Listens to one forward pass over one function, and keeps the first `kept` tokens of every row.

    `tokens` and `weights` are lists over layers of arrays (heads, rows, kept), as in `Attention`.
    """

    def __init__(self, function: EncodedFunction, encoder: Encoder, direction: str, kept: int):
        super().__init__([function], encoder.layers, encoder.heads, len(function.ids), encoder.device, 1, direction)
        self.kept = kept
        self.tokens: list[np.ndarray] = []
        self.weights: list[np.ndarray] = []

    def hear(self, plan: Plan, edges: slice, pooled: Pooled) -> None:
        tokens_of, weights_of = [], []
        for _, rows in pooled:
            weights, tokens = rows.sort(dim=-1, descending=True, stable=True)  # stable: equal weights by lower token
            tokens_of.append(tokens[..., : self.kept].cpu().numpy().astype(np.uint16))
            roots = (255 * weights[..., : self.kept].clamp(0, 1).sqrt()).round()
            weights_of.append(roots.to(torch.uint8).cpu().numpy())
        self.tokens.append(np.concatenate(tokens_of).swapaxes(0, 1))
        self.weights.append(np.concatenate(weights_of).swapaxes(0, 1))
