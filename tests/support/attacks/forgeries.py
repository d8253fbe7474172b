"""Submissions that nobody should believe, each with the reason it is refused for.

ENTRIES are files for a board, made from an honest entry, as `support.evidence.hits_files` has it; RESULTS are folders for `submit`, made from honest results;
LEDGERS are ranks that no model has given, in ledgers that fit their data: only probing again can tell.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from support.evidence.hits_files import arrow_table, in_parquet, written

from codesyntax_dataset.protocol import TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence.beyond import beyond
from probing.evidence.protocols import choose
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import AVOIDED, best_offsets, is_hard
from probing.instruments.attention.result import ProbeResult
from probing.instruments.masking.result import FILLED, HITS, SIMILARITIES
from probing.runs.saved import ledger_path

TOO_LARGE = 200 * 10**6


class Forgery(NamedTuple):
    """`write(path, honest entry)` makes the file; `write(folder of honest results)` alters them. `reason`: a regular
    expression that the message of the refusal has."""

    name: str
    write: Callable[..., None]
    reason: str


ENTRIES: list[Forgery] = []
RESULTS: list[Forgery] = []
LEDGERS: list[Callable[[RankLedger, RankLedger], None]] = []
"""Each changes the ranks of a ledger of the test split, which is given with that of validation."""


def altered(reason: str):
    """A function that changes an honest entry, as `hits_files` has it; or returns other metadata, or another file."""

    def register(change: Callable[[dict], str | bytes | None]):
        def write(path: Path, honest: dict[str, Any]) -> None:
            entry = copy.deepcopy(honest)
            made = change(entry)
            if made is None:
                made = written(entry)
            elif isinstance(made, str):
                made = in_parquet(arrow_table(honest)[0], made)
            path.write_bytes(made)

        ENTRIES.append(Forgery(change.__name__, write, reason))
        return change

    return register


def metadata(entry: dict[str, Any]) -> str:
    """The text in the file."""
    return json.dumps(arrow_table(entry)[1])


def placed(reason: str):
    """A function that makes the file itself."""

    def register(write: Callable[[Path, dict], None]):
        ENTRIES.append(Forgery(write.__name__, write, reason))
        return write

    return register


def settings(entry: dict[str, Any], **changed: Any) -> None:
    entry["settings"].update(changed)


STRANGE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=20)
    | st.lists(st.floats(0, 100), max_size=4)
    | st.dictionaries(st.text(max_size=5), st.integers(), max_size=3)
)


def change(value: Any, data: Any) -> None:
    """Change or remove something in a JSON object or list, found by going down from the top.

    `data` is hypothesis's, which chooses what.
    """
    step = data.draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
    if isinstance(value[step], (dict, list)) and value[step] and data.draw(st.integers(0, 4)):
        change(value[step], data)
    elif data.draw(st.booleans()):
        value[step] = data.draw(STRANGE)
    else:
        del value[step]


# ------------------------------------------------------------------------------------------------ entries: the numbers

PROTOCOLS = ("published", "held-out", "beyond-offset")


def hits_of(entry: dict[str, Any], protocol: str, who: str = "model") -> dict[str, np.ndarray]:
    """Relation -> its hits (rules, k, f), which can be changed and given to `put`."""
    table = entry["tables"][protocol]
    cells = {name: (table["group"] == name) & (table["n"] > 0) for name in relations_of(entry, protocol)}
    return {name: table[who][:, of].reshape(len(RULES), len(TABLE_KS), -1) for name, of in cells.items()}


def put(entry: dict[str, Any], protocol: str, hits: dict[str, np.ndarray], who: str = "model") -> None:
    table = entry["tables"][protocol]
    for name, of in hits.items():
        table[who][:, (table["group"] == name) & (table["n"] > 0)] = of.reshape(len(of) * len(TABLE_KS), -1)


def nothing_hit(entry: dict[str, Any], protocol: str, *systems: str) -> None:
    for who in systems:
        entry["tables"][protocol][who][:] = 0


def relations_of(entry: dict[str, Any], protocol: str) -> list[str]:
    return sorted(set(entry["tables"][protocol]["group"].tolist()))


def edges_of(entry: dict[str, Any], protocol: str = "published") -> dict[str, np.ndarray]:
    """Relation -> its edges in the functions that have any (f,)."""
    table = entry["tables"][protocol]
    return {name: table["n"][(table["group"] == name) & (table["n"] > 0)] for name in relations_of(entry, protocol)}


def functions_of(entry: dict[str, Any], protocol: str, name: str) -> np.ndarray:
    table = entry["tables"][protocol]
    return table["cluster"][(table["group"] == name) & (table["n"] > 0)]


def taken(entry: dict[str, Any], protocol: str, rows: np.ndarray) -> None:
    """Some rows of a table alone."""
    table = entry["tables"][protocol]
    entry["tables"][protocol] = {name: of[..., rows] for name, of in table.items()}


def renamed(entry: dict[str, Any], protocol: str, old: str, new: str) -> None:
    group = entry["tables"][protocol]["group"]
    group[group == old] = new


def dropped(entry: dict[str, Any], protocol: str) -> None:
    """Without a table."""
    for part in ("tables", "chosen"):
        entry[part].pop(protocol, None)


@altered("NaN is not a number")
def nan(entry):
    entry["functions"] = float("nan")


@altered("Infinity is not a number")
def infinite(entry):
    entry["functions"] = float("inf")


@altered("functions is inf, expected a whole number")
def number_that_overflows(entry):
    entry["functions"] = "HERE"
    return metadata(entry).replace('"HERE"', "1e999")


@altered("expected a whole number")
def number_as_text(entry):
    entry["functions"] = str(entry["functions"])


@altered("expected a whole number")
def true_for_a_number(entry):
    entry["chosen_on"]["functions"] = True


@altered("fewer hits than with one guess fewer")
def curve_that_falls(entry):
    """Heads of their own for k = 1 and k = 20, so that no head contradicts itself."""
    hits, names, held_out = (
        hits_of(entry, "published"),
        relations_of(entry, "published"),
        relations_of(entry, "held-out"),
    )
    name = next(name for name in names if hits[name][0, 0].any() and name not in held_out)
    entry["chosen"]["published"]["heads"][names.index(name)][3] = 5
    hits[name][0, 3] = 0
    put(entry, "published", hits)


@altered("held-out.keyword has fewer hits in a function than with one guess fewer")
def baseline_that_falls(entry):
    hits = hits_of(entry, "held-out", "keyword")
    name = next(name for name, of in hits.items() if of[0, 2].any())
    hits[name][0, 3] = 0
    put(entry, "held-out", hits, "keyword")


@altered("a combined baseline that is not the better of offset and keyword")
def baselines_made_small(entry):
    """The combined baseline is the worse of both everywhere."""
    chosen = entry["chosen"]["published"]
    chosen["better"] = (1 - np.array(chosen["better"])).tolist()


@altered("published.heads has .*, expected a whole number from 0 to")
def head_that_the_model_does_not_have(entry):
    entry["chosen"]["published"]["heads"][0][0] = entry["layers"] * entry["heads"]


@altered("published.better has 2, expected a whole number from 0 to 1")
def a_third_baseline(entry):
    entry["chosen"]["published"]["better"][0][0] = 2


@altered("chosen does not have a head for each relation of published")
def a_relation_without_heads(entry):
    entry["chosen"]["published"]["heads"].pop()


@altered("more hits of .* than the best head")
def held_out_better_than_published(entry):
    """One relation, of which the best heads hit nothing."""
    name = relations_of(entry, "held-out")[0]
    for protocol in ("published", "held-out"):
        hits = hits_of(entry, protocol)
        hits[name][:] = 0
        put(entry, protocol, hits)
    hits[name][0] = edges_of(entry)[name]
    hits[name][1] = hits[name][0]
    put(entry, "held-out", hits)
    dropped(entry, "beyond-offset")


@altered("of one and the same head")
def held_out_with_the_heads_of_published(entry):
    """It claims that it would have chosen the best heads, and leaves its scores."""
    names, heads = relations_of(entry, "published"), entry["chosen"]["published"]["heads"]
    of = [heads[names.index(name)] for name in relations_of(entry, "held-out")]
    entry["chosen"]["held-out"]["heads"] = of


@altered("more hits of .* than the best head|of one and the same head")
def every_hard_edge_found(entry):
    table = entry["tables"]["beyond-offset"]
    table["model"][:] = table["n"]


@altered("of one and the same head")
def more_hard_hits_than_its_head_has(entry):
    """Beyond offsets by the head of the held-out protocol, which finds less of all edges."""
    hits, whole = hits_of(entry, "beyond-offset"), hits_of(entry, "held-out")
    names, chosen = relations_of(entry, "held-out"), entry["chosen"]
    for place, name in enumerate(relations_of(entry, "beyond-offset")):
        functions = functions_of(entry, "beyond-offset", name)
        everything = whole[name][0, 0][np.isin(functions_of(entry, "held-out", name), functions)]
        edges = edges_of(entry, "beyond-offset")[name]
        if (edges > everything).any():
            at = int((edges > everything).argmax())
            chosen["beyond-offset"]["heads"][place][0] = chosen["held-out"]["heads"][names.index(name)][0]
            hits[name][0, 0] = 0
            hits[name][0, 0, at] = edges[at]
            return put(entry, "beyond-offset", hits)
    raise AssertionError("no function has a hard edge that its head misses")


@altered("more hard edges in a function than it has edges")
def more_hard_edges_than_edges(entry):
    table = entry["tables"]["beyond-offset"]
    table["n"][np.flatnonzero(table["n"])[0]] = 10**6


@altered("held-out has other edges of .* than published")
def other_edges_held_out(entry):
    entry["tables"]["held-out"]["n"][0] += 1


@altered("held-out has other edges of .* than published")
def a_function_left_out_of_one_relation(entry):
    """Where the model finds little; the function has others."""
    taken(entry, "held-out", np.arange(1, len(entry["tables"]["held-out"]["n"])))


@altered("in 5 functions, expected at least 30 in 6")
def a_relation_in_few_functions_beyond_offsets(entry):
    """Those that are left out have others."""
    table = entry["tables"]["beyond-offset"]
    rows = np.flatnonzero(table["group"] == table["group"][0])[5:]
    table["n"][rows] = 0
    for who in ("model", "offset", "keyword"):
        table[who][:, rows] = 0


@altered("which has no published hits")
def a_relation_of_ones_own_beyond_offsets(entry):
    """That of the dataset which is not published."""
    names = relations_of(entry, "published")
    name = relations_of(entry, "beyond-offset")[-1]
    taken(entry, "published", entry["tables"]["published"]["group"] != name)
    for field in ("heads", "better"):
        entry["chosen"]["published"][field].pop(names.index(name))


@altered("the functions of beyond-offset are not among those of published")
def functions_of_ones_own_beyond_offsets(entry):
    table = entry["tables"]["beyond-offset"]
    table["cluster"][np.flatnonzero(table["group"] == table["group"][0])[-1]] = 10**6


@altered("chosen does not have a head for each relation of beyond-offset")
def no_heads_beyond_offsets(entry):
    del entry["chosen"]["beyond-offset"]


@altered("it was copied")
def held_out_copied_from_published(entry):
    """Heads, and the hits of each function."""
    held_out_with_the_heads_of_published(entry)
    hits = hits_of(entry, "published")
    put(entry, "held-out", {name: hits[name] for name in relations_of(entry, "held-out")})


@altered("the functions are not .* places in a split of")
def emptied_skips(entry):
    entry["skips"] = {}
    for table in entry["tables"].values():
        last = table["cluster"] == table["cluster"].max()
        table["cluster"][last] = entry["functions"]


@altered("rows are not in order by table, group and cluster, each once")
def a_function_twice(entry):
    clusters = entry["tables"]["published"]["cluster"]
    clusters[1] = clusters[0]


@altered("the functions are not 40 places in a split of")
def a_function_too_few(entry):
    for protocol in PROTOCOLS:
        clusters = entry["tables"][protocol]["cluster"]
        taken(entry, protocol, clusters != entry["tables"]["published"]["cluster"].max())


@altered("the functions are not 41 places in a split of")
def a_function_too_many(entry):
    entry["functions"] += 1


@altered("held-out lacks functions of published")
def a_function_too_few_held_out(entry):
    clusters = entry["tables"]["held-out"]["cluster"]
    taken(entry, "held-out", clusters != clusters.max())


def of_many_rows(entry: dict[str, Any], rows: int) -> bytes:
    """Rows that take no bytes."""
    table, about = arrow_table(entry)
    many = pa.table([pa.repeat(pa.scalar(0, pa.int32()), rows)] * table.num_columns, table.schema)
    return in_parquet(many, json.dumps(about), use_dictionary=True)


@altered("100,000 rows in .* bytes")
def rows_without_end(entry):
    return of_many_rows(entry, 10**5)


@altered("1,000,000 rows in .* bytes")
def rows_without_end_of_many_functions(entry):
    """As many as it says."""
    entry["functions"] = 10**5
    return of_many_rows(entry, 10**6)


@altered("bytes, expected at most 60,000 for 40 functions")
def an_entry_larger_than_its_functions(entry):
    entry["versions"]["torch"] = "1" * 10**5


def one_of_several(entry: dict[str, Any]) -> int:
    """A function that is not the only one with a relation, by any protocol."""
    alone = {
        int(of[0])
        for at in PROTOCOLS
        for name in relations_of(entry, at)
        if len(of := functions_of(entry, at, name)) < 2
    }
    return next(of for of in entry["tables"]["published"]["cluster"].tolist() if of not in alone)


@altered("published has a function or a relation without any")
def a_function_without_edges(entry):
    first = one_of_several(entry)
    for table in entry["tables"].values():
        for values in (table["n"], table["model"], table["offset"], table["keyword"]):
            values[..., table["cluster"] == first] = 0


@altered("more hits in a function than it has edges")
def more_hits_than_edges(entry):
    entry["tables"]["published"]["model"][0, 0] = 10**6


@altered("more hits in a function than it has edges, or fewer than none")
def hits_below_nothing(entry):
    """So that another function has more."""
    entry["tables"]["held-out"]["offset"][0, 0] = -1


@altered("has numbers that are none, or of nothing|other edges|more hits in a function")
def hits_of_nothing(entry):
    """In a row without edges."""
    table = entry["tables"]["published"]
    table["n"][0], table["model"][0, 0] = 0, 1


@altered("of one and the same head")
def hits_moved_between_functions(entry):
    """The sums stay: only where they are is better for the paired test."""
    hits = hits_of(entry, "published")
    for name, edges in edges_of(entry).items():
        for of_cell in hits[name].reshape(12, -1):
            left = int(of_cell.sum())
            for place, room in enumerate(edges.tolist()):
                of_cell[place] = min(left, room)
                left -= int(of_cell[place])
    put(entry, "published", hits)


@altered("verified.functions is 0")
def verified_nothing(entry):
    entry["verified"] = {"functions": 0, "of": 24}


# ------------------------------------------------------------------------------------------------ entries: the columns


def column(change: Callable[[pa.Array, pa.Field], tuple[pa.Array, pa.Field]], **options: Any) -> Callable[..., bytes]:
    """The file with another third column."""

    def changed(entry: dict[str, Any]) -> bytes:
        table, about = arrow_table(entry)
        array, field = change(table.column(2).combine_chunks(), table.schema.field(2))
        return in_parquet(table.set_column(2, field, array), json.dumps(about), **options)

    return changed


def of_type(kind: pa.DataType) -> Callable[..., bytes]:
    return column(lambda array, field: (array.cast(kind), field.with_type(kind)))


@altered("a column .* of another kind")
def a_column_of_texts(entry):
    return of_type(pa.string())(entry)


@altered("a column .* of another kind")
def a_column_of_dates(entry):
    """The same 32 bits."""
    return of_type(pa.date32())(entry)


@altered("a column .* of another kind")
def a_column_of_long_numbers(entry):
    return of_type(pa.int64())(entry)


@altered("a column .* of another kind")
def a_column_that_may_be_empty(entry):
    return column(lambda array, field: (array, field.with_nullable(True)))(entry)


@altered("other columns")
def a_column_of_lists(entry):
    kind = pa.list_(pa.field("element", pa.int32(), nullable=False))
    return column(lambda array, field: (pa.array([[of] for of in array.to_pylist()], kind), field.with_type(kind)))(
        entry
    )


@altered("other columns|of another kind")
def a_column_within_another(entry):
    """Whose last name is the right one."""
    kind = pa.struct([pa.field("cluster", pa.int32(), nullable=False)])

    def nested(array: pa.Array, field: pa.Field) -> tuple[pa.Array, pa.Field]:
        return pa.StructArray.from_arrays([array], fields=list(kind)), field.with_type(kind)

    return column(nested)(entry)


@altered("other metadata, or several row groups")
def a_column_of_categories(entry):
    """Numbers in the file, and something else in the schema that Arrow keeps beside them."""
    table, about = arrow_table(entry)
    encoded = table.column(2).combine_chunks().dictionary_encode()
    changed = table.set_column(2, pa.field("cluster", encoded.type, nullable=False), encoded)
    return in_parquet(changed, json.dumps(about), store_schema=True)


@altered("other metadata, or several row groups")
def rows_in_several_groups(entry):
    table, about = arrow_table(entry)
    return in_parquet(table, json.dumps(about), max_rows=len(table) // 2 + 1)


@altered("a column .* of another kind")
def columns_that_unpack_without_end(entry):
    """To what nobody can say: the codec has no bound."""
    table, about = arrow_table(entry)
    return in_parquet(table, json.dumps(about), compression="zstd")


@altered("other columns")
def a_column_too_many(entry):
    table, about = arrow_table(entry)
    return in_parquet(table.append_column("p", table.column(2)), json.dumps(about))


@altered("names of tables or groups that are none, or twice")
def names_without_end(entry):
    renamed(entry, "published", relations_of(entry, "published")[0], "x" * 10**4)


@altered("names of groups that are not in order")
def names_out_of_order(entry):
    table, about = arrow_table(entry)
    about["hits"]["groups"] = about["hits"]["groups"][::-1]
    return in_parquet(table, json.dumps(about))


@altered("rows are not of all of")
def a_name_of_nothing(entry):
    table, about = arrow_table(entry)
    about["hits"]["groups"].append("~")
    return in_parquet(table, json.dumps(about))


# ------------------------------------------------------------------------------------------------ entries: the settings


@altered("settings.config is 'perl'")
def wrong_config(entry):
    settings(entry, config="perl")


@altered("expected a relation of")
def unknown_relation(entry):
    for protocol in PROTOCOLS:
        renamed(entry, protocol, "If:if->test", "If:if->why")


@altered("rows are not in order by table, group and cluster, each once")
def relation_twice(entry):
    names = relations_of(entry, "published")
    renamed(entry, "published", names[1], names[0])


@altered("a partial run is not published")
def partial_run(entry):
    settings(entry, limit=20)


@altered("scoring is 1, expected 2")
def another_scoring_version(entry):
    entry["scoring"] = 1


@altered("settings.split is 'validation'")
def scored_where_it_was_chosen(entry):
    settings(entry, split="validation")


@altered("a control is not a model")
def control(entry):
    entry["settings"].update(control="random-weights", seed=0)


@altered("settings.weights is 'norm', expected 'attention'")
def other_weights(entry):
    settings(entry, weights="norm")


@altered("settings.dtype is 'float8'")
def unknown_precision(entry):
    settings(entry, dtype="float8")


@altered("settings.data is")
def dataset_without_version(entry):
    settings(entry, data="codesyntax")


@altered("settings.model is")
def html_in_the_model_name(entry):
    settings(entry, model="<script>alert(1)</script>")


@altered("settings.model is")
def model_that_climbs_out_of_the_folder(entry):
    settings(entry, model="../../../etc/cron.d/model")


@altered("settings.model is")
def control_characters_in_the_model_name(entry):
    settings(entry, model="user/\x1b[2Jmodel\n")


@altered("settings.model is")
def model_name_in_letters_that_look_alike(entry):
    settings(entry, model="miсrosoft/codebert-base")  # its c is Cyrillic


@altered("settings.model is")
def model_name_with_a_dot_behind_it(entry):
    """A name that the Hub does not know, beside the one that it does."""
    settings(entry, model=f"{entry['settings']['model']}.")


@altered("plain text")
def html_in_a_reason(entry):
    entry["skips"] = {"<img src=x onerror=alert(1)>": 1}


@altered("settings.revision is 'main'")
def revision_that_moves(entry):
    settings(entry, revision="main")


@altered("ledgers.test is")
def digest_that_is_none(entry):
    entry["ledgers"]["test"] = "sha256"


# ------------------------------------------------------------------------------------------------- entries: the file


@altered("format is 99")
def unknown_format(entry):
    entry["format"] = 99


@altered("the tables are 'published, beyond-offset', expected published and held-out")
def one_protocol_only(entry):
    dropped(entry, "held-out")


@altered("instrument is 'tarot', expected 'attention'")
def unknown_instrument(entry):
    entry["instrument"] = "tarot"


@altered("instrument is a dict, expected 'attention'")
def an_instrument_that_is_no_name(entry):
    entry["instrument"] = {}


@altered("format is 4, which another version of codesyntax wrote, expected 5: make the entry again")
def entry_of_an_older_version(entry):
    entry["format"] = 4


@altered("occurs twice")
def model_twice(entry):
    return metadata(entry).replace('"settings": {', '"settings": {"model": "a", "model": "b", ', 1)


@altered("but the entry has")
def verified_more_than_there_is(entry):
    of = entry["functions"] + entry["chosen_on"]["functions"]
    entry["verified"] = {"functions": of + 1, "of": of}


@altered("but the entry has")
def verified_of_fewer_than_there_are(entry):
    entry["verified"] = {"functions": 1, "of": 1}


@altered("a list")
def list_of_entries(entry):
    return "[]"


@altered("no hits file, or a damaged one")
def no_parquet(entry):
    return b"<html>404 Not Found</html>"


@altered("no hits file, or a damaged one")
def cut_off(entry):
    return written(entry)[:-100]


@altered("no hits file, or a damaged one")
def bytes_that_flipped(entry):
    data = bytearray(written(entry))
    data[100:200] = bytes(100)
    return bytes(data)


@altered("no hits file, or a damaged one")
def empty(entry):
    return b""


@altered("not JSON in UTF-8")
def utf_16(entry):
    return in_parquet(arrow_table(entry)[0], metadata(entry).encode("utf-16"))


@altered("nested too deeply")
def nested_deeply(entry):
    return "[" * 25_000 + "]" * 25_000


@placed("larger than")
def larger_than_memory_allows(path, entry):
    path.write_bytes(written(entry))
    os.truncate(path, TOO_LARGE)  # sparse: takes no space


@placed("expected a regular file")
def link_out_of_the_folder(path, entry):
    target = path.with_suffix(".elsewhere")
    target.write_bytes(written(entry))
    path.symlink_to(target)


# --------------------------------------------------------------------------------------------------- results for submit


def in_results(reason: str):
    """A function that changes the results in a folder."""

    def register(write: Callable[[Path], None]):
        RESULTS.append(Forgery(write.__name__, write, reason))
        return write

    return register


def result_file(folder: Path, split: str = "test") -> Path:
    (file,) = folder.glob(f"*.{split}.*.json")
    return file


def edited(folder: Path, change: Callable[[dict], Any]) -> None:
    """The JSON of the test split changed by hand, its ledger left as it is."""
    file = result_file(folder)
    content = json.loads(file.read_text())
    made = change(content)
    file.write_text(made if isinstance(made, str) else json.dumps(content, indent=1) + "\n")


def recomputed(folder: Path, change: Callable[[RankLedger], RankLedger], splits=("test", "validation")) -> None:
    """Ledgers changed, and numbers that follow from them."""
    for split in splits:
        file = result_file(folder, split)
        ledger = change(RankLedger.load(ledger_path(file)))
        file.unlink()
        ledger_path(file).unlink()
        ProbeResult.from_ledger(ledger).save(folder)


def with_settings(**changed: Any) -> Callable[[RankLedger], RankLedger]:
    def change(ledger: RankLedger) -> RankLedger:
        made = {**ledger.settings, "settings": {**ledger.settings["settings"], **changed}}
        return dataclasses.replace(ledger, settings=made)

    return change


@in_results("do not follow from its ledger")
def result_above_100(folder):
    edited(folder, lambda content: content["scores"]["first"].update({"1": 101.0}))


@in_results("do not follow from its ledger")
def result_with_nan(folder):
    edited(folder, lambda content: content["scores"]["first"].update({"1": float("nan")}))


@in_results("do not follow from its ledger")
def result_with_a_relation_twice(folder):
    edited(
        folder, lambda content: json.dumps(content, indent=1).replace('"relations": {', '"relations": {"a": 1, "a": 2,')
    )


@in_results("do not follow from its ledger")
def result_with_another_signature(folder):
    edited(folder, lambda content: content.update(signature=content["signature"].replace("float32", "bfloat16")))


@in_results("do not follow from its ledger")
def result_below_0(folder):
    edited(folder, lambda content: content["relations"]["If:if->test"]["first"]["1"].update(score=-1.0))


@in_results("do not follow from its ledger")
def result_of_another_scoring_version(folder):
    edited(folder, lambda content: content.update(signature=content["signature"].replace("scoring:2", "scoring:1")))


@in_results("do not follow from its ledger")
def result_nested_deeply(folder):
    edited(folder, lambda content: "[" * 10**6)


@in_results("do not follow from its ledger")
def result_that_is_empty(folder):
    result_file(folder).write_bytes(b"")


@in_results("has results of the split validation only")
def result_without_ledger(folder):
    ledger_path(result_file(folder)).unlink()


@in_results("no counterpart on the split validation")
def result_without_validation(folder):
    result_file(folder, "validation").unlink()


@in_results("larger than")
def result_of_200_mb(folder):
    os.truncate(result_file(folder), TOO_LARGE)


@in_results("cannot read the result")
def result_that_is_no_text(folder):
    result_file(folder).write_bytes(b"\xff\xfe\x00")


@in_results("no rank ledger")
def ledger_that_is_none(folder):
    ledger_path(result_file(folder)).write_bytes(b"PAR1 or so")


@in_results("do not follow from its ledger")
def ledger_altered(folder):
    path = ledger_path(result_file(folder))
    ledger = RankLedger.load(path)
    dataclasses.replace(ledger, ranks=ledger.ranks // 2).save(path)


@in_results("ranks")
def ledger_altered_and_scored_again(folder):
    recomputed(folder, lambda ledger: dataclasses.replace(ledger, ranks=ledger.ranks // 2))


@in_results("but python/test has 4: its ledger was altered")
def hard_functions_left_out(folder):
    recomputed(folder, lambda ledger: ledger.only([*{*ledger.function.tolist()}][::2]), ["test"])


@in_results("partial run")
def result_of_a_part(folder):
    recomputed(folder, with_settings(limit=20))


@in_results("made with --max-length 48, but a task needs --max-length 511")
def result_of_short_functions(folder):
    """Short functions are easy: real scores, but of another task."""
    recomputed(folder, with_settings(max_length=48))


@in_results("made with --also-fits short/context, but a task needs no --also-fits")
def result_of_functions_that_fit_another_model(folder):
    recomputed(folder, with_settings(also_fits=["short/context"]))


@in_results("lacks the functions of more than 48 sub-tokens, all that the model reads")
def result_of_a_model_made_short(folder):
    """The tokenizer of the model was told to cut, and the settings are those of the task."""

    def cut(ledger: RankLedger) -> RankLedger:
        return dataclasses.replace(ledger, settings={**ledger.settings, "skips": {"more than 48 sub-tokens": 3}})

    recomputed(folder, cut)


@in_results("unknown config 'perl'")
def result_of_a_wrong_config(folder):
    recomputed(folder, with_settings(config="perl"))


@in_results("unknown direction 'sideways'")
def result_of_a_wrong_direction(folder):
    recomputed(folder, with_settings(direction="sideways"))


@in_results("If:if->why', expected a relation of the dataset")
def result_with_an_unknown_relation(folder):
    def renamed(ledger: RankLedger) -> RankLedger:
        return dataclasses.replace(
            ledger, relations=[name.replace("If:if->test", "If:if->why") for name in ledger.relations]
        )

    recomputed(folder, renamed)


@in_results("is a result of random-weights, expected one of the attention weights")
def result_of_a_control(folder):
    recomputed(folder, with_settings(control="random-weights", seed=0))


@in_results("version")
def result_of_another_dataset_version(folder):
    recomputed(folder, with_settings(data="codesyntax@9.9.9"))


@in_results("labels")
def result_of_other_labels(folder):
    recomputed(folder, with_settings(labels="0" * 12))


@in_results("model")
def result_of_another_revision(folder):
    recomputed(folder, with_settings(revision="0" * 64))


@in_results("settings.model is")
def result_with_html(folder):
    recomputed(folder, with_settings(model="<b>best</b>"))


@in_results("settings.model is")
def result_that_climbs_out_of_the_folder(folder):
    recomputed(folder, with_settings(model="../../best"))


@in_results("edges in functions that have")
def chosen_on_the_test_split(folder):
    """The ledger of the test split passed off as that of validation: held-out numbers as good as the published ones."""
    file = result_file(folder, "validation")
    kept = RankLedger.load(ledger_path(file)).settings["settings"]
    file.unlink()
    ledger_path(file).unlink()
    test = RankLedger.load(ledger_path(result_file(folder)))
    ProbeResult.from_ledger(with_settings(split="validation", labels=kept["labels"])(test)).save(folder)


@in_results("scoring version 1")
def ledger_without_settings(folder):
    path = ledger_path(result_file(folder))
    dataclasses.replace(RankLedger.load(path), settings={"settings": {"model": 5}}).save(path)


# ------------------------------------------------------------------------------------------------------ ranks in ledgers


def in_ledger(change: Callable[[RankLedger, RankLedger], None]):
    LEDGERS.append(change)
    return change


def forged(change: Callable[[RankLedger, RankLedger], None], ledger: RankLedger, validation: RankLedger) -> RankLedger:
    """A copy of `ledger`, changed."""
    copied = dataclasses.replace(ledger, ranks=ledger.ranks.copy())
    change(copied, validation)
    return copied


def relations(ledger: RankLedger, fewest: int = 1, most: int = 10**9) -> dict[str, np.ndarray]:
    """Relations in the mean with so many edges, those with the fewest first: name -> where its edges stand."""
    edges = {
        name: np.flatnonzero(ledger.relation == number)
        for number, name in enumerate(ledger.relations)
        if name not in NOT_IN_MEAN
    }
    return dict(
        sorted(((n, at) for n, at in edges.items() if fewest <= len(at) <= most), key=lambda item: len(item[1]))
    )


def claim(
    ledger: RankLedger, edges: np.ndarray, head: tuple[int, int], rank: int = 0, rules=RULES, behind: int = 0
) -> None:
    """Ranks of `edges` by one head that are from `behind` on become `rank` if that is better."""
    for rule in map(RULES.index, rules):
        ranks = ledger.ranks[rule, edges, *head]
        ledger.ranks[rule, edges, *head] = np.where(ranks >= behind, np.minimum(ranks, rank), ranks)


def in_some_functions(ledger: RankLedger, edges: np.ndarray, every: int) -> np.ndarray:
    """Those of `edges` that are in every so manyth of their functions."""
    return edges[np.isin(ledger.function[edges], np.unique(ledger.function[edges])[::every])]


def best(ledger: RankLedger, k: int = 1, rule: str = "first") -> dict[str, tuple[int, int]]:
    return {name: tuple(heads[RULES.index(rule), k - 1].tolist()) for name, heads in choose(ledger).items()}


@in_ledger
def one_head_of_each_rare_relation(ledger, validation):
    heads = best(ledger)
    for name, edges in relations(ledger, most=20).items():
        claim(ledger, edges, heads[name])


@in_ledger
def one_head_of_each_rare_relation_by_the_rule_that_counts(ledger, validation):
    heads = best(ledger)
    for name, edges in relations(ledger, most=20).items():
        claim(ledger, edges, heads[name], rules=["first"])


@in_ledger
def half_the_functions_of_rare_relations(ledger, validation):
    heads = best(ledger)
    for name, edges in relations(ledger, most=40).items():
        claim(ledger, in_some_functions(ledger, edges, 2), heads[name], rules=["first"])


@in_ledger
def a_third_of_the_functions_of_rare_relations(ledger, validation):
    heads = best(ledger)
    for name, edges in relations(ledger, most=40).items():
        claim(ledger, in_some_functions(ledger, edges, 3), heads[name], rules=["first"])


@in_ledger
def one_edge_of_each_relation(ledger, validation):
    """The first that its head misses."""
    heads = best(ledger)
    for name, edges in relations(ledger).items():
        layer, head = heads[name]
        missed = edges[ledger.ranks[0, edges, layer, head] > 0]
        claim(ledger, missed[:1], (layer, head), rules=["first"])


@in_ledger
def the_rarest_three_relations(ledger, validation):
    heads = best(ledger)
    for name, edges in [*relations(ledger).items()][:3]:
        claim(ledger, edges, heads[name], rules=["first"])


@in_ledger
def heads_that_are_bad_at_rare_relations(ledger, validation):
    """Another head for each, which nobody looks at."""
    for number, edges in enumerate(relations(ledger, most=20).values()):
        claim(
            ledger, edges, np.unravel_index(number % ledger.ranks[0, 0].size, ledger.ranks.shape[2:]), rules=["first"]
        )


@in_ledger
def ranks_just_behind_the_first(ledger, validation):
    """Near misses of the rarer half of the relations: second place becomes first."""
    heads = best(ledger)
    for name, edges in [*relations(ledger).items()][:17]:
        near = edges[ledger.ranks[0, edges, *heads[name]] == 1]
        claim(ledger, near, heads[name], rules=["first"])


@in_ledger
def the_twentieth_guess(ledger, validation):
    """All that rare relations lack at k = 20."""
    heads = best(ledger, 20)
    for name, edges in relations(ledger, most=60).items():
        claim(ledger, edges, heads[name], 19, ["first"])


@in_ledger
def the_tenth_guess_of_any_token(ledger, validation):
    heads = best(ledger, 10, "any")
    for name, edges in relations(ledger, most=60).items():
        claim(ledger, edges, heads[name], 9, ["any"])


@in_ledger
def the_third_guess_of_the_last_token(ledger, validation):
    heads = best(ledger, 3, "last")
    for name, edges in relations(ledger, most=60).items():
        claim(ledger, edges, heads[name], 2, ["last"])


@in_ledger
def the_heads_chosen_on_validation(ledger, validation):
    """Held-out scores made as good as published ones."""
    heads = best(validation)
    for name, edges in relations(ledger, most=60).items():
        claim(ledger, edges, heads.get(name, (0, 0)), rules=["first"])


@in_ledger
def the_two_functions_that_count_most(ledger, validation):
    """All edges, in the two functions with most edges of relations in the mean, each relation weighing the same."""
    heads = best(ledger)
    weight = np.zeros(ledger.function.max() + 1)
    for edges in relations(ledger).values():
        np.add.at(weight, ledger.function[edges], 1 / len(edges))
    for name, edges in relations(ledger).items():
        claim(ledger, edges[np.isin(ledger.function[edges], weight.argsort()[-2:])], heads[name], rules=["first"])


@in_ledger
def a_tenth_of_the_functions(ledger, validation):
    heads = best(ledger)
    for name, edges in relations(ledger).items():
        claim(ledger, edges[ledger.function[edges] % 10 == 3], heads[name], rules=["first"])


@in_ledger
def a_quarter_of_the_most_frequent_relation(ledger, validation):
    name, edges = [*relations(ledger).items()][-1]
    claim(ledger, in_some_functions(ledger, edges, 4), best(ledger)[name], rules=["first"])


@in_ledger
def one_head_finds_everything(ledger, validation):
    ledger.ranks[..., 0, 0] = 0


@in_ledger
def every_rank_one_better(ledger, validation):
    ledger.ranks[(ledger.ranks > 0) & (ledger.ranks < 255)] -= 1


@in_ledger
def two_heads_made_one(ledger, validation):
    """The better of its two ranks everywhere."""
    ledger.ranks[..., 0, 0] = ledger.ranks[:, :, :2, :2].min(axis=(2, 3))


@in_ledger
def heads_of_the_last_layer_turned_round(ledger, validation):
    ledger.ranks[:, :, -1] = ledger.ranks[:, :, -1, ::-1].copy()


@in_ledger
def rules_exchanged(ledger, validation):
    """What is found by any token passed off as found by the first."""
    ledger.ranks[0] = ledger.ranks[1]


@in_ledger
def one_rank_in_a_hundred(ledger, validation):
    ledger.ranks[np.random.default_rng(0).random(ledger.ranks.shape) < 0.01] = 0


@in_ledger
def a_fixed_offset_instead_of_a_head(ledger, validation):
    """The next token, whatever the model attends to."""
    ledger.ranks[:, :, 0, 0] = np.where(ledger.first == ledger.head + 1, 0, 255)


# ------------------------------------------------------------------------------------- heads chosen, and hard edges found


PAIRS: list[Callable[[RankLedger, RankLedger], None]] = []
"""Each changes the ranks of the ledgers of test and validation: what heads find of hard edges, and which are chosen."""


def in_pair(change: Callable[[RankLedger, RankLedger], None]):
    PAIRS.append(change)
    return change


def forged_pair(
    change: Callable[[RankLedger, RankLedger], None], test: RankLedger, validation: RankLedger
) -> tuple[RankLedger, RankLedger]:
    """Copies of both, changed."""
    made = [dataclasses.replace(ledger, ranks=np.array(ledger.ranks)) for ledger in (test, validation)]
    change(*made)
    return made[0], made[1]


def hard(test: RankLedger, validation: RankLedger) -> tuple[np.ndarray, np.ndarray]:
    """Where the hard edges of both stand."""
    offsets = best_offsets(validation, AVOIDED[0])
    first, second = (np.flatnonzero(is_hard(ledger, offsets)) for ledger in (test, validation))
    return first, second


def elect(
    test: RankLedger,
    validation: RankLedger,
    functions: int,
    k: int = 1,
    rule: str = "first",
    only: tuple[np.ndarray, np.ndarray] | None = None,
) -> None:
    """In so many functions of validation, the head that is best on test finds every edge, of `only` these edges."""
    on_test, on_validation = only or (np.arange(len(test)), np.arange(len(validation)))
    heads = best(test.take(np.sort(on_test)), k, rule)
    names = np.array(validation.relations, dtype=object)[validation.relation]
    weight = np.bincount(validation.function[on_validation])
    chosen = weight.argsort()[::-1][:functions]
    within = on_validation[np.isin(validation.function[on_validation], chosen)]
    for name, head in heads.items():
        claim(validation, within[names[within] == name], head, k - 1, [rule])


@in_pair
def one_function_of_validation_elects_the_best_heads(test, validation):
    elect(test, validation, 1)


@in_pair
def nine_functions_of_validation_elect_the_best_heads(test, validation):
    elect(test, validation, 9)


@in_pair
def all_functions_of_validation_elect_the_best_heads(test, validation):
    elect(test, validation, 10**6)


@in_pair
def two_functions_elect_heads_for_hard_edges(test, validation):
    elect(test, validation, 2, only=hard(test, validation))


@in_pair
def nine_functions_elect_heads_for_hard_edges(test, validation):
    elect(test, validation, 9, only=hard(test, validation))


@in_pair
def three_functions_elect_heads_for_twenty_guesses(test, validation):
    elect(test, validation, 3, 20, "any")


@in_pair
def the_heads_that_were_chosen_find_nothing_in_five_functions(test, validation):
    """So that others are chosen: nothing is claimed to be better than it is."""
    weight = np.bincount(validation.function)
    few = np.isin(validation.function, weight.argsort()[::-1][:5])
    for name, head in best(validation).items():
        of = few & (validation.relation == validation.relations.index(name))
        validation.ranks[0, of, head[0], head[1]] = 255


@in_pair
def one_function_of_test_finds_its_hard_edges(test, validation):
    find_hard(test, validation, 1)


@in_pair
def three_functions_of_test_find_their_hard_edges(test, validation):
    find_hard(test, validation, 3)


@in_pair
def the_rarest_relation_finds_its_hard_edges(test, validation):
    found = beyond(validation, test, AVOIDED[0])
    name = min(found.chosen.relations, key=lambda name: found.edges[name][0])
    edges, _ = hard(test, validation)
    of = edges[test.relation[edges] == test.relations.index(name)]
    claim(test, of, found.chosen.choice[name][0, 0], rules=["first"])


@in_pair
def half_a_point_beyond_offsets_where_it_shows_least(test, validation):
    """One hard edge in each of the functions with fewest, until the mean has gained a little more than half a point."""
    found = beyond(validation, test, AVOIDED[0])
    edges, _ = hard(test, validation)
    names = found.in_mean
    count = np.bincount(test.function[edges], minlength=test.function.max() + 1)
    gained = 0.0
    for edge in edges[np.argsort(count[test.function[edges]], kind="stable")]:
        name = test.relations[test.relation[edge]]
        if name in names and gained <= 0.55:
            head = found.chosen.choice[name][0, 0]
            gained += 100 / len(names) / found.edges[name][0] * (test.ranks[0, edge, *head] > 0)
            claim(test, np.array([edge]), head, rules=["first"])


@in_pair
def half_a_point_of_all_edges_one_in_each_function(test, validation):
    """The same of held-out."""
    heads, of, gained = best(validation), relations(test), 0.0
    names = [name for name in of if name in heads]
    for name in names:
        for edge in of[name][:: max(1, len(of[name]) // 2)]:
            if gained <= 0.55:
                gained += 100 / len(names) / len(of[name]) * (test.ranks[0, edge, *heads[name]] > 0)
                claim(test, np.array([edge]), heads[name], rules=["first"])


@in_pair
def a_few_hard_edges_and_one_election(test, validation):
    """On both splits at once."""
    find_hard(test, validation, 1)
    elect(test, validation, 1)


def find_hard(test: RankLedger, validation: RankLedger, functions: int) -> None:
    """In so many functions with most hard edges, the heads of the beyond-offset score find them all."""
    found = beyond(validation, test, AVOIDED[0])
    edges, _ = hard(test, validation)
    chosen = np.bincount(test.function[edges]).argsort()[::-1][:functions]
    for name in found.chosen.relations:
        of = edges[(test.relation[edges] == test.relations.index(name)) & np.isin(test.function[edges], chosen)]
        claim(test, of, found.chosen.choice[name][0, 0], rules=["first"])


# ----------------------------------------------------------------------------------------- entries beside honest ledgers


SUBMITTED: list[tuple[Callable[[dict[str, Any]], None], str]] = []
"""Each changes an entry whose ledgers stay: forms that entries may have, so that only data and ledgers can tell. With a
regular expression of the reason, empty for what is not refused, since only the board's own run counts."""


def in_submitted(reason: str):
    def register(change: Callable[[dict[str, Any]], None]):
        SUBMITTED.append((change, reason))
        return change

    return register


def without(entry: dict[str, Any], gone: np.ndarray) -> None:
    """Leaves out functions and all that is said of them."""
    for protocol in PROTOCOLS:
        names, chosen = relations_of(entry, protocol), entry["chosen"][protocol]
        taken(entry, protocol, ~np.isin(entry["tables"][protocol]["cluster"], gone))
        left = relations_of(entry, protocol)
        for field in ("heads", "better"):
            chosen[field] = [value for name, value in zip(names, chosen[field]) if name in left]


@in_submitted("with other settings|it was copied")
def a_lower_copy_in_other_case(entry):
    settings(entry, model=entry["settings"]["model"].swapcase())
    for protocol in ("published", "held-out"):
        nothing_hit(entry, protocol, "model")
    dropped(entry, "beyond-offset")


@in_submitted("does not follow from its ledgers|it was copied")
def a_lower_entry_for_the_same_model(entry):
    for protocol in PROTOCOLS:
        nothing_hit(entry, protocol, "model")


@in_submitted("")
def it_says_that_it_is_verified(entry):
    of = entry["functions"] + entry["chosen_on"]["functions"]
    entry["verified"] = {"functions": of, "of": of}


@in_submitted("with other settings")
def a_copy_under_another_name(entry):
    settings(entry, model="liar/best")


@in_submitted("with other settings")
def a_copy_under_a_name_that_looks_alike(entry):
    settings(entry, model=entry["settings"]["model"].replace("i", "l"))


@in_submitted("is missing beside the entry")
def a_copy_with_digests_of_its_own(entry):
    settings(entry, model="liar/best")
    entry["ledgers"] = dict.fromkeys(entry["ledgers"], "0" * 64)


@in_submitted("its baselines differ from the data's")
def baselines_that_find_nothing(entry):
    for protocol in PROTOCOLS:
        nothing_hit(entry, protocol, "offset", "keyword")


@in_submitted("run does not follow from its ledgers")
def another_family(entry):
    entry["run"]["family"] = "gpt5"


@in_submitted("layers does not follow from its ledgers")
def more_layers(entry):
    entry["layers"] *= 2


@in_submitted("run does not follow from its ledgers")
def another_device(entry):
    entry["run"]["device"] = "tpu"


@in_submitted("differ from the data's|a function or a relation without any|expected at least 30 in 6")
def unread_functions_left_out(entry):
    without(entry, np.array(entry["unread"]))
    entry |= {"skips": {"no relations": sum(entry["skips"].values())}, "unread": []}


@in_submitted("differ from the data's|has fewer hits than by a stricter rule|more hits of .* than the best head")
def a_function_with_few_hits_left_out(entry):
    functions = np.unique(entry["tables"]["published"]["cluster"])
    without(entry, np.setdiff1d(functions, entry["unread"])[:1])
    entry["functions"] -= 1
    entry["skips"]["no relations"] = entry["skips"].get("no relations", 0) + 1


@in_submitted("functions does not follow from its ledgers")
def unread_functions_that_are_said_to_be_read(entry):
    entry["functions"] += len(entry["unread"])
    entry |= {"skips": {}, "unread": []}


@in_submitted("published does not follow from its ledgers")
def every_edge_of_a_relation_found(entry):
    """By all heads that are named, in the functions that were read."""
    both, edges = {protocol: hits_of(entry, protocol) for protocol in ("published", "held-out")}, edges_of(entry)
    held_out = both["held-out"]
    name = max(held_out, key=lambda name: int((edges[name] - held_out[name][0, 0]).sum()))
    read = ~np.isin(functions_of(entry, "published", name), entry["unread"])
    for protocol, hits in both.items():
        hits[name][:] = np.where(read, edges[name], 0)
        put(entry, protocol, hits)
    dropped(entry, "beyond-offset")


@in_submitted("chosen does not follow from its ledgers")
def other_heads_for_the_same_hits(entry):
    """Everywhere the next one, so that no head contradicts itself."""
    number = entry["layers"] * entry["heads"]
    for chosen in entry["chosen"].values():
        chosen["heads"] = ((np.array(chosen["heads"]) + 1) % number).tolist()


@in_submitted("differ from the data's|it was copied")
def fewer_edges_than_there_are(entry):
    """Where no head finds all of them."""
    dropped(entry, "beyond-offset")
    for protocol, table in entry["tables"].items():
        nothing_hit(entry, protocol, "model", "offset", "keyword")
        table["n"] = np.minimum(table["n"], 1)


@in_submitted("its baselines differ from the data's")
def a_baseline_that_finds_one_edge_less(entry):
    """By all rules and guesses, in one function."""
    offset = hits_of(entry, "beyond-offset", "offset")
    name = max(offset, key=lambda name: int(offset[name][0, 0].sum()))
    place = int(offset[name][0, 0].argmax())
    offset[name][..., place] = 0
    put(entry, "beyond-offset", offset, "offset")


# --------------------------------------------------------------------------------------------- rows of masking, of silencing


MASKED: list[Callable[[np.ndarray], None]] = []
"""Each changes the rows of a masking ledger."""

SILENCED: list[Callable[[np.ndarray], None]] = []
"""Each changes the rows of a silencing ledger, whose heads stay."""


def perfect(rows: np.ndarray, of: np.ndarray) -> None:
    for name in SIMILARITIES:
        rows[name][of] = 1
    for name in HITS:
        rows[name][of] = rows["masked"][of]


def worst_functions(rows: np.ndarray, number: int) -> np.ndarray:
    """Rows of T1 in the functions that lose most."""
    first = rows["copy"] == 0
    lost = np.bincount(rows["function"][first], 1 - np.nan_to_num(rows["jaccard"][first]))
    return first & np.isin(rows["function"], lost.argsort()[::-1][:number])


def in_masked(change: Callable[[np.ndarray], None]):
    MASKED.append(change)
    return change


@in_masked
def the_worst_function_is_restored(rows):
    perfect(rows, worst_functions(rows, 1))


@in_masked
def three_functions_are_restored(rows):
    perfect(rows, worst_functions(rows, 3))


@in_masked
def the_worst_functions_could_not_be_parsed(rows):
    """NaN, which the means of a report leave out."""
    for name in SIMILARITIES:
        rows[name][worst_functions(rows, 5)] = np.nan
    of = np.isnan(rows["jaccard"])
    for name in FILLED:
        rows[name][of] = np.nan


@in_masked
def controls_restore_less(rows):
    """T1 - T0 grows."""
    of = (rows["copy"] > 0) & (rows["function"] % 4 == 0)
    for name in SIMILARITIES:
        rows[name][of] *= 0.9
    for name in HITS:
        rows[name][of] //= 2


@in_masked
def one_hit_more_in_every_function(rows):
    of = (rows["copy"] == 0) & (rows["hits_1"] < rows["hits_5"])
    rows["hits_1"][of] += 1


@in_masked
def the_rarest_type_is_restored(rows):
    """Each node type weighs the same."""
    first = rows["copy"] == 0
    types, sizes = np.unique(rows["node_type"][first], return_counts=True)
    perfect(rows, first & (rows["node_type"] == types[sizes.argmin()]))


@in_masked
def the_better_of_both_arms_is_called_t1(rows):
    """In one function in five: what a control restored stands at the node, and the other way round."""
    for at in np.flatnonzero((rows["copy"] == 0) & (rows["function"] % 5 == 0)):
        if rows["jaccard"][at] < rows["jaccard"][at + 1]:
            for name in SIMILARITIES:
                rows[name][[at, at + 1]] = rows[name][[at + 1, at]]


@in_masked
def every_similarity_a_little_higher(rows):
    of = rows["copy"] == 0
    for name in SIMILARITIES:
        rows[name][of] = np.minimum(rows[name][of] + 0.01, 1)


@in_masked
def what_easy_functions_restore_at_hard_ones(rows):
    """Of each type, in every fourth function: the outcomes of the function that restores most."""
    first = rows["copy"] == 0
    for kind in np.unique(rows["node_type"]):
        of = np.flatnonzero(first & (rows["node_type"] == kind))
        easiest = of[np.nan_to_num(rows["jaccard"][of]).argmax()]
        for name in SIMILARITIES:
            rows[name][of[::4]] = rows[name][easiest]


def in_silenced(change: Callable[[np.ndarray], None]):
    SILENCED.append(change)
    return change


@in_silenced
def the_best_head_costs_more_in_one_function(rows):
    of = (rows["silenced"] == 1) & (rows["function"] == rows["function"][0])
    rows["log_probability"][of] -= 2


@in_silenced
def the_best_head_costs_a_little_more_everywhere(rows):
    rows["log_probability"][rows["silenced"] == 1] -= 0.02


@in_silenced
def matched_heads_cost_nothing_in_a_third_of_functions(rows):
    for place in np.flatnonzero((rows["silenced"] >= 2) & (rows["function"] % 3 == 0)):
        whole = place - rows["silenced"][place]
        rows["log_probability"][place] = rows["log_probability"][whole]


@in_silenced
def the_whole_model_knows_more(rows):
    of = (rows["silenced"] == 0) & (rows["function"] % 2 == 0)
    rows["log_probability"][of] *= 0.5


@in_silenced
def what_silencing_helped_is_hidden(rows):
    """A cost below nothing becomes nothing."""
    best = np.flatnonzero(rows["silenced"] == 1)
    rows["log_probability"][best] = np.minimum(rows["log_probability"][best], rows["log_probability"][best - 1])


@in_silenced
def best_and_matched_heads_exchanged_where_these_cost_more(rows):
    best = np.flatnonzero(rows["silenced"] == 1)
    more = best[rows["log_probability"][best + 1] < rows["log_probability"][best]]
    both = rows["log_probability"]
    both[more], both[more + 1] = both[more + 1], both[more].copy()


@in_silenced
def one_relation_costs_more_in_a_quarter_of_its_functions(rows):
    best = np.flatnonzero((rows["silenced"] == 1) & (rows["relation"] == rows["relation"][0]))
    rows["log_probability"][best[::4]] -= 0.3


@in_silenced
def matched_heads_help(rows):
    rows["log_probability"][rows["silenced"] >= 2] += 0.01
