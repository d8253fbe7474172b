"""The paper made again: which numbers stand beside which, what compares, and that an interrupted run continues."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import figures_unrendered
from support.commands import run
from support.files import contents, csv_rows

import codesyntax_dataset
import probing
from codesyntax_dataset import paper
from codesyntax_dataset.errors import CodeSyntaxError, ModelError, SourceError
from codesyntax_dataset.protocol import DEPENDENT_TO_HEAD, HEAD_TO_DEPENDENT
from codesyntax_metric.topk_uas import score
from probing.evidence.baselines import baseline, only_kind, pick, rank_ledger, read_edges
from probing.evidence.protocols import MEASURES
from probing.paper import inputs
from probing.paper import reproduce as module
from probing.paper.inputs import CONFIGS, Inputs
from probing.paper.joined import ScoreRow, beside_paper, difference, pivot
from probing.paper.measured import Measured, ProbedModel, Reproduction
from probing.paper.page import EXHIBITS, Exhibit, _score_table
from probing.report import figures
from probing.report.kinds import COUNT_DIFFERENCE


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A few functions in both languages, those in Java without a validation split."""
    folder = tmp_path_factory.mktemp("source")
    sample = Path(codesyntax_dataset.__file__).parent / "sample"
    for project in ("test/spans", "test/planar", "validation/cachebox"):
        shutil.copytree(sample / project, folder / project)
    return folder


@pytest.fixture(scope="module")
def told():
    return []


@pytest.fixture(scope="module")
def made(source, tiny_model, told, tmp_path_factory):
    """The folder of a whole run."""
    output = tmp_path_factory.mktemp("made") / "reproduction"
    with figures_unrendered():
        page = probing.reproduce([str(source)], [str(tiny_model)], output, tell=told.append)
    assert page == output / "report/index.html"
    return output


def rows_of(made, name):
    return csv_rows(made / f"report/tables/{name}.csv")


@pytest.mark.slow
class TestRun:
    def test_every_table_and_figure_is_there(self, made, source):
        """Those of natural language, without a source, are empty; nothing else is left in the folder."""
        text = (made / "report/report.md").read_text(encoding="utf-8")
        for exhibit in EXHIBITS:
            assert f"\n### {exhibit.name}. {exhibit.title}\n" in text
        for number in (7, 8):
            heading = text.index(f"### Figure {number}. ")
            assert text[heading:].split("\n")[2].startswith("Empty: ")
        inputs = {row["config"]: row for row in rows_of(made, "inputs")}
        assert inputs["english"]["differs"] == "empty: no source was given"
        assert inputs["python"]["differs"] == "data, models"
        assert (inputs["english"]["source"], inputs["python"]["source"]) == ("", source.name)
        drawn = {path.stem for path in (made / "report/figures").glob("*.svg")}
        assert drawn == {f"figure-{number}" for number in (2, 3, 4, 6, 16, 17, 18, 19)}
        folders = {path.name for path in made.iterdir()}
        assert folders == {*CONFIGS["python"], *CONFIGS["java"], "report", "results"}

    def test_what_will_run_is_told_first(self, told, made):
        assert "java_skip_semicolon from " in told[0]
        assert ": tiny" in told[0]

    @pytest.mark.parametrize("rule, table", [("first", 3), ("any", 5)])
    def test_scores_are_those_of_the_probe_and_of_the_baselines(self, made, rule, table):
        """And the paper's are beside them, each with its difference, of numbers rounded alike."""
        rows = {
            row["system"]: row
            for row in rows_of(made, f"table-{table}")
            if row["config"] == "python"
        }
        result = probing.load(next((made / "results").glob("tiny.python.test.????????.json")))
        found = baseline(made / "python/codesyntax", "python").hits["published"]
        for k in ("1", "3", "10", "20"):
            here = f"k = {k}: here"
            assert float(rows["tiny"][here]) == result.scores[rule][k]
            for kind in ("Offset", "Keyword", "Combined"):
                mean = found[kind.lower()].hits.mean(kind.lower())
                ours = mean.at(MEASURES.index((rule, int(k)))).value
                theirs = paper.scores("python", rule)[kind][k]
                assert float(rows[kind][here]) == pytest.approx(ours)
                assert float(rows[kind][f"k = {k}: paper"]) == theirs
                assert float(rows[kind][f"k = {k}: difference"]) == pytest.approx(
                    round(ours, 1) - theirs
                )
        assert {row["differs"] for row in rows.values()} == {"data, models"}
        assert {*rows} == {"tiny", "Offset", "Keyword", "Combined"}  # CuBERT was not run
        numbers = rows_of(made, "numbers")
        assert any(row["system"] == "CuBERT" for row in numbers if row["rule"] == rule)

    def test_relations_are_beside_the_best_offset(self, made):
        """Table 9 has the paper's 34 relations in the paper's order."""
        rows = rows_of(made, "table-9")
        published = paper.relation_scores("python", "first")
        assert [row["group"] for row in rows] == [*published]
        assert sum(bool(row["tiny: here"]) for row in rows) > 10
        for row in rows:
            theirs = published[row["group"]]
            assert float(row["CuBERT: paper"]) == theirs.cubert
            assert float(row["Offset: paper"]) == theirs.offset_score
            assert int(row["Offset: chosen in the paper"]) == theirs.offset
        test = next(row for row in rows if row["group"] == "If:if->test")
        # most tests stand behind their `if`, without a bracket
        assert test["Offset: chosen"] == "1"
        result = probing.load(next((made / "results").glob("tiny.python.test.????????.json")))
        best = result.relations["If:if->test"]["first"]["1"]
        assert float(test["tiny: here"]) == best["score"]
        assert test["tiny: chosen"] == (f"{best['layer']}-{best['head']}" if best["score"] else "-")

    def test_every_number_is_in_one_file(self, made):
        rows = rows_of(made, "numbers")
        (row,) = (
            row
            for row in rows
            if (row["config"], row["group"], row["measure"]) == ("python", "If:if->test", "edges")
        )
        assert (row["paper"], row["differs"]) == ("34250", "data, models")
        assert {row["config"] for row in rows} > {"german", "java_skip_semicolon"}

    def test_heads_of_cases_are_best_on_all_other_functions(self, made):
        """Counted from the ledger."""
        rows = rows_of(made, "cases")
        figures = [int(row["figure"]) for row in rows]
        assert {1, 9, 10} <= {*figures} < {case.figure for case in paper.cases()}
        assert figures == sorted(figures)
        assert 5 not in figures
        for row in rows:
            config, relation = row["config"], row["relation"]
            words = shlex.split(row["command"])
            data = pq.read_table(made / config / "codesyntax" / config / "test.parquet").to_pylist()
            shown = int(words[words.index("--id") + 1])
            (place,) = (place for place, function in enumerate(data) if function["id"] == shown)
            assert 10 <= len(data[place]["tokens"]) <= 60
            result = next((made / "results").glob(f"tiny.{config}.test.????????.json"))
            ledger = probing.load(result).ledger
            named = ledger.relation == ledger.relations.index(relation)
            edges = np.bincount(
                ledger.function[named & (ledger.tokens >= 10) & (ledger.tokens <= 60)]
            )
            assert place == edges.argmax()
            assert edges.max() > 0
            if row["figure"] == "1":  # labels alone
                assert "--labels" in words
                assert row["head"] == ""
                continue
            hits = ledger.ranks[0] == 0  # (edges, layers, heads)
            elsewhere = hits[named & (ledger.function != place)].mean(axis=0)
            layer, head = map(int, row["head"].split("-"))
            assert elsewhere[layer, head] == elsewhere.max()
            assert words[words.index("--head") + 1] == row["head"]

    @pytest.mark.parametrize("figure", ["1", "9"])
    def test_the_command_of_a_case_draws_it(self, made, figure, tmp_path, monkeypatch):
        """As it is printed, in the folder of the reproduction; only the page is written elsewhere."""
        (case,) = (row for row in rows_of(made, "cases") if row["figure"] == figure)
        program, *words = shlex.split(case["command"])
        assert program == "codesyntax"
        monkeypatch.chdir(made)
        page = run(*words, "--output", tmp_path / "page.html").output
        assert Path(page.strip()) == tmp_path / "page.html"
        assert f'"{case["relation"].replace(">", chr(92) + "u003e")}"' in Path(
            page.strip()
        ).read_text(encoding="utf-8")

    def test_errors_are_those_of_the_analysis(self, made):
        """Table 7: all first choices that are wrong, of the rule first."""
        for config in ("python", "java"):
            (file,) = (made / "results").glob(f"tiny.{config}.test.*.errors.json")
            probed = probing.load(file.with_name(file.name.replace(".errors.json", ".json")))
            wrong = sum(
                round(one["edges"] * (1 - one["first"]["1"]["score"] / 100))
                for one in probed.relations.values()
            )
            rows = [row for row in rows_of(made, "table-7") if row["config"] == config]
            assert sum(int(row["errors: here"]) for row in rows) == wrong > 0

    def test_edges_are_of_all_splits(self, made):
        """Table 8 beside the published counts."""
        files = (made / "python/codesyntax/python").iterdir()
        edges = [
            edge
            for file in files
            for row in pq.read_table(file)["relations"].to_pylist()
            for edge in row
        ]
        rows = {row["group"]: row for row in rows_of(made, "table-8") if row["config"] == "python"}
        row = rows["If:if->test"]
        assert int(row["edges: paper"]) == 34_250
        assert int(row["edges: difference"]) == int(row["edges: here"]) - 34_250
        assert (
            sum(edge["relation"] == "If:if->test" for edge in edges) == int(row["edges: here"]) > 0
        )

    def test_semicolon_is_a_keyword_of_java(self, made):
        """As in the paper's numbers: it finds the ends of statements. Where it is never predicted, it is none."""
        found = {}
        numbers = rows_of(made, "numbers")
        for config in ("java", "java_skip_semicolon"):
            edges = read_edges(made / config / "codesyntax", config, "test")
            words = score(
                only_kind(rank_ledger(edges, pick(edges)), "keyword").counts(), 1, "last"
            )["scores"]["1"]
            (here,) = (
                float(row["value"])
                for row in numbers
                if [row[name] for name in ("config", "rule", "system", "k", "group")]
                == [config, "last", "Keyword", "1", "mean"]
            )
            found[config] = words, here
        words, here = found["java"]
        assert here > words
        words, here = found["java_skip_semicolon"]
        assert here == words

    @pytest.mark.usefixtures("unrendered")
    def test_killed_twice_it_continues_to_the_same_bytes(
        self, made, source, tiny_model, tmp_path, monkeypatch
    ):
        output = tmp_path / "again"
        calls, run = [], module.probe

        def killed(*arguments, **options):
            calls.append(arguments)
            if len(calls) in (2, 6):
                raise KeyboardInterrupt
            return run(*arguments, **options)

        monkeypatch.setattr(module, "probe", killed)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                probing.reproduce([str(source)], [str(tiny_model)], output)
        probing.reproduce([str(source)], [str(tiny_model)], output)
        assert contents(output) == contents(made)


def test_the_best_of_each_language_is_drawn(monkeypatch):
    """In Figure 2: of models, and of offsets alone, beside those of the paper; a language without numbers has none."""
    scores = {"mine": 20.0, "theirs": 30.0, "Offset": 43.2, "Keyword": 15.7, "Combined": 60.0}
    rows = [ScoreRow("python", "mean", system, value) for system, value in scores.items()]
    rows += [ScoreRow("python", "mean", "mine", 90.0, k=3), ScoreRow("java", "mean", "Offset", 5.0)]
    made = Reproduction(Inputs({}, {}, {}, None), {"python": Measured({}, rows)}, {})
    (exhibit,) = (exhibit for exhibit in EXHIBITS if exhibit.name == "Figure 2")
    drawn = {}
    monkeypatch.setattr(
        figures, "dots", lambda names, panels: drawn.update(names=names, panels=panels)
    )
    exhibit.draw(made, exhibit).draw()
    points = {of.label: dict(zip(drawn["names"], of.values)) for of in drawn["panels"]["UAS, %"]}
    assert points["best model, here"]["Python"] == 30.0
    assert points["offset, here"]["Python"] == 43.2
    assert points["offset, in the paper"]["Python"] == 43.6
    assert points["offset, here"]["Java"] == 5.0
    assert np.isnan(points["best model, here"]["Java"])
    assert np.isnan(points["offset, here"]["German"])
    # Table 4 of the paper: Offset, and XLM-RoBERTa-base
    assert points["offset, in the paper"]["German"] == 36.3
    assert points["best model, in the paper"]["German"] == 67.4


def _of_the_paper(models, limit=None, lost=0):
    """Python as in the paper, less `lost` functions, with `models` -> the direction in which they were probed."""
    relations = {
        name: SimpleNamespace(edges=edges) for name, edges in paper.edges("python").items()
    }
    counted = SimpleNamespace(functions=18_701 - lost, relations=relations)
    probed = {name: ProbedModel(name, direction, "") for name, direction in models.items()}
    inputs = Inputs({}, {}, {}, limit)
    return Reproduction(inputs, {"python": Measured(probed, [])}, {"python": counted})


ALL = dict.fromkeys(("CuBERT", "CodeBERT", "RoBERTa"), HEAD_TO_DEPENDENT)


@pytest.mark.parametrize(
    "made, differs",
    [
        (_of_the_paper(ALL), ""),
        (_of_the_paper(ALL, limit=20), "limit"),
        (_of_the_paper(ALL, lost=1), "data"),
        (_of_the_paper({"CuBERT": HEAD_TO_DEPENDENT}), "models"),
        (_of_the_paper(ALL | {"CuBERT": DEPENDENT_TO_HEAD}), "direction"),
    ],
)
def test_numbers_compare_where_the_inputs_are_the_papers(made, differs):
    """A direction is that of one model."""
    assert made.differs("python", "CuBERT") == differs
    assert made.differs("python", "Offset") == differs.replace("direction", "")


def test_models_have_the_names_of_the_paper():
    assert paper.name_of("FacebookAI/roberta-base", "english") == "RoBERTa-base"
    assert paper.name_of("cubert-python", "python") == "CuBERT"


@pytest.mark.parametrize(
    "here, expected", [(39.249, 0.0), (39.151, 0.0), (39.26, 0.1), (39.14, -0.1), (None, None)]
)
def test_difference_is_of_rounded_numbers(here, expected):
    assert difference(here, 39.2) == expected


def test_numbers_are_joined_by_all_that_they_are_of():
    """The paper's first; numbers that only one of the two has stay."""
    ours = [
        ScoreRow("python", "mean", "mine", 1.0),
        ScoreRow("python", "mean", "Offset", 43.58, k=3),
    ]
    papers = [ScoreRow("python", "mean", "Offset", 43.6, k=k) for k in (1, 3)]
    frame = beside_paper(ours, papers)
    rows = frame[["system", "k", "value", "paper", "difference"]].to_numpy().tolist()
    assert rows == [
        ["Offset", 1, None, 43.6, None],
        ["Offset", 3, 43.58, 43.6, 0.0],
        ["mine", 1, 1.0, None, None],
    ]
    table = pivot("name", "title", frame, ("system",), "k")
    assert [column.full_name for column in table.columns] == [
        *(
            "system",
            "k = 1: here",
            "k = 1: paper",
            "k = 3: here",
            "k = 3: paper",
            "k = 3: difference",
        )
    ]
    assert table.rows == [
        ["Offset", None, 43.6, 43.58, 43.6, 0.0],
        ["mine", 1.0, None, None, None, None],
    ]


OF = ScoreRow("python", "mean", "Offset", 43.6)
OTHERS = {
    "config": "java",
    "group": "If:if->test",
    "system": "Keyword",
    "measure": "edges",
    "rule": "any",
    "k": 3,
}


@pytest.mark.parametrize("column", OTHERS)
def test_numbers_that_differ_in_one_of_these_are_not_joined(column):
    frame = beside_paper([OF], [OF._replace(**{column: OTHERS[column]})])
    assert len(frame) == 2
    assert not any(frame["difference"].notna())


@pytest.mark.parametrize("digits, expected", [(1, 0.0), (2, 0.0), (3, -0.002)])
def test_difference_has_as_many_digits_as_the_paper_prints(digits, expected):
    frame = beside_paper([OF._replace(value=-0.1584)], [OF._replace(value=-0.156, digits=digits)])
    assert frame["difference"].tolist() == [expected]


@pytest.mark.parametrize("column", [None, "config", "group", "measure", "rule", "k"])
def test_an_exhibit_has_the_rows_of_its_caption(column):
    """Of other configs, rules, measures and k nothing; means over relations or relations."""
    rows = [OF, OF._replace(**({} if column is None else {column: OTHERS[column]}))]
    study = SimpleNamespace(frame=beside_paper(rows[1:], []))
    exhibit = Exhibit("Table 0", "", _score_table, configs=("python",))
    assert len(exhibit._replace(means=True).select(study)) == (column is None)
    assert len(exhibit.select(study)) == (column == "group")


def test_counts_and_errors_stand_in_the_frame():
    """Edges of code alone, mean offsets of all; classes of errors from the most frequent, and shares of kinds."""

    def counted(edges, mean):
        return SimpleNamespace(
            functions=1,
            relations={"r": SimpleNamespace(edges=edges, offset=SimpleNamespace(mean=mean))},
        )

    errors = SimpleNamespace(
        settings=SimpleNamespace(model="mine"),
        classes=lambda rule: {"none": 0, "few": 1, "most": 3} if rule == "first" else {},
        attended={"0-1": {"name": 3, "sign": 1}, "1-0": {"name": 0}},
    )
    frame = Reproduction(
        Inputs({}, {}, {}, None),
        counted={"python": counted(5, 2.5), "english": counted(7, -1.5)},
        errors={"python": errors},
    ).frame
    ours = frame[frame["value"].notna()]
    columns = ["config", "group", "system", "measure", "value"]
    assert {tuple(row) for row in ours[columns].to_numpy().tolist()} == {
        ("python", "r", "dataset", "offset", 2.5),
        ("python", "r", "dataset", "edges", 5),
        ("english", "r", "dataset", "offset", -1.5),
        ("python", "few", "mine", "errors", 1),
        ("python", "most", "mine", "errors", 3),
        ("python", "name", "mine 0-1", "attended", 75),
        ("python", "sign", "mine 0-1", "attended", 25),
        ("python", "name", "mine 1-0", "attended", 0),
    }
    assert ours[ours["measure"] == "errors"]["group"].tolist() == ["most", "few"]


def test_a_model_is_for_the_languages_that_it_reads_or_is_named_for(monkeypatch):
    """One that reads a single language is for another only if it is named for that."""
    reads = {"m": None, "j": "java"}
    monkeypatch.setattr(
        inputs, "_described_model", lambda name: inputs.Model(name, name, reads[name])
    )

    def languages(*models):
        read = inputs.read(["german=d", "s", "s"], models)
        assert read.sources == {"german": "d", "python": "s", "java": "s"}
        return {
            language: [model.name for model in of] for language, of in read.models.items() if of
        }

    assert languages("m", "m") == {language: ["m"] for language in CONFIGS}
    assert languages("j") == {"java": ["j"]}
    assert languages("english=j", "german=m", "j") == {
        "java": ["j"],
        "english": ["j"],
        "german": ["m"],
    }


@pytest.mark.parametrize("count, text", [(-1234, "−1,234"), (0, "0"), (1000, "+1,000")])
def test_differences_of_counts(count, text):
    assert COUNT_DIFFERENCE.show(count) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    "sources, models, error, message",
    [
        (["python=a", "python=b"], ["m"], CodeSyntaxError, "python has 2 sources, a and b"),
        (["sample"], ["no such model"], ModelError, "no such folder"),
        (["sample"], ["python={tiny}", "{tiny}", "python={tiny}"], None, ""),
        (["sample"], ["{tiny}", "{twin}"], CodeSyntaxError, "both named tiny"),
        (["sample"], ["{cubert}-1", "{cubert}-2"], CodeSyntaxError, "both named CuBERT"),
    ],
)
def test_inputs_are_checked_before_anything_runs(
    sources, models, error, message, tiny_model, tmp_path
):
    """A model that is given twice is one model; a language without any has baselines alone."""
    twin, cubert = tmp_path / "tiny", tmp_path / "cubert"
    for copy in (twin, tmp_path / "cubert-1", tmp_path / "cubert-2"):
        shutil.copytree(tiny_model, copy)
    models = [model.format(tiny=tiny_model, twin=twin, cubert=cubert) for model in models]
    if error is None:
        read = inputs.read(sources, models)
        assert [len(read.models[language]) for language in ("python", "java", "german")] == [
            1,
            1,
            1,
        ]
        assert [*read.sources] == ["python", "java"]
        assert "java, java_with_new_lines, java_skip_semicolon from sample: baselines only" in (
            inputs.read(sources, models[:1]).text()
        )
    else:
        with pytest.raises(error, match=message):
            inputs.read(sources, models)


@pytest.mark.slow
def test_a_model_of_one_language_is_probed_on_that(tmp_path):
    """As CuBERT is."""
    from support.models.cubert_release import write_release

    from probing.models.cubert.convert import convert

    release = write_release(tmp_path / "release")
    convert(
        release,
        tmp_path / "cubert",
        vocabulary=release.with_name("vocabulary.txt"),
        language="java",
    )
    read = inputs.read(["sample"], [str(tmp_path / "cubert")])
    assert {language: len(models) for language, models in read.models.items() if models} == {
        "java": 1
    }
    assert paper.name_of(read.models["java"][0].name, "java") == "CuBERT"


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered")
def test_a_language_that_the_source_lacks_is_left_out(tmp_path):
    """With the reason; as a published dataset of one language lacks the other, and its ablation."""
    function = {
        "code": "q = queue",
        "tokens": ["q", "=", "queue"],
        "id": 1,
        "relns": {"Assign:target->value": [[0, 2, 2]]},
    }
    (tmp_path / "source").mkdir()
    (tmp_path / "source/CodeSyntax_python.json").write_text(json.dumps([function]))
    told: list[str] = []
    probing.reproduce([str(tmp_path / "source")], [], tmp_path / "made", tell=told.append)
    differs = {row["config"]: row["differs"] for row in rows_of(tmp_path / "made", "inputs")}
    assert differs["python"] == "data, models"
    lacks = "empty: source has the published labels of python, not of "
    assert differs["java"] == f"{lacks}java"
    assert differs["python_with_new_lines"].startswith(f"{lacks}python_with_new_lines")
    (left_out,) = (line for line in told if line.startswith("left out java: "))
    assert left_out.removeprefix("left out java") == differs["java"].removeprefix("empty")


def test_a_source_of_which_nothing_can_be_built_is_an_error(tmp_path):
    """Told once, not for each config."""
    told = []
    with pytest.raises(SourceError) as error:
        probing.reproduce(["no/such/folder"], [], tmp_path / "made", tell=told.append)
    assert str(error.value).count("does not exist") == 1
    assert not any("does not exist" in line for line in told)
    assert not (tmp_path / "made/report").exists()


def test_the_sample_is_a_source_of_sentences_too(tmp_path, monkeypatch):
    """But a further source says of which language it is."""
    read = []

    def stop(sources, models, limit, languages):
        read.append(languages)
        raise KeyboardInterrupt

    monkeypatch.setattr(inputs, "read", stop)
    for sources in (["sample"], ["path/to/code"]):
        with pytest.raises(KeyboardInterrupt):
            probing.reproduce(sources, [], tmp_path / "made")
    assert read == [["python", "java", "english", "german"], ["python", "java"]]


def test_what_is_not_ours_is_not_touched(tmp_path, tiny_model):
    """Neither a file in the folder, nor a file as the folder."""
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".git").mkdir()
    for output, status in ((tmp_path, 1), (tmp_path / "notes.txt", 2)):
        asked = ("reproduce --source sample --models", tiny_model, "--output", output)
        assert "notes.txt" in run(*asked, status=status).output
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / ".git").is_dir()
