"""CodeSyntax as a `datasets` builder: one config per language and variant, with splits `validation` and `test`.

    builder = CodeSyntax(config_name="python", source="path/to/CodeSearchNet")
    builder.download_and_prepare()
    test = builder.as_dataset(split="test")

`codesyntax_dataset.build` writes the same rows as Parquet files with a card, which `load_dataset` reads without this
package, and can label in several processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import datasets

from codesyntax_dataset import corpus
from codesyntax_dataset.languages import CONFIGS, variant_of
from codesyntax_dataset.schema import LABELS, Skips, SourceFunction

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
}
"""The meaning of each column, as in the card and the metadata."""


@dataclass
class CodeSyntaxConfig(datasets.BuilderConfig):
    """`name` is a name in `CONFIGS`; the other fields are as in `codesyntax_dataset.build.build`."""

    source: str = "code-search-net/code_search_net"
    exclude_repositories: str | None = None
    validation_fraction: float | None = None
    column: str | None = None


class _Computed:
    """A class attribute that is computed on each access, because languages may be registered later."""

    def __init__(self, make: Callable[[], Any]):
        self._make = make

    def __get__(self, instance: object, owner: type) -> Any:
        return self._make()


class CodeSyntax(datasets.GeneratorBasedBuilder):
    """Annotates the functions of a source (see `codesyntax_dataset.sources`), which it reads once for each split."""

    BUILDER_CONFIG_CLASS = CodeSyntaxConfig
    BUILDER_CONFIGS = _Computed(lambda: [CodeSyntaxConfig(name=name, version=f"{LABELS}.0") for name in CONFIGS])
    builder_configs = _Computed(lambda: {config.name: config for config in CodeSyntax.BUILDER_CONFIGS})
    DEFAULT_CONFIG_NAME = next(iter(CONFIGS))

    def __init__(self, cache_dir: str | None = None, dataset_name: str = "codesyntax", **options: Any):
        super().__init__(cache_dir, dataset_name, **options)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=FEATURES)

    def download_and_prepare(self, *args: Any, download_mode: str = "force_redownload", **options: Any) -> None:
        # A cached result could come from an older source or older rules, and its name would not show it.
        self.info.splits = None
        super().download_and_prepare(*args, download_mode=download_mode, **options)

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        splits = dict.fromkeys(function.partition for function in self._functions())
        return [datasets.SplitGenerator(name=split, gen_kwargs={"split": split}) for split in splits]

    def _generate_examples(self, split: str) -> Iterator[tuple[int, dict[str, Any]]]:
        variant = variant_of(self.config.name)
        for function in self._functions():
            if function.partition == split:
                labelled, annotation, _ = corpus.label(function, variant)
                assert function.id is not None  # `corpus.read` gives one to each
                yield function.id, corpus.to_row(labelled, annotation)

    def _functions(self) -> Iterator[SourceFunction]:
        config = self.config
        excluded = corpus.read_repositories(config.exclude_repositories) if config.exclude_repositories else ()
        return corpus.read(config.source, config.name, Skips(), excluded, config.validation_fraction, config.column)
