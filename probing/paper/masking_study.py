"""SyntaxEval made again (Velasco et al., ICSE-NIER 2024): its functions as it read them, its masks, its estimator."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset import atomic, corpus, syntaxeval
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import ArgumentError, CodeSyntaxError, UnknownName
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources.codesearchnet import FIELDS
from codesyntax_metric.ast_similarity.similarity import parse
from probing.evidence.effect import PairedEffect, UnpairedEffect, paired, published, unpaired
from probing.paper.inputs import Inputs
from probing.prediction.masking import PUBLISHED, walk
from probing.prediction.result import SIMILARITIES, MaskResult
from probing.runs.data import read_functions

CONFIG = syntaxeval.CONFIG

FUNCTIONS = 7501
"""Those that the study analysed: the first of its data."""

LENGTH = 509
"""The most sub-tokens of a function, special tokens included: fewer than the 510 of the study's models."""

SETTINGS: dict[str, Any] = {"config": CONFIG, "split": "test", "protocol": PUBLISHED, "max_length": LENGTH}
"""Of the masking runs; the others are the defaults of `mask`."""

COPIES = 118, 52
"""Masked copies of a function and bytes of a row: 22,785 and 1,190,277 of 193 functions."""

SOURCE, MEMBER = "source", "python/final/jsonl/test/python_test_0.jsonl.gz"
"""The folder of the functions as the study read them, and the file in it."""

_TRIPLE_QUOTED = re.compile(r'"""(?:.|\n)*?"""|' + r"'''(?:.|\n)*?'''")


COMMON_CAUSES = ("ast_levels", "words", "complexity", "nloc", "token_counts", "n_ast_nodes")
"""The confounders in the model of the study."""


class Confounders(NamedTuple):
    """Sizes of one function: possible causes of both its masking and its loss.

    They are named by what they are. The published `n_whitespaces_` is the number of words, and the published model left
    out `n_ast_errors`. The procedure of the study is that of today with an older parser and lizard: with
    tree-sitter-python 0.20 strings had no parts, so that functions had fewer nodes, and lizard 1.17 counted some
    f-strings as one token less.

    Of the tree: `n_ast_errors`, the nodes of type ERROR; `ast_levels`, the nodes on the longest path from the root, 0
    where the root is alone; `n_ast_nodes`, all nodes but the root. Of the text: `words`, separated by white space. By
    lizard: `complexity`, McCabe's cyclomatic complexity; `nloc`, lines that are neither empty nor comments;
    `token_counts`, its tokens from its name on; these three are None where lizard finds no function.
    """

    n_ast_errors: int
    ast_levels: int
    n_ast_nodes: int
    complexity: int | None
    nloc: int | None
    token_counts: int | None
    words: int


def confounders(code: str, language: str = "python") -> Confounders:
    """The confounders of one function; of several, or of functions in functions, lizard's are those of the last to end.

    Raises UnknownName for an unknown language, ArgumentError for one that lizard does not read, and CodeSyntaxError for
    code without a UTF-8 form, or without an installed grammar.
    """
    try:
        lizard, readers = import_module("lizard"), import_module("lizard_languages")
    except ImportError as error:  # no dependency of this package: nothing else needs it
        raise CodeSyntaxError(
            "complexity is lizard's, which is not installed: pip install codesyntax[confounders]"
        ) from error
    if language not in LANGUAGES:
        raise UnknownName("language", language, LANGUAGES)
    file = f"function{''.join(LANGUAGES[language].suffixes[:1])}"
    if readers.get_reader_for(file) is None:
        raise ArgumentError(f"lizard does not read {language}, so that its functions have no complexity")
    nodes = list(walk(parse(code, language)))
    deepest = max(depth for _, depth in nodes)
    functions = lizard.analyze_file.analyze_source_code(file, code).function_list
    last = functions[-1] if functions else None
    return Confounders(
        n_ast_errors=sum(node.type == "ERROR" for node, _ in nodes),
        ast_levels=deepest + (deepest > 0),
        n_ast_nodes=len(nodes) - 1,
        complexity=last and last.cyclomatic_complexity,
        nloc=last and last.nloc,
        token_counts=last and last.token_count,
        words=len(code.split()),
    )


class Cell(NamedTuple):
    """One node type by one similarity. `arms`: T1 and T0 of its functions (2, F), in the order of the data.

    `study`: the effect by the study's own estimator; `ours`: the paired one; `unpaired`: estimates that
    adjust for confounders, None where there are too few functions for these.
    """

    arms: np.ndarray
    study: float | None
    ours: PairedEffect
    unpaired: UnpairedEffect | None

    @property
    def functions(self) -> int:
        return self.arms.shape[1]


class StudyFunctions(NamedTuple):
    """The functions of the study. `sizes`: of those in the source, in order; `places`: which of them each function of
    the split has, (F,): those that parse without their triple-quoted texts."""

    sizes: list[Confounders]
    places: np.ndarray


@dataclass(frozen=True)
class Study:
    """Everything that was made: `results`: name of a model -> its masking result."""

    inputs: Inputs
    prepared: StudyFunctions
    results: dict[str, MaskResult]

    @cached_property
    def cells(self) -> dict[str, dict[str, dict[str, Cell]]]:
        """Name -> similarity -> node type -> cell."""
        sizes = [self.prepared.sizes[place] for place in self.prepared.places]
        return {
            name: {similarity: _cells(result, similarity, sizes) for similarity in SIMILARITIES}
            for name, result in self.results.items()
        }

    @property
    def names(self) -> list[str]:
        """The study's models, then ours that it does not have."""
        return [*syntaxeval.MODELS, *(name for name in self.results if published_name(name) is None)]

    def given(self, name: str) -> str | None:
        """The name in results of one of `names`; None if it was not given."""
        return next((model for model in self.results if name in (model, published_name(model))), None)

    def standing(self, name: str) -> str:
        """Why a model's numbers do not compare with the study's: at least its parser, which is of 2022."""
        if name not in syntaxeval.MODELS:
            return "not in the study"
        if self.given(name) is None:
            return "empty: no such model"
        other = [] if len(self.prepared.sizes) == FUNCTIONS else ["other data"]
        return f"no: {', '.join(['other parser', *other])}"


def published_name(model: str) -> str | None:
    """The study's name of a model, told by the last part of its Hub id or folder; None for other models.

    >>> published_name("models/codebert-base-mlm"), published_name("gpt2")
    ('microsoft/codebert-base-mlm', None)
    """
    last = model.rstrip("/").rpartition("/")[2].lower()
    return next((name for name in syntaxeval.MODELS if name.rpartition("/")[2].lower() == last), None)


def text(code: str) -> str:
    """A function as the study read it: its first line not indented, and no triple-quoted text.

    >>> text("  def f():\\n    '''Doc.'''\\n    return 1")
    'def f():\\n    \\n    return 1'
    """
    first, newline, rest = code.partition("\n")
    return _TRIPLE_QUOTED.sub("", first.lstrip() + newline + rest)


def prepare(
    asked: Inputs, output: Path, data: Path, exclude_repositories: str | os.PathLike[str] | None = None
) -> StudyFunctions:
    """Write the functions as the study read them into `output`, and build their dataset in the folder `data`.

    Raises CodeSyntaxError if lizard is not installed.
    """
    excluded = frozenset() if exclude_repositories is None else corpus.read_repositories(exclude_repositories)
    sizes = _write(asked, output / SOURCE / MEMBER, excluded)
    build(str(output / SOURCE), [CONFIG], data, overwrite=True)
    return StudyFunctions(sizes, np.array(read_functions(data, CONFIG, "test").dataset["id"]))


def _write(asked: Inputs, file: Path, excluded: frozenset[str]) -> list[Confounders]:
    """Write the first functions of the split test as CodeSearchNet has them; return their confounders, in order.

    The study measured trees before, and words after it removed triple-quoted text.
    """
    rows: list[str] = []
    sizes: list[Confounders] = []
    for function in corpus.read(asked.sources[CONFIG], CONFIG, Skips(), excluded):
        if function.partition != "test" or len(rows) == asked.limit:
            break  # test comes first
        code = text(function.code)
        fields = (code, function.repo, function.path, function.func_name, function.url, CONFIG, "test")
        rows.append(json.dumps(dict(zip(FIELDS, fields)), ensure_ascii=False))
        sizes.append(confounders(function.code)._replace(words=len(code.split())))
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream:  # the same bytes at any time
        stream.write("".join(f"{row}\n" for row in rows).encode())
    atomic.write(file, packed.getvalue())
    return sizes


def _cells(result: MaskResult, similarity: str, sizes: list[Confounders]) -> dict[str, Cell]:
    """Node type -> its cell; types whose trees could never be compared have none."""
    arms = {name: one for name, one in result.arms(similarity).items() if len(one.functions)}
    ours = paired({name: one.t1 for name, one in arms.items()}, {name: one.t0 for name, one in arms.items()})
    cells = {}
    for name, one in arms.items():
        study = published(one.t1, one.t0) if len(one.functions) > 1 else None
        adjusted = _adjusted(one.t1, one.t0, [sizes[place] for place in one.functions])
        cells[name] = Cell(np.stack([one.t1, one.t0]), study, ours[name], adjusted)
    return cells


def _adjusted(t1: np.ndarray, t0: np.ndarray, sizes: list[Confounders]) -> UnpairedEffect | None:
    """The study's design: every function is a treated row, and again a control row with the same confounders."""
    known = np.array([None not in size for size in sizes])
    rows = {
        name: np.tile([getattr(size, name) for size, is_known in zip(sizes, known) if is_known], 2)
        for name in COMMON_CAUSES
    }
    treated = np.repeat([1, 0], known.sum())
    try:
        return unpaired(
            np.concatenate([t1[known], t0[known]]), treated, rows, placebos=2
        )  # the fewest: the page has none
    except ArgumentError:  # too few functions for six confounders
        return None
