"""CodeSyntax as a `datasets` builder: one config per language and variant, with splits `validation`
and `test`.

    builder = CodeSyntax(config_name="python", source="path/to/CodeSearchNet")
    builder.download_and_prepare()
    test = builder.as_dataset(split="test")

`codesyntax_dataset.build` writes the same rows as Parquet files with a card, which `load_dataset`
reads without this package, and can label in several processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import datasets

from codesyntax_dataset import corpus, shards
from codesyntax_dataset.features import features_of
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.schema import LABELS, Skips, SourceFunction


@dataclass
class CodeSyntaxConfig(datasets.BuilderConfig):
    """`name` is a name in `CONFIGS`; the other fields are as in
    `codesyntax_dataset.build.build`."""

    source: str = "code-search-net/code_search_net"
    exclude_repositories: str | None = None
    validation_fraction: float | None = None
    column: str | None = None


class _Computed:
    """A class attribute that is computed on each access, because languages may be registered
    later."""

    def __init__(self, make: Callable[[], Any]):
        self._make = make

    def __get__(self, instance: object, owner: type) -> Any:
        return self._make()


class CodeSyntax(datasets.GeneratorBasedBuilder):
    """Annotates the functions of a source (see `codesyntax_dataset.sources`), which it reads once
    for each split."""

    BUILDER_CONFIG_CLASS = CodeSyntaxConfig
    BUILDER_CONFIGS = _Computed(
        lambda: [CodeSyntaxConfig(name=name, version=f"{LABELS}.0") for name in CONFIGS]
    )
    builder_configs = _Computed(
        lambda: {config.name: config for config in CodeSyntax.BUILDER_CONFIGS}
    )
    DEFAULT_CONFIG_NAME = next(iter(CONFIGS))

    def __init__(
        self, cache_dir: str | None = None, dataset_name: str = "codesyntax", **options: Any
    ):
        super().__init__(cache_dir, dataset_name, **options)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=features_of(self.config.name))

    def download_and_prepare(
        self, *args: Any, download_mode: str = "force_redownload", **options: Any
    ) -> None:
        # A cached result could come from an older source or older rules, and its name would not
        # show it.
        self.info.splits = None
        super().download_and_prepare(*args, download_mode=download_mode, **options)

    def _split_generators(
        self, dl_manager: datasets.DownloadManager
    ) -> list[datasets.SplitGenerator]:
        splits = dict.fromkeys(function.partition for function in self._functions())
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"split": split}) for split in splits
        ]

    def _generate_examples(self, split: str) -> Iterator[tuple[int | str, dict[str, Any]]]:
        functions = (function for function in self._functions() if function.partition == split)
        with shards.engine("local", 1) as label:
            for labelled in label(functions, self.config.name):
                for row in labelled.rows.to_pylist():
                    yield row["id"], row

    def _functions(self) -> Iterator[SourceFunction]:
        config = self.config
        excluded = (
            corpus.read_repositories(config.exclude_repositories)
            if config.exclude_repositories
            else ()
        )
        return corpus.read(
            config.source, config.name, Skips(), excluded, config.validation_fraction, config.column
        )
