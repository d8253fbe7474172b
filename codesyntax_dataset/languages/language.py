"""The record that holds every fact about a language, be it one of programs or of people."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate
from typing import Any, NamedTuple

from codesyntax_dataset.languages.blocks import in_curly_brackets
from codesyntax_dataset.protocol import EDITS, HEAD_TO_DEPENDENT
from codesyntax_dataset.schema import Annotation, Token


class Relation(NamedTuple):
    """A syntactic relation: of code, named `Node:head->dependent` (Shen et al. 2022, Tables 1 and
    8), or of a treebank.

    Whether it counts in the mean over relations is part of the score, and defined in
    `codesyntax_metric/topk_uas.py`.
    """

    name: str
    category: str
    example: str  # "code: head => dependent", or only code


@dataclass(frozen=True)
class Variant:
    """One way to label the functions of a language.

    `meaning`: a clause for the dataset card, in which `{configs}` is replaced by the configs that
    have this variant. `never_predicted`: a token that models must not predict in this variant,
    because its labels exclude it (the semicolon ablation of Shen et al. 2022). `edit`: of EDITS,
    how the functions are edited before they are labelled. `exact`: its labels are what the grammar
    says, not the published ones. `pairs`: its rows are not functions with labels, but minimal pairs
    made of them (`codesyntax_dataset.pairs`). `relations`: its own, where they are others than
    those of the language.
    """

    name: str
    meaning: str
    never_predicted: str | None = None
    edit: str | None = None
    exact: bool = False
    pairs: bool = False
    relations: tuple[Relation, ...] | None = field(default=None, compare=False)


PAIRS = Variant("pairs", "those of `_pairs` are minimal pairs", pairs=True)


class Definition(NamedTuple):
    """One function in a source file: its qualified name, its lines (from 1, last one inclusive),
    and its code.

    `beyond_published`: the published procedure leaves such functions out, so only configs of exact
    labels have them.
    """

    name: str
    first_line: int
    last_line: int
    code: str
    beyond_published: bool = False


class Unread(NamedTuple):
    """A part of a source file that the grammar cannot read, and the line where it begins (from
    1).

    The reason is that it is a function (`UNREAD_FUNCTION`), or is not in any (`UNREAD_OUTSIDE`).
    """

    reason: str
    line: int


UNREAD_FUNCTION = "function does not parse"
UNREAD_OUTSIDE = "file has code outside of functions that does not parse"


class Dialect(NamedTuple):
    """A further grammar, for code that the language's own cannot read.

    `refused` and `frames` are as in `tables.Table`; without frames of its own it has those of the
    language.
    """

    grammar: str
    refused: str = ""
    frames: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True)
class Editing:
    """The needs of edits (`codesyntax_dataset.edits`) in a language; types of nodes are those of
    its grammar.

    `identifier` matches the tokens that are names, but for keywords; its group, if it has one, is
    the name without the signs of its kind, such as `$`. `capitals`: whether names that begin with a
    capital letter are of a kind of their own. `contextual`: words that mean something in some
    places only, and are not good names. `string` matches a token that is a string, its `text`
    without code inside. `filled_by`: tokens behind a string whose fields are filled by name;
    `field` matches these, with the name as its group. `comment`: what begins a comment that ends
    with the line. `verbatim`: the nodes in which everything is text. `continued`: matches where a
    line begins before which no line can be put in. `expressions`: the nodes that may have redundant
    brackets, and `bracketed`: where, as `parent.field`, with `*` for children without a field.
    `bare`: nodes, as `type.field` if they have the field, or a child of this type, that cannot
    begin with brackets. `cast` matches an expression that is read as a cast of what follows if it
    stands in brackets. `arguments`: the nodes around the arguments of a call, and `keywords`: the
    arguments that labels hang on the end of those before. `blocks`: those whose children are
    statements, `no_op`: what behind a statement is one more that does nothing, and `alone`: the
    children of blocks behind which it cannot stand.
    """

    string: re.Pattern[str]
    comment: str
    expressions: frozenset[str]
    bracketed: frozenset[str]
    arguments: frozenset[str]
    blocks: frozenset[str]
    no_op: str
    alone: frozenset[str] = frozenset()
    contextual: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()
    cast: re.Pattern[str] | None = None
    filled_by: tuple[tuple[str, ...], ...] = ()
    field: re.Pattern[str] = re.compile(
        r"(?<!\{)\{([^\W\d]\w*)(?=[}!:.\[])|%\(([^\W\d]\w*)\)|([^\W\d]\w*)(?=\$)"
    )
    keywords: frozenset[str] = frozenset()
    verbatim: frozenset[str] = frozenset()
    continued: re.Pattern[str] | None = None
    capitals: bool = False
    identifier: re.Pattern[str] = re.compile(r"[^\W\d]\w*")


def with_line_breaks(text: str) -> str:
    """The text with a line feed for each carriage return alone, which ended lines once; its length
    is the same."""
    return re.sub(r"\r(?!\n)", "\n", text) if "\r" in text else text


def _decode(data: bytes) -> str:
    return data.decode("utf-8-sig")


@dataclass(frozen=True)
class Language:
    """A language: how its files are read, its functions annotated, and its results analysed.

    `title`: its name in texts. `variants`: the config of the first is named like the language, that
    of any other variant `v` is `{name}_{v}`, and that of an edit `e` of the first is `{name}_{e}`.
    `unit`: what a row of its datasets is, in words. `tag`: its code on the Hub (ISO 639); None if
    the name of each treebank begins with one. `direction`: in which its configs are probed by
    default. `offsets`: what the offset baseline may predict, in tokens from head to dependent.
    `relations`: those with a name of their own; `further_relations` matches the names of others,
    which only treebanks have.

    Labels come with a treebank, and then the rest has its default, or they follow from the code by
    rules: `annotate(code, variant)`: the labels of one function; `tokenize(code, variant)`: only
    its tokens, also of code that does not parse. Both raise ParseError on failure; `unparsed` is
    its meaning for published labels, for the dataset card. `decode(data)`: the text of a source file by its encoding;
    `definitions(text)`: the functions in it, in order, and what cannot be read. Both raise
    SyntaxError or ValueError on failure. `suffixes`: the file name extensions; `kindred`: those of
    files that may have its code, too, and are not looked at, as those without any that `program`
    runs. `keywords`: the
    predictors of the keyword baseline; of equally good ones the first is preferred. `blocks(code,
    tokens)`: for each token, the first and last token of the block around it. `between_tokens`:
    matches everything that may separate two tokens. `codesearchnet`: the language's name in
    CodeSearchNet (Husain et al. 2019), or None. `first_validation_id`: the first id of the
    validation partition of the published labels; None without such labels. `grammar`: the package
    of its tree-sitter grammar, or None; `dialects`: further grammars for code that this one cannot
    read, tried in turn; `frames`: texts before and after a function, tried in turn, with which a
    grammar reads it as a whole program. `node_types`: the types of nodes that are masked by
    default. `same_syntax`: node types, each with patterns of the names of relations that are of the
    same syntax, such as `If:*`; none for a relation whose syntax has several types. `editing`:
    without it, functions are not edited.
    """

    name: str
    title: str
    variants: tuple[Variant, ...]
    relations: tuple[Relation, ...]
    unit: str = "function"
    tag: str | None = "code"
    direction: str = HEAD_TO_DEPENDENT
    offsets: range = range(1, 513)
    further_relations: re.Pattern[str] | None = None
    suffixes: tuple[str, ...] = ()
    kindred: tuple[str, ...] = ()
    program: str = ""
    keywords: tuple[str, ...] = ()
    unparsed: str = ""
    annotate: Callable[[str, str], Annotation] | None = None
    tokenize: Callable[[str, str], list[Token]] | None = None
    definitions: Callable[[str], Iterable[Definition | Unread]] | None = None
    decode: Callable[[bytes], str] = _decode
    blocks: Callable[[str, Sequence[Token]], list[tuple[int, int]]] = in_curly_brackets
    between_tokens: re.Pattern[str] = re.compile(r"\s*")
    codesearchnet: str | None = None
    first_validation_id: int | None = None
    grammar: str | None = None
    dialects: tuple[Dialect, ...] = ()
    frames: tuple[tuple[str, str], ...] = (("", ""),)
    node_types: tuple[str, ...] = ()
    same_syntax: tuple[tuple[str, str], ...] = ()
    editing: Editing | None = None

    def text_of(self, data: bytes) -> str:
        """The text of a source file, whatever its encoding and line ends; raises SyntaxError or
        ValueError."""
        return with_line_breaks(self.decode(data))

    @property
    def units(self) -> str:
        return f"{self.unit}s"

    @property
    def of_treebanks(self) -> bool:
        """True if labels come with a treebank, not from rules."""
        return self.annotate is None

    @property
    def variant_names(self) -> list[str]:
        return [variant.name for variant in self.variants]

    @property
    def relation_names(self) -> list[str]:
        return [relation.name for relation in self.relations]

    def relations_of(self, variant: Variant) -> tuple[Relation, ...]:
        return self.relations if variant.relations is None else variant.relations

    def has_relation(self, name: str, variant: Variant | None = None) -> bool:
        """True if the variant, by default any, has the relation."""
        chosen = self.variants if variant is None else [variant]
        further = self.further_relations
        return any(
            relation.name == name for variant in chosen for relation in self.relations_of(variant)
        ) or (further is not None and further.fullmatch(name) is not None)

    @property
    def syntax(self) -> dict[str, list[str]]:
        """Node type -> the relations of the same syntax, where there are any."""
        return {
            node_type: self._relations_like(patterns.split())
            for node_type, patterns in self.same_syntax
        }

    def _relations_like(self, patterns: Sequence[str]) -> list[str]:
        expression = re.compile("|".join(map(translate, patterns)))
        return [name for name in self.relation_names if expression.match(name)]

    @property
    def configs(self) -> dict[str, Variant]:
        """Dataset config name -> its variant; the first one also edited in every way, and minimal
        pairs."""
        first, *others = self.variants
        edited = [replace(first, edit=edit) for edit in EDITS] if self.editing else []
        pairs = [PAIRS] if self.editing else []
        names = {variant.edit or variant.name: variant for variant in [*others, *edited, *pairs]}
        return {
            self.name: first,
            **{f"{self.name}_{name.replace('-', '_')}": variant for name, variant in names.items()},
        }


def deferred(path: str) -> Callable[..., Any]:
    """The function at `path` (`package.module.function`), imported on its first call because
    parsers load slowly."""
    module, _, name = path.rpartition(".")

    @functools.cache
    def function() -> Callable[..., Any]:
        return getattr(importlib.import_module(module), name)

    def call(*arguments: Any) -> Any:
        return function()(*arguments)

    return call
