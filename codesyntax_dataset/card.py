"""The dataset card, generated from the built files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import jinja2
import yaml
from datasets.info import DatasetInfosDict

from codesyntax_dataset.features import COLUMNS, FEATURES, PAIR_COLUMNS, PAIR_FEATURES
from codesyntax_dataset.languages import LANGUAGES, Variant, in_order, variant_of
from codesyntax_dataset.measure import ConfigReport
from codesyntax_dataset.protocol import EDITS, MARKER
from codesyntax_dataset.safe_files import printable
from codesyntax_dataset.schema import LABELS
from codesyntax_dataset.sources import Origin

_LOAD, _FOLDER, _HINT = (
    'load_dataset("',
    "codesyntax",
    "  # path of this folder, or owner/codesyntax on the Hub",
)
"""Of the example in a card that is not on the Hub."""

_USED, _WHOLE = "Training data is not used.", "All of its splits are used."

_BY_RULES = (
    f"made by rules (version {LABELS}) from the code alone; they were not reviewed one by one"
)


class Exclusion(NamedTuple):
    """A list of repositories to exclude."""

    names: int
    digest: str  # SHA-256 of the file


def render(
    configs: Mapping[str, ConfigReport],
    origins: Mapping[str, Origin],
    source: str,
    exclusion: Exclusion | None,
) -> str:
    """The card of a dataset with `configs`, whose functions come from `source`; `origins` says how,
    by config."""
    splits = sorted({split for config in configs.values() for split in config.functions})
    labelled = {name: config for name, config in configs.items() if not config.pairs}
    pairs = {name: config for name, config in configs.items() if config.pairs}
    of_code = [name for name, config in labelled.items() if not config.language.of_treebanks]
    environment = jinja2.Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["plain"] = _plain
    template = environment.from_string(
        Path(__file__).with_name("card.md.jinja").read_text(encoding="utf-8")
    )
    return template.render(
        metadata=front_matter(configs),
        marker=MARKER,
        load=f"{_LOAD}{_FOLDER}",
        hint=_HINT,
        default=default_config(configs),
        configs=configs,
        splits=splits,
        relations=_relations(labelled),
        labelled=labelled,
        pairs=pairs,
        phenomena=sorted({phenomenon for config in pairs.values() for phenomenon in config.edges}),
        columns=[(COLUMNS, FEATURES)] * bool(labelled)
        + [(PAIR_COLUMNS, PAIR_FEATURES)] * bool(pairs),
        variants=_variants(configs),
        edits={name: EDITS[edit] for name in configs if (edit := variant_of(name).edit)},
        type_name=_type_name,
        origins=origins,
        units=" and ".join(dict.fromkeys(config.units for config in configs.values())),
        of_code=bool(of_code),
        exact=[name for name in of_code if variant_of(name).exact],
        published=[name for name in of_code if not variant_of(name).exact],
        treebanks={
            name: config.treebanks
            for name, config in configs.items()
            if config.language.of_treebanks
        },
        ours=any(origin.labels is None for origin in origins.values()),
        labels=list(dict.fromkeys(origin.labels or _BY_RULES for origin in origins.values())),
        source=source,
        used=_WHOLE if any(origin.whole for origin in origins.values()) else _USED,
        exclusion=exclusion,
        package_version=version("codesyntax"),
        number=lambda count: f"{count:,}" if count else "-",
    )


def _plain(text: str) -> str:
    """Foreign text within a line of the card: it ends no code, cell or line."""
    return printable(
        str(text).replace("`", "'").replace("|", "¦").replace("<", "‹").replace("\n", " ")
    )


def published(card: bytes, repo: str) -> bytes:
    """The card of a dataset in a repository on the Hub: its example loads that, not a folder."""
    return card.replace(f"{_LOAD}{_FOLDER}".encode(), f"{_LOAD}{repo}".encode()).replace(
        _HINT.encode(), b""
    )


def front_matter(configs: Mapping[str, ConfigReport]) -> str:
    """The YAML block of the card, read by the Hub and `load_dataset`."""
    return yaml.safe_dump(_metadata(configs), sort_keys=False, allow_unicode=True)


def left_out(card: str, config: str) -> str | None:
    """The card's line on functions left out of `config` or kept without labels; None if it has
    none."""
    _, _, section = card.partition("### Left out, or kept without labels\n")
    line = re.search(rf"^- `{re.escape(config)}`: (.*)$", section, flags=re.MULTILINE)
    return line and line[1]


def origin(card: str) -> str | None:
    """The card's line on where the functions come from; None if it has none."""
    line = re.search(rf"^- [A-Z][a-z ]+: (.*)\. (?:{_USED}|{_WHOLE})", card, flags=re.MULTILINE)
    return line and line[1]


def how_to_add(card: str, config: str, folder: Path) -> str:
    """The command that adds a config to the dataset in a folder with this card."""
    form = origin(card) or ""
    source = "sample" if form.endswith("`sample`") else "SOURCE"
    command = f"`codesyntax build --source {source} --config {config} --output {folder}` adds it"
    return (
        command
        if source == "sample"
        else f"{command}, with the SOURCE that it was built from, {form}"
    )


def default_config(configs: Mapping[str, ConfigReport]) -> str:
    """The config that `load_dataset` takes by default."""
    return next(iter(configs))


def _relations(configs: Mapping[str, ConfigReport]) -> list[str]:
    return in_order({relation for config in configs.values() for relation in config.edges})


def _variants(built: Mapping[str, ConfigReport]) -> str:
    """The variants of the labels of the languages that were `built`, but for edits, in words."""
    configs: dict[Variant, list[str]] = {}
    for language in dict.fromkeys(report.language.name for report in built.values()):
        for config, variant in LANGUAGES[language].configs.items():
            if variant.edit or (variant.pairs and config not in built):
                continue
            configs.setdefault(variant, []).append(f"`{config}`")
    first, *others = (
        variant.meaning.format(configs=" and ".join(names)) for variant, names in configs.items()
    )
    text = "; ".join([first, ", and ".join(others)] if others else [first])
    return text[0].upper() + text[1:]


def _type_name(feature: Any) -> str:
    if isinstance(feature, datasets.List):
        return f"list of {_type_name(feature.feature)}"
    return (
        ", ".join(f"`{name}`" for name in feature) if isinstance(feature, dict) else feature.dtype
    )


def _metadata(configs: Mapping[str, ConfigReport]) -> dict[str, Any]:
    functions = sum(sum(config.functions.values()) for config in configs.values())
    metadata = {
        "pretty_name": "CodeSyntax",
        "license": "other",
        "license_name": "licences-of-the-source-repositories",
        "language": sorted({tag for config in configs.values() for tag in _tags(config)}),
        "annotations_creators": sorted(
            {
                "expert-generated" if config.language.of_treebanks else "machine-generated"
                for config in configs.values()
            }
        ),
        "language_creators": ["found"],
        "size_categories": [_size(functions)],
        "task_categories": ["token-classification"],
        "task_ids": ["parsing"],
        "tags": ["code", "syntax", "probing", "attention"],
        "configs": [
            _entry(name, config, name == default_config(configs))
            for name, config in configs.items()
        ],
    }
    DatasetInfosDict({name: config.info for name, config in configs.items()}).to_dataset_card_data(
        metadata
    )
    return metadata


def _entry(name: str, config: ConfigReport, default: bool) -> dict[str, Any]:
    """A config in the YAML block, which says where its files are."""
    files = [{"split": split, "path": f"{name}/{split}.parquet"} for split in config.functions]
    chosen = {"default": True} if default else {}
    return {"config_name": name, "version": config.version, **chosen, "data_files": files}


def _tags(config: ConfigReport) -> list[str]:
    """The Hub's codes of the languages of a config; where each treebank has its own, its name
    begins with it."""
    if config.language.tag:
        return [config.language.tag]
    names = (re.match(r"([a-z]{2,3})_", treebank) for treebank in config.treebanks)
    return [name[1] if name else "und" for name in names]


def _size(rows: int) -> str:
    """The Hub's size category."""
    bounds = [
        (1_000, "n<1K"),
        (10_000, "1K<n<10K"),
        (100_000, "10K<n<100K"),
        (1_000_000, "100K<n<1M"),
    ]
    return next((name for bound, name in bounds if rows < bound), "n>1M")
