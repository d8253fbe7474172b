"""One function as a self-contained web page: the attention of a model over it, or what a masked
language model restores of it."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from codesyntax_dataset.arguments import Natural, StrPath, checked
from codesyntax_dataset.errors import ArgumentError
from codesyntax_dataset.languages import language_of, variant_of
from codesyntax_dataset.languages.grammar import checked_node_types
from codesyntax_metric.ast_similarity.similarity import parser_version
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, RULES
from probing.instruments.attention.align import align
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.attention.probe import default_direction
from probing.instruments.attention.ranking import BatchListener, Plan, Pooled
from probing.instruments.information.pairs import ReadFunction
from probing.instruments.masking.masking import Maskable, Masker, masked_copies
from probing.instruments.masking.restore import Restoration, RestoredCopy, RestoredPart
from probing.models.encoder import Encoder
from probing.models.load import load, load_restoring
from probing.models.location import ModelSource
from probing.models.subtokens import check_language
from probing.report.pages import (
    Page,
    Shown,
    check_length,
    config_for,
    lines_of,
    page,
    relations_of,
    shown,
)

KEPT = 20
"""The largest weights that a page keeps of each token's row; fewer if they would take more than
`WEIGHT_BYTES`."""

WEIGHT_BYTES = 3_000_000
"""The most bytes that a page's weights may take before base64: three each, two for the token and
one for the weight."""


@checked
def show(
    model: ModelSource,
    code: StrPath | None = None,
    *,
    id: int | None = None,
    data: Any = "codesyntax",
    config: str | None = None,
    split: str = "test",
    relation: str | None = None,
    head: str | None = None,
    revision: str | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device | None = None,
) -> Page:
    """Draw the gold edges of a function, and the predictions of each attention head of a model for
    them.

    The drawings follow Shen et al. (2022, Figures 5 and 9 to 15). Pooling, the default direction
    and the maximum length are those of `probing.probe`.

    Args:
        model: a Hub id, a local folder or file, the name of an embedded model, or a (model,
            tokenizer) pair.
        code: the function: text, or the path of a file.
        id: instead of `code`, the id of a function in a split of `data`.
        data: where `id` is looked up: a folder that `codesyntax build` wrote, a dataset id on the
            Hub, or a loaded `DatasetDict`.
        config: the labels, such as `python`; by default those of the file's name, else Python's.
        split: of `data`, `test` or `validation`.
        relation: the one to open with; by default the first of the function in alphabetical order.
        head: the one to open with, as tables name it, such as `1-2`, layer and head from 0; by
            default the best for the relation in this function.
        revision: a branch, tag or commit on the Hub, or the name of a checkpoint in a local folder.
        dtype: precision of the model: `float32`, `bfloat16` or `float16`, as text or torch dtype.
        device: such as `cpu` or `cuda:1`; by default a CUDA GPU if there is one, and for a pair
            where it is.

    Returns:
        A self-contained page, which notebooks display; `save` writes it.

    Raises:
        ParseError: code that does not parse; it has line and column.
        SourceError: a file that cannot be read.
        DatasetError: an unknown id, or data that cannot be read.
        ModelError: a model that cannot be probed, or a function that is too long for it.
        UnknownName: an unknown config, split, relation or head.

    Examples:
        >>> import probing
        >>> page = probing.show("tiny-code-lm", "def f(x):\\n    return len(x)\\n")
        >>> page.title
        'Attention of tiny-code-lm: the given code'
    """
    config = config_for(code, config)
    function = shown(code, id, data, config, split)
    relations_of(function.name, function.edges, relation)
    encoder = load(model, revision=revision, dtype=dtype, device=device)
    return attention_page(encoder, function, config, relation, head)


def attention_page(
    encoder: Encoder,
    function: Shown,
    config: str,
    relation: str | None = None,
    head: str | None = None,
) -> Page:
    """The page of `show` on a function, with a model that is loaded."""
    names = relations_of(function.name, function.edges, relation)
    opened = None if head is None else _numbers_of(head, encoder)
    attention = _attention_over(encoder, function, config)
    edges: dict[str, list[Any]] = {name: [] for name in names}
    for edge in function.edges:
        edges[edge.relation].append(edge[1:])
    return page(
        "attention",
        f"Attention of {encoder.name}: {function.name}",
        encoder.name,
        f"({encoder.revision[:12]}) on {function.name}",
        unit=language_of(config).unit,
        dtype=encoder.dtype,
        layers=encoder.layers,
        heads=encoder.heads,
        rules=RULES,
        lines=lines_of(function.code, function.start.tolist(), function.end.tolist()),
        relations=[{"name": name, "edges": edges[name]} for name in names],
        relation=names.index(relation) if relation else 0,
        head=opened,
        **attention,
    )


def _numbers_of(head: str, encoder: Encoder) -> tuple[int, int]:
    """The layer and the number of a head with this name; raises ArgumentError if the model has none
    of it."""
    if named := re.fullmatch(r"(\d+)-(\d+)", head):
        layer = int(named[1])
        number = int(named[2])
        if layer < encoder.layers and number < encoder.heads:
            return layer, number
    raise ArgumentError(
        f"head is {head!r}, but those of {encoder.name} are 0-0 to {encoder.layers - 1}-{encoder.heads - 1}: the layer "
        "and the head, both from 0"
    )


def _attention_over(encoder: Encoder, function: Shown, config: str) -> dict[str, Any]:
    """For every attention head, the tokens to which each token attends most, with weights, as pages
    store them; raises ModelError for a function that is too long.

    `readers` (rows,): the tokens that have sub-tokens, ascending. `tokens`, uint16, and `weights`,
    uint8, (layers, heads, rows, kept), in base64: by descending weight, equal ones by lower token,
    so that the first token is the prediction. A weight w is stored as 255 times its square root,
    which preserves small weights.
    """
    check_language(encoder.tokenizer, encoder.name, language_of(config).name)
    direction = default_direction(encoder, config)
    # every token reads, not only those of edges, because any of them may be clicked
    listener, readers = top_tokens(encoder, function, config, direction, ReadFunction)
    return {
        "direction": direction,
        "byHead": direction == HEAD_TO_DEPENDENT,
        "readers": readers,
        "kept": listener.count,
        "tokens": base64.b64encode(np.stack(listener.tokens).tobytes()).decode(),
        "weights": base64.b64encode(np.stack(listener.weights).tobytes()).decode(),
    }


def top_tokens(
    encoder: Encoder,
    function: Shown,
    config: str,
    direction: str,
    reading: type[EncodedFunction] = EncodedFunction,
) -> tuple[TopTokens, list[int]]:
    """The largest weights of rows of a function, and the tokens whose rows these are: those of its
    edges, or of a ReadFunction all; raises ModelError for a function that is too long."""
    ((ids, offsets, special),) = encoder.encode([function.code])
    check_length(function, len(ids), encoder.name, encoder.longest)
    alignment = align(
        function.code, function.start, function.end, offsets, special, exact=encoder.exact_offsets
    )
    alignment = alignment.without(
        variant_of(config).never_predicted, function.code, function.start, function.end
    )
    row = {
        "token_start": function.start,
        "relations": [edge._asdict() for edge in function.edges],
    }
    whole = reading(0, ids, alignment, EdgeTable.from_rows([(0, row)]))
    readers = whole.readers(direction)
    fitting = WEIGHT_BYTES // (3 * encoder.layers * encoder.heads * max(1, len(readers)))
    listener = TopTokens(whole, encoder, direction, min(KEPT, len(readers), max(1, fitting)))
    encoder.forward(encoder.inputs([ids]), listener)
    return listener, readers.tolist()


class TopTokens(BatchListener):
    """Listens to one forward pass over one function, and keeps the first `count` tokens of every
    row.

    `tokens` and `weights` are lists over layers of arrays (heads, rows, count), as on the page.
    """

    def __init__(self, function: EncodedFunction, encoder: Encoder, direction: str, count: int):
        super().__init__(
            [function],
            encoder.layers,
            encoder.heads,
            len(function.ids),
            encoder.device,
            1,
            direction,
        )
        self.count = count
        self.tokens: list[np.ndarray] = []
        self.weights: list[np.ndarray] = []

    def on_layer(self, plan: Plan, edges: slice, pooled: Pooled) -> None:
        tokens_of = []
        weights_of = []
        for _, rows in pooled:
            # stable: equal weights by lower token
            weights, tokens = rows.sort(dim=-1, descending=True, stable=True)
            tokens_of.append(tokens[..., : self.count].cpu().numpy().astype("<u2"))
            roots = (255 * weights[..., : self.count].clamp(0, 1).sqrt()).round()
            weights_of.append(roots.to(torch.uint8).cpu().numpy())
        self.tokens.append(np.concatenate(tokens_of).swapaxes(0, 1))
        self.weights.append(np.concatenate(weights_of).swapaxes(0, 1))


# ------------------------------------------------------------------------------------ masked syntax

_SIGNS = str.maketrans({"\n": "⏎", "\r": "␍", "\t": "⇥"})


@checked
def show_masked(
    model: ModelSource,
    code: StrPath | None = None,
    *,
    id: int | None = None,
    data: Any = "codesyntax",
    config: str | None = None,
    split: str = "test",
    node_type: str | None = None,
    revision: str | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device | None = None,
    seed: Natural = 0,
) -> Page:
    """Draw one function, masked as in `probing.mask`: what the model restores of each node type,
    right and wrong marked.

    For each node type that occurs, of those that `probing.mask` masks by default, the copy T1, in
    which the nodes are masked, stands beside a control T0, of as many random sub-tokens: the first
    one of `probing.mask` with this `seed`, if the function is from `data` (Velasco et al. 2024).

    Args:
        model: a masked language model: a Hub id, a local folder, the name of an embedded model, or
            a (model, tokenizer) pair.
        code: the function: text, or the path of a file.
        id: instead of `code`, the id of a function in a split of `data`.
        data: where `id` is looked up: a folder that `codesyntax build` wrote, a dataset id on the
            Hub, or a loaded `DatasetDict`.
        config: the labels, such as `python`; by default those of the file's name, else Python's.
        split: of `data`, `test` or `validation`.
        node_type: the one to open with, any of the grammar; by default the first.
        revision: a branch, tag or commit on the Hub, or the name of a checkpoint in a local folder.
        dtype: precision of the model: `float32`, `bfloat16` or `float16`, as text or torch dtype.
        device: such as `cpu` or `cuda:1`; by default a CUDA GPU if there is one, and for a pair
            where it is.
        seed: of the control.

    Returns:
        A self-contained page, which notebooks display; `save` writes it.

    Raises:
        ParseError: code that does not parse; it has line and column.
        SourceError: a file that cannot be read.
        DatasetError: an unknown id, or data that cannot be read.
        ModelError: no masked language model, or a function that is too long for it.
        UnknownName: an unknown config or split, or a node type that the grammar does not have.
        ArgumentError: a node type that is not in the function.

    Examples:
        >>> import probing
        >>> page = probing.show_masked("tiny-code-mlm", "def f(x):\\n    return len(x)\\n")
        >>> page.title
        'Masked syntax, tiny-code-mlm: the given code'
    """
    config = config_for(code, config)
    function = shown(code, id, data, config, split)
    language = language_of(config).name
    names = checked_node_types(language)
    wanted = [] if node_type is None else checked_node_types(language, [node_type])
    loaded = load_restoring(model, revision=revision, dtype=dtype, device=device)
    masker = Masker(loaded.tokenizer, language, dict.fromkeys([*names, *wanted]))
    (maskable,) = masker.read([function.code])
    check_length(function, len(maskable.ids), loaded.name, loaded.longest)
    copies, *_ = masked_copies(maskable, function.position, masker.node_types, draws=1, seed=seed)
    present = [masker.node_types[copy.node_type] for copy in copies if copy.number == 0]
    if node_type is not None and node_type not in present:
        there = (
            f"masked can be {', '.join(present)}"
            if present
            else "nor any of those that are masked by default"
        )
        raise ArgumentError(
            f"{function.name} has nothing to mask of the node type {node_type}: {there}"
        )
    if not present:
        raise ArgumentError(
            f"{function.name} has nothing to mask of {', '.join(names)}: name another node type of its grammar"
        )
    restoration = Restoration(loaded, masker)
    (restored,) = restoration.each([(maskable, copies)])
    types = zip(present, _arms(maskable, restored, restoration))
    return page(
        "restored",
        f"Masked syntax, {loaded.name}: {function.name}",
        loaded.name,
        f"({loaded.revision[:12]}) on {function.name}, masked",
        dtype=loaded.dtype,
        seed=seed,
        parser=parser_version(language),
        types=[{"type": name, "arms": arms} for name, arms in types],
        opened=node_type or present[0],
    )


class Piece(NamedTuple):
    """Some text of a line. `look`: empty if it was not masked, `right`, or `wrong`, where `was` is
    the true text."""

    text: str
    look: str = ""
    was: str = ""


def _arms(
    function: Maskable, restored: Sequence[RestoredCopy], restoration: Restoration
) -> Iterator[list[dict[str, Any]]]:
    """Both copies of each node type, T1 and T0: their masked sub-tokens, those that are restored,
    and the text."""
    for pair in zip(restored[::2], restored[1::2]):
        arms = []
        for copy in pair:
            parts = restoration.restorer.parts(function, copy.copy.positions, copy.filled.predicted)
            similarities = *copy.similarity, *(floor.jaccard for floor in copy.floors)
            arms.append(
                {
                    "masked": len(copy.copy.positions),
                    "restored": copy.filled.hits,
                    "similarities": list(zip(_SIMILARITY_TITLES, map(_three_digits, similarities))),
                    "log_probability": _three_digits(copy.filled.log_probability),
                    "lines": restored_lines(parts),
                }
            )
        yield arms


_SIMILARITY_TITLES = (
    "Jaccard",
    "Sorensen-Dice",
    "Levenshtein",
    "Jaccard with x for each",
    "with nothing for each",
)


def _three_digits(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}".replace("-", "−")


def restored_lines(parts: Sequence[RestoredPart]) -> list[list[Piece]]:
    """The source by line, with the predicted text in place of what was masked.

    A wrong prediction is one piece in the line where it begins, with signs for line breaks and, if
    it has no other characters, for spaces and tabs; the line breaks and the indentation that were
    masked there stay.
    """
    lines: list[list[Piece]] = [[]]

    def add(text: str, look: str = "") -> None:
        for number, piece in enumerate(text.replace("\r\n", "\n").split("\n")):
            if number:
                lines[-1] += [Piece("⏎", look)] if look else []
                lines.append([])
            if piece:
                lines[-1].append(Piece(piece, look))

    for part in parts:
        if part.right == part.masked:
            add(part.text, "right" if part.masked else "")
            continue
        lines[-1].append(Piece(_visible(part.text), "wrong", _visible(part.source)))
        for behind in part.source.split("\n")[1:]:
            add("\n" + behind[: len(behind) - len(behind.lstrip())])
    return lines if lines[-1] else lines[:-1]


def _visible(text: str) -> str:
    if text.isspace():
        text = re.sub(" {4,}", lambda spaces: f"␣×{len(spaces[0])}", text).replace(" ", "␣")
    return text.translate(_SIGNS) or "∅"
