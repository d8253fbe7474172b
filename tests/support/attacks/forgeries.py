"""Submissions that nobody should believe, each with the reason it is refused for.

ENTRIES are files for a board, made from an honest entry; RESULTS are folders for `submit`, made from honest results;
LEDGERS are ranks that no model has given, in ledgers that fit their data: only probing again can tell.
"""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.attention.ledger import RankLedger
from probing.attention.result import ProbeResult
from probing.evidence.selection import choose
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
    """A function that changes an honest entry, or returns what to write instead."""

    def register(change: Callable[[dict], dict | list | str | bytes | None]):
        def write(path: Path, honest: dict[str, Any]) -> None:
            entry = json.loads(json.dumps(honest))  # a copy, sooner than deepcopy makes one
            made = change(entry)
            made = entry if made is None else made
            made = json.dumps(made) if isinstance(made, (dict, list)) else made
            path.write_bytes(made.encode() if isinstance(made, str) else made)

        ENTRIES.append(Forgery(change.__name__, write, reason))
        return change

    return register


def placed(reason: str):
    """A function that makes the file itself."""

    def register(write: Callable[[Path, dict], None]):
        ENTRIES.append(Forgery(write.__name__, write, reason))
        return write

    return register


def cell(entry: dict[str, Any], protocol: str = "published", rule: str = "first", k: str = "1") -> dict[str, Any]:
    """What the entry says of its relation with most edges, some of which count in the mean."""
    relations = entry["protocols"][protocol]["relations"]
    return max(relations.values(), key=lambda relation: relation["edges"])[rule][k]


def alone(cell: dict[str, Any], score: float) -> None:
    """Another score, without a width of its interval where there is one."""
    cell["score"] = [score, None, None] if cell["score"][1] is None else [score, score, score]


def settings(entry: dict[str, Any], **changed: Any) -> None:
    """Other settings, with signatures that agree."""
    before = copy.deepcopy(entry["settings"])
    entry["settings"].update(changed)
    for of in (entry, entry["chosen_on"]):
        for name, value in changed.items():
            part = {"max_length": "max-length"}.get(name, name)
            of["signature"] = of["signature"].replace(f"|{part}:{before[name]}", f"|{part}:{value}")


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


@altered(r"from 0 to 100")
def score_above_100(entry):
    cell(entry)["score"] = [101.0, 100.0, 102.0]


@altered(r"from 0 to 100")
def negative_score(entry):
    cell(entry)["score"] = [-1.0, -2.0, 0.0]


@altered("NaN is not a number")
def nan_score(entry):
    cell(entry)["score"][0] = float("nan")


@altered("Infinity is not a number")
def infinite_score(entry):
    cell(entry)["score"][2] = float("inf")


@altered(r"from 0 to 100")
def number_that_overflows(entry):
    cell(entry)["score"][0] = "HERE"
    return json.dumps(entry).replace('"HERE"', "1e999")


@altered(r"from 0 to 100")
def score_as_text(entry):
    cell(entry)["score"][0] = str(cell(entry)["score"][0])


@altered(r"from 0 to 100")
def true_for_a_score(entry):
    cell(entry)["score"][0] = True


@altered("no whole number of its relation's edges")
def half_a_hit(entry):
    relation = max(entry["protocols"]["published"]["relations"].values(), key=lambda relation: relation["edges"])
    number, low, high = relation["first"]["1"]["score"]
    step = 50 / relation["edges"]
    relation["first"]["1"]["score"] = [number + step, low, high + step]
    count = sum(one["in_mean"] for one in entry["protocols"]["published"]["relations"].values())
    for of in (
        entry["protocols"]["published"]["scores"]["first"]["1"],
        entry["differences"]["published"]["first"]["1"]["difference"],
    ):
        of[:] = [value + step / count * relation["in_mean"] for value in of]


@altered("below 6 functions there is no interval")
def interval_where_there_is_none(entry):
    relations = entry["protocols"]["published"]["relations"]
    cell = next(of["first"]["1"] for of in relations.values() if of["functions"] < 6)
    cell["score"] = [cell["score"][0], 0.0, 100.0]


@altered(r"expected \[number, low, high\]")
def no_interval_where_there_is_one(entry):
    cell(entry)["score"][1:] = [None, None]


@altered("few_functions is")
def few_functions_that_are_many(entry):
    max(entry["protocols"]["published"]["relations"].values(), key=lambda of: of["functions"])["few_functions"] = True


@altered("but the mean over its relations is")
def mean_that_is_not_the_mean(entry):
    entry["protocols"]["held-out"]["scores"]["first"]["1"] = [99.0, 98.0, 100.0]


@altered("less than with one guess fewer")
def curve_that_falls(entry):
    relations = entry["protocols"]["published"]["relations"]
    name = next(name for name, of in relations.items() if not of["in_mean"] and of["first"]["20"]["score"][0] > 0)
    alone(relations[name]["first"]["20"], 0.0)


@altered("outside of its own interval")
def interval_that_misses_the_score(entry):
    number = entry["protocols"]["published"]["scores"]["first"]["1"][0]
    entry["protocols"]["published"]["scores"]["first"]["1"] = [number, number + 1, number + 2]


@altered("outside of its own interval")
def interval_upside_down(entry):
    cell(entry)["score"][1:] = [100.0, 0.0]


@altered(r"from -100 to 100")
def difference_beyond_100(entry):
    entry["differences"]["published"]["first"]["1"]["difference"][0] = 1000.0


@altered("but the means differ by")
def difference_that_is_none(entry):
    entry["differences"]["held-out"]["first"]["1"]["difference"] = [50.0, 40.0, 60.0]


@altered("expected a probability")
def impossible_p_value(entry):
    entry["differences"]["published"]["any"]["3"]["p"] = 0.0


@altered("not that of the better of offset and keyword")
def baselines_made_small(entry):
    """All of the combined baseline is 0, and the differences agree."""
    baseline = entry["baselines"]["published"]["combined"]
    for relation in baseline["relations"].values():
        for rule in relation.values():
            rule.update(dict.fromkeys(rule, 0.0))
    for rule, of_rule in baseline["scores"].items():
        for k in of_rule:
            of_rule[k] = [0.0, 0.0, 0.0]
            mean = entry["protocols"]["published"]["scores"][rule][k][0]
            entry["differences"]["published"][rule][k]["difference"] = [mean, mean, mean]


@altered("but edges is")
def edges_that_do_not_sum(entry):
    entry["edges"] += 1
    entry["signature"] = entry["signature"].replace(f"|edges:{entry['edges'] - 1}|", f"|edges:{entry['edges']}|")


@altered("but its relations stand in")
def more_functions_than_there_are(entry):
    before, entry["functions"] = entry["functions"], entry["edges"]
    entry["signature"] = entry["signature"].replace(f"|functions:{before}|", f"|functions:{entry['functions']}|")


@altered("expected a whole number from 0 to")
def head_that_the_model_does_not_have(entry):
    cell(entry)["head"] = entry["settings"]["heads"]


@altered("expected a whole number from 0 to")
def layer_below_the_first(entry):
    cell(entry)["layer"] = -1


@altered("more than that of the best head")
def held_out_better_than_published(entry):
    relations = entry["protocols"]["held-out"]["relations"]
    name = next(name for name, of in relations.items() if not of["in_mean"])
    for protocol in entry["protocols"].values():
        for found in protocol["relations"][name]["first"].values():
            alone(found, 0.0)
    alone(relations[name]["first"]["1"], 100.0)


@altered("another than that of the same head")
def held_out_with_the_heads_of_published(entry):
    """It claims that it would have chosen the best heads, and leaves its scores."""
    for name, relation in entry["protocols"]["held-out"]["relations"].items():
        for rule in ("first", "any", "last"):
            for k, found in relation[rule].items():
                best = entry["protocols"]["published"]["relations"][name][rule][k]
                found["layer"], found["head"] = best["layer"], best["head"]


# ------------------------------------------------------------------------------------------- entries: function by function


def unpacked(packed: str) -> np.ndarray:
    return np.frombuffer(zlib.decompress(base64.b64decode(packed)), np.uint8).reshape(4, -1).T.copy().view("<u4")[:, 0]


def packed(numbers: np.ndarray) -> str:
    lowest_first = numbers.astype("<u4").reshape(-1, 1).view(np.uint8).T
    return base64.b64encode(zlib.compress(lowest_first.tobytes())).decode()


def repacked(entry: dict[str, Any], change: Callable[[np.ndarray], Any], *path: str) -> None:
    """Other numbers at a place of `by_function`: `change` alters them or returns others."""
    of = entry["by_function"]
    for name in path[:-1]:
        of = of[name]
    numbers = unpacked(of[path[-1]])
    made = change(numbers)
    of[path[-1]] = packed(numbers if made is None else made)


def hits_of(protocol: str) -> tuple[str, ...]:
    return "hits", protocol, "model"


@altered("beyond-offset.scores.first.1 is .*, but .* by its functions")
def a_point_more_beyond_offsets(entry):
    entry["beyond_offset"]["scores"]["first"]["1"] = [
        number + 1 for number in entry["beyond_offset"]["scores"]["first"]["1"]
    ]


@altered("more hits of a relation than its best head has of all edges")
def every_hard_edge_found(entry):
    """Each function's hits are its hard edges; scores and differences follow."""
    hard = entry["beyond_offset"]
    edges = unpacked(hard["edges"])
    hard["hits"]["model"] = packed(np.tile(edges[edges > 0], 12))


@altered("more hard edges in a function than it has edges")
def more_hard_edges_than_edges(entry):
    edges = unpacked(entry["beyond_offset"]["edges"])
    edges[np.flatnonzero(edges)[0]] += 10**6
    entry["beyond_offset"]["edges"] = packed(edges)


@altered("by its functions, expected the same and at least 6 functions")
def a_relation_in_few_functions_beyond_offsets(entry):
    hard = entry["beyond_offset"]
    edges = unpacked(hard["edges"]).reshape(len(hard["relations"]), -1)
    edges[0, np.flatnonzero(edges[0])[5:]] = 0
    hard["edges"] = packed(edges.reshape(-1))
    hard["relations"][min(hard["relations"])] = int(edges[0].sum())


@altered("which has no held-out score")
def a_relation_of_ones_own_beyond_offsets(entry):
    relations = entry["beyond_offset"]["relations"]
    relations["If:if->why"] = relations.pop(max(relations))


@altered(r"beyond-offset.differences.first.1.p is 0.0001, but a test|differ by|beyond-offset.differences")
def significant_beyond_offsets(entry):
    cells = [cell for of_rule in entry["beyond_offset"]["differences"].values() for cell in of_rule.values()]
    for cell in cells:
        cell["p"] = 0.9 if cell["p"] < 0.1 else 0.0001


@altered("beyond-offset lacks the field hits")
def no_hits_beyond_offsets(entry):
    del entry["beyond_offset"]["hits"]


@altered("too narrow for a standard error")
def intervals_without_width(entry):
    """As if all were certain."""
    for protocol in entry["protocols"].values():
        cells = [cell["score"] for of in protocol["relations"].values() for rule in RULES for cell in of[rule].values()]
        cells += [score for of_rule in protocol["scores"].values() for score in of_rule.values()]
        for score in cells:
            if score[1] is not None:
                score[1:] = [score[0], score[0]]


@altered("protocols.held-out.scores.first.1 has an interval .* too narrow")
def one_narrow_interval(entry):
    score = entry["protocols"]["held-out"]["scores"]["first"]["1"]
    score[1:] = [score[0] - 0.01, score[0] + 0.01]


@altered("differences.held-out.first.1.difference has an interval .* too narrow")
def difference_made_sure(entry):
    said = entry["differences"]["held-out"]["first"]["1"]["difference"]
    said[1:] = [said[0], said[0]]


@altered(r"p is 0.0001, but a test over its functions gives about")
def every_difference_significant(entry):
    for of_protocol in entry["differences"].values():
        for of_rule in of_protocol.values():
            for said in of_rule.values():
                said["p"] = 0.0001


@altered("it was copied")
def held_out_copied_from_published(entry):
    """Scores, heads, and the hits of each function; the means and differences follow."""
    of = {name: protocol["relations"] for name, protocol in entry["protocols"].items()}
    for name in of["held-out"]:
        of["held-out"][name] = of["published"][name]
    counted = [relation for relation in of["held-out"].values() if relation["in_mean"]]
    for rule, of_rule in entry["protocols"]["held-out"]["scores"].items():
        for k, mean in of_rule.items():
            mean[:] = [sum(relation[rule][k]["score"][0] for relation in counted) / len(counted), 0.0, 100.0]
            combined = entry["baselines"]["held-out"]["combined"]["scores"][rule][k][0]
            entry["differences"]["held-out"][rule][k]["difference"] = [mean[0] - combined, -100.0, 100.0]


@altered("same_relations.scores.first.1 is .*, but the mean over its relations is")
def published_over_all_relations_beside_held_out(entry):
    """So that its optimism looks smaller or larger than it is."""
    entry["same_relations"]["scores"] = entry["protocols"]["published"]["scores"]


@altered("same_relations.scores.first.1 has an interval .* too narrow")
def narrow_interval_over_the_same_relations(entry):
    score = entry["same_relations"]["scores"]["first"]["1"]
    score[1:] = [score[0] - 0.01, score[0] + 0.01]


@altered("same_relations.baselines.combined.first.1 is .*, but the mean over its relations is")
def baseline_made_small_over_the_same_relations(entry):
    alike = entry["same_relations"]
    alike["baselines"]["combined"]["first"]["1"] = [0.0, 0.0, 0.0]
    alike["differences"]["first"]["1"]["difference"] = list(alike["scores"]["first"]["1"])


@altered("same_relations.differences.any.3.difference is .*, but the means differ by")
def difference_over_other_relations(entry):
    said = entry["same_relations"]["differences"]["any"]["3"]
    said["difference"] = [said["difference"][0] + 1, -100.0, 100.0]


@altered("same_relations.differences.first.1.p is .*, but a test over its functions gives about")
def another_p_over_the_same_relations(entry):
    said = entry["same_relations"]["differences"]["first"]["1"]
    said["p"] = 0.0001 if said["p"] > 0.5 else 1.0


@altered("places are not .* places in a split of")
def emptied_skips(entry):
    entry["skips"] = {}
    repacked(entry, lambda places: places.__setitem__(-1, entry["functions"]), "places")


@altered("places are not")
def a_function_twice(entry):
    repacked(entry, lambda places: places.__setitem__(1, places[0]), "places")


@altered("expected packed numbers: not")
def a_function_too_few(entry):
    repacked(entry, lambda places: places[:-1], "places")


@altered("expected packed numbers: not")
def numbers_that_unpack_without_end(entry):
    entry["by_function"]["places"] = base64.b64encode(zlib.compress(bytes(10**8))).decode()


@altered("expected packed numbers")
def numbers_that_are_not_packed(entry):
    entry["by_function"]["edges"] = "eJx<script>"


@altered("edges, but .* by its functions")
def an_edge_too_many(entry):
    repacked(
        entry, lambda edges: edges.__setitem__(np.flatnonzero(edges)[0], 1 + edges[np.flatnonzero(edges)[0]]), "edges"
    )


@altered("edges of .* by its functions")
def hits_that_do_not_sum(entry):
    repacked(
        entry,
        lambda hits: hits.__setitem__(np.flatnonzero(hits)[0], hits[np.flatnonzero(hits)[0]] - 1),
        *hits_of("held-out"),
    )


@altered("more hits in a function than it has edges")
def more_hits_than_edges(entry):
    repacked(entry, lambda hits: hits.__setitem__(0, 10**6), *hits_of("published"))


@altered("of one and the same head|too narrow for a standard error")
def hits_moved_between_functions(entry):
    """The sums stay: only where they are is better for the paired test."""
    hits = unpacked(entry["by_function"]["hits"]["published"]["model"]).reshape(12, -1)
    edges = unpacked(entry["by_function"]["edges"])
    edges, width = edges[edges > 0], entry["functions"]
    ends = np.cumsum((unpacked(entry["by_function"]["edges"]).reshape(-1, width) > 0).sum(axis=1))
    for begin, end in zip([0, *ends], ends):
        part, room = hits[:, begin:end], edges[begin:end]
        for of_cell in part:
            left = int(of_cell.sum())
            for place in range(end - begin):
                of_cell[place] = min(left, room[place])
                left -= of_cell[place]
    entry["by_function"]["hits"]["published"]["model"] = packed(hits.reshape(-1))


@altered("verified.functions is 0")
def verified_nothing(entry):
    entry["verified"] = {"functions": 0, "of": 24}


# ------------------------------------------------------------------------------------------------ entries: the settings


@altered("settings.config is 'perl'")
def wrong_config(entry):
    settings(entry, config="perl")


@altered("expected a relation of")
def unknown_relation(entry):
    relations = entry["protocols"]["published"]["relations"]
    relations["If:if->why"] = relations.pop("If:if->test")


@altered("expected a relation of")
def relation_of_the_other_language(entry):
    other = {"python": "Switch:switch->expr", "java": "Dict:key->value"}[entry["settings"]["config"]]
    relations = entry["protocols"]["published"]["relations"]
    relations[other] = relations.pop("If:if->test")


@altered("a partial run is not published")
def partial_run(entry):
    entry["settings"]["limit"] = 20
    entry["signature"] += "|partial:20"


@altered("signature does not follow")
def partial_run_that_hides_it(entry):
    entry["signature"] += "|partial:20"


@altered("settings.split is 'validation'")
def scored_where_it_was_chosen(entry):
    settings(entry, split="validation")


@altered("a control is no model")
def control(entry):
    entry["settings"].update(control="random-weights", seed=0)


@altered("signature does not follow")
def control_as_a_model(entry):
    entry["signature"] = entry["signature"].replace("|scoring:2", "|scoring:2|control:random-weights/0")


@altered("signature does not follow")
def bfloat16_as_float32(entry):
    entry["signature"] = entry["signature"].replace("dtype:float32", "dtype:bfloat16")


@altered("settings.dtype is 'float8'")
def unknown_precision(entry):
    settings(entry, dtype="float8")


@altered("signature does not follow")
def another_dataset_revision(entry):
    entry["settings"]["labels"] = "0" * 12


@altered("settings.data is")
def dataset_without_version(entry):
    settings(entry, data="codesyntax")


@altered("signature does not follow")
def signature_of_another_run(entry):
    entry["signature"] = entry["signature"].replace("uas|model:", "uas|model:other-")


@altered("signature does not follow")
def another_scoring_version(entry):
    for of in (entry, entry["chosen_on"]):
        of["signature"] = of["signature"].replace("|scoring:2", "|scoring:1")


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


@altered("lacks the field held-out")
def one_protocol_only(entry):
    del entry["protocols"]["held-out"]


@altered("lacks the field 7")
def curve_with_a_gap(entry):
    del entry["protocols"]["published"]["relations"]["If:if->test"]["any"]["7"]


@altered("unknown field")
def field_too_many(entry):
    entry["trusted"] = True


@altered("but the entry has")
def verified_more_than_there_is(entry):
    of = entry["functions"] + entry["chosen_on"]["functions"]
    entry["verified"] = {"functions": of + 1, "of": of}


@altered("but the entry has")
def verified_of_fewer_than_there_are(entry):
    entry["verified"] = {"functions": 1, "of": 1}


@altered("format is 1, which another version of codesyntax wrote")
def entry_of_an_older_version(entry):
    entry["format"] = 1
    del entry["by_function"]


@altered("occurs twice")
def relation_twice(entry):
    text = json.dumps(entry)
    relation = json.dumps(entry["protocols"]["published"]["relations"]["If:if->test"])
    return text.replace('"relations": {', '"relations": {"If:if->test": ' + relation + ", ", 1)


@altered("a list")
def list_of_entries(entry):
    return [entry]


@altered("not JSON in UTF-8")
def no_json(entry):
    return "<html>404 Not Found</html>"


@altered("not JSON in UTF-8")
def cut_off(entry):
    return json.dumps(entry)[:-100]


@altered("not JSON in UTF-8")
def empty(entry):
    return b""


@altered("not JSON in UTF-8")
def utf_16(entry):
    return json.dumps(entry).encode("utf-16")


@altered("nested too deeply")
def nested_deeply(entry):
    return "[" * 10**6 + "]" * 10**6


@placed("larger than")
def larger_than_memory_allows(path, entry):
    path.write_text(json.dumps(entry))
    os.truncate(path, TOO_LARGE)  # sparse: takes no space


@placed("expected a regular file")
def link_out_of_the_folder(path, entry):
    target = path.with_suffix(".elsewhere")
    target.write_text(json.dumps(entry))
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


@in_results("only results of the split validation")
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


@in_results("probed with --max-length 48, but a task scores all functions of at most 511 sub-tokens")
def result_of_short_functions(folder):
    """Short functions are easy: real scores, but of another task."""
    recomputed(folder, with_settings(max_length=48))


@in_results("probed with --also-fits short/context, but a task scores all functions")
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


@in_results("expected a relation of python")
def result_with_an_unknown_relation(folder):
    def renamed(ledger: RankLedger) -> RankLedger:
        return dataclasses.replace(
            ledger, relations=[name.replace("If:if->test", "If:if->why") for name in ledger.relations]
        )

    recomputed(folder, renamed)


@in_results("of the control random-weights")
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
    return {name: of_k[k - 1] for name, of_k in choose(ledger)[rule].items()}


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
