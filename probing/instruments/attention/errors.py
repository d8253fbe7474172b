"""Error analysis: what the best head of each relation ranks first where it is wrong (after Shen et
al. 2022, Table 7, which was made by hand).

A result's ledger says which head is best for a relation at k = 1 and which edges it misses, but not
what it ranks first instead. Therefore the model runs again, and only the first choices of these
heads are kept.

Every wrong choice is in exactly one class, the first of CLASSES that applies:

- *no prediction*: the reading token has no sub-tokens, or attends to no token but itself.
- *bracket*, *separator* (`, ; : .`), *operator* (all other punctuation, such as `=`), *line break*
  (or indentation): by the token's own text.
- *same text as the head*: another token that is spelled as the edge's head token, such as a second
  `if` for an `if`.
- *keyword* (of the language, as in the published lists, which include `True` and `null`): by the
  token's own text.
- *literal*: a string, character, number, symbol or regular expression.
- *inside the dependent*: a name among the dependent's tokens, but not the one that counts by the
  rule.
- *inside its block*, *outside its block*: any other name. The block is that of the dependent's
  first token, by the rule of the language (`codesyntax_dataset.languages.blocks`).
- *other*: anything else: a comment (a token in Python), text between tags, a character that the
  language does not know.

In the same run, every attention head is heard: on which kinds of tokens the reading tokens have
their largest weight (section 4.2 of the paper). A kind, one of TOKEN_KINDS, is told by the text of
a token alone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import ValidationError

from codesyntax_dataset import safe_files
from codesyntax_dataset.arguments import StrPath, checked
from codesyntax_dataset.atomic import write
from codesyntax_dataset.checksummed_json import with_checksum, without_checksum
from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import Language, language_of
from codesyntax_dataset.schema import Token
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, RULES
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeProvenance
from probing.instruments.attention.result import load as load_result
from probing.runs.records import Count, FieldsByName, Number, Numbers, Record, exactly, explain
from probing.runs.saved import LARGEST_RESULT
from probing.runs.settings import Settings

if TYPE_CHECKING:
    from probing.instruments.attention.probe import Probing

ERROR_CLASSES = (
    "no prediction",
    "bracket",
    "separator",
    "operator",
    "line break",
    "same text as the head",
    "keyword",
    "literal",
    "inside the dependent",
    "inside its block",
    "outside its block",
    "other",
)

TOKEN_KINDS = (
    "bracket",
    "separator",
    "operator",
    "line break",
    "keyword",
    "literal",
    "name",
    "other",
)
"""The kinds of tokens by their own text."""

_BRACKETS = frozenset("()[]{}")
_SEPARATORS = frozenset(",;:.")
_OPERATOR = re.compile(r"[-+*/%@&|^~<>=!?:.]+")
_LITERAL = re.compile(
    r"""[A-Za-z]{0,3}["'`] | [A-Za-z]{1,3}\#+"  # strings, also those in Rust that begin with r#
      | \.?[0-9]
      | <<[<~-]? [ ]* ["'`]?\w  # here documents
      | :["\w] | %[A-Za-z]?[(\[{<|/]  # symbols, and strings and lists of Ruby
      | /(?![/*]) .+ /[a-z]*\Z  # regular expressions""",
    re.DOTALL | re.VERBOSE,
)
# also with a sigil, or a namespace
_NAME_PATTERN = re.compile(r"(?:@@?|\\)? [^\W\d]\w* (?:\\\w+)* [?!]?", re.VERBOSE)


class Tokens:
    """The tokens of one function, at the characters `start` to `end` (exclusive) of its `code`."""

    def __init__(self, code: str, start: Sequence[int], end: Sequence[int], language: Language):
        self.texts = [code[s:e] for s, e in zip(start, end)]
        self.keywords = language.keywords
        self._blocks = language.blocks(code, list(map(Token, self.texts, start, end)))

    def classify(self, chosen: int, reader: int, head: int, first: int, last: int) -> str:
        """The class of the wrong choice `chosen` (-1: none), made in the row of `reader` for an
        edge."""
        if chosen < 0 or chosen == reader:
            return "no prediction"
        text = self.texts[chosen]
        kind = _token_kind(text, self.keywords)
        if kind in ("keyword", "literal", "name", "other") and text == self.texts[head]:
            return "same text as the head"
        if kind != "name":
            return kind
        if first <= chosen <= last:
            return "inside the dependent"
        begin, end = self._blocks[first]
        return "inside its block" if begin <= chosen <= end else "outside its block"


@lru_cache(maxsize=1 << 16)
def _token_kind(text: str, keywords: Collection[str]) -> str:
    """The kind of a token by its text, one of TOKEN_KINDS."""
    if not text.strip():
        return "line break"
    if text in _BRACKETS:
        return "bracket"
    if text in _SEPARATORS:
        return "separator"
    if _OPERATOR.fullmatch(text):
        return "operator"
    if text in keywords:
        return "keyword"
    if _LITERAL.match(text):
        return "literal"
    return "name" if _NAME_PATTERN.fullmatch(text.replace("$", "_")) else "other"


MOST_DIFFERING = {"float32": 0.001, "bfloat16": 0.25, "float16": 0.1}
"""Largest share of edges whose hits may change when a model runs again: other batches round sums
differently."""


class ClassErrors(FieldsByName):
    """The errors of one of CLASSES. `share`: percent of the relation's errors."""

    errors: Count
    share: float


class RelationErrors(FieldsByName):
    """The errors of the best head of a relation, by class; classes that occur, in their order."""

    edges: Count
    hits: Number
    errors: Number
    layer: Number
    head: Number
    classes: dict[str, ClassErrors]


class ErrorAnalysis(Record):
    """The wrong first choices of one result, by rule and relation.

    `attended`: layer-head -> kind -> the number of reading tokens whose largest weight is on such a
    token, each once in a function.
    """

    signature: str
    settings: Settings
    rules: Annotated[dict[str, dict[str, RelationErrors]], exactly(RULES)]
    differing: Numbers
    """Rule -> edges that are hit now but not in the ledger, or the reverse."""
    attended: dict[str, Numbers]

    def classes(self, rule: str) -> dict[str, int]:
        """The number of errors of each class, over all relations."""
        entries = self.rules[rule].values()
        return {
            name: sum(e.classes[name].errors for e in entries if name in e.classes)
            for name in ERROR_CLASSES
        }

    def to_json(self) -> str:
        """The same analysis gives the same text."""
        return (
            json.dumps(with_checksum(self.model_dump(mode="json")), indent=1, allow_nan=False)
            + "\n"
        )


def errors_path(result: StrPath) -> Path:
    """The path of the error analysis of a result, beside its JSON."""
    path = Path(result)
    return path.with_name(path.name.removesuffix(".json") + ".errors.json")


def save(analysis: ErrorAnalysis, result: StrPath) -> Path:
    """Write the analysis beside its result; return its path."""
    return write(errors_path(result), analysis.to_json())


def load(path: StrPath) -> ErrorAnalysis:
    """Load the analysis that `save` wrote to `path`; raises LedgerError if there is none."""
    try:
        fields = without_checksum(json.loads(safe_files.read(path, LARGEST_RESULT)))
        return ErrorAnalysis.model_validate(fields)
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        reason = explain(error, "it") if isinstance(error, ValidationError) else error
        raise LedgerError(
            f"{path} is not an error analysis ({reason}): expected what `codesyntax errors` wrote; run it again"
        ) from error


@checked
def analyse(
    result: StrPath, *, model: Any = None, data: Any = None, device: Any = None
) -> ErrorAnalysis:
    """Run the model of a result file again, and classify the wrong predictions of each relation's
    best head.

    `model` and `data`: their locations, if not those in the result. Raises LedgerError if there is
    no result, if model or data are not those that it was made with, or if the choices do not match
    its ledger; and whatever `probe` raises.
    """
    from probing.instruments.attention.probe import Probing
    from probing.runs.data import find_data
    from probing.runs.session import Session

    probed = load_result(result)
    ledger = probed.ledger
    settings = probed.settings
    data = find_data(result, settings) if data is None else data
    best = [probed.best_heads(rule) for rule in RULES]
    # layer and head of each rule's and relation's best head at k = 1: (rules, relations, 2)
    picked = np.array([[heads[name] for name in ledger.relations] for heads in best])
    session = Session.again(result, settings, model, device)
    probing = Probing.again(ProbeProvenance.of(ledger), session, data)
    chosen, attended = _first_choices(settings, ledger, picked, probing)
    hit = _correct_choices(ledger, settings.direction, chosen)
    differing = _differing_hits(ledger, settings, picked, hit)
    counted = Counter(_wrong_choices(ledger, probing, chosen, hit))

    def of_relation(rule: str, relation: str) -> RelationErrors:
        column = ledger.relations.index(relation)
        hits = hit[RULES.index(rule), ledger.relation == column]
        layer, head = picked[RULES.index(rule), column].tolist()
        wrong = int((~hits).sum())
        classes = {}
        for kind in ERROR_CLASSES:
            if errors := counted[rule, relation, kind]:
                classes[kind] = ClassErrors(errors=errors, share=100 * errors / wrong)
        return RelationErrors(
            edges=len(hits),
            hits=int(hits.sum()),
            errors=wrong,
            layer=layer,
            head=head,
            classes=classes,
        )

    rules = {
        rule: {relation: of_relation(rule, relation) for relation in sorted(ledger.relations)}
        for rule in RULES
    }
    by_head = {
        f"{layer}-{head}": dict(zip(TOKEN_KINDS, attended[layer, head].tolist()))
        for layer, head in np.ndindex(attended.shape[:2])
    }
    return ErrorAnalysis(
        signature=probed.signature,
        settings=settings,
        rules=rules,
        differing=differing,
        attended=by_head,
    )


def _first_choices(
    settings: Settings, ledger: RankLedger, picked: np.ndarray, probing: Probing
) -> tuple[np.ndarray, np.ndarray]:
    """First choices of the heads in `picked` for the ledger's edges, int64 (rules, E); and how many
    reading tokens attend most to each kind of token, (layers, heads, kinds)."""
    from probing.instruments.attention.attended import choices_of_heads

    here = probing.settings
    other = None
    if not probing.session.is_of(settings.revision):
        other = "revision"
    elif settings.labels != here.labels:
        other = "labels"
    if other is not None:
        raise LedgerError(
            f"the result was made with {other} {getattr(settings, other)}, here it is {getattr(here, other)}: give the "
            "right one with --model or --data"
        )
    picked = picked[:, [ledger.relations.index(name) for name in probing.encoded.relations]]
    chosen, attended = choices_of_heads(probing, picked, _token_kinds(probing), len(TOKEN_KINDS))
    function = np.repeat(
        [f.index for f in probing.functions], [len(f.edges) for f in probing.functions]
    )
    if not np.array_equal(np.sort(function), ledger.function):
        raise LedgerError(
            f"the ledger has {len(ledger)} edges, but the data has {len(function)}, or edges of other functions: see "
            "`codesyntax verify`"
        )
    return chosen[:, np.argsort(function, kind="stable")], attended


def _token_kinds(probing: Probing) -> dict[int, np.ndarray]:
    """The place of a function -> the kind of each of its tokens, as an index into TOKEN_KINDS."""
    from probing.runs.data import words_of

    keywords = language_of(probing.data.config).keywords
    kinds = {}
    for row in probing.data.each_row():
        of_tokens = [_token_kind(word, keywords) for word in words_of(row)]
        kinds[row["index"]] = np.array([TOKEN_KINDS.index(kind) for kind in of_tokens], np.int64)
    return kinds


def _correct_choices(ledger: RankLedger, direction: str, chosen: np.ndarray) -> np.ndarray:
    """Which first choices are correct: bool (rules, E)."""
    if direction != HEAD_TO_DEPENDENT:
        return chosen == ledger.head
    by_first, by_any, by_last = chosen  # as RULES
    inside = (ledger.first <= by_any) & (by_any <= ledger.last)
    return np.stack([by_first == ledger.first, inside, by_last == ledger.last])


def _differing_hits(
    ledger: RankLedger, settings: Settings, picked: np.ndarray, hit: np.ndarray
) -> dict[str, int]:
    """Rule -> number of edges whose hits differ from the ledger's; raises LedgerError if rounding
    cannot explain it."""
    differing = {}
    ranks = ledger.of_heads(picked[..., 0], picked[..., 1])  # (rules, E)
    for number, rule in enumerate(RULES):
        differs = (ranks[number] == 0) != hit[number]
        differing[rule] = int(differs.sum())
        if differing[rule] > max(1, MOST_DIFFERING[settings.precision] * len(ledger)):
            raise LedgerError(
                f"this run and the ledger disagree on {differing[rule]} of {len(ledger)} edges "
                f"(rule {rule}): the result was not made with this model and data"
            )
    return differing


def _wrong_choices(
    ledger: RankLedger, probing: Probing, chosen: np.ndarray, hit: np.ndarray
) -> Iterator[tuple[str, str, str]]:
    """The rule, relation and class of every wrong first choice."""
    data = probing.data
    language = language_of(data.config)
    ends = np.searchsorted(ledger.function, np.arange(len(data.table) + 1))
    for row in data.each_row():
        edges = range(*ends[row["index"] : row["index"] + 2])
        if not edges:
            continue
        tokens = Tokens(row["code"], row["token_start"], row["token_end"], language)
        for edge in edges:
            span = head, first, last = [
                int(column[edge]) for column in (ledger.head, ledger.first, ledger.last)
            ]
            relation = ledger.relations[ledger.relation[edge]]
            for number in np.flatnonzero(~hit[:, edge]).tolist():
                rule = RULES[number]
                choice = int(chosen[number, edge])
                dependent = last if rule == "last" else first
                reader = head if probing.settings.direction == HEAD_TO_DEPENDENT else dependent
                yield rule, relation, tokens.classify(choice, reader, *span)
