"""CodeSearchNet on the Hub: `code-search-net/code_search_net` or a copy with the same columns, at
any revision.

Only the test and validation partitions are read, by streaming; `load_dataset` would also download
the training data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from huggingface_hub import constants

from codesyntax_dataset.errors import SourceError
from codesyntax_dataset.languages import Language, language_of
from codesyntax_dataset.network import UNREACHABLE, hub_answers
from codesyntax_dataset.schema import Skips, SourceFunction
from codesyntax_dataset.sources.codesearchnet import name_of
from codesyntax_dataset.sources.text import texts

FORM = "Hub dataset"
LABELS: str | None = None

COLUMNS = (
    "func_code_string",
    "repository_name",
    "func_path_in_repository",
    "func_name",
    "func_code_url",
)

PARQUET_EXPORT = "refs/convert/parquet"
"""The branch with the Hub's own Parquet copy of a dataset: one folder per config, and no card."""


def fits(source: str, language: Language) -> bool:
    return re.fullmatch(
        r"[\w.-]+/[\w.-]+(@[\w./-]+)?", source
    ) is not None and not source.startswith(".")


def read(source: str, config: str, skips: Skips) -> Iterator[SourceFunction]:
    """The functions of `config`'s language in the Hub dataset `owner/name` or
    `owner/name@revision`, test split first.

    Raises SourceError if the Hub does not answer, has no such dataset, revision or columns, or only
    a loading script.
    """
    from datasets import load_dataset

    language = name_of(config)
    repository, _, revision = source.partition("@")
    part = {"data_dir": language} if revision == PARQUET_EXPORT else {"name": language}
    check_reachable(source)
    try:
        splits = load_dataset(repository, revision=revision or None, streaming=True, **part)
        for partition in ("test", "validation"):
            for number, row in enumerate(splits[partition].select_columns(list(COLUMNS))):
                code, repo, path, func_name, url = texts(
                    row, COLUMNS, f"{source}, {language} {partition} row {number}"
                )
                yield SourceFunction(
                    language_of(config).name, code, repo, path, func_name, url, partition
                )
    except SourceError:
        raise
    except Exception as error:  # datasets and huggingface_hub raise errors of many types
        raise SourceError(
            f"cannot read {source}: {reason(error)}. {_hint(error, repository)}"
        ) from error


def check_reachable(source: str) -> None:
    """Raise SourceError if the Hub does not answer, and only its cache is not what is wanted."""
    if not constants.is_offline_mode() and not hub_answers():
        raise SourceError(f"cannot read {source}: {UNREACHABLE}; a downloaded copy works, too")


def reason(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}".rstrip(".")


def _hint(error: Exception, repository: str) -> str:
    if "scripts are no longer supported" in str(error):
        return f"Try a revision without a script: {repository}@refs/pr/15 or {repository}@{PARQUET_EXPORT}"
    if isinstance(error, ConnectionError):
        return "Is there a network, and is HF_HUB_OFFLINE unset? A downloaded copy of CodeSearchNet v2 works, too"
    return (
        "Expected a local file or folder of that name, or a dataset on the Hub with the configs and columns of "
        f"code-search-net/code_search_net: {', '.join(COLUMNS)}"
    )
