"""CodeSyntax as a `datasets` builder: one config per language and variant, splits `validation` and `test`.

    builder = CodeSyntax(config_name="python", source="path/to/CodeSearchNet")
    builder.download_and_prepare(num_proc=2)
    test = builder.as_dataset(split="test")

`codesyntax_dataset.build` makes a folder of Parquet and a card from it, which `load_dataset` reads without us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import datasets

from codesyntax_dataset import corpus
from codesyntax_dataset.languages import CONFIGS, LANGUAGES
from codesyntax_dataset.protocol import SPLITS
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
"""The columns of the dataset; `codesyntax_dataset.schema` says what tokens and relations (edges) are."""


def column_meanings() -> dict[str, str]:
    """What each column means, as card and metadata tell it."""
    return {
        "id": "number of the function in its language: from 0 through `test`, then on through `validation`",
        "code": "the function, as its source has it",
        "tokens": "its code tokens",
        "token_start": "where each token begins in `code`: a character, from 0",
        "token_end": "where each token ends in `code`: the character behind its last",
        "relations": "the edges: token indices from 0, the dependent is `first` to `last`, both included",
        "repo": "the repository that the function is from",
        "path": "its file there",
        "func_name": "its name",
        "url": "its place on the web, or in the source",
        "language": " or ".join(f"`{name}`" for name in LANGUAGES),
    }


SHARD = 64
"""Functions in the smallest piece that one process annotates."""


@dataclass
class CodeSyntaxConfig(datasets.BuilderConfig):
    """`name` is a name in `CONFIGS`; the others are as in `codesyntax_dataset.build.build`."""

    source: str = "code-search-net/code_search_net"
    exclude_repositories: str | None = None
    validation_fraction: float | None = None


class _Found:
    """An attribute of a class that is made anew whenever it is read: languages may be registered later."""

    def __init__(self, make: Callable[[], Any]):
        self._make = make

    def __get__(self, instance: object, owner: type) -> Any:
        return self._make()


class CodeSyntax(datasets.GeneratorBasedBuilder):
    """Annotates the functions of a source (see `codesyntax_dataset.sources`); `skips` then says what was left out."""

    BUILDER_CONFIG_CLASS = CodeSyntaxConfig
    BUILDER_CONFIGS = _Found(lambda: [CodeSyntaxConfig(name=name, version=f"{LABELS}.0") for name in CONFIGS])
    builder_configs = _Found(lambda: {config.name: config for config in CodeSyntax.BUILDER_CONFIGS})
    DEFAULT_CONFIG_NAME = next(iter(CONFIGS))

    skips: Skips

    def __init__(self, cache_dir: str | None = None, dataset_name: str = "codesyntax", **options):
        super().__init__(cache_dir, dataset_name, **options)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=FEATURES)

    def download_and_prepare(self, *args, download_mode: str = "force_redownload", **options) -> None:
        # A cached result could be of an older source or of older rules, and nothing in its name would tell.
        self.info.splits = None
        super().download_and_prepare(*args, download_mode=download_mode, **options)

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        excluded = self.config.exclude_repositories
        names = corpus.read_repositories(excluded) if excluded else ()
        config = self.config
        functions, self.skips = corpus.read(config.source, config.name, names, config.validation_fraction)
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"shards": _shards(functions[split])})
            for split in SPLITS
            if functions[split]
        ]

    def _generate_examples(self, shards: list[list[SourceFunction]]) -> Iterator[tuple[int, dict[str, Any]]]:
        _, variant = CONFIGS[self.config.name]
        for shard in shards:
            for function in shard:
                annotation, _ = corpus.label(function, variant)
                yield function.id, corpus.to_row(function, annotation)


def _shards(functions: list[SourceFunction]) -> list[list[SourceFunction]]:
    return [functions[start : start + SHARD] for start in range(0, len(functions), SHARD)]
