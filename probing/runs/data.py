"""Load the annotated functions to probe with, from a folder, the Hub or memory, and check them
before a model runs; and change their labels for controls.

Controls give the scores if there is nothing to find in the attention, in the weights or in the
labels:

- *random attention* (`probing.evidence.random_attention`): every row ranks the other tokens in
  random order. This is the score by chance.
- *random weights* (`probing.models.load`): a randomly initialised copy, the same architecture,
  tokenizer and pooling with weights drawn as its family initialises them. Position schemes and
  sub-tokens alone give it a score, above random attention or below: what a model learned shows
  against such copies only, of several seeds, such as three.
- *redrawn dependents*: the unchanged model, on edges to other tokens on the same side of the head,
  in code after it: what heads gain merely by looking there.
- *control task* (Hewitt and Liang 2019): the unchanged model, on edges whose dependents the seed
  assigns to words: each word, as the head of a relation, always has the token before it, the one
  after it, or the first or last of the function. A probe that finds these has learned words, not
  syntax; what it finds more of the real edges is its selectivity.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np
import pyarrow as pa
from huggingface_hub import constants

from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.errors import DataNotFound, DatasetError, UnknownName
from codesyntax_dataset.folder import read_split
from codesyntax_dataset.languages import CONFIGS, language_of, variant_of
from codesyntax_dataset.network import UNREACHABLE, hub_answers, is_hub_id
from codesyntax_dataset.protocol import CONTROL_TASK, CONTROLS, REDRAWN_DEPENDENTS
from codesyntax_dataset.schema import EdgeCell
from codesyntax_dataset.twins import COLUMN as TWIN
from probing.runs.saved import field_of, found_at, read_text
from probing.runs.settings import ControlledSettings, Limit, Sample, limit_of

if TYPE_CHECKING:
    import datasets

RELABELLED = REDRAWN_DEPENDENTS, CONTROL_TASK
"""The controls that are about other edges."""

_LABELLED = ["relations", "code", "token_start", "token_end"]


def labels_of(table: pa.Table, control: str | None, seed: int | None) -> pa.Table:
    """The rows as read by a probe with this control; raises UnknownName for an unknown one."""
    if control not in (None, *CONTROLS):
        raise UnknownName("control", control, CONTROLS)
    relabel = {REDRAWN_DEPENDENTS: redraw_dependents, CONTROL_TASK: assign_dependents}.get(
        control or ""
    )
    return table if relabel is None else relabel(table, seed or 0)


def assign_dependents(table: pa.Table, seed: int = 0) -> pa.Table:
    """The functions with the dependents of the control task: one token each, not of white space.

    Before the first token stands the second, as it were, and behind the last one the last but one.
    A function without another token keeps its dependents.
    """

    def assign(
        relations: list[EdgeCell], code: str, starts: list[int], ends: list[int], _: int
    ) -> list[EdgeCell]:
        words = [code[start:end] for start, end in zip(starts, ends)]
        visible = np.array([token for token, word in enumerate(words) if word.strip()], np.int64)
        assigned = []
        for edge in relations:
            others = visible[visible != edge["head"]]
            if len(others):
                here = int(np.searchsorted(others, edge["head"]))
                most = len(others) - 1
                task = (
                    hashlib.sha256(
                        f"{seed} {edge['relation']} {words[edge['head']]}".encode()
                    ).digest()[0]
                    % 4
                )
                token = int(others[(max(here - 1, 0), min(here, most), 0, most)[task]])
                edge = {**edge, "first": token, "last": token}
            assigned.append(edge)
        return assigned

    return relabelled(table, assign)


def redraw_dependents(table: pa.Table, seed: int = 0) -> pa.Table:
    """The functions with another dependent for every edge: as many tokens on the same side of the
    head, which in code is after it, none of them the gold one's.

    All positions are equally likely, except that a dependent does not begin or end with white
    space, which many models cannot find, unless the gold one does. If no such position is left, the
    dependent may overlap the gold one, then begin or end with white space, then be anywhere, but
    never begin where the gold one does; a dependent that is the whole function is kept. Heads and
    relations are kept. The result is probed and scored like any dataset; its labels have another
    digest.
    """

    def redraw(
        relations: list[EdgeCell], code: str, starts: list[int], ends: list[int], index: int
    ) -> list[EdgeCell]:
        rng = np.random.default_rng([seed, index])
        visible = np.array(
            [bool(code[start:end].strip()) for start, end in zip(starts, ends)], bool
        )
        redrawn: list[EdgeCell] = []
        for edge in relations:
            head, first, last = edge["head"], edge["first"], edge["last"]
            begin = np.arange(len(visible) - (last - first))
            begin = begin[begin != first]
            end = begin + last - first
            visible_ends = (visible[begin] >= visible[first]) & (visible[end] >= visible[last])
            apart = (end < first) | (last < begin)
            side = np.sign(begin - head) == np.sign(first - head)
            choices = (
                side & visible_ends & apart,
                side & visible_ends,
                side,
                np.ones(len(begin), bool),
            )
            places = next((begin[choice] for choice in choices if choice.any()), [first])
            token = int(rng.choice(places))
            redrawn.append({**edge, "first": token, "last": token + last - first})
        return redrawn

    return relabelled(table, redraw)


def relabelled(table: pa.Table, relabel: Callable[..., list[EdgeCell]]) -> pa.Table:
    """The functions with the edges that `relabel` gives for _LABELLED and the place of each."""
    columns = [table[name].to_pylist() for name in _LABELLED]
    edges = [relabel(*row, index) for index, row in enumerate(zip(*columns))]
    relations = table.schema.field("relations")
    number = table.schema.get_field_index("relations")
    return table.set_column(number, relations, pa.array(edges, relations.type))


FUNCTION_COLUMNS = ("id", "code", "token_start", "token_end", "relations")

PAIR_COLUMNS = ("id", "good", "bad", "phenomenon", "relation", "distance", "depth", "repo")
"""Those of a config of minimal pairs."""


class Row(TypedDict):
    """FUNCTION_COLUMNS of a function, and its `index` in the split; tokens by their offsets."""

    id: int
    code: str
    token_start: list[int]
    token_end: list[int]
    relations: list[EdgeCell]
    index: int


def words_of(row: Row) -> list[str]:
    """The texts of the tokens of a function."""
    return [row["code"][start:end] for start, end in zip(row["token_start"], row["token_end"])]


class Functions(NamedTuple):
    """The functions that a run reads: those of a split, or of the part `limit` of it, as a control
    has them.

    `table`: the rows of the whole split, as of `load_functions`; `name`: name and version of the
    dataset, as signatures have it; `labels`: the digest of what is read; `location`: of the
    dataset, as for `load_functions`; `folder`: its folder, None for one on the Hub or in memory.
    """

    table: pa.Table
    name: str
    config: str
    split: str
    limit: Limit
    control: str | None
    seed: int
    labels: str
    location: Any
    folder: Path | None

    def each_row(self) -> Iterator[Row]:
        """The rows of the functions, as of `rows`."""
        return chain.from_iterable(rows(self.table, self.limit))

    @property
    def places(self) -> np.ndarray:
        """The places of the functions in the split."""
        return _split_places(self.table, self.limit)

    @property
    def code_sizes(self) -> np.ndarray:
        """The bytes of the code of each function of the split."""
        import pyarrow.compute as pc  # most commands read no labels

        return np.from_dlpack(pc.binary_length(self.table["code"]).combine_chunks()).astype(int)

    @property
    def with_repositories(self) -> str:
        """The digest of `labels` and of the repository of each function, which folds are made by."""
        names = self.table["repo"].to_pylist() if "repo" in self.table.column_names else []
        read = (
            [names[position] for position in _split_places(self.table, self.limit)] if names else []
        )
        return hashlib.sha256(json.dumps([self.labels, read]).encode()).hexdigest()[:12]


def read_validation(data: Functions, **options: Any) -> Functions:
    """The functions of the split validation of the same dataset; `options` as of `read_functions`.

    Raises DatasetError for a loaded dataset of one split, which has no other.
    """
    if not isinstance(data.location, StrPath | Mapping):
        raise DatasetError(
            "the dataset is one split, and another one, validation, is learned from: pass a folder, an id, or a "
            "DatasetDict of both"
        )
    return read_functions(data.location, data.config, "validation", **options)


def read_functions(
    data: Any,
    config: str,
    split: str,
    *,
    limit: Limit = None,
    sample: int | None = None,
    control: str | None = None,
    seed: int = 0,
) -> Functions:
    """The functions that a probe with these arguments reads; raises what `limit_of`,
    `load_functions` and `labels_of` do."""
    limit = limit_of(limit, sample, seed, control)
    table, name = load_functions(data, config, split)
    table = labels_of(table, control, seed)
    if limit is not None and (limit.size if isinstance(limit, Sample) else limit) >= len(table):
        limit = None
    folder = Path(data).resolve() if isinstance(data, StrPath) and os.path.isdir(data) else None
    return Functions(
        table,
        name,
        config,
        split,
        limit,
        control,
        seed,
        label_digest(table, limit),
        data,
        folder,
    )


def load_functions(data: Any, config: str, split: str) -> tuple[pa.Table, str]:
    """The rows of one split of an annotated dataset, with the columns that runs read and, if there
    is one, `repo` and `twin_of`; and the dataset's name and version in signatures.

    `data` is a folder that `codesyntax build` wrote, a dataset id on the Hub, or a loaded `Dataset`
    or `DatasetDict`. A loaded dataset that knows its config and split must be that whole split, in
    order; the name of one that does not, such as from `Dataset.from_list`, is `memory`.

    Raises DataNotFound if nothing of that name exists, DatasetError if it is not a CodeSyntax
    dataset, was altered or is not what was requested, and UnknownName for a config or split that is
    unknown, or that a folder lacks.
    """
    language = language_of(config)
    needed = PAIR_COLUMNS if variant_of(config).pairs else FUNCTION_COLUMNS
    newer = [name for name in ("repo", TWIN) if name not in needed]
    if isinstance(data, StrPath):
        location = os.fspath(data)
        if os.path.isdir(location):
            table, version = read_split(Path(location), config, split, needed, newer)
            return table, f"{Path(location).resolve().name}@{version}"
        check_id(location)
        import datasets  # takes a second, and a folder needs none of it

        try:
            dataset = datasets.load_dataset(location, config, split=split)
        except Exception as error:  # datasets raises errors of many types
            reason = " ".join(str(error).split())[:200]
            raise (DataNotFound if isinstance(error, OSError) else DatasetError)(
                f"cannot load {location}: no such folder, and no such dataset on the Hub that can be reached and read "
                f"({type(error).__name__}: {reason}): `codesyntax build` makes one"
            ) from error
        name = f"{location}@{dataset.info.version or '0.0.0'}"
    else:
        dataset = _split_of(data, split)
        name = "the dataset"
    if missing := [column for column in needed if column not in dataset.column_names]:
        raise DatasetError(
            f"{name} lacks the columns {', '.join(missing)}: expected a dataset that `codesyntax build` wrote"
        )
    if "language" in dataset.column_names:
        strange = sorted({str(name) for name in dataset.unique("language")} - {language.name})
        if strange:
            raise DatasetError(
                f"{name} has functions in {', '.join(strange)}, but those of the config {config!r} are in "
                f"{language.name}"
            )
    if not isinstance(data, StrPath):
        name = _name_of_loaded(dataset, config, split)
    read = dataset.select_columns(
        [name for name in (*needed, *newer) if name in dataset.column_names]
    )
    return read.with_format("arrow")[:], name


def check_id(name: str) -> None:
    """Raise DataNotFound unless `name` is a valid dataset id, and the Hub answers or only the cache
    is used."""
    if os.path.exists(name) or not _may_be_on_hub(name):
        raise DataNotFound(
            f"no folder {name}, and not a valid name of a dataset on the Hub, USER/NAME: `codesyntax build` makes one, "
            "with --source sample one of the embedded functions"
        )
    if not constants.is_offline_mode() and not hub_answers():
        raise DataNotFound(
            f"no folder {name}, and {UNREACHABLE}; with HF_HUB_OFFLINE=1 a dataset that was loaded before can be "
            "read again"
        )


def _may_be_on_hub(name: str) -> bool:
    """True if `name` is a valid name of a dataset on the Hub, USER/NAME."""
    return "/" in name and is_hub_id(name)


def _split_of(data: Any, split: str) -> datasets.Dataset:
    import datasets

    if isinstance(data, datasets.DatasetDict):
        if split not in data:
            raise UnknownName("split", split, list(data))
        data = data[split]
    if isinstance(data, datasets.IterableDataset | datasets.IterableDatasetDict):
        raise DatasetError(
            "this dataset is streamed, and a probe reads it more than once: load it without streaming=True"
        )
    if not isinstance(data, datasets.Dataset):
        raise DatasetError(
            f"the data is a {type(data).__name__}, expected a folder that `codesyntax build` wrote, the id of a "
            "dataset on the Hub, or a loaded Dataset or DatasetDict"
        )
    return data


def _name_of_loaded(dataset: datasets.Dataset, config: str, split: str) -> str:
    """Name and version of a loaded dataset, after checking that it is what was requested, as far as
    it knows."""
    info = dataset.info
    known = info.config_name in CONFIGS
    if known and info.config_name != config:
        raise DatasetError(
            f"the dataset is of the config {info.config_name!r}, not {config!r}: request its own config, or load that "
            "one"
        )
    if dataset.split is not None and str(dataset.split) != split:
        raise _not_whole(f"is of the split {str(dataset.split)!r}, not {split!r}")
    if not known:
        return "memory@0.0.0"
    if dataset.split is None or not info.splits or split not in info.splits:
        raise _not_whole("does not say which split it is, or how many functions the split has")
    whole = info.splits[split].num_examples
    if len(dataset) != whole:
        raise _not_whole(f"has {len(dataset)} functions, and its split {split!r} has {whole}")
    if (
        "good" not in dataset.column_names
        and (np.diff(np.asarray(dataset["id"][:], np.int64)) <= 0).any()
    ):
        raise _not_whole("has the functions of its split in another order, or some of them twice")
    return f"{info.dataset_name or 'memory'}@{info.version or '0.0.0'}"


def _not_whole(reason: str) -> DatasetError:
    return DatasetError(
        f"the dataset {reason}: pass a whole split, with a `limit` for its first functions only; or make it a separate "
        "dataset, named `memory`: Dataset.from_list(dataset.to_list())"
    )


def find_data(result: StrPath, settings: Any) -> str:
    """Locate the data of the result in a file: a folder, or the id of a dataset on the Hub.

    `settings`: the result's settings. A dataset on the Hub is found by its id. A folder is searched
    at the path in the result, relative to its file, and by its name in the working directory, never
    on the Hub. Raises DataNotFound if none has the version and the labels that were probed.
    """
    return _located(result, settings, True)[0]


def find_split(result: StrPath, settings: Any) -> pa.Table:
    """The split of a result, as of `load_functions`, from what `find_data` finds, known by its
    version alone: to digest labels takes longer."""
    return _located(result, settings, False)[1]


def _located(result: StrPath, settings: Any, digest: bool) -> tuple[str, pa.Table]:
    """The place of the data of a result, and its split there; `digest`: whether labels are
    compared."""
    name, _, version = settings.data.rpartition("@")
    if _may_be_on_hub(name):
        places = [name]
    else:
        recorded = found_at(Path(result).parent, field_of(read_text(result), "data_path"))
        places = [
            str(location) for location in (recorded, name) if location and os.path.isdir(location)
        ]
    reason = ""
    for location in places:
        try:
            table, called = load_functions(location, settings.config, settings.split)
            labels = labels_read(table, settings) if digest else settings.labels
        except (DatasetError, UnknownName) as error:
            reason = str(error)
            continue
        if (called.rpartition("@")[2], labels) == (version, settings.labels):
            return location, table
        reason = f"{location!r} has the version {called.rpartition('@')[2]} and the labels {labels}"
    raise DataNotFound(
        f"cannot find the data of {result}, {settings.data}/{settings.config}/{settings.split} with the labels "
        f"{settings.labels}{f' ({reason})' if reason else ''}: give its location with --data"
    )


def labels_read(table: pa.Table, settings: Any) -> str:
    """The digest of the labels that a run with these settings reads of a split."""
    control, seed = (
        (settings.control, settings.seed)
        if isinstance(settings, ControlledSettings)
        else (None, None)
    )
    return label_digest(labels_of(table, control, seed), settings.limit)


def label_digest(table: pa.Table, limit: Limit = None) -> str:
    """A digest of the labels of the part `limit` of the functions: code, token offsets and edges,
    in order; of minimal pairs, of PAIR_COLUMNS.

    It covers 1,000 functions at a time: their number; then, for each of code, `token_start`,
    `token_end` and edges, the number of bytes, tokens or edges of each function, followed by all of
    these. Numbers are little-endian, with 8 bytes for counts and 4 for labels. Different datasets
    therefore have different input.
    """
    digest = hashlib.sha256()
    add = _add_pairs if _has_pairs(table) else _add_functions
    labels = _labels(table, limit)
    try:
        for start in range(0, len(labels), 1000):
            part = labels.slice(start, 1000)
            digest.update(len(part).to_bytes(8, "little"))
            add(digest, part)
    except (pa.ArrowException, AttributeError) as error:
        columns = ", ".join(_label_columns(table))
        raise DatasetError(
            f"the dataset's columns {columns} are not what `codesyntax build` writes: {error}"
        ) from error
    return digest.hexdigest()[:12]


def _add_functions(digest: hashlib._Hash, table: pa.Table) -> None:
    import pyarrow.compute as pc  # most commands read no labels

    _add_texts(digest, table["code"].combine_chunks())
    for column in ("token_start", "token_end"):
        _add_numbers(digest, _add_lengths(digest, table[column].combine_chunks()))
    edges = _add_lengths(digest, table["relations"].combine_chunks())
    if len(edges):  # otherwise they may have no type
        _add_texts(digest, pc.struct_field(edges, "relation"))
        for name in ("head", "first", "last"):
            _add_numbers(digest, pc.struct_field(edges, name))


def _add_pairs(digest: hashlib._Hash, table: pa.Table) -> None:
    for name in PAIR_COLUMNS:
        column = table[name].combine_chunks()
        (_add_numbers if pa.types.is_integer(column.type) else _add_texts)(digest, column)


def _add_lengths(digest: hashlib._Hash, lists: pa.Array) -> pa.Array:
    """Add the length of each list; return their concatenated items."""
    _add_numbers(digest, lists.value_lengths(), pa.int64())
    return lists.flatten()


def _add_texts(digest: hashlib._Hash, texts: pa.Array) -> None:
    import pyarrow.compute as pc

    encoded = texts.cast(pa.large_binary())
    _add_numbers(digest, pc.binary_length(encoded), pa.int64())
    digest.update(b"".join(encoded.to_pylist()))


def _add_numbers(digest: hashlib._Hash, numbers: pa.Array, type: pa.DataType | None = None) -> None:
    values = np.from_dlpack(numbers.cast(type or pa.int32()))  # to_numpy imports pandas
    digest.update(values.astype(values.dtype.newbyteorder("<")).tobytes())


def _has_pairs(table: pa.Table) -> bool:
    return "good" in table.column_names


def _label_columns(table: pa.Table) -> list[str]:
    return list(PAIR_COLUMNS if _has_pairs(table) else FUNCTION_COLUMNS)


def _labels(table: pa.Table, limit: Limit | np.ndarray) -> pa.Table:
    labels = table.select(_label_columns(table))
    return labels if limit is None else labels.take(_split_places(table, limit))


def _split_places(table: pa.Table, limit: Limit | np.ndarray) -> np.ndarray:
    """The places in the split of the functions of a part."""
    if isinstance(limit, np.ndarray):
        return limit
    if isinstance(limit, Sample):
        return np.array(limit.places(len(table)), np.int64)
    return np.arange(len(table) if limit is None else min(limit, len(table)))


def rows(table: pa.Table, limit: Limit | np.ndarray) -> Iterator[list[Row]]:
    """The rows of a part, or at some places in the split, some at a time, with the columns that
    probing needs, and the `index` of each in the split.

    Raises DatasetError for a row that does not fit itself.
    """
    if _has_pairs(table):
        raise DatasetError(
            "the dataset has minimal pairs, no labelled functions: `codesyntax prefer` reads it"
        )
    for chunk in _chunks(table, limit):
        for row in chunk:
            tokens = len(row["token_start"])
            if len(row["token_end"]) != tokens:
                raise DatasetError(
                    f"function {row['id']}: {tokens} token starts but {len(row['token_end'])} ends"
                )
            for edge in row["relations"]:
                if not (0 <= edge["head"] < tokens and 0 <= edge["first"] <= edge["last"] < tokens):
                    raise DatasetError(
                        f"function {row['id']}: edge {edge} points outside its {tokens} tokens"
                    )
        yield chunk


def pair_rows(table: pa.Table, limit: Limit) -> Iterator[dict[str, Any]]:
    """The rows of a part of minimal pairs, with PAIR_COLUMNS and the `index` of each in the split.

    Raises DatasetError for a pair of equal texts.
    """
    for row in chain.from_iterable(_chunks(table, limit)):
        if row["good"] == row["bad"]:
            raise DatasetError(f"pair {row['id']}: both texts are the same")
        yield row


def _chunks(table: pa.Table, limit: Limit | np.ndarray) -> Iterator[list[Any]]:
    places = iter(_split_places(table, limit).tolist())
    for batch in _labels(table, limit).to_batches(max_chunksize=256):
        yield [{**row, "index": next(places)} for row in batch.to_pylist()]
