"""The columns of the dataset: of functions with their labels, and of minimal pairs."""

from __future__ import annotations

import datasets

from codesyntax_dataset import twins
from codesyntax_dataset.languages import variant_of

FEATURES = datasets.Features(
    {
        "id": datasets.Value("int64"),
        "code": datasets.Value("string"),
        "tokens": datasets.List(datasets.Value("string")),
        "token_start": datasets.List(datasets.Value("int32")),
        "token_end": datasets.List(datasets.Value("int32")),
        "relations": datasets.List(
            {
                "relation": datasets.Value("string"),
                "head": datasets.Value("int32"),
                "first": datasets.Value("int32"),
                "last": datasets.Value("int32"),
            }
        ),
        "repo": datasets.Value("string"),
        "path": datasets.Value("string"),
        "func_name": datasets.Value("string"),
        "url": datasets.Value("string"),
        "language": datasets.Value("string"),
        twins.COLUMN: datasets.Value("int64"),
    }
)
"""The columns of the dataset; `codesyntax_dataset.schema` defines tokens and relations (edges)."""

COLUMNS = {
    "id": "number of the row within its language: from 0 through `test`, continued through `validation`",
    "code": "source code of the function, unchanged unless the config is of an edit, or the sentence",
    "tokens": "text of each code token or word",
    "token_start": "character offset of the start of each token in `code`, from 0",
    "token_end": "character offset of the end of each token in `code`, exclusive",
    "relations": "the edges: token indices from 0; the dependent is `first` to `last`, inclusive",
    "repo": "repository of the function, or treebank of the sentence",
    "path": "path of its file in the repository",
    "func_name": "name of the function or sentence",
    "url": "location on the web, or within the source",
    "language": "name of its language, such as `python`",
    twins.COLUMN: "id of the first row of the split that it nearly copies, or a copy of it; else its own",
}
"""The meaning of each column, as in the card and the metadata."""

PAIR_FEATURES = datasets.Features(
    {
        "id": datasets.Value("string"),
        "good": datasets.Value("string"),
        "bad": datasets.Value("string"),
        "phenomenon": datasets.Value("string"),
        "relation": datasets.Value("string"),
        "start": datasets.Value("int32"),
        "end": datasets.Value("int32"),
        "distance": datasets.Value("int32"),
        "depth": datasets.Value("int32"),
        "prefix": datasets.Value("bool"),
        "certified": datasets.Value("string"),
        "refused_by": datasets.Value("string"),
        "repo": datasets.Value("string"),
        "path": datasets.Value("string"),
    }
)
"""The columns of minimal pairs, of the configs `LANGUAGE_pairs`; `codesyntax_dataset.pairs` makes
them."""

PAIR_COLUMNS = {
    "id": "id of the function, and a number within it",
    "good": "the valid text: source code of the function, unchanged",
    "bad": "the invalid text: the same but for `bad[start : end + len(bad) - len(good)]`",
    "phenomenon": "what makes `bad` invalid; the reverse change belongs to the same phenomenon",
    "relation": "the relation of the same syntax as the licensor, such as `While:while->body`; may be empty",
    "start": "character offset in `good` of the start of the changed place, from 0",
    "end": "character offset in `good` of its end, exclusive",
    "distance": "tokens of the grammar from the licensor, such as `while`, to the critical token, such as `break`",
    "depth": "levels by which the deepest token between them lies below the first in the tree",
    "prefix": "whether the beginning of `bad` already has no valid continuation; where false, nobody has proved it",
    "certified": "what says that only `good` is valid: `tree-sitter`, or `rule` on its tree, and a native parser",
    "refused_by": "`parser`, or `compiler`: `bad` has a syntax tree, which only a later check of the compiler refuses",
    "repo": "repository of the function",
    "path": "path of its file in the repository",
}
"""The meaning of each column of minimal pairs."""


def features_of(config: str) -> datasets.Features:
    """The columns of a config; raises UnknownName for an unknown one."""
    return PAIR_FEATURES if variant_of(config).pairs else FEATURES
