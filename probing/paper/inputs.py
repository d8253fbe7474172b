"""The inputs of a reproduction: the source and the models of each language, and what running them will cost."""

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
"""The languages of the paper, and the configs that its tables and figures need: the first, and the ablations."""

CODE, NATURAL = ("python", "java"), ("english", "german")

# What a run costs, as README.md says: a model of 12 layers of hidden size 768 and 144 heads on one core.
_SECONDS_A_SUBTOKEN = 0.0033
_WEIGHTS = 12 * 768**2
_SECONDS_A_FUNCTION = 0.01  # of any model: labels, tokens, ranks
_DATASET_BYTES = 1000  # a function
_LEDGER_BYTES = 9000 / 144  # a function and head
_CHARACTERS = 3.5  # a sub-token


class Model(NamedTuple):
    """A model as it was given, its name in results, and its size: `weights` is layers * (hidden size)**2."""

    given: str
    name: str
    reads: str | None  # the only language that its tokenizer reads, if it is for one, as CuBERT's are
    weights: int
    heads: int  # in all layers


class Read(NamedTuple):
    """The contents of the test partition of a config: functions or sentences, and their sub-tokens, roughly."""

    functions: int
    subtokens: float


@dataclass(frozen=True)
class Inputs:
    """`sources`: language -> where its functions or sentences come from; `models`: language -> the models probed on it;
    `read`: config -> what it has; `missing`: config -> why it has nothing; `limit`: the most functions of a config."""

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

    def text(self) -> str:
        """The runs, and their estimated time and disk, in words."""
        lines, seconds, size = [], 0.0, 0.0
        for language in self.languages:
            models = self.models[language]
            named = ", ".join(model.name for model in models) or "baselines only"
            lines.append(f"{', '.join(self.configs(language))} from {self.sources[language]}: {named}")
            for config in self.configs(language):
                functions = self.read[config].functions
                seconds += functions * _SECONDS_A_FUNCTION + self._seconds(config, models)
                size += functions * (_DATASET_BYTES + _LEDGER_BYTES * sum(model.heads for model in models))
        lines += [f"{config}: left out, {why}" for config, why in self.missing.items()]
        return "\n".join([*lines, estimate(seconds, size)])

    def masking_text(self, config: str, copies: float, copy_bytes: int) -> str:
        """As `text`, for masking runs on `config` with `copies` masked copies of each function."""
        functions, models = self.read[config].functions, self.models[config]
        named, passes = ", ".join(model.name for model in models), functions * copies
        line = (
            f"{config} from {self.sources[config]}: {named}; {functions:,} functions, about {passes:,.0f} masked copies"
        )
        size = passes * copy_bytes * len(models) + functions * _DATASET_BYTES
        return f"{line}\n{estimate(copies * self._seconds(config, models), size)}"

    def _seconds(self, config: str, models: Sequence[Model]) -> float:
        """The time in which each of some models reads the functions of a config once."""
        functions, subtokens = self.read[config]
        weights = sum(model.weights for model in models) / _WEIGHTS
        return functions * _SECONDS_A_FUNCTION * len(models) + subtokens * _SECONDS_A_SUBTOKEN * weights


def estimate(seconds: float, size: float) -> str:
    """Time and disk (bytes) in words."""
    return (
        f"estimated: {_duration(seconds)} on one CPU core, less on a GPU; {max(1, size / 1e6):,.0f} MB, and as much in "
        "the cache of runs. What an earlier run has finished is not done again"
    )


def read(
    sources: Sequence[str],
    models: Sequence[str],
    exclude_repositories: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    languages: Sequence[str] = CODE,
) -> Inputs:
    """Find the models, and read every source once.

    Each of `sources` and `models` may begin with a language and `=`, such as `german=de_gsd-ud-test.conllu`; a source
    that does not is for all `languages`, and a model that does not is probed on all languages that it reads. A config
    that its source does not have is missing, with the reason.

    Raises CodeSyntaxError for two sources of a language, or two models of one name; SourceError for a source of which
    no config can be read; ModelError for a model that cannot be found.
    """
    excluded = frozenset() if exclude_repositories is None else corpus.read_repositories(exclude_repositories)
    given = _by_language(sources, languages)
    for language, several in given.items():
        if len(several) > 1:
            raise CodeSyntaxError(f"{language} has {len(several)} sources, {' and '.join(several)}: give one")
    found: dict[str, Read] = {}
    missing: dict[str, str] = {}
    for language, configs in CONFIGS.items():
        for config in configs:
            if language not in given:
                missing[config] = f"no source of {LANGUAGES[language].title} was given"
                continue
            try:
                functions = corpus.read(given[language][0], config, Skips(), excluded if language in CODE else ())
                lengths = [len(function.code) / _CHARACTERS for function in functions if function.partition == "test"]
            except SourceError as error:
                missing[config] = _reason(error, given[language][0])
            else:
                lengths = lengths[:limit]
                found[config] = Read(len(lengths), sum(length for length in lengths if length <= PAPER_LENGTH))
    for source in sources:
        of_source = list(_by_language([source], languages))
        if not any(config in found for language in of_source for config in CONFIGS[language]):
            raise SourceError(missing[of_source[0]])
    by_language = _by_language(models, tuple(CONFIGS))
    located = {place: _model(place) for place in dict.fromkeys(chain(*by_language.values()))}
    chosen = {
        language: _distinct(
            located[place]
            for place in by_language.get(language, [])
            if located[place].reads in (None, language) or f"{language}={place}" in models
        )
        for language in CONFIGS
    }
    return Inputs({language: source for language, (source,) in given.items()}, chosen, found, missing, limit)


def _by_language(given: Sequence[str], unnamed: Sequence[str]) -> dict[str, list[str]]:
    """Language -> what was given for it: `LANGUAGE=VALUE`, or only `VALUE` for each language of `unnamed`."""
    values: dict[str, list[str]] = {}
    for text in given:
        name, _, value = text.partition("=")
        for language, one in [(name, value)] if name in CONFIGS else [(language, text) for language in unnamed]:
            if one not in values.setdefault(language, []):
                values[language].append(one)
    return values


def _reason(error: SourceError, source: str) -> str:
    """An error, with its source named as on pages."""
    before, found, behind = str(error).partition(source)
    return f"{shown(source)}{behind}" if found and not before else str(error)


def _model(place: str) -> Model:
    with loading(place):
        model = described(place, None)
        text = model.config.get_text_config()
        layers, heads, hidden = text.num_hidden_layers, text.num_attention_heads, text.hidden_size
    return Model(place, model.name, getattr(model.tokenizer, "language", None), layers * hidden**2, layers * heads)


def _distinct(models: Iterable[Model]) -> list[Model]:
    """The models of a language; raises CodeSyntaxError if two have one name."""
    by_name: dict[str, Model] = {}
    for model in models:
        if (same := by_name.setdefault(model.name, model)) is not model:
            raise CodeSyntaxError(
                f"{same.given} and {model.given} are both named {model.name}: rename one of the folders"
            )
    return list(by_name.values())


def _duration(seconds: float) -> str:
    return f"{max(2, round(seconds / 60))} minutes" if seconds < 5400 else f"{round(seconds / 3600)} hours"
