"""The report of many models: the page has what compares them, and files the rest."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from support.files import csv_rows
from support.pages import OUTSIDE

from codesyntax_metric.topk_uas import DIRECTIONS
from probing import probe
from probing.instruments.registry import INSTRUMENTS
from probing.report import figures, headline
from probing.report import report as module
from probing.report.findings import read_findings
from probing.report.folder import Report, save
from probing.report.report import MODELS_ON_A_PAGE
from probing.runs.ledger_file import ATTENTION
from probing.stats.intervals import Estimate

pytestmark = pytest.mark.slow

NAMES = [
    "ada/code-small",
    "ada/code-small, revision 2",
    *(f"bert/number-{number}" for number in range(3)),
    "../<b>&'x'",
]
"""Some begin alike, and one is a path and mark-up."""


COMPARED = Estimate(20.0, 19.0, 22.0, 0.5, 9)


def with_settings(subject, name, **settings):
    """The same under another name, and with other settings."""
    changed = subject.settings.model_copy(update=settings)
    return replace(subject, name=name, settings=changed)


def of(findings, name):
    return [(key, score) for key, score in findings.scores.items() if key[0] == name]


def renamed(findings, name, more=0):
    """The scores of the first model under another name, its held-out means so many points above."""
    scores = {}
    for key, score in of(findings, findings.subjects[0].name):
        _, protocol, _, _, group, against = key
        if (protocol, group, against) == ("held-out", "mean", ""):
            score = score._replace(
                value=score.value + more, low=score.low + more, high=score.high + more
            )
        scores[name, *key[1:]] = score
    return scores


@pytest.fixture(scope="module")
def all_findings(tiny_model, dataset_folder, tmp_path_factory):
    """As of NAMES, which are copies of one model with other means, and of a control of the first."""
    results = tmp_path_factory.mktemp("results")
    for split in ("test", "validation"):
        probe(str(tiny_model), dataset_folder, "python", split, limit=10, output=results)
        probe(
            str(tiny_model),
            dataset_folder,
            "python",
            split,
            limit=10,
            control="random-weights",
            output=results,
        )
    (findings,) = read_findings([results], dataset_folder)
    first, control = findings.subjects
    subjects, scores = [], dict(findings.scores)
    for number, name in enumerate(sorted(NAMES)):
        scores |= renamed(findings, name, number)
        subjects.append(with_settings(first, name, model=name))
    pairs = dict.fromkeys(combinations(range(len(NAMES)), 2), COMPARED)
    subjects.append(with_settings(control, f"{NAMES[0]}, random-weights", model=NAMES[0]))
    scores |= {
        (f"{NAMES[0]}, random-weights", *key[1:]): score
        for key, score in of(findings, control.name)
    }
    return [replace(findings, subjects=subjects, pairs=pairs, scores=scores)]


@pytest.fixture(scope="module")
def written(all_findings, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            module,
            "by_instrument",
            lambda _: {name: ["probed"] * (name == ATTENTION) for name in INSTRUMENTS},
        )
        patch.setattr(module, "read_findings", lambda *_, **__: all_findings)
        # figures take nearly all of the time
        patch.setattr(figures, "svg_of", lambda _: "<svg></svg>")
        return module.report(["probed"], tmp_path_factory.mktemp("written") / "report").parent


@pytest.fixture
def opened(page, written):
    page.goto((written / "index.html").as_uri())
    return page


def rows_of(written, name):
    return csv_rows(written / f"tables/{name}.csv")


def test_tables_of_many_models_are_files(all_findings, opened, written):
    """Each under a name of its own, whatever the model's; the best of them are on the page, too."""
    assert opened.locator(".atlas").count() == MODELS_ON_A_PAGE
    assert opened.locator("section > details > .atlas").count() == MODELS_ON_A_PAGE - 1
    files = {file.name for file in (written / "tables").glob("python-relations-*.csv")}
    assert len(files) == len(NAMES)
    assert "python-relations-b-x.csv" in files


@pytest.mark.parametrize("count", [1, 4, 10])
def test_first_screen_of_few_and_many(all_findings, page, tmp_path, count):
    """It holds the sentences and the table; on a telephone, nothing lies outside of the page."""
    (findings,) = all_findings
    names = [f"organization/some-longer-name-{number}" for number in range(count)]
    models = [with_settings(findings.subjects[0], name, model=name) for name in names]
    pairs = dict.fromkeys(combinations(range(count), 2), COMPARED)
    scores = dict(findings.scores)
    for name in names:
        scores |= renamed(findings, name)
    answer = headline.answer_section(
        [replace(findings, subjects=models, pairs=pairs, scores=scores)]
    )
    page.goto(save(Report("report", "", "Title", [answer]), tmp_path / "report").as_uri())
    _, *rivals = page.locator(".answer > .texts p").all_inner_texts()
    assert len(rivals) == (count > 1)
    assert all(f"Of {count} models in Python, organization/" in told for told in rivals)
    page.set_viewport_size({"width": 1400, "height": 900})
    for part in (".answer > .texts", ".answer table"):
        box = page.locator(part).bounding_box()  # there is one of each
        assert box["y"] > 0, part
        assert box["y"] + box["height"] <= 900 and box["x"] + box["width"] <= 1400, part
    page.set_viewport_size({"width": 400, "height": 900})
    page.reload()
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    assert page.evaluate(OUTSIDE) == []


def of_direction(findings, direction):
    first = findings.subjects[0]
    return replace(findings, subjects=[with_settings(first, first.name, direction=direction)])


@pytest.mark.parametrize(
    "p, said",
    [(0.04, " is significantly better than "), (0.06, " is not significantly better than ")],
)
def test_a_model_is_the_best_if_it_is_significantly_better_than_the_next(all_findings, p, said):
    """Here the last has the highest mean; of one pair, p needs no correction."""
    (findings,) = all_findings
    pairs = {(0, 1): COMPARED._replace(p=p)}
    (told,) = headline._rivalries([replace(findings, subjects=findings.subjects[:2], pairs=pairs)])
    first, second = (subject.name for subject in findings.subjects[:2])
    assert told == f"Of 2 models in Python, {second}{said}{first}, the next."


def test_of_more_than_three_configs_the_sentence_gives_numbers(all_findings):
    three, four = (headline.sentence(all_findings * configs) for configs in (3, 4))
    assert three.count(" in Python") == 3
    assert "in 0 of 4 configs. They find significantly less in 4, and 0 do not differ" in four


@pytest.mark.parametrize(
    "most, filters, title",
    [(12, 0, "Scores."), (11, 1, "Scores. Each config shows its best 5 models.")],
)
def test_so_many_rows_are_shown_at_once(all_findings, most, filters, title, monkeypatch):
    """Of two configs with six models each."""
    monkeypatch.setattr(headline, "MOST_ROWS", most)
    *_, table, figure = headline.answer_section(all_findings * 2).parts
    assert (table.filters, figure.title) == (filters, title)


def test_directions_are_not_mixed(all_findings):
    """The first sentence speaks of one, and tables with both have a column and a hint."""
    (findings,) = all_findings
    forward, backward = (of_direction(findings, name) for name in DIRECTIONS)
    assert headline.sentence([forward, backward]) == headline.sentence([forward])
    both, alone = headline.models_table([forward, backward]), headline.models_table([forward])
    for table, shown in ((both, True), (alone, False)):
        assert ("--direction" in table.notes) == shown
        assert ("direction" in [column.name for column in table.columns]) == shown
