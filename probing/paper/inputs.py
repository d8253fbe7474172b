"""The inputs of a reproduction: the source and the models of each language, and how long running
them will take."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from codesyntax_dataset import corpus
from codesyntax_dataset.errors import CodeSyntaxError, SourceError
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import PAPER_LENGTH
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

# What a run costs, as README.md says: a model of 12 layers of hidden size 768 and 144 heads on one
# core.
_SECONDS_A_SUBTOKEN = 0.0033
_WEIGHTS = 12 * 768**2
_SECONDS_A_FUNCTION = 0.01  # of any model: labels, tokens, ranks
_DATASET_BYTES = 1000  # a function
_LEDGER_BYTES = 9000 / 144  # a function and head
_CHARACTERS = 3.5  # a sub-token


class Model(NamedTuple):
    """A model as it was given, its name in results, and its size: `weights` is layers * (hidden
    size)**2."""

    location: str
    name: str
    # the only language that its tokenizer reads, if it is for one, as CuBERT's are
    reads: str | None
    weights: int
    heads: int  # in all layers


class Read(NamedTuple):
    """The contents of the test partition of a config: functions or sentences, and their sub-tokens,
    roughly."""

    functions: int
    subtokens: float


@dataclass(frozen=True)
class Inputs:
    """`sources`: language -> where its functions or sentences come from; `models`: language -> the
    models probed on it; `read`: config -> what it has; `missing`: config -> why it has nothing;
    `limit`: the most functions of a config."""

    sources: dict[str, str]
    models: dict[str, list[Model]]
    read: dict[str, Read]
    missing: dict[str, str]
    limit: int | None

    def configs(self, language: str) -> list[str]:
        """The configs of a language that can be made."""
        return [config for config in CONFIGS[language] if config in self.read]

    @property
    def languages(self) -> list[str]:
        """The languages that have any config."""
        return [language for language in CONFIGS if self.configs(language)]

    def text(
        self,
        configs: Iterable[str] | None = None,
        copies: float = 1,
        copy_bytes: float = 0,
    ) -> str:
        """The runs, and their estimated time and disk, in words.

        `configs`: by default all; `copies`: how often a model reads each function, and what each
        time leaves on disk.
        """
        lines, seconds, size = [], 0.0, 0.0
        for language in self.languages:
            models = self.models[language]
            chosen = [
                config for config in self.configs(language) if configs is None or config in configs
            ]
            named = ", ".join(model.name for model in models) or "baselines only"
            weights = sum(model.weights for model in models) / _WEIGHTS
            heads = sum(model.heads for model in models)
            for config in chosen:
                functions, subtokens = self.read[config]
                seconds += functions * _SECONDS_A_FUNCTION * (1 + len(models) * copies)
                seconds += subtokens * _SECONDS_A_SUBTOKEN * weights * copies
                size += functions * (
                    _DATASET_BYTES + _LEDGER_BYTES * heads + copies * copy_bytes * len(models)
                )
            number = max((self.read[config].functions for config in chosen), default=0)
            if chosen:
                lines.append(
                    f"{', '.join(chosen)} from {self.sources[language]}: {named}; {number:,} functions"
                )
        lines += [
            f"{config}: left out, {why}" for config, why in self.missing.items() if configs is None
        ]
        hours = seconds / 3600
        duration = (
            f"{max(2, round(60 * hours))} minutes" if hours < 1.5 else f"{round(hours)} hours"
        )
        lines.append(
            f"estimated: {duration} on one CPU core, less on a GPU; {max(1, size / 1e6):,.0f} MB, and as much in the "
            "cache of runs. What an earlier run has finished is not done again"
        )
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
    excluded = (
        frozenset()
        if exclude_repositories is None
        else corpus.read_repositories(exclude_repositories)
    )
    source_of: dict[str, str] = {}
    for language, several in _values_by_language(sources, languages).items():
        if len(several) > 1:
            raise CodeSyntaxError(
                f"{language} has {len(several)} sources, {' and '.join(several)}: give one"
            )
        (source_of[language],) = several
    contents: dict[str, Read] = {}
    missing: dict[str, str] = {}
    for language, configs in CONFIGS.items():
        for config in configs:
            if language not in source_of:
                missing[config] = f"no source of {LANGUAGES[language].title} was given"
                continue
            try:
                functions = corpus.read(
                    source_of[language],
                    config,
                    Skips(),
                    excluded if language in CODE else (),
                )
                lengths = [
                    len(function.code) / _CHARACTERS
                    for function in functions
                    if function.partition == "test"
                ]
            except SourceError as error:
                missing[config] = _reason(error, source_of[language])
            else:
                lengths = lengths[:limit]
                contents[config] = Read(
                    len(lengths),
                    sum(length for length in lengths if length <= PAPER_LENGTH),
                )
    for source in sources:
        of_source = [
            config
            for language in _values_by_language([source], languages)
            for config in CONFIGS[language]
        ]
        if not contents.keys() & set(of_source):
            raise SourceError(missing[of_source[0]])
    by_language = _values_by_language(models, tuple(CONFIGS))
    located = {
        location: _described_model(location)
        for location in dict.fromkeys(chain(*by_language.values()))
    }
    chosen: dict[str, list[Model]] = {}
    for language in CONFIGS:
        asked = [located[location] for location in by_language.get(language, [])]
        reading = [
            model
            for model in asked
            if model.reads in (None, language) or f"{language}={model.location}" in models
        ]
        chosen[language] = _distinctly_named(reading)
    return Inputs(source_of, chosen, contents, missing, limit)


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


def _described_model(location: str) -> Model:
    with loading(location):
        model = described(location, None)
        text = model.config.get_text_config()
        layers, heads, hidden = (
            text.num_hidden_layers,
            text.num_attention_heads,
            text.hidden_size,
        )
    return Model(
        location,
        model.name,
        getattr(model.tokenizer, "language", None),
        layers * hidden**2,
        layers * heads,
    )


def _distinctly_named(models: Iterable[Model]) -> list[Model]:
    """The models of a language; raises CodeSyntaxError if two have one name."""
    by_name: dict[str, Model] = {}
    for model in models:
        if (same := by_name.setdefault(model.name, model)) is not model:
            raise CodeSyntaxError(
                f"{same.location} and {model.location} are both named {model.name}: rename one of the folders"
            )
    return list(by_name.values())
