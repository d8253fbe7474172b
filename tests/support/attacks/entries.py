"""Forged entries: files that nobody should believe, as `support.evidence.hits_files` has them, each made of an honest one.

ENTRIES are refused when they are read. SUBMITTED have forms that entries may have, beside honest ledgers: only data, ledgers
and the board's own run can tell.
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from support.attacks.attack import Attack, attacks
from support.evidence.hits_files import arrow_table, in_parquet, written

from codesyntax_dataset.protocol import TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES

Entry = dict[str, Any]

PROTOCOLS = ("published", "held-out", "beyond-offset")
ENTRIES: list[Attack] = []
SUBMITTED: list[Attack] = []


def file_of(attack: Attack, honest: Entry) -> bytes:
    """The file of a forged entry."""
    entry = copy.deepcopy(honest)
    forged = attack.forge(entry)
    if isinstance(forged, str):  # other metadata
        return in_parquet(arrow_table(honest)[0], forged)
    return written(entry) if forged is None else forged


def metadata(entry: Entry) -> str:
    """The text in the file."""
    return json.dumps(arrow_table(entry)[1])


def settings(entry: Entry, **changed: Any) -> None:
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
    """Change or remove something in a JSON object or list, found by going down from the top; `data`: hypothesis's."""
    step = data.draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
    if isinstance(value[step], (dict, list)) and value[step] and data.draw(st.integers(0, 4)):
        change(value[step], data)
    elif data.draw(st.booleans()):
        value[step] = data.draw(STRANGE)
    else:
        del value[step]


# ------------------------------------------------------------------------------------------------------ parts of an entry


def hits_of(entry: Entry, protocol: str, system: str = "model") -> dict[str, np.ndarray]:
    """Relation -> its hits (rules, k, f), which can be changed and given to `put`."""
    table = entry["tables"][protocol]
    shape = (len(RULES), len(TABLE_KS), -1)
    return {
        name: table[system][:, rows_of(entry, protocol, name)].reshape(shape)
        for name in relations_of(entry, protocol)
    }


def put(entry: Entry, protocol: str, hits: dict[str, np.ndarray], system: str = "model") -> None:
    for name, of_relation in hits.items():
        rows = rows_of(entry, protocol, name)
        entry["tables"][protocol][system][:, rows] = of_relation.reshape(
            len(RULES) * len(TABLE_KS), -1
        )


def rows_of(entry: Entry, protocol: str, name: str) -> np.ndarray:
    table = entry["tables"][protocol]
    return (table["group"] == name) & (table["n"] > 0)


def relations_of(entry: Entry, protocol: str) -> list[str]:
    return sorted(set(entry["tables"][protocol]["group"].tolist()))


def edges_of(entry: Entry, protocol: str = "published") -> dict[str, np.ndarray]:
    """Relation -> its edges in the functions that have any (f,)."""
    n = entry["tables"][protocol]["n"]
    return {name: n[rows_of(entry, protocol, name)] for name in relations_of(entry, protocol)}


def functions_of(entry: Entry, protocol: str, name: str) -> np.ndarray:
    return entry["tables"][protocol]["cluster"][rows_of(entry, protocol, name)]


def nothing_hit(entry: Entry, protocol: str, *systems: str) -> None:
    for system in systems:
        entry["tables"][protocol][system][:] = 0


def taken(entry: Entry, protocol: str, rows: np.ndarray) -> None:
    """Some rows of a table alone."""
    entry["tables"][protocol] = {
        name: column[..., rows] for name, column in entry["tables"][protocol].items()
    }


def renamed(entry: Entry, protocol: str, old: str, new: str) -> None:
    group = entry["tables"][protocol]["group"]
    group[group == old] = new


def dropped(entry: Entry, protocol: str) -> None:
    """Without a table."""
    for part in ("tables", "chosen"):
        entry[part].pop(protocol, None)


def last_function(entry: Entry, protocol: str = "published") -> int:
    return entry["tables"][protocol]["cluster"].max()


# ------------------------------------------------------------------------------------------------------------ the numbers

refused = attacks(ENTRIES)


@refused("fewer hits than with one guess fewer")
def curve_that_falls(entry):
    """Heads of their own for k = 1 and k = 20, so that no head contradicts itself."""
    hits, names = hits_of(entry, "published"), relations_of(entry, "published")
    alone = set(names) - set(relations_of(entry, "held-out"))
    name = next(name for name in names if hits[name][0, 0].any() and name in alone)
    entry["chosen"]["published"]["heads"][names.index(name)][3] = 5
    hits[name][0, 3] = 0
    put(entry, "published", hits)


@refused("chosen does not have a head for each relation of published")
def a_relation_without_heads(entry):
    entry["chosen"]["published"]["heads"].pop()


@refused("chosen does not have a head for each relation of beyond-offset")
def no_heads_beyond_offsets(entry):
    del entry["chosen"]["beyond-offset"]


@refused("more hits of .* than the best head")
def held_out_better_than_published(entry):
    """One relation, of which the best heads hit nothing."""
    name = relations_of(entry, "held-out")[0]
    for protocol in ("published", "held-out"):
        hits = hits_of(entry, protocol)
        hits[name][:] = 0
        put(entry, protocol, hits)
    hits[name][:2] = edges_of(entry)[name]
    put(entry, "held-out", hits)
    dropped(entry, "beyond-offset")


@refused("of one and the same head")
def held_out_with_the_heads_of_published(entry):
    """It claims that it would have chosen the best heads, and leaves its scores."""
    names, heads = relations_of(entry, "published"), entry["chosen"]["published"]["heads"]
    entry["chosen"]["held-out"]["heads"] = [
        heads[names.index(name)] for name in relations_of(entry, "held-out")
    ]


@refused("more hits of .* than the best head|of one and the same head")
def every_hard_edge_found(entry):
    table = entry["tables"]["beyond-offset"]
    table["model"][:] = table["n"]


@refused("of one and the same head")
def more_hard_hits_than_its_head_has(entry):
    """Beyond offsets by the head of the held-out protocol, which finds less of all edges."""
    hits, whole = hits_of(entry, "beyond-offset"), hits_of(entry, "held-out")
    names, edges = relations_of(entry, "held-out"), edges_of(entry, "beyond-offset")
    hard, heads = (entry["chosen"][protocol]["heads"] for protocol in ("beyond-offset", "held-out"))
    for number, name in enumerate(relations_of(entry, "beyond-offset")):
        functions = functions_of(entry, "beyond-offset", name)
        everything = whole[name][0, 0][np.isin(functions_of(entry, "held-out", name), functions)]
        missed = np.flatnonzero(edges[name] > everything)
        if len(missed):
            hard[number][0] = heads[names.index(name)][0]
            hits[name][0, 0] = 0
            hits[name][0, 0, missed[0]] = edges[name][missed[0]]
            return put(entry, "beyond-offset", hits)
    raise AssertionError("no function has a hard edge that its head misses")


@refused("held-out has other edges of .* than published")
def a_function_left_out_of_one_relation(entry):
    """Where the model finds little; the function has others."""
    taken(entry, "held-out", np.arange(1, len(entry["tables"]["held-out"]["n"])))


@refused("in 5 functions, expected at least 30 in 6")
def a_relation_in_few_functions_beyond_offsets(entry):
    """Of one of them there are many edges, everywhere; those that are left out have others."""
    table = entry["tables"]["beyond-offset"]
    name = table["group"][0]
    rows = np.flatnonzero(table["group"] == name)
    for column in ("n", "model", "offset", "keyword"):
        table[column][..., rows[5:]] = 0
    for other in entry["tables"].values():
        first = other["cluster"] == table["cluster"][rows[0]]
        other["n"][(other["group"] == name) & first] += 100


@refused("which has no published hits")
def a_relation_of_ones_own_beyond_offsets(entry):
    """That of the dataset which is not published."""
    names, name = relations_of(entry, "published"), relations_of(entry, "beyond-offset")[-1]
    taken(entry, "published", entry["tables"]["published"]["group"] != name)
    for field in ("heads", "better"):
        entry["chosen"]["published"][field].pop(names.index(name))


@refused("the functions of beyond-offset are not among those of published")
def functions_of_ones_own_beyond_offsets(entry):
    table = entry["tables"]["beyond-offset"]
    table["cluster"][np.flatnonzero(table["group"] == table["group"][0])[-1]] = 10**6


@refused("it was copied")
def held_out_copied_from_published(entry):
    """Heads, and the hits of each function."""
    held_out_with_the_heads_of_published(entry)
    hits = hits_of(entry, "published")
    put(entry, "held-out", {name: hits[name] for name in relations_of(entry, "held-out")})


@refused("expected published and held-out")
def one_protocol_only(entry):
    dropped(entry, "held-out")


@refused("the functions are not .* places in a split of")
def emptied_skips(entry):
    entry["skips"] = {}
    for table in entry["tables"].values():
        table["cluster"][table["cluster"] == table["cluster"].max()] = entry["functions"]


@refused("the functions are not 40 places in a split of")
def a_function_too_few(entry):
    last = last_function(entry)
    for protocol in PROTOCOLS:
        taken(entry, protocol, entry["tables"][protocol]["cluster"] != last)


@refused("the functions are not 41 places in a split of")
def a_function_too_many(entry):
    entry["functions"] += 1


@refused("held-out lacks functions of published")
def a_function_too_few_held_out(entry):
    clusters = entry["tables"]["held-out"]["cluster"]
    taken(entry, "held-out", clusters != last_function(entry, "held-out"))


@refused("published has a function or a relation without any")
def a_function_without_edges(entry):
    """One that is not the only one with a relation, by any protocol."""
    alone = set()
    for protocol in PROTOCOLS:
        for name in relations_of(entry, protocol):
            functions = functions_of(entry, protocol, name)
            alone |= {int(functions[0])} if len(functions) == 1 else set()
    functions = entry["tables"]["published"]["cluster"].tolist()
    first = next(function for function in functions if function not in alone)
    for table in entry["tables"].values():
        for column in ("n", "model", "offset", "keyword"):
            table[column][..., table["cluster"] == first] = 0


@refused("of one and the same head")
def hits_moved_between_functions(entry):
    """The sums stay: only where they are is better for the paired test."""
    hits = hits_of(entry, "published")
    for name, edges in edges_of(entry).items():
        for of_cell in hits[name].reshape(12, -1):
            before = np.append(0, np.minimum(edges.cumsum(), of_cell.sum()))
            of_cell[:] = np.diff(before)
    put(entry, "published", hits)


@refused("rows are not in order by table, group and cluster, each once")
def a_function_twice(entry):
    clusters = entry["tables"]["published"]["cluster"]
    clusters[1] = clusters[0]


@refused("rows are not in order by table, group and cluster, each once")
def a_relation_twice(entry):
    names = relations_of(entry, "published")
    renamed(entry, "published", names[1], names[0])


@refused("has numbers that are none, or of nothing|other edges|more hits in a function")
def hits_of_nothing(entry):
    """In a row without edges."""
    table = entry["tables"]["published"]
    table["n"][0], table["model"][0, 0] = 0, 1


@refused("expected a relation of")
def an_unknown_relation(entry):
    for protocol in PROTOCOLS:
        renamed(entry, protocol, "If:if->test", "If:if->why")


def alone_in_published(entry: Entry) -> tuple[str, dict[str, np.ndarray]]:
    """A relation that no other protocol has, of which first tokens are hit at once; and all hits of *published*."""
    hits, others = hits_of(entry, "published"), relations_of(entry, "held-out")
    return next(name for name in hits if hits[name][0, 0].any() and name not in others), hits


@refused("chosen is of")
def heads_of_another_protocol(entry):
    entry["chosen"]["guessed"] = entry["chosen"]["published"]


@refused("3 were skipped but with edges")
def skipped_functions_that_are_not_missed(entry):
    entry["skips"] = {"more than 511 sub-tokens": 3}


def unread(entry: Entry, functions: list[int]) -> None:
    """Some functions are said to be unread."""
    entry["functions"] -= len(functions)
    entry |= {"skips": {"more than 511 sub-tokens": len(functions)}, "unread": functions}


@refused("unread is not among the functions, in order")
def unread_functions_out_of_order(entry):
    functions = np.unique(entry["tables"]["published"]["cluster"])
    unread(entry, [int(functions[3]), int(functions[1])])


@refused("has hits in a function that the model could not read")
def hits_in_an_unread_function(entry):
    table = entry["tables"]["published"]
    unread(entry, [int(table["cluster"][table["model"].any(axis=0)][0])])


@refused("published has a function with more than 1,000,000 edges")
def more_edges_than_a_function_has(entry):
    entry["tables"]["published"]["n"][0] = 10**7


@refused("without held-out hits")
def hard_edges_of_a_relation_without_heads(entry):
    """One that is not the only one of a function."""
    for name in relations_of(entry, "beyond-offset"):
        table, place = entry["tables"]["held-out"], relations_of(entry, "held-out").index(name)
        others = table["group"] != name
        if len(np.unique(table["cluster"][others])) == len(np.unique(table["cluster"])):
            taken(entry, "held-out", others)
            for field in ("heads", "better"):
                entry["chosen"]["held-out"][field].pop(place)
            return
    raise AssertionError("each relation is the only one of a function")


@refused("has no relation of the mean")
def hard_edges_of_a_relation_that_is_in_no_mean(entry):
    """Two relations exchange their names, and beyond offsets there is one of them alone."""
    hard = relations_of(entry, "beyond-offset")
    old = next(name for name in hard if name not in NOT_IN_MEAN)
    others = set(relations_of(entry, "published")) - set(hard)
    new = next(name for name in sorted(others) if name in NOT_IN_MEAN)
    exchanged = {old: new, new: old}
    for protocol in PROTOCOLS:
        chosen, table = entry["chosen"][protocol], entry["tables"][protocol]
        names = relations_of(entry, protocol)
        table["group"] = np.array([exchanged.get(name, name) for name in table["group"]], object)
        for field in ("heads", "better"):
            values = {exchanged.get(name, name): value for name, value in zip(names, chosen[field])}
            chosen[field] = [values[name] for name in relations_of(entry, protocol)]
    place = relations_of(entry, "beyond-offset").index(new)
    chosen["heads"], chosen["better"] = [chosen["heads"][place]], [chosen["better"][place]]
    taken(entry, "beyond-offset", table["group"] == new)


def fewer_of_any_token(entry: Entry, stricter: int) -> None:
    """Than of the first one, or the last; of the other, nothing."""
    name, hits = alone_in_published(entry)
    assert hits[name][stricter].any()
    hits[name][[1, 2 - stricter]] = 0
    put(entry, "published", hits)


@refused("published.model has fewer hits than by a stricter rule")
def fewer_of_any_token_than_of_the_first(entry):
    fewer_of_any_token(entry, 0)


@refused("published.model has fewer hits than by a stricter rule")
def fewer_of_any_token_than_of_the_last(entry):
    fewer_of_any_token(entry, 2)


def the_worse_baseline(entry: Entry, better: int) -> None:
    """For one relation by one measure, of which this one of offset (0) and keyword (1) finds more."""
    both = [hits_of(entry, "published", system) for system in ("offset", "keyword")]
    for number, name in enumerate(relations_of(entry, "published")):
        totals = [hits[name].reshape(12, -1).sum(axis=1) for hits in both]
        worse = np.flatnonzero(totals[better] > totals[1 - better])
        if len(worse):
            entry["chosen"]["published"]["better"][number][int(worse[0])] = 1 - better
            return
    raise AssertionError("no baseline is better")


@refused("a combined baseline that is not the better of offset and keyword")
def the_keyword_where_the_offset_finds_more(entry):
    the_worse_baseline(entry, 0)


@refused("a combined baseline that is not the better of offset and keyword")
def the_offset_where_the_keyword_finds_more(entry):
    the_worse_baseline(entry, 1)


@refused("has 6 hard edges of .* in 6 functions, expected at least 30 in 6")
def few_edges_of_a_relation_beyond_offsets(entry):
    """One in each of six functions, which nobody hits."""
    table = entry["tables"]["beyond-offset"]
    rows = np.flatnonzero(rows_of(entry, "beyond-offset", table["group"][0]))
    table["n"][rows] = np.arange(len(rows)) < 6
    for system in ("model", "offset", "keyword"):
        table[system][:, rows] = 0


@refused("any 1 lacks, which no head can do")
def a_head_that_hits_first_tokens_but_not_any(entry):
    """In one function, where it hits the first token of the dependent."""
    name, hits = alone_in_published(entry)
    heads = entry["chosen"]["published"]["heads"][relations_of(entry, "published").index(name)]
    heads[4:8] = [heads[0]] * 4
    place = int(np.flatnonzero(hits[name][0, 0])[0])
    hits[name][1] = edges_of(entry)[name]
    hits[name][1, 0, place] = 0
    put(entry, "published", hits)


# ------------------------------------------------------------------------------------------------------------- the fields


def setting(path: str, value: Any) -> Callable[[Entry], None]:
    """Sets a field; `path`: the way to it."""
    *steps, field = path.split(".")

    def forge(entry: Entry) -> None:
        functools.reduce(lambda place, step: place[step], steps, entry)[field] = value

    return forge


MODEL, WHOLE = "settings.model", "expected a whole number"
NAMED = "settings.model is"
VERSION = "another version of codesyntax wrote, expected 6: make the entry again"
LONG, LARGE = "1" * 10**5, "at most 60,000 for 40 functions"

# fmt: off
FIELDS: list[tuple[str, str, Any, str]] = [
    ("a count that is none", "functions", float("nan"), "NaN is not a number"),
    ("a count without end", "functions", float("inf"), "Infinity is not a number"),
    ("a count as text", "functions", "40", WHOLE),
    ("true for a count", "chosen_on.functions", True, WHOLE),
    ("a wrong config", "settings.config", "perl", "settings.config is 'perl'"),
    ("a partial run", "settings.limit", 20, "a partial run is not published"),
    ("another scoring version", "scoring", 1, "scoring is 1, expected 2"),
    ("scored where it was chosen", "settings.split", "validation", "split is 'validation'"),
    ("a control", "settings.control", "random-weights", "a control is not a model"),
    ("a seed of a control", "settings.seed", 0, "settings.seed is 0"),
    ("other weights", "settings.weights", "norm", "is 'norm', expected 'attention'"),
    ("an unknown precision", "settings.dtype", "float8", "settings.dtype is 'float8'"),
    ("a dataset without a version", "settings.data", "codesyntax", "settings.data is"),
    ("a revision that moves", "settings.revision", "main", "settings.revision is 'main'"),
    ("a digest that is none", "ledgers.test", "sha256", "ledgers.test is"),
    ("HTML in the model's name", MODEL, "<script>alert(1)</script>", NAMED),
    ("a model out of the folder", MODEL, "../../../etc/cron.d/model", NAMED),
    ("control characters in a name", MODEL, "user/\x1b[2Jmodel\n", NAMED),
    ("letters that look alike", MODEL, "miсrosoft/codebert-base", NAMED),  # Cyrillic
    ("a dot behind the name", MODEL, "user/base.", NAMED),
    ("HTML in a reason", "skips", {"<img src=x onerror=alert(1)>": 1}, "plain text"),
    ("an unknown format", "format", 99, "format is 99"),
    ("an older format", "format", 5, VERSION),
    ("an unknown instrument", "instrument", "tarot", "is 'tarot', expected 'attention'"),
    ("an instrument without a name", "instrument", {}, "is a dict, expected 'attention'"),
    ("a large entry of few functions", "versions.torch", LONG, LARGE),
]
# fmt: on
ENTRIES += [Attack(name, setting(path, value), reason) for name, path, value, reason in FIELDS]


# ------------------------------------------------------------------------------------------------- the file, its columns


def without_bound(entry: Entry) -> bytes:
    """Columns of a codec that may unpack to anything."""
    return in_parquet(arrow_table(entry)[0], metadata(entry), compression="zstd")


def in_groups(entry: Entry) -> bytes:
    table, about = arrow_table(entry)
    return in_parquet(table, json.dumps(about), max_rows=len(table) // 2 + 1)


def many_rows(rows: int, functions: int) -> Callable[[Entry], bytes]:
    """Rows that take no bytes."""

    def forge(entry: Entry) -> bytes:
        entry["functions"] = functions
        table, about = arrow_table(entry)
        many = pa.table(
            [pa.repeat(pa.scalar(0, pa.int32()), rows)] * table.num_columns, table.schema
        )
        return in_parquet(many, json.dumps(about), use_dictionary=True)

    return forge


def names(change: Callable[[list[str]], list[str]]) -> Callable[[Entry], bytes]:
    """Other names of groups."""

    def forge(entry: Entry) -> bytes:
        table, about = arrow_table(entry)
        about["hits"]["groups"] = change(about["hits"]["groups"])
        return in_parquet(table, json.dumps(about))

    return forge


def flipped(entry: Entry) -> bytes:
    data = bytearray(written(entry))
    data[100:200] = bytes(100)
    return bytes(data)


def in_text(old: str, new: str) -> Callable[[Entry], str]:
    return lambda entry: metadata(entry).replace(old, new, 1)


def utf_16(entry: Entry) -> bytes:
    return in_parquet(arrow_table(entry)[0], metadata(entry).encode("utf-16"))


DAMAGED = "no hits file, or a damaged one"

SEVERAL, NO_NAMES = (
    "other columns, or several row groups",
    "names of tables or groups that are none",
)
NESTED = "[" * 25_000 + "]" * 25_000

# fmt: off
FILES = {
    "rows in several groups": (in_groups, SEVERAL),
    "columns that unpack without end": (without_bound, "another codec"),
    "rows without end": (many_rows(10**5, 40), "100,000 rows in .* bytes"),
    "rows without end of many functions": (many_rows(10**6, 10**5), "1,000,000 rows in .* bytes"),
    "names without end": (names(lambda groups: ["x" * 10**4, *groups[1:]]), NO_NAMES),
    "names out of order": (names(lambda groups: groups[::-1]), "groups that are not in order"),
    "a name of nothing": (names(lambda groups: [*groups, "~"]), "rows are not of all of"),
    "a count that overflows": (in_text('"functions": 40', '"functions": 1e999'), "functions is inf"),
    "a model twice": (in_text('"settings": {', '"settings": {"model": 1, "model": 2, '), "twice"),
    "a list of entries": (lambda entry: "[]", "a list"),
    "no Parquet": (lambda entry: b"<html>404 Not Found</html>", DAMAGED),
    "a file that is cut off": (lambda entry: written(entry)[:-100], DAMAGED),
    "bytes that flipped": (flipped, DAMAGED),
    "an empty file": (lambda entry: b"", DAMAGED),
    "UTF-16": (utf_16, "not JSON in UTF-8"),
    "deeply nested": (lambda entry: NESTED, "nested too deeply"),
}
# fmt: on
ENTRIES += [Attack(name, forge, reason) for name, (forge, reason) in FILES.items()]


# ------------------------------------------------------------------------------------------ entries beside honest ledgers

beside = attacks(SUBMITTED)


def without(entry: Entry, gone: np.ndarray) -> None:
    """Leaves out functions and all that is said of them."""
    for protocol in PROTOCOLS:
        names, chosen = relations_of(entry, protocol), entry["chosen"][protocol]
        taken(entry, protocol, ~np.isin(entry["tables"][protocol]["cluster"], gone))
        left = relations_of(entry, protocol)
        for field in ("heads", "better"):
            chosen[field] = [value for name, value in zip(names, chosen[field]) if name in left]


@beside("with other settings|it was copied")
def a_lower_copy_in_other_case(entry):
    settings(entry, model=entry["settings"]["model"].swapcase())
    for protocol in ("published", "held-out"):
        nothing_hit(entry, protocol, "model")
    dropped(entry, "beyond-offset")


@beside("does not follow from its ledgers|it was copied")
def a_lower_entry_for_the_same_model(entry):
    for protocol in PROTOCOLS:
        nothing_hit(entry, protocol, "model")


@beside("with other settings")
def a_copy_under_another_name(entry):
    settings(entry, model="liar/best")


@beside("with other settings")
def a_copy_under_a_name_that_looks_alike(entry):
    settings(entry, model=entry["settings"]["model"].replace("i", "l"))


@beside("is missing beside the entry")
def a_copy_with_digests_of_its_own(entry):
    settings(entry, model="liar/best")
    entry["ledgers"] = dict.fromkeys(entry["ledgers"], "0" * 64)


@beside("its baselines differ from the data's")
def baselines_that_find_nothing(entry):
    for protocol in PROTOCOLS:
        nothing_hit(entry, protocol, "offset", "keyword")


@beside("run does not follow from its ledgers")
def another_family(entry):
    entry["run"]["family"] = "gpt5"


@beside("layers does not follow from its ledgers")
def more_layers(entry):
    entry["layers"] *= 2


@beside("run does not follow from its ledgers")
def another_device(entry):
    entry["run"]["device"] = "tpu"


@beside("differ from the data's|a function or a relation without any|expected at least 30 in 6")
def unread_functions_left_out(entry):
    without(entry, np.array(entry["unread"]))
    entry |= {"skips": {"no relations": sum(entry["skips"].values())}, "unread": []}


@beside(
    "differ from the data's|has fewer hits than by a stricter rule|more hits of .* than the best head"
)
def a_function_with_few_hits_left_out(entry):
    functions = np.unique(entry["tables"]["published"]["cluster"])
    without(entry, np.setdiff1d(functions, entry["unread"])[:1])
    entry["functions"] -= 1
    entry["skips"]["no relations"] = entry["skips"].get("no relations", 0) + 1


@beside("functions does not follow from its ledgers")
def unread_functions_that_are_said_to_be_read(entry):
    entry["functions"] += len(entry["unread"])
    entry |= {"skips": {}, "unread": []}


@beside("published does not follow from its ledgers")
def every_edge_of_a_relation_found(entry):
    """By all heads that are named, in the functions that were read."""
    both = {protocol: hits_of(entry, protocol) for protocol in ("published", "held-out")}
    edges = edges_of(entry)
    held_out = both["held-out"]
    name = max(held_out, key=lambda name: int((edges[name] - held_out[name][0, 0]).sum()))
    read = ~np.isin(functions_of(entry, "published", name), entry["unread"])
    for protocol, hits in both.items():
        hits[name][:] = np.where(read, edges[name], 0)
        put(entry, protocol, hits)
    dropped(entry, "beyond-offset")


@beside("chosen does not follow from its ledgers")
def other_heads_for_the_same_hits(entry):
    """Everywhere the next one, so that no head contradicts itself."""
    number = entry["layers"] * entry["heads"]
    for chosen in entry["chosen"].values():
        chosen["heads"] = ((np.array(chosen["heads"]) + 1) % number).tolist()


@beside("differ from the data's|it was copied")
def fewer_edges_than_there_are(entry):
    """Where no head finds all of them."""
    dropped(entry, "beyond-offset")
    for protocol, table in entry["tables"].items():
        nothing_hit(entry, protocol, "model", "offset", "keyword")
        table["n"] = np.minimum(table["n"], 1)


@beside("its baselines differ from the data's")
def a_baseline_that_finds_one_edge_less(entry):
    """By all rules and guesses, in one function."""
    offset = hits_of(entry, "beyond-offset", "offset")
    name = max(offset, key=lambda name: int(offset[name][0, 0].sum()))
    offset[name][..., int(offset[name][0, 0].argmax())] = 0
    put(entry, "beyond-offset", offset, "offset")
