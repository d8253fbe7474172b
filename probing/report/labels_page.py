"""The edges of one function as a self-contained web page, without a model: two label variants side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from codesyntax_dataset import annotate
from codesyntax_dataset.arguments import checked
from codesyntax_dataset.compare import CHANGES, changes, two_of_one_language
from codesyntax_dataset.errors import ArgumentError
from codesyntax_dataset.languages import language_of, variant_of
from codesyntax_dataset.languages.tables.constructs import CHILDREN
from codesyntax_dataset.schema import Annotation, Token
from probing.report.pages import Page, environment, fill
from probing.report.shown import Shown, lines_of, relations_of, shown


@checked
def show_labels(
    code: str | os.PathLike | None = None,
    *,
    id: int | None = None,
    data: Any = "codesyntax",
    configs: Sequence[str] = ("python",),
    split: str = "test",
    relation: str | None = None,
) -> Page:
    """A page with the edges of a function, drawn from head to dependent: its labels in one config, or in two.

    With two configs of a language, their edges stand side by side; each is marked as kept, moved, new or gone, with the
    rule that explains it (`codesyntax_dataset.compare`). The function is either `code` (text or the path of a file), or
    the one with this `id` in a split of `data`, with its labels there in the first config. `relation`: the one to open
    with, by default the first in alphabetical order of those that differ, or of all.

    Raises what `show` raises for functions, configs and relations; and ArgumentError for two configs of which one is of
    another language, of a treebank, or of edited functions.
    """
    if not 1 <= len(names := list(dict.fromkeys(configs))) <= 2:
        raise ArgumentError(f"configs are {', '.join(names) or 'none'}, expected one, or two of one language")
    if len(names) == 2:
        two_of_one_language(names)
    function = shown(code, id, data, names[0], split)
    texts = [function.code[start:end] for start, end in zip(function.start.tolist(), function.end.tolist())]
    tokens = [Token(*token) for token in zip(texts, function.start.tolist(), function.end.tolist())]
    labels = [Annotation(tokens, function.edges)]
    labels += [annotate(function.code, language_of(name).name, variant_of(name).name) for name in names[1:]]
    relations = relations_of(function.name, [edge for one in labels for edge in one.edges], relation)
    edges = _edges(function.code, labels, language_of(names[0]).name)
    differs = {edge["relation"] for edge in edges if edge["kind"] != CHANGES[0]}
    by_interest = sorted(relations, key=lambda name: (name not in differs, name == CHILDREN))
    page = {
        "configs": [_config(function, name, one) for name, one in zip(names, labels)],
        "relations": relations,
        "edges": edges,
        "opened": relation or by_interest[0],
    }
    return Page(
        "Labels",
        fill(
            environment().get_template("labels.html.jinja"),
            function=function.name,
            configs=names,
            unit=language_of(names[0]).unit,
            kinds=_KINDS,
            page=page,
        ),
    )


_KINDS = dict(zip(CHANGES, "=~+−"))
"""The sign of each change, which can be told without colours."""


def _config(function: Shown, name: str, labels: Annotation) -> dict[str, object]:
    """The code and the edges of a config, each edge as its head and the first and the last token of its dependent."""
    lines = lines_of(function.code, [token.start for token in labels.tokens], [token.end for token in labels.tokens])
    return {"name": name, "lines": lines, "edges": [edge[1:] for edge in labels.edges]}


def _edges(code: str, labels: Sequence[Annotation], language: str) -> list[dict[str, object]]:
    """The edges of all configs: their relation, what became of them and why, and their index in each config."""
    if len(labels) == 1:
        return [
            {"relation": edge.relation, "kind": CHANGES[0], "rule": "", "at": [index]}
            for index, edge in enumerate(labels[0].edges)
        ]
    first, second = labels
    return [
        {"relation": change.place.relation, "kind": change.kind, "rule": change.rule, "at": change.edges}
        for change in sorted(changes(code, first, second, language), key=lambda change: change.place[1:])
    ]
