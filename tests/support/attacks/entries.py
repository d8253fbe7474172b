"""Forged entries: files that nobody should believe, as `support.evidence.hits_files` has them, each made of an honest one.

ENTRIES are refused when they are read. SUBMITTED have forms that entries may have, beside honest ledgers: only data, ledgers
and the board's own run can tell.
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from support.attacks.attack import Attack, attacks
from support.evidence.hits_files import arrow_table, in_parquet, written

from codesyntax_dataset.protocol import TABLE_KS
from codesyntax_metric.topk_uas import RULES

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


# -------------------------------------------------------------------------------- parts of an entry


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


# -------------------------------------------------------------------------------------- the numbers

refused = attacks(ENTRIES)

BODY, TEST, SLICE = "If:if->body", "If:if->test", "Slice:lower->upper"
FUNCTIONS, EDGES = 6, 10
HEAD = {"published": 1, "held-out": 0, "beyond-offset": 2}
HITS = {"published": 5, "held-out": 3, "beyond-offset": 2}


def small(
    entry: Entry, names: Sequence[str] = (BODY, TEST), **others: Sequence[str]
) -> dict[str, dict[str, np.ndarray]]:
    """Six functions with ten edges of each relation, of which a head of its own hits as many by each rule and k.

    `others`: the relations of `held_out` or `hard`, if not those of `published`. Returns the tables.
    """
    measures, chosen = len(RULES) * len(TABLE_KS), {}
    entry |= {"functions": FUNCTIONS, "skips": {}, "unread": []}
    for protocol, field in zip(PROTOCOLS, ("published", "held_out", "hard")):
        within = sorted(others.get(field, names))
        shape = measures, len(within) * FUNCTIONS
        entry["tables"][protocol] = {
            "cluster": np.tile(np.arange(FUNCTIONS), len(within)),
            "group": np.repeat(np.array(within, object), FUNCTIONS),
            "n": np.full(shape[1], EDGES),
            "model": np.full(shape, HITS[protocol]),
            "offset": np.ones(shape, int),
            "keyword": np.ones(shape, int),
            "context": np.zeros(shape, int),
        }
        chosen[protocol] = {
            "heads": [[HEAD[protocol]] * measures for _ in within],
            "better": [[0] * measures for _ in within],
        }
    entry["chosen"] = chosen
    return entry["tables"]


def head_of(entry: Entry, protocol: str, head: int) -> None:
    """Another head by all rules and k."""
    for heads in entry["chosen"][protocol]["heads"]:
        heads[:] = [head] * len(heads)


@refused("fewer hits than with one guess fewer")
def curve_that_falls(entry):
    small(entry)["published"]["model"][3] = 4


@refused("chosen does not have a head for each relation of published")
def a_relation_without_heads(entry):
    entry["chosen"]["published"]["heads"].pop()


@refused("chosen does not have a head for each relation of beyond-offset")
def no_heads_beyond_offsets(entry):
    del entry["chosen"]["beyond-offset"]


@refused("held-out.model has more hits of .* than the best head")
def held_out_better_than_published(entry):
    small(entry)["held-out"]["model"][:] = 6


@refused("beyond-offset.model has more hits of .* than the best head")
def hard_edges_better_than_published(entry):
    small(entry)["beyond-offset"]["model"][:] = 6


@refused("published first 1 has hits in a function that held-out first 1 lacks")
def held_out_with_the_heads_of_published(entry):
    """It claims that it would have chosen the best heads, and leaves its scores."""
    small(entry)
    head_of(entry, "held-out", HEAD["published"])


@refused("beyond-offset first 1 has hits in a function that held-out first 1 lacks")
def more_hard_hits_than_its_head_has(entry):
    """Beyond offsets by the head of the held-out protocol, which finds less of all edges."""
    small(entry)["beyond-offset"]["model"][:] = 4
    head_of(entry, "beyond-offset", HEAD["held-out"])


@refused("held-out first 1 has hits in a function that beyond-offset first 1 lacks")
def fewer_hard_hits_than_its_head_has(entry):
    """Of edges that are all hard."""
    small(entry)
    head_of(entry, "beyond-offset", HEAD["held-out"])


@refused("held-out has other edges of .* than published")
def a_function_left_out_of_one_relation(entry):
    small(entry)
    taken(entry, "held-out", np.arange(2 * FUNCTIONS) > 0)


@refused("in 5 functions, expected at least 30 in 6")
def a_relation_in_few_functions_beyond_offsets(entry):
    small(entry)
    taken(entry, "beyond-offset", np.arange(2 * FUNCTIONS) > 0)


@refused("has 24 hard edges of .* in 6 functions, expected at least 30 in 6")
def few_edges_of_a_relation_beyond_offsets(entry):
    small(entry)["beyond-offset"]["n"][:] = 4


@refused("which has no published hits")
def a_relation_of_ones_own_beyond_offsets(entry):
    small(entry, [BODY], hard=[BODY, TEST])


@refused("the functions of beyond-offset are not among those of published")
def functions_of_ones_own_beyond_offsets(entry):
    small(entry)["beyond-offset"]["cluster"][-1] = 10**6


@refused("without held-out hits")
def hard_edges_of_a_relation_without_heads(entry):
    small(entry, held_out=[BODY])


@refused("has no relation of the mean")
def hard_edges_of_a_relation_that_is_in_no_mean(entry):
    small(entry, [TEST, SLICE], hard=[SLICE])


@refused("it was copied")
def held_out_copied_from_published(entry):
    """Heads, and the hits of each function."""
    names, heads = relations_of(entry, "published"), entry["chosen"]["published"]["heads"]
    kept = relations_of(entry, "held-out")
    entry["chosen"]["held-out"]["heads"] = [heads[names.index(name)] for name in kept]
    hits = hits_of(entry, "published")
    put(entry, "held-out", {name: hits[name] for name in kept})


@refused("expected published and held-out")
def one_protocol_only(entry):
    dropped(entry, "held-out")


@refused("chosen is of")
def heads_of_another_protocol(entry):
    entry["chosen"]["guessed"] = entry["chosen"]["published"]


@refused("the functions are not 6 places in a split of 6")
def a_function_behind_the_last(entry):
    for table in small(entry).values():
        table["cluster"][table["cluster"] == FUNCTIONS - 1] = FUNCTIONS


@refused("the functions are not 5 places in a split of 6")
def a_function_too_few(entry):
    small(entry)
    entry |= {"functions": 5, "skips": {"no relations": 1}}


@refused("the functions are not 7 places in a split of 7")
def a_function_too_many(entry):
    small(entry)
    entry["functions"] += 1


@refused("held-out lacks functions of published")
def a_function_too_few_held_out(entry):
    clusters = small(entry)["held-out"]["cluster"]
    taken(entry, "held-out", clusters > 0)


@refused("published has a function or a relation without any")
def a_function_without_edges(entry):
    for table in small(entry).values():
        for column in ("n", "model", "offset", "keyword", "context"):
            table[column][..., table["cluster"] == 0] = 0


@refused("rows are not in order by table, group and cluster, each once")
def a_function_twice(entry):
    small(entry)["published"]["cluster"][1] = 0


@refused("rows are not in order by table, group and cluster, each once")
def a_relation_twice(entry):
    small(entry)
    renamed(entry, "published", TEST, BODY)


@refused("has numbers of nothing|other edges|more hits in a function")
def hits_of_nothing(entry):
    """In a row without edges."""
    small(entry)["published"]["n"][0] = 0


@refused("expected a relation of")
def an_unknown_relation(entry):
    small(entry, ["If:if->why"])


@refused("3 were skipped but with edges")
def skipped_functions_that_are_not_missed(entry):
    entry["skips"] = {"more than 511 sub-tokens": 3}


@refused("1 functions are missed, 0 were skipped but with edges")
def a_missed_function_that_was_not_skipped(entry):
    small(entry)
    entry |= {"functions": 5, "skips": {"no relations": 1}, "unread": [0]}


def unread(entry: Entry, functions: list[int]) -> None:
    """Some functions are said to be unread."""
    entry["functions"] -= len(functions)
    entry |= {"skips": {"more than 511 sub-tokens": len(functions)}, "unread": functions}


@refused("unread is not among the functions, in order")
def unread_functions_out_of_order(entry):
    small(entry)
    unread(entry, [3, 1])


@refused("has hits in a function that the model could not read")
def hits_in_an_unread_function(entry):
    small(entry)
    unread(entry, [1])


@refused("published has a function with more than 1,000,000 edges")
def more_edges_than_a_function_has(entry):
    small(entry)["published"]["n"][0] = 10**6 + 1


@refused("published.model has fewer hits than by a stricter rule")
def fewer_of_any_token_than_of_the_first(entry):
    small(entry)["published"]["model"][4:] = 4


@refused("published.model has fewer hits than by a stricter rule")
def fewer_of_any_token_than_of_the_last(entry):
    small(entry)["published"]["model"][:8] = 4


@refused("a combined baseline that is not the better of offset and keyword")
def the_keyword_where_the_offset_finds_more(entry):
    small(entry)["published"]["offset"][:] = 2
    entry["chosen"]["published"]["better"][0][0] = 1


@refused("a combined baseline that is not the better of offset and keyword")
def the_offset_where_the_keyword_finds_more(entry):
    small(entry)["published"]["keyword"][:] = 2


@refused("any 1 lacks, which no head can do")
def a_head_that_hits_first_tokens_but_not_any(entry):
    """In one function; in another, it hits one more of any."""
    small(entry)["published"]["model"][4:8, :2] = [4, 6]


# --------------------------------------------------------------------------------------- the fields


def setting(path: str, value: Any) -> Callable[[Entry], None]:
    """Sets a field; `path`: the way to it."""
    *steps, field = path.split(".")

    def forge(entry: Entry) -> None:
        functools.reduce(lambda place, step: place[step], steps, entry)[field] = value

    return forge


MODEL, WHOLE = "settings.model", "expected a whole number"
NAMED = "settings.model is"
VERSION = "another version of codesyntax wrote, expected 7: make the entry again"
LONG, LARGE = "1" * 10**5, "at most 60,000 for 40 functions"

FIELDS: list[tuple[str, str, Any, str]] = [
    ("a count that is none", "functions", float("nan"), "NaN is not a number"),
    ("a count without end", "functions", float("inf"), "Infinity is not a number"),
    ("a count as text", "functions", "40", WHOLE),
    ("true for a count", "chosen_on.functions", True, WHOLE),
    ("a wrong config", "settings.config", "perl", r"is 'perl', expected ('\w+' or ){10}another of"),
    ("a partial run", "settings.limit", 20, "a partial run is not published"),
    ("another scoring version", "scoring", 1, "scoring is 1, expected 2"),
    ("scored where it was chosen", "settings.split", "validation", "split is 'validation'"),
    ("a control", "settings.control", "random-weights", "a control is not a model"),
    ("a seed of a control", "settings.seed", 0, "settings.seed is 0"),
    ("other weights", "settings.weights", "norm", "is 'norm', expected 'attention'"),
    ("other pools", "settings.pool", "mean", "is 'mean', expected 'sum'"),
    ("other functions", "settings.also_fits", ["user/base"], "expected at most 0 entries"),
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
    ("a newer format", "format", 8, "expected 7: upgrade codesyntax"),
    ("an unknown instrument", "instrument", "tarot", "is 'tarot', expected 'attention'"),
    ("an instrument without a name", "instrument", {}, "is a dict, expected 'attention'"),
    ("a large entry of few functions", "versions.torch", LONG, LARGE),
]
ENTRIES += [Attack(name, setting(path, value), reason) for name, path, value, reason in FIELDS]


# ---------------------------------------------------------------------------- the file, its columns


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

FILES = {
    "rows in several groups": (in_groups, SEVERAL),
    "columns that unpack without end": (without_bound, "another codec"),
    "rows without end": (many_rows(10**5, 40), "100,000 rows in .* bytes"),
    "rows without end of many functions": (many_rows(10**6, 10**5), "1,000,000 rows in .* bytes"),
    "names without end": (names(lambda groups: ["x" * 10**4, *groups[1:]]), NO_NAMES),
    "names out of order": (names(lambda groups: groups[::-1]), "groups that are not in order"),
    "a name of nothing": (names(lambda groups: [*groups, "~"]), "rows are not of all of"),
    "a count that overflows": (
        in_text('"functions": 40', '"functions": 1e999'),
        "functions is inf",
    ),
    "a model twice": (in_text('"settings": {', '"settings": {"model": 1, "model": 2, '), "twice"),
    "a list of entries": (lambda entry: "[]", "a list"),
    "a file that is cut off": (lambda entry: written(entry)[:-100], DAMAGED),
    "bytes that flipped": (flipped, DAMAGED),
    "UTF-16": (utf_16, "not JSON in UTF-8"),
    "deeply nested": (lambda entry: NESTED, "nested too deeply"),
}
ENTRIES += [Attack(name, forge, reason) for name, (forge, reason) in FILES.items()]


# -------------------------------------------------------------------- entries beside honest ledgers

beside = attacks(SUBMITTED)
SUBMITTED += [
    Attack(f"another {path}", setting(path, value), f"{part} does not follow from its ledgers")
    for path, part, value in (
        ("run.family", "run", "gpt5"),
        ("run.device", "run", "tpu"),
        ("layers", "layers", 100),
    )
]


@beside("functions does not follow from its ledgers")
def unread_functions_that_are_said_to_be_read(entry):
    entry["functions"] += len(entry["unread"])
    entry |= {"skips": {}, "unread": []}


@beside("published does not follow from its ledgers")
def every_edge_of_a_relation_found(entry):
    """One that has no other scores, in the functions of which it found any."""
    hits, others = hits_of(entry, "published"), relations_of(entry, "held-out")
    name = next(name for name in hits if name not in others)
    hits[name][:] = np.where(hits[name].any(axis=(0, 1)), edges_of(entry)[name], 0)
    put(entry, "published", hits)


@beside("chosen does not follow from its ledgers")
def other_heads_for_the_same_hits(entry):
    """Everywhere the next one, so that no head contradicts itself."""
    number = entry["layers"] * entry["heads"]
    for chosen in entry["chosen"].values():
        chosen["heads"] = ((np.array(chosen["heads"]) + 1) % number).tolist()


@beside("with other settings")
def a_copy_under_another_name(entry):
    settings(entry, model="liar/best")


@beside("the functions and edges of beyond-offset differ from the data's")
def a_hard_edge_less_than_there_is(entry):
    """One that nothing finds."""
    table = entry["tables"]["beyond-offset"]
    found = np.concatenate([table[system] for system in ("model", "offset", "keyword", "context")])
    table["n"][np.flatnonzero(table["n"] > found.max(axis=0))[0]] -= 1


@beside("its baselines differ from the data's")
def a_baseline_that_finds_one_edge_less(entry):
    """By all rules and guesses, in one function."""
    offset = hits_of(entry, "beyond-offset", "offset")
    name = max(offset, key=lambda name: int(offset[name][0, 0].sum()))
    offset[name][..., int(offset[name][0, 0].argmax())] = 0
    put(entry, "beyond-offset", offset, "offset")
