"""The inputs of a reproduction: the source and the models of each language."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import NamedTuple

from codesyntax_dataset import corpus
from codesyntax_dataset.errors import CodeSyntaxError, SourceError
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import shown
from probing.models.load import described
from probing.models.location import loading

CONFIGS = {
    "python": ("python", "python_with_new_lines"),
    "java": ("java", "java_with_new_lines", "java_skip_semicolon"),
    "english": ("english",),
    "german": ("german",),
}
"""The languages of the paper, and the configs that its tables and figures need: the first, and the
ablations."""

CODE, NATURAL = ("python", "java"), ("english", "german")


class Model(NamedTuple):
    """A model as it was given, and its name in results; `reads`: the only language that its
    tokenizer reads, if it is for one, as CuBERT's are."""

    location: str
    name: str
    reads: str | None


@dataclass(frozen=True)
class Inputs:
    """`sources`: language -> where its functions or sentences come from; `models`: language -> the
    models probed on it; `functions`: config -> how many functions or sentences of its test
    partition are read; `missing`: config -> why it has nothing; `limit`: the most functions of a
    config."""

    sources: dict[str, str]
    models: dict[str, list[Model]]
    functions: dict[str, int]
    missing: dict[str, str]
    limit: int | None

    def configs(self, language: str) -> list[str]:
        """The configs of a language that can be made."""
        return [config for config in CONFIGS[language] if config in self.functions]

    @property
    def languages(self) -> list[str]:
        """The languages that have any config."""
        return [language for language in CONFIGS if self.configs(language)]

    def text(self) -> str:
        """What will run, in words."""
        lines = []
        for language in self.languages:
            configs = self.configs(language)
            models = [model.name for model in self.models[language]]
            named = ", ".join(models) or "baselines only"
            source = self.sources[language]
            number = self.functions[configs[0]]
            lines.append(f"{', '.join(configs)} from {source}: {named}; {number:,} functions")
        for config, reason in self.missing.items():
            lines.append(f"{config}: left out, {reason}")
        lines.append("what an earlier run has finished is not done again")
        return "\n".join(lines)


def read(
    sources: Sequence[str],
    models: Sequence[str],
    exclude_repositories: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    languages: Sequence[str] = CODE,
) -> Inputs:
    """Find the models, and read every source once.

    Each of `sources` and `models` may begin with a language and `=`, such as
    `german=de_gsd-ud-test.conllu`; a source that does not is for all `languages`, and a model that
    does not is probed on all languages that it reads. A config that its source does not have is
    missing, with the reason.

    Raises CodeSyntaxError for two sources of a language, or two models of one name; SourceError for
    a source of which no config can be read; ModelError for a model that cannot be found.
    """
    source_of = _one_source_each(sources, languages)
    functions: dict[str, int] = {}
    missing: dict[str, str] = {}
    for language, configs in CONFIGS.items():
        for config in configs:
            source = source_of.get(language)
            if source is None:
                missing[config] = f"no source of {LANGUAGES[language].title} was given"
                continue
            without = excluded(language, exclude_repositories)
            try:
                functions[config] = _count(source, config, without, limit)
            except SourceError as error:
                missing[config] = _reason(error, source)
    for source in dict.fromkeys(source_of.values()):
        configs_of_source = [
            config
            for language, configs in CONFIGS.items()
            if source_of.get(language) == source
            for config in configs
        ]
        if not functions.keys() & set(configs_of_source):
            raise SourceError(missing[configs_of_source[0]])
    return Inputs(source_of, _models_by_language(models), functions, missing, limit)


def _one_source_each(sources: Sequence[str], languages: Sequence[str]) -> dict[str, str]:
    """Language -> its source; raises CodeSyntaxError for two of one language."""
    source_of = {}
    for language, several in _values_by_language(sources, languages).items():
        if len(several) > 1:
            raise CodeSyntaxError(
                f"{language} has {len(several)} sources, {' and '.join(several)}: give one"
            )
        (source_of[language],) = several
    return source_of


def _count(source: str, config: str, without: frozenset[str], limit: int | None) -> int:
    """The functions or sentences of the test partition of a source, at most so many."""
    functions = corpus.read(source, config, Skips(), without)
    in_test = (function for function in functions if function.partition == "test")
    return sum(1 for _ in islice(in_test, limit))


def excluded(language: str, repositories: str | os.PathLike[str] | None) -> frozenset[str]:
    """The repositories in a file of them, for code; none for sentences."""
    if repositories is None or language not in CODE:
        return frozenset()
    return corpus.read_repositories(repositories)


def _values_by_language(
    given_values: Sequence[str], unnamed: Sequence[str]
) -> dict[str, list[str]]:
    """Language -> what was given for it: `LANGUAGE=VALUE`, or only `VALUE` for each language of
    `unnamed`."""
    values: dict[str, list[str]] = {}
    for text in given_values:
        name, _, value = text.partition("=")
        languages = [name]
        if name not in CONFIGS:
            languages, value = [*unnamed], text
        for language in languages:
            if value not in values.setdefault(language, []):
                values[language].append(value)
    return values


def _reason(error: SourceError, source: str) -> str:
    """An error, with its source named as on pages."""
    text = str(error)
    if not text.startswith(source):
        return text
    return shown(source) + text.removeprefix(source)


def _models_by_language(given: Sequence[str]) -> dict[str, list[Model]]:
    """Language -> the models that were given for it, and those that read it."""
    asked = _values_by_language(given, tuple(CONFIGS))
    described_model = cache(_described_model)
    chosen: dict[str, list[Model]] = {}
    for language in CONFIGS:
        by_name: dict[str, Model] = {}
        for location in asked.get(language, []):
            model = described_model(location)
            named = f"{language}={location}" in given
            if not named and model.reads not in (None, language):
                continue
            same = by_name.setdefault(model.name, model)
            if same is not model:
                raise CodeSyntaxError(
                    f"{same.location} and {location} are both named {model.name}: "
                    "rename one of the folders"
                )
        chosen[language] = list(by_name.values())
    return chosen


def _described_model(location: str) -> Model:
    with loading(location):
        model = described(location, None)
    reads = getattr(model.tokenizer, "language", None)
    return Model(location, model.name, reads)
