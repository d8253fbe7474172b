"""The report: its numbers, its files, and its page in a real browser."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from support.commands import run
from support.files import contents, csv_rows
from support.pages import OUTSIDE

from codesyntax_dataset.build import build
from codesyntax_dataset.errors import LedgerError
from codesyntax_metric.topk_uas import DIRECTIONS, RULES
from probing import load, probe
from probing.evidence.beyond import beyond_offsets
from probing.evidence.gather import find, gather
from probing.instruments.attention.errors import analyse, save
from probing.report import findings, folder
from probing.report.document import Column, Section, Table, in_html
from probing.report.kinds import DIFFERENCE, SCORE
from probing.report.report import report
from probing.stats.intervals import holm

pytestmark = pytest.mark.slow

MADE_BY = "Made by `codesyntax report`."
MARKUP = "<img src=x onerror=alert(1)>|`*"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Some of the sample's functions in two configs."""
    folder = tmp_path_factory.mktemp("built") / "codesyntax"
    left_out = folder.with_name("left-out.txt")
    left_out.write_text(
        "mailroom\nledgerbook\njsonlet\nheapwork\nplanar\nnetretry\nlinalg\nspanset\n"
    )
    build("sample", ["java", "java_skip_semicolon"], folder, exclude_repositories=left_out)
    return folder


@pytest.fixture(scope="module")
def results(tiny_model, data, tmp_path_factory):
    """Two models that differ in what they may read, two controls, and an ablation; the errors of one are analysed."""
    folder = tmp_path_factory.mktemp("results")
    for split in ("test", "validation"):
        model = str(tiny_model)
        probe(model, data, "java", split, output=folder)
        probe(model, data, "java", split, max_length=120, output=folder)
        probe(model, data, "java", split, control="random-weights", output=folder)
        probe(model, data, "java", split, control="redrawn-dependents", output=folder)
        probe(model, data, "java_skip_semicolon", split, output=folder)
    analysed = next(
        file
        for file in folder.glob("tiny.java.test.*.json")
        if '"max_length": 511' in file.read_text()
    )
    save(analyse(analysed, model=str(tiny_model), data=str(data)), analysed)
    return folder


@pytest.fixture(scope="module")
def made(results, data, tmp_path_factory):
    """The folder of a report, and the evidence that it gathered, config by config."""
    gathered = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            findings.gather,
            "gather",
            lambda *arguments: gathered.append(gather(*arguments)) or gathered[-1],
        )
        output = tmp_path_factory.mktemp("written") / "report"
        page = report([results], output, data)
    return page.parent, gathered


@pytest.fixture(scope="module")
def written(made):
    return made[0]


@pytest.fixture
def opened(written, page):
    page.goto((written / "index.html").as_uri())
    return page


@pytest.fixture(scope="module")
def evidence(made, results):
    """Of everything on the config java, on the functions that all of it could read."""
    java, _ = made[1]
    everything = [one for one in find([results]) if one.test.settings.config == "java"]
    assert [one.probed.files for one in java] == [one.files for one in everything]
    common = set.intersection(*(set(one.test.ledger.function) for one in everything))
    assert all(set(one.probed.test.ledger.function) == common for one in java)
    return java


@pytest.fixture(scope="module")
def partial(tiny_model, dataset_folder, tmp_path_factory):
    """A folder with the results of a partial run."""
    folder = tmp_path_factory.mktemp("partial")
    for split in ("test", "validation"):
        probe(str(tiny_model), dataset_folder, "python", split, limit=20, output=folder)
    return folder


def rows_of(written, name):
    return csv_rows(written / f"tables/{name}.csv")


def scores_of(written, config):
    return {
        (row["match"], row["k"], row["name"]): row
        for row in rows_of(written, "overview")
        if row["config"] == config
    }


def of_java(row):
    """Whether a row of a table is of this config by the first of rules and of k."""
    return (row["config"], row["match"], row["k"]) == ("java", "first", "1")


def name_of(one):
    """Of a model or control in the report."""
    settings = one.probed.test.settings
    return f"tiny, {settings.control or f'max-length {settings.max_length}'}"


# Numbers


def test_hard_edges_are_scored_as_the_ledgers_say(written, evidence):
    """The numbers of the table of means, and what redrawn dependents cannot be compared with."""
    rows = {row["name"]: row for row in rows_of(written, "beyond") if of_java(row)}
    for one in evidence:
        row = rows[name_of(one)]
        found = beyond_offsets(one.probed.validation.ledger, one.probed.test.ledger)
        told = [float(row[name]) for name in ("score", "score, low", "score, high")]
        hits = found.chosen.hits
        assert told == list(hits.mean("model").at(0)[:3])
        redrawn = one.probed.test.settings.control == "redrawn-dependents"
        assert (row["vs best baseline"] == "") == redrawn
        assert int(row["hard edges"]) == sum(hits.groups[name].total for name in hits.counted)


def test_scores_of_relations_are_those_of_the_ledger(written, evidence):
    """Published: the share of edges of which the best head has the dependent among its first k."""
    (ledger,) = (
        one.probed.test.ledger
        for one in evidence
        if one.probed.test.settings.max_length == 511 and not one.probed.test.settings.control
    )
    rows = rows_of(written, "java-relations-tiny-max-length-511")
    assert len(rows) > 100
    for row in rows:
        edges = ledger.relation == ledger.relations.index(row["relation"])
        ranks = ledger.ranks[RULES.index(row["match"]), edges]
        scores = 100 * (ranks < int(row["k"])).mean(axis=0)
        assert float(row["published: score"]) == pytest.approx(scores.max())
        head = row["published: head"] or "0-0"  # none is the best of those that find nothing
        assert scores[tuple(map(int, head.split("-")))] == scores.max()
        functions = len(set(ledger.function[edges].tolist()))
        assert (int(row["edges"]), int(row["functions"])) == (edges.sum(), functions)
        assert ("few functions" in row["relation, marks"]) == (functions < 6)


def test_models_are_compared_on_common_functions_and_corrected_together(written, evidence):
    """Two models: two tests in a column. The control adds none to them, and has its own. One pair of models: no correction."""
    rows, compared = scores_of(written, "java"), [one for one in evidence if one.comparisons]
    column = {
        name: float(p)
        for (rule, k, name), row in rows.items()
        if (rule, k) == ("first", "3") and (p := row["held-out: vs best baseline, p"])
    }
    by_name = {name_of(one): one.comparisons["held-out"].of_mean("first", 3).p for one in compared}
    two = ["tiny, max-length 120", "tiny, max-length 511"]
    corrected = dict(zip(two, holm(np.array([by_name[name] for name in two]))))
    assert column == pytest.approx(by_name | corrected)
    assert len(column) == 3
    functions = {
        row["name"]: (int(row["functions: probed"]), int(row["functions: common"]))
        for row in rows_of(written, "results")
        if row["config"] == "java"
    }
    probed, common = functions["tiny, max-length 511"]
    assert common < probed
    assert {both[1] for both in functions.values()} == {common}
    assert functions["tiny, max-length 120"] == (common, common)
    assert {int(row["functions"]) for row in rows.values()} == {common}


def test_configs_stand_side_by_side(written):
    shown = [
        row for row in rows_of(written, "overview") if (row["match"], row["k"]) == ("any", "10")
    ]
    common = {row["config"]: row["functions: common"] for row in rows_of(written, "results")}
    assert len(set(common.values())) == 2  # one config has a model that reads less
    assert {(row["config"], row["functions"]) for row in shown} == set(common.items())
    page = (written / "index.html").read_text(encoding="utf-8")
    assert (
        "The labels of java_skip_semicolon exclude &#39;;&#39;, and models must not predict it either"
        in page
    )
    assert "not-predicted:;" in page  # the signature


@pytest.mark.usefixtures("unrendered")
def test_directions_of_relations_in_few_functions(tiny_model, tmp_path):
    """Tables of relations show what is in fewer than 6 functions, too."""
    source, data, results = tmp_path / "code", tmp_path / "codesyntax", tmp_path / "results"
    for split in ("test", "validation"):
        (source / split / "project").mkdir(parents=True)
        (source / split / "project" / "A.java").write_text(
            "class A { int f(int x) { if (x > 1) { return g(x); } return x; } }"
        )
    build(str(source), ["java"], data)
    for split, direction in itertools.product(("validation", "test"), DIRECTIONS):
        probe(str(tiny_model), data, "java", split, direction=direction, output=results)
    written = report([results], tmp_path / "report", data).parent
    for table, direction in (("java-dependent-to-head", DIRECTIONS[1]), ("java", DIRECTIONS[0])):
        (file,) = (
            file for file in results.glob("*.test.*.json") if f'"{direction}"' in file.read_text()
        )
        relations = load(file).relations
        shown = rows_of(written, f"{table}-relations-tiny")
        assert {row["relation"]: int(row["edges"]) for row in shown} == {
            name: entry["edges"] for name, entry in relations.items()
        }


# Documents


def test_a_table_in_two_forms():
    """The third, CSV, is in `test_document.py`."""
    columns = [Column("rule"), Column("name"), Column("gain", DIFFERENCE, "held-out")]
    gains = [-2.04, -3.0, -1.0, 0.0321], None, [0.01, None, float("nan"), 1.0]
    rows = [[*place, gain] for place, gain in zip((("first", MARKUP), ("first", "b"), "lc"), gains)]
    text = folder.markdown([Section("s", "S", [Table("t", "Title", columns, rows, filters=1)])])
    assert (
        "| &lt;img src=x onerror=alert(1)&gt;\\|\\`\\* | −2.0 \\[−3.0, −1.0; p 0.032\\] |" in text
    )
    # the page shows `first` at first, and so does this
    assert "| b | – |" in text
    assert "| c |" not in text
    for cell, kind, shown in (
        (MARKUP, columns[1].kind, '<td class="t">&lt;img src=x onerror=alert(1)&gt;|`*'),
        ([50.0, 40.0, 60.0], SCORE, '<td class="n">50.0<small>40.0 to 60.0</small>'),
        ([50.0, None, None], SCORE, '<td class="n">50.0<small>–</small>'),
        (gains[2], DIFFERENCE, '<td class="n">0.0<small>–</small><small>p 1.000</small>'),
    ):
        assert str(in_html(cell, kind)) == shown


@pytest.mark.parametrize(
    "cell, look",
    [
        ([-2.0, -3.0, -1.0, 0.049], "n down"),
        ([2.0, None, None, 0.049], "n up"),
        # the interval excludes 0, the corrected test does not tell it from 0
        (
            [2.0, 1.0, 3.0, 0.051],
            "n",
        ),
        ([-2.0, -3.0, -1.0, 0.961], "n"),
    ],
)
def test_colour_says_what_p_says(cell, look):
    assert f'<td class="{look}">' in str(in_html(cell, DIFFERENCE))


@pytest.mark.usefixtures("unrendered")
def test_same_results_same_bytes(partial, dataset_folder, tmp_path):
    """In another folder, over an older report, by the command; nothing else is left."""
    target = tmp_path / "again"
    (target / "tables").mkdir(parents=True)
    for name in ("tables/old.csv", "index.html", "README.md", "report.md"):
        (target / name).write_text(MADE_BY)
    done = run("report", partial, "--output", target, "--data", dataset_folder)
    assert done.stdout.strip() == str(target / "index.html")
    files = contents(target)
    assert files == contents(report([partial], tmp_path / "first", dataset_folder).parent)
    assert {Path(file).suffix for file in files} == {".html", ".md", ".csv"}
    assert {path.name for path in tmp_path.iterdir()} == {"again", "first"}
    # a partial run says so
    assert b"On the first 20 functions (a partial run), with one guess" in files["index.html"]
    kinds = {row["kind"] for row in rows_of(target, "overview") if row["name"] == "tiny"}
    assert kinds == {"model"}


@pytest.mark.parametrize("place", ["tables/mine.txt", "pages/mine.html"])
def test_what_is_not_ours_is_not_replaced(results, data, tmp_path, place):
    """Though a report of ours lies there."""
    (tmp_path / place).parent.mkdir()
    (tmp_path / place).write_text("mine")
    (tmp_path / "report.md").write_text(MADE_BY)
    with pytest.raises(LedgerError, match="not made by `codesyntax report`"):
        report([results], tmp_path, data)
    assert (tmp_path / place).read_text() == "mine"


# The page


def test_page_stands_alone(written, opened):
    """The `page` fixture fails on an error in the console and on a request to another host."""
    text = (written / "index.html").read_text(encoding="utf-8")
    assert len(text.encode()) < 2_000_000
    assert re.search(r"""(src|href)=["']?(https?:)?//""", text) is None
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    for name in (
        "h1",
        "main section > h2",
        "main section > details > summary > h2",
        "table caption",
        "thead th[scope=col]",
        "figure svg[role=img][aria-label]",
        "figure svg[role=group][aria-label]",
        "p code",
    ):
        assert opened.locator(name).count() > 0
    assert opened.locator("table").count() == opened.locator("table caption").count()
    opened.set_viewport_size({"width": 1400, "height": 900})
    assert opened.evaluate("document.documentElement.scrollHeight") <= 12 * 900
    opened.emulate_media(media="print")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 1400


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_lies_outside_of_a_narrow_page(opened, scheme):
    opened.emulate_media(color_scheme=scheme)
    opened.set_viewport_size({"width": 400, "height": 800})
    opened.reload()
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    unfold(opened)
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert opened.evaluate(OUTSIDE) == []


def test_a_link_to_a_folded_part_opens_it(opened):
    table = opened.locator("#table-overview")
    assert not table.is_visible()
    opened.goto(f"{opened.url}#table-overview")
    assert table.is_visible()
    assert opened.locator("details[open]").count() == 1


def test_finding_stands_first_and_tables_lead_to_their_files(written, opened):
    titles = opened.locator("main h2").all_inner_texts()
    assert titles[:3] == [
        "What was found",
        "tiny, max-length 120 on Java",
        "tiny on java_skip_semicolon",
    ]
    linked = [link.get_attribute("href") for link in opened.locator("caption a, .key a").all()]
    assert len(linked) == opened.locator("table, .atlas").count() > 5
    assert [path for path in linked if not (written / path).is_file()] == []


def test_finding_says_what_the_tables_say(written, opened):
    """The best model beside the best baseline in a sentence, all in the table; the relations that it gains in follow."""
    rows, hard = (
        {row["name"]: row for row in rows_of(written, table) if of_java(row)}
        for table in ("overview", "beyond")
    )
    found = {row["model"]: row for row in rows_of(written, "models") if row["config"] == "java"}
    models = {name: row for name, row in rows.items() if row["kind"] == "model"}
    best_baseline = rows["best baseline"]["held-out: score"]
    assert len(models) == 2
    assert found.keys() == models.keys()
    for name, row in models.items():
        told = {
            place.removeprefix("all edges, held-out: "): of for place, of in found[name].items()
        }
        assert (told["score"], told["best baseline"]) == (row["held-out: score"], best_baseline)
        for part in ("", ", low", ", high", ", p"):
            assert told[f"difference{part}"] == row[f"held-out: vs best baseline{part}"]
        for column, of in (("score", name), ("best baseline", "best baseline")):
            of_hard = told[f"beyond the best offset, held-out: {column}"]
            assert float(of_hard) == float(hard[of]["score"])
    best = max(models, key=lambda name: float(models[name]["held-out: score"]))
    p = float(models[best]["held-out: vs best baseline, p"])
    than = "significantly more" if p < 0.05 else "which does not differ significantly"
    told = opened.locator(".answer > .texts p").first.inner_text()
    score = float(models[best]["held-out: score"])
    assert told.startswith(
        f"With one guess, the attention heads of {best} find {score:.1f} % of the dependents in Java and those of "
        "tiny "
    )
    assert (
        f"% in java_skip_semicolon. The best baselines, which need no model, find {float(best_baseline):.1f} %"
        in told
    )
    assert than in told


def unfold(opened):
    opened.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")


def first_column(opened, table, place):
    rows = opened.locator(f"#table-{table} tbody:not([hidden]) tr")
    return [row.locator("td").nth(place).inner_text().split("\n")[0] for row in rows.all()]


def test_tables_sort_by_click_and_by_key(opened):
    unfold(opened)
    table = "overview"
    heads = opened.locator(f"#table-{table} thead button")
    by_edges = heads.filter(has_text="edges").first
    edges = []
    for press in (by_edges.click, lambda: by_edges.press("Enter")):
        press()
        edges.append([int(text.replace(",", "")) for text in first_column(opened, table, 5)])
    assert len(edges[0]) > 5
    assert edges[1] == sorted(edges[0])
    assert edges[0] == sorted(edges[0], reverse=True) != edges[1]
    assert by_edges.locator("..").get_attribute("aria-sort") == "ascending"
    heads.filter(has_text="name").press("Space")
    names = first_column(opened, table, 1)
    assert names == sorted(names, key=str.lower)


def test_missing_scores_come_last(opened):
    """What was not compared with the best baseline has no difference to it."""
    unfold(opened)
    head = opened.locator("#table-overview").get_by_role("button", name="held-out, vs best").last
    for _ in range(2):
        head.click()
        gone = [text == "–" for text in first_column(opened, "overview", 11)]
        assert any(gone)
        assert gone == sorted(gone)


def test_filters_choose_rule_and_k(opened, written):
    unfold(opened)
    name = "overview"
    table = opened.locator(f"#table-{name}")
    selects = table.locator("xpath=ancestor::div[@class='table']").locator("select")
    selects.nth(0).select_option("any")
    selects.nth(1).select_option("10")
    rows = [row for row in rows_of(written, name) if (row["match"], row["k"]) == ("any", "10")]
    assert first_column(opened, name, 1) == [row["name"] for row in rows]
    scores = [row["published: score"] for row in rows]
    assert {row["name"] for row in rows if not row["published: score"]} == {"context"}
    shown = [f"{float(score):.1f}" if score else "–" for score in scores]
    assert first_column(opened, name, 6) == shown
