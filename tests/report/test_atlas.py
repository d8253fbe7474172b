"""A model to look at: the map of its heads, lines of relations, and the two functions that each opens."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import probing
from codesyntax_dataset.protocol import HELD_OUT
from probing.instruments.attention.offsets import best_offsets
from probing.report.atlas import Atlas, Chart, Curve, HeadCell, group_of
from probing.report.findings import read_findings
from probing.report.functions import OpenedFunctions
from probing.report.pages import environment
from probing.report.report import report
from probing.stats.intervals import Estimate

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tiny_model, dataset_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for split in ("test", "validation"):
        probing.probe(str(tiny_model), dataset_folder, split=split, output=folder)
    return folder


@pytest.fixture(scope="module")
def atlas(results, dataset_folder):
    (findings,) = read_findings([results], dataset_folder)
    functions = OpenedFunctions(findings, dataset_folder)
    return Atlas(findings, findings.models[0], functions, None)


@pytest.fixture(scope="module")
def written(results, dataset_folder, tmp_path_factory):
    return report(
        [results], tmp_path_factory.mktemp("written") / "report", dataset_folder, cluster="function"
    )


@pytest.fixture
def opened(page, written):
    """The `page` fixture fails on an error in the console and on a request to another host."""
    page.goto(written.as_uri())
    return page


# The numbers


def test_the_map_has_what_each_head_finds(atlas):
    ledger = atlas.model.evidence.probed.test.ledger
    ranks = np.asarray(ledger.ranks)[0]
    heads = ledger.ranks.shape[3]
    for relation in atlas.data["relations"]:
        edges = ranks[ledger.relation_names == relation["name"]]
        for place, percent in enumerate(relation["percent"]):
            hits = edges[:, place // heads, place % heads] == 0
            assert percent == round(100 * hits.sum() / len(hits))


def test_cells_count_the_relations_that_a_head_was_chosen_for(atlas):
    chosen = [row.head for row in atlas.rows if row.head]
    counted = {f"{layer}-{head}": len(rows) for (layer, head), rows in atlas.best_of.items()}
    assert counted == {head: chosen.count(head) for head in chosen}
    shown = [int(cell.text) for layer in atlas.map for cell in layer if cell.text]
    assert sorted(shown) == sorted(counted.values())


def test_significant_relations_come_first_and_by_difference(atlas):
    verdicts = [line.verdict in ("higher", "lower") for line in atlas.lines]
    assert verdicts == sorted(verdicts, reverse=True)
    for significant in (True, False):
        values = [
            row.difference.value
            for row, verdict in zip(atlas.rows, verdicts)
            if verdict == significant and row.difference
        ]
        assert values == sorted(values, reverse=True)


def test_opened_functions_are_found_and_missed_by_the_chosen_head(atlas):
    """Where the head looks is where the metric ranks first: the dependent, if it is found."""
    some = 0
    for relation in atlas.data["relations"]:
        for picture in relation["pictures"]:
            first, _ = picture["wanted"]
            row = [token for token, _ in picture["row"]]
            shown = {token for line in picture["lines"] for _, token in line}
            assert {picture["reader"], first} <= shown
            assert len(row) <= 20
            if row:
                some += 1
                assert (row[0] == first) == picture["hit"]
    assert some > 20
    found, missed = (
        [
            picture["says"]
            for relation in atlas.data["relations"]
            for picture in relation["pictures"]
            if picture["hit"] == hit
        ]
        for hit in (True, False)
    )
    assert all("finds it. The best baseline" in says for says in found)
    assert all("misses it." in says for says in missed)


def test_a_missed_edge_is_one_that_the_best_baseline_finds_if_there_is_any(atlas):
    ledger = atlas.model.evidence.probed.test.ledger
    heads, best = atlas.functions.hits(atlas.model)
    for relation in atlas.data["relations"]:
        edges = ledger.relation_names == relation["name"]
        for picture in relation["pictures"]:
            if not picture["hit"]:
                there = bool((edges & ~heads & best).any())
                assert picture["says"].endswith("The best baseline finds it.") == there


def test_hits_of_edges_add_up_to_the_scores(atlas):
    ledger = atlas.model.evidence.probed.test.ledger
    heads, best = atlas.functions.hits(atlas.model)
    for row in atlas.rows:
        edges = ledger.relation_names == row.group
        if row.difference:
            assert 100 * heads[edges].mean() == pytest.approx(row.score.value)
            assert 100 * best[edges].mean() == pytest.approx(row.best_baseline.value)


def test_examples_hold_their_dependents(atlas):
    code = " ".join(" ".join(atlas.functions._table["code"].to_pylist()).split())
    examples = atlas.functions.examples
    assert len(examples) == len(atlas.rows)
    for example in examples.values():
        assert example.dependent.rstrip("…").strip() in code


def test_a_model_that_is_gone_leaves_functions_without_weights(atlas, monkeypatch):
    monkeypatch.setattr("probing.report.functions.LARGEST_MODEL", 0)
    functions = OpenedFunctions(atlas.findings, atlas.functions.data)
    pictures = functions.pictures(atlas.model, atlas.rows[0].group)
    assert functions.not_run == {atlas.model.name}
    assert pictures
    assert all(picture.row == [] for picture in pictures)


def test_weights_are_kept_so_that_another_report_runs_no_model(atlas, tmp_path, monkeypatch):
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path))
    first, again = (OpenedFunctions(atlas.findings, atlas.functions.data) for _ in range(2))
    relation = atlas.rows[0].group
    pictures = first.pictures(atlas.model, relation)
    monkeypatch.setattr("probing.report.functions._encoder", lambda _: pytest.fail("loaded"))
    assert pictures[0].row
    assert again.pictures(atlas.model, relation) == pictures
    assert pictures == atlas.functions.pictures(atlas.model, relation)


def test_a_model_that_has_changed_since_draws_no_weights(atlas, monkeypatch, caplog):
    monkeypatch.setattr("probing.runs.session.Session.is_of", lambda *_: False)
    functions = OpenedFunctions(atlas.findings, atlas.functions.data)
    pictures = functions.pictures(atlas.model, atlas.rows[0].group)
    assert functions.not_run == {atlas.model.name}
    assert all(picture.row == [] for picture in pictures)
    assert "has other weights now" in caplog.text


def test_relations_of_sentences_are_words():
    assert [group_of(name) for name in ("If:if->test", "nsubj", "children:parent->child")] == [
        "blocks",
        "words",
        "tree",
    ]


# All heads, as a table


def test_heads_are_those_of_a_plain_loop_over_the_ledger(results, dataset_folder):
    frame = probing.heads([results])
    test = frame[frame["split"] == "test"]
    (file,) = results.glob("*.test.*.json")
    (other,) = results.glob("*.validation.*.json")
    ledger = probing.load(file).ledger
    offsets = best_offsets(probing.load(other).ledger)
    ranks = np.asarray(ledger.ranks)
    names = ledger.relation_names
    layers, heads = ranks.shape[2:]
    assert len(test) == len(set(names)) * layers * heads * 3 * 4
    for row in test.sample(400, random_state=0).to_dict("records"):
        hits, hard_hits, edges, hard = 0, 0, 0, 0
        for edge in np.flatnonzero(names == row["relation"]).tolist():
            rule = ("first", "any", "last").index(row["match"])
            hit = ranks[rule, edge, row["layer"], row["head"]] < row["k"]
            away = ledger.first[edge] - ledger.head[edge] != offsets[row["relation"]]
            edges += 1
            hits += hit
            hard += away
            hard_hits += away and hit
        assert row["score"] == pytest.approx(100 * hits / edges)
        assert (row["edges"], row["hard_edges"]) == (edges, hard)
        assert row["offset"] == offsets[row["relation"]]
        if hard:
            assert row["beyond_offset"] == pytest.approx(100 * hard_hits / hard)


# Drawings


@pytest.fixture(scope="module")
def drawings():
    return environment().get_template("drawings.html.jinja").module


def test_a_scale_says_its_numbers(drawings):
    score = Estimate(24.0, 20.5, 27.25, np.nan, 9)
    rivals = {"offset": Estimate(46.8, np.nan, np.nan, np.nan, 9), "keyword": None}
    drawn = drawings.scale("calls", score, rivals)
    assert "heads 24.0 [20.5, 27.2], offset 46.8 percent" in drawn
    assert drawn.count('class="mark') == 1
    (across,) = re.findall(r'cx="([\d.]+)"', drawn)
    assert float(across) == pytest.approx(6 + 0.24 * (400 - 12))


def test_a_scale_without_a_score_says_its_rivals(drawings):
    drawn = drawings.scale("calls", None, {"offset": Estimate(100.0, np.nan, np.nan, np.nan, 9)})
    assert "<title>offset 100.0 percent</title>" in drawn
    assert 'x1="394.0"' in drawn
    assert "circle" not in drawn


def test_text_in_drawings_stays_text(drawings):
    drawn = drawings.grid([[HeadCell("<b>", "x", 1, '"><script>')]], "</svg>")
    curves = [Curve("x", "<c>", [50, None])]
    drawn += drawings.chart(Chart("<l>", "<b>", ["<a>", "b"], curves))
    assert "<b>" not in drawn
    assert "<script>" not in drawn
    assert drawn.count("</svg>") == 2


# The page


def test_a_click_on_a_cell_lists_its_relations_and_one_opens_its_line(opened):
    best = opened.locator(".cell", has=opened.locator("text", has_text=re.compile(r"^\d+$"))).first
    best.click()
    said = opened.locator(".chosen")
    assert "was chosen for:" in said.inner_text()
    button = said.locator("button").first
    relation = button.inner_text().split()[0]
    button.click()
    line = opened.locator(".relation[open]")
    assert line.locator(".name").inner_text().endswith(relation)
    line.locator(".picture .line").first.wait_for()
    numbers = line.locator("p.notes").inner_text()
    assert re.fullmatch(
        r"Found with one guess: heads [\d.]+ \[[\d.]+, [\d.]+\], .*context [\d.]+ percent, in \d+ functions\. "
        r"Difference to the best baseline: [−+]?[\d.]+, p .*\.",
        numbers,
    ), numbers


def test_a_line_opens_what_the_head_finds_and_misses(opened, atlas):
    place, relation = next(
        (place, relation)
        for place, relation in enumerate(atlas.data["relations"])
        if len(relation["pictures"]) == 2
        and all(picture["row"] for picture in relation["pictures"])
    )
    opened.locator(".relation").nth(place).locator("summary").click()
    pictures = opened.locator(".relation[open] .picture")
    pictures.nth(1).wait_for()
    assert pictures.count() == 2
    for number, mark in enumerate(("right", "wrong")):
        shown = pictures.nth(number)
        assert shown.locator(f".reads.{mark}").count() == 1
        wanted = "".join(shown.locator(".gold").all_inner_texts())
        assert wanted
        assert shown.locator(".token[style*=heat]").count() > 0
    assert (
        pictures.nth(0).locator("p").inner_text().startswith(f"Head {relation['head']} finds it.")
    )


def test_by_keyboard_alone(opened):
    opened.locator(".atlas select").focus()
    opened.keyboard.press("Tab")  # the region of the map
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.dataset.at") == "0,0"
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press("ArrowDown")
    assert opened.evaluate("document.activeElement.dataset.at") == "1,1"
    assert opened.locator(".chosen b").inner_text() == "Head 1-1"
    line = opened.locator(".relation summary").first
    line.focus()
    opened.keyboard.press("Enter")
    assert opened.locator(".relation[open]").count() == 1


def test_the_map_is_coloured_by_a_relation(opened, atlas):
    relation = atlas.data["relations"][0]
    opened.locator(".atlas select").select_option(label=relation["name"])
    shown = opened.locator(".cell > text").all_text_contents()
    assert [int(text or 0) for text in shown] == relation["percent"]


@pytest.mark.parametrize("width", [360, 768, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_lies_outside(opened, width, scheme):
    opened.emulate_media(color_scheme=scheme)
    opened.set_viewport_size({"width": width, "height": 900})
    opened.locator(".relation summary").first.click()
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_data_of_the_page_are_those_of_the_model(opened, atlas):
    data = json.loads(opened.locator(".atlas script").inner_text())
    assert data == json.loads(json.dumps(atlas.data))
    assert HELD_OUT in opened.locator(".atlas").inner_text()
