"""The inputs of a reproduction: the source and the models of each language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from codesyntax_dataset import paper
from codesyntax_dataset.errors import CodeSyntaxError
from probing.models.load import described_model
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
    models probed on it; `missing`: config -> why it could not be built, which a run adds to;
    `limit`: the most functions of a config."""

    sources: dict[str, str]
    models: dict[str, list[Model]]
    missing: dict[str, str]
    limit: int | None

    def text(self) -> str:
        """What will run, in words."""
        lines = ["what an earlier run has finished is not done again"]
        for language, source in self.sources.items():
            models = [model.name for model in self.models[language]] or ["baselines only"]
            lines.append(f"{', '.join(CONFIGS[language])} from {source}: {', '.join(models)}")
        return "\n".join(lines)


def read(
    sources: Sequence[str],
    models: Sequence[str],
    limit: int | None = None,
    languages: Sequence[str] = CODE,
) -> Inputs:
    """Find the models.

    Each of `sources` and `models` may begin with a language and `=`, such as
    `german=de_gsd-ud-test.conllu`; a source that does not is for all `languages`, and a model that
    does not is probed on all languages that it reads.

    Raises CodeSyntaxError for two sources of a language, or two models of one name; ModelError for
    a model that cannot be found.
    """
    source_of = {}
    for language, several in _values_by_language(sources, languages).items():
        if len(several) > 1:
            raise CodeSyntaxError(
                f"{language} has {len(several)} sources, {' and '.join(several)}: give one"
            )
        (source_of[language],) = several
    return Inputs(source_of, _models_by_language(models), {}, limit)


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


def _models_by_language(values: Sequence[str]) -> dict[str, list[Model]]:
    """Language -> the models that were given for it, and those that read it."""
    asked = _values_by_language(values, tuple(CONFIGS))
    described_model = cache(_described_model)
    chosen: dict[str, list[Model]] = {}
    for language in CONFIGS:
        by_name: dict[str, Model] = {}
        for location in asked.get(language, []):
            model = described_model(location)
            named = f"{language}={location}" in values
            if not named and model.reads not in (None, language):
                continue
            name = paper.name_of(model.name, language) or model.name
            same = by_name.setdefault(name, model)
            if same is not model:
                raise CodeSyntaxError(
                    f"{same.location} and {location} are both named {name}: rename one of the folders"
                )
        chosen[language] = list(by_name.values())
    return chosen


def _described_model(location: str) -> Model:
    with loading(location):
        model = described_model(location, None)
    reads = getattr(model.tokenizer, "language", None)
    return Model(location, model.name, reads)
