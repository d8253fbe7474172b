"""The inputs of a reproduction: the source and the models of each language."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
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
            configs, models = self.configs(language), self.models[language]
            named = ", ".join(model.name for model in models) or "baselines only"
            number, source = self.functions[configs[0]], self.sources[language]
            lines.append(f"{', '.join(configs)} from {source}: {named}; {number:,} functions")
        left_out = [f"{config}: left out, {why}" for config, why in self.missing.items()]
        return "\n".join([*lines, *left_out, "what an earlier run has finished is not done again"])


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
    source_of: dict[str, str] = {}
    for language, several in _values_by_language(sources, languages).items():
        if len(several) > 1:
            raise CodeSyntaxError(
                f"{language} has {len(several)} sources, {' and '.join(several)}: give one"
            )
        (source_of[language],) = several
    functions: dict[str, int] = {}
    missing: dict[str, str] = {}
    for language, configs in CONFIGS.items():
        for config in configs:
            if language not in source_of:
                missing[config] = f"no source of {LANGUAGES[language].title} was given"
                continue
            try:
                number = _count(source_of[language], config, exclude_repositories)
            except SourceError as error:
                missing[config] = _reason(error, source_of[language])
            else:
                functions[config] = number if limit is None else min(number, limit)
    for source in dict.fromkeys(source_of.values()):
        of_source = [name for name in CONFIGS if source_of.get(name) == source]
        if not any(config in functions for name in of_source for config in CONFIGS[name]):
            raise SourceError(missing[of_source[0]])
    return Inputs(source_of, _models_by_language(models), functions, missing, limit)


def _count(source: str, config: str, exclude_repositories: str | os.PathLike[str] | None) -> int:
    """The functions or sentences of the test partition of a source."""
    functions = corpus.read(source, config, Skips(), excluded(config, exclude_repositories))
    return sum(function.partition == "test" for function in functions)


def excluded(config: str, repositories: str | os.PathLike[str] | None) -> frozenset[str]:
    """The repositories in a file of them, for code; none for sentences."""
    if repositories is None or config not in (config for name in CODE for config in CONFIGS[name]):
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
        languages, value = ([name], value) if name in CONFIGS else (unnamed, text)
        for language in languages:
            if value not in values.setdefault(language, []):
                values[language].append(value)
    return values


def _reason(error: SourceError, source: str) -> str:
    """An error, with its source named as on pages."""
    text = str(error)
    return shown(source) + text.removeprefix(source) if text.startswith(source) else text


def _models_by_language(given: Sequence[str]) -> dict[str, list[Model]]:
    """Language -> the models that were given for it, and those that read it."""
    located: dict[str, Model] = {}
    chosen: dict[str, list[Model]] = {}
    asked = _values_by_language(given, tuple(CONFIGS))
    for language in CONFIGS:
        by_name: dict[str, Model] = {}
        for location in asked.get(language, []):
            if location not in located:
                located[location] = _described_model(location)
            model = located[location]
            if model.reads not in (None, language) and f"{language}={location}" not in given:
                continue
            if (same := by_name.setdefault(model.name, model)) is not model:
                raise CodeSyntaxError(
                    f"{same.location} and {location} are both named {model.name}: rename one of the folders"
                )
        chosen[language] = list(by_name.values())
    return chosen


def _described_model(location: str) -> Model:
    with loading(location):
        model = described(location, None)
    return Model(location, model.name, getattr(model.tokenizer, "language", None))
