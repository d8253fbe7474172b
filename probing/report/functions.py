"""The functions that a report opens: of each relation one edge that a model's head finds, and one
that it misses and the best baseline finds, with the weights of the head's row if the model is at
hand."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from codesyntax_dataset.atomic import write
from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.protocol import BEST_BASELINE, HELD_OUT
from codesyntax_dataset.schema import Edge
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, RULES
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.ledger import RankLedger
from probing.models import cache_dir
from probing.report.findings import Findings, Subject
from probing.report.pages import Shown, lines_of
from probing.runs.data import find_data, load_functions

if TYPE_CHECKING:
    from probing.models.encoder import Encoder

logger = logging.getLogger(__name__)

SHORTEST, LONGEST = 10, 100
"""Tokens of a function that is shown, if there is any."""

FARTHEST = 40
"""Tokens between a head token and its dependent, likewise."""

AROUND, MOST_LINES = 2, 14
"""Lines of code before and behind an edge, and the most that are shown."""

LONGEST_EXAMPLE = 34
"""Characters of an example."""

LARGEST_MODEL = 2 * 2**30
"""Bytes of the weights of a model that a report runs."""


class Example(NamedTuple):
    """The shortest code of an edge, before, in and behind its dependent."""

    before: str
    dependent: str
    behind: str


class Picture(NamedTuple):
    """A part of a function, and one edge in it. `lines`: its pieces with their tokens (-1: none),
    from the line `first` on; `reader`: whose row is read; `wanted`: first and last token to be
    found; `row`: [token, weight in 255ths], largest first, empty if the model did not run."""

    says: str
    hit: bool
    first: int
    lines: list[list[tuple[str, int]]]
    reader: int
    wanted: tuple[int, int]
    row: list[list[int]]


class EdgeHits(NamedTuple):
    """Which edges are found with one guess, held-out: bool (E,); `heads`: by the chosen heads,
    `best`: by the best baselines."""

    heads: np.ndarray
    best: np.ndarray


@dataclass
class OpenedFunctions:
    """The functions of a config, from its data, by default those in the results."""

    findings: Findings
    data: Any = None
    encoders: dict[Any, Any] = field(default_factory=dict)
    """Models that were loaded, by their settings: several configs may share them."""
    not_run: set[str] = field(default_factory=set)
    """The names of models that are not here, or too large."""

    @cached_property
    def _table(self) -> Any:
        subject = self.findings.subjects[0]
        location = self.data or find_data(subject.file, subject.settings)
        return load_functions(location, subject.settings.config, subject.settings.split)[0]

    def _row(self, function: int) -> dict[str, Any]:
        (row,) = self._table.slice(function, 1).to_pylist()
        return row

    # ---------------------------------------------------------------------------------------- examples

    @cached_property
    def examples(self) -> dict[str, Example]:
        """Relation -> the code of an edge of few tokens."""
        ledger = self.findings.subjects[0].evidence.probed.test.ledger
        span = np.maximum(ledger.head, ledger.last) - np.minimum(ledger.head, ledger.first)
        examples = {}
        for number, name in enumerate(ledger.relations):
            edges = np.flatnonzero((ledger.relation == number) & (ledger.first != ledger.head))
            if len(edges):
                examples[name] = self._example(ledger, int(edges[span[edges].argmin()]))
        return examples

    def _example(self, ledger: EdgeTable, edge: int) -> Example:
        row = self._row(int(ledger.function[edge]))
        code, start, end = row["code"], row["token_start"], row["token_end"]
        head, first, last = (int(getattr(ledger, name)[edge]) for name in ("head", "first", "last"))
        begin, until = start[min(head, first)], end[max(head, last)]
        before, dependent, behind = (
            re.sub(r"\s+", " ", part)
            for part in (
                code[begin : start[first]],
                code[start[first] : end[last]],
                code[end[last] : until],
            )
        )
        room = max(LONGEST_EXAMPLE - len(dependent), 12)
        if len(before) > room:
            before = f"{before[: room - 4]} … "
        return Example(before, _clipped(dependent, LONGEST_EXAMPLE), _clipped(behind, 12))

    # -------------------------------------------------------------------------------------------- hits

    def hits(self, model: Subject) -> EdgeHits:
        """What the chosen heads and baselines of a model's relations find."""
        member = model.evidence
        test = member.probed.test.ledger
        chosen = member.hits[HELD_OUT].choice
        rivals = member.splits.baselines
        ranks = rivals.ranks[HELD_OUT]
        best = rivals.hits[HELD_OUT][BEST_BASELINE].choice
        return EdgeHits(_found(test, chosen), _found(ranks, best))

    # ---------------------------------------------------------------------------------------- pictures

    def pictures(self, model: Subject, relation: str) -> list[Picture]:
        """One edge that the relation's head finds and one that it misses and the best baseline
        finds, or any other; fewer if there are none."""
        return self._pictures(model)[relation]

    def _pictures(self, model: Subject) -> Mapping[str, list[Picture]]:
        known: dict[str, dict[str, list[Picture]]] = self.__dict__.setdefault("_drawn", {})
        if model.name not in known:
            known[model.name] = self._draw(model)
        return known[model.name]

    def _draw(self, model: Subject) -> dict[str, list[Picture]]:
        test = model.evidence.probed.test.ledger
        choice = model.evidence.hits[HELD_OUT].choice
        heads, best = self.hits(model)
        wanted = {}
        for number, name in enumerate(test.relations):
            edges = test.relation == number
            missed = edges & ~heads
            wanted[name] = [edges & heads, missed & best if (missed & best).any() else missed]
        asked = _in_few_functions(test, wanted)
        rows = self._weights(model, asked)
        drawn: dict[str, list[Picture]] = {}
        for name, edges in asked.items():
            drawn[name] = []
            for edge in edges:
                by_best = (
                    "The best baseline finds it."
                    if best[edge]
                    else "The best baseline misses it, too."
                )
                head = "-".join(map(str, choice[name][0, 0])) if name in choice else ""
                drawn[name].append(
                    self._picture(
                        model,
                        test,
                        edge,
                        bool(heads[edge]),
                        head,
                        by_best,
                        rows.get((name, edge), []),
                    )
                )
        return drawn

    def _picture(
        self,
        model: Subject,
        test: RankLedger,
        edge: int,
        hit: bool,
        head: str,
        by_best: str,
        row: list[list[int]],
    ) -> Picture:
        function = self._row(int(test.function[edge]))
        start, end, code = function["token_start"], function["token_end"], function["code"]
        lines = lines_of(code, start, end)
        token, first, last = (int(getattr(test, name)[edge]) for name in ("head", "first", "last"))
        reader, wanted = token, (first, last)
        if model.settings.direction != HEAD_TO_DEPENDENT:
            reader, wanted = first, (token, token)
        line_of = {
            piece: number
            for number, line in reversed([*enumerate(lines)])
            for _, piece in line
            if piece >= 0
        }
        ends = sorted(line_of.get(shown, 0) for shown in (reader, wanted[0]))
        begin = max(0, ends[0] - AROUND)
        until = min(ends[1] + AROUND + 1, begin + MOST_LINES)
        looks = ""
        if row and not hit:
            text = " ".join(code[start[row[0][0]] : end[row[0][0]]].split())
            looks = (
                f"It looks at `{_clipped(text, 24)}`. " if text else "It looks at a line break. "
            )
        said = (
            f"Head {head} finds it. {by_best}"
            if hit
            else f"Head {head} misses it. {looks}{by_best}"
        )
        shown = _dedented(lines[begin:until])
        return Picture(said, hit, begin + 1, shown, reader, wanted, row)

    def _weights(
        self, model: Subject, asked: Mapping[str, list[int]]
    ) -> dict[tuple[str, int], list[list[int]]]:
        """Relation and edge -> the row of the chosen head, if the model can be run here, or was."""
        choice = model.evidence.hits[HELD_OUT].choice
        heads = [
            (name, edge, *choice[name][0, 0].tolist())
            for name, edges in asked.items()
            if name in choice
            for edge in edges
        ]
        try:
            rows = cache_dir.made_of(
                ["rows of functions", model.settings.model_dump(mode="json"), heads],
                ".json",
                lambda: self._rows(model, heads),
                lambda file, rows: write(file, json.dumps(rows)),
                lambda file: json.loads(file.read_bytes()),
            )
        except (CodeSyntaxError, OSError) as error:
            logger.warning("functions are drawn without weights of %s: %s", model.name, error)
            self.not_run.add(model.name)
            return {}
        return {(name, edge): row for (name, edge, *_), row in zip(heads, rows)}

    def _rows(
        self, model: Subject, heads: Sequence[tuple[str, int, int, int]]
    ) -> list[list[list[int]]]:
        """The row of a head, (relation, edge, layer, head), for each; empty if the reader has no
        sub-tokens."""
        from probing.report.show import top_tokens  # imports torch, as does whatever runs a model

        settings = model.settings
        key = settings.model, settings.revision, settings.dtype, settings.max_length
        if key not in self.encoders:
            self.encoders[key] = _encoder(model)
        test = model.evidence.probed.test.ledger
        by_head = settings.direction == HEAD_TO_DEPENDENT
        edges_of: dict[int, list[int]] = {}
        for _, edge, *_ in heads:
            edges_of.setdefault(int(test.function[edge]), []).append(edge)
        heard = {
            function: top_tokens(
                self.encoders[key],
                self._shown(test, function, edges),
                settings.config,
                settings.direction,
            )
            for function, edges in edges_of.items()
        }
        rows = []
        for _, edge, layer, head in heads:
            listener, readers = heard[int(test.function[edge])]
            reader = int((test.head if by_head else test.first)[edge])
            row = []
            if reader in readers:
                tokens, weights = (
                    of_layer[layer][head][readers.index(reader)].tolist()
                    for of_layer in (listener.tokens, listener.weights)
                )
                row = [[token, weight] for token, weight in zip(tokens, weights) if weight]
            rows.append(row)
        return rows

    def _shown(self, test: EdgeTable, function: int, edges: list[int]) -> Shown:
        """A function with some of its edges."""
        row = self._row(function)
        start, end = (np.asarray(row[column], np.int64) for column in ("token_start", "token_end"))
        spans = np.stack([test.head, test.first, test.last])[:, edges].T.tolist()
        asked = [Edge("", *span) for span in spans]
        return Shown(f"function {function}", row["code"], function, start, end, asked)


def _dedented(lines: list[list[tuple[str, int]]]) -> list[list[tuple[str, int]]]:
    """Lines of code without the spaces before them that all of them have."""

    def indentation(line: list[tuple[str, int]]) -> str:
        text = "".join(piece for piece, _ in line)
        return text[: len(text) - len(text.lstrip(" \t"))]

    common = min((indentation(line) for line in lines if line), key=len, default="")
    shorter = []
    for line in lines:
        (text, token), *rest = line or [("", -1)]
        shorter.append([(text.removeprefix(common), token), *rest] if token < 0 else line)
    return shorter


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _found(ledger: RankLedger, choice: Mapping[str, np.ndarray]) -> np.ndarray:
    """Which edges the chosen heads find with one guess, by the first token: bool (E,)."""
    chosen = np.zeros((2, len(RULES), len(ledger.relations)), np.intp)
    known = np.zeros(len(ledger.relations), bool)
    for number, name in enumerate(ledger.relations):
        if name in choice:
            chosen[..., number] = choice[name][:, 0].T
            known[number] = True
    return (ledger.of_heads(*chosen)[0] == 0) & known[ledger.relation]


def _in_few_functions(
    test: EdgeTable, wanted: Mapping[str, Sequence[np.ndarray]]
) -> dict[str, list[int]]:
    """One of each of the edges, bool (E,), that are wanted of a relation, if there are any: in as few
    and as short functions as a greedy choice finds, since the model runs over each."""
    odd = (test.tokens < SHORTEST) | (test.tokens > LONGEST)
    odd |= np.abs(test.first - test.head) > FARTHEST
    asked = {}
    for name, masks in wanted.items():
        for number, mask in enumerate(masks):
            edges = np.flatnonzero(mask & ~odd if (mask & ~odd).any() else mask)
            if len(edges):
                asked[name, number] = edges
    tokens = np.zeros(test.function.max(initial=0) + 1, int)
    tokens[test.function] = test.tokens
    chosen: dict[tuple[str, int], int] = {}
    while open_asks := asked.keys() - chosen.keys():
        answers = np.zeros(len(tokens))
        for ask in open_asks:
            answers[np.unique(test.function[asked[ask]])] += 1
        function = int((answers - tokens / 1e6).argmax())
        for ask in open_asks:
            inside = asked[ask][test.function[asked[ask]] == function]
            if len(inside):
                chosen[ask] = int(inside[0])
    return {name: [chosen[ask] for ask in sorted(asked) if ask[0] == name] for name in wanted}


def _encoder(model: Subject) -> Encoder:
    """The model of a result; raises CodeSyntaxError if it is not here, another now, or large."""
    import huggingface_hub

    from probing.models.location import EMBEDDED_MODELS
    from probing.runs.session import Session

    session = Session.again(model.file, model.settings)
    name = str(session.model)
    if session.place is None and name not in EMBEDDED_MODELS:
        cached = huggingface_hub.try_to_load_from_cache(
            name, "config.json", revision=session.revision
        )
        if not isinstance(cached, str):
            raise CodeSyntaxError(f"{name} is not in the cache")
    elif session.place is not None:
        files = [session.place] if session.place.is_file() else [*session.place.iterdir()]
        if sum(file.stat().st_size for file in files if file.is_file()) > LARGEST_MODEL:
            raise CodeSyntaxError(f"{name} is larger than {LARGEST_MODEL >> 30} GiB")
    encoder = session.encoder()
    if not session.is_of(model.settings.revision):
        raise CodeSyntaxError(f"{name} has other weights now")
    return encoder
