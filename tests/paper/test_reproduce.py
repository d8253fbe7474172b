"""The paper made again: which numbers stand beside which, what compares, and that an interrupted run continues."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import filelock
import pyarrow.parquet as pq
import pytest
from conftest import figures_unrendered
from support.commands import run

import codesyntax_dataset
import probing
from codesyntax_dataset import paper
from codesyntax_dataset.errors import CodeSyntaxError, LedgerError, ModelError, SourceError
from codesyntax_dataset.protocol import DEPENDENT_TO_HEAD, HEAD_TO_DEPENDENT
from codesyntax_metric.topk_uas import score
from probing.evidence.baselines import baseline, ledger, only, pick, read_edges
from probing.paper import reproduce as module
from probing.paper.cases import CASES
from probing.paper.inputs import Inputs
from probing.paper.joined import ScoreRow, difference, join, pivot
from probing.paper.measured import Measured, ProbedModel, Reproduction
from probing.paper.page import EXHIBITS
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


def rows_of(made: Path, name: str) -> list[dict[str, str]]:
    with (made / f"report/tables/{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
class TestRun:
    def test_every_table_and_figure_is_there(self, made):
        """Those of natural language, without a source, with the reason; nothing else is left in the folder."""
        text = (made / "report/report.md").read_text(encoding="utf-8")
        for exhibit in EXHIBITS:
            assert f"\n### {exhibit.name}. {exhibit.title}\n" in text
        for number in (7, 8):
            heading = text.index(f"### Figure {number}. ")
            assert (
                text[heading:].split("\n")[2].startswith("Empty: ")
                and "was given" in text[heading : heading + 90]
            )
        drawn = {path.stem for path in (made / "report/figures").glob("*.svg")}
        assert drawn == {f"figure-{number}" for number in (2, 3, 4, 6, 16, 17, 18, 19)}
        assert sorted(path.name for path in made.iterdir()) == [
            "java",
            "python",
            "report",
            "results",
        ]

    def test_what_will_run_is_told_first(self, told, made):
        assert "java_skip_semicolon from " in told[0] and ": tiny; " in told[0]
        assert "english: left out, no source" in told[0]

    @pytest.mark.parametrize(("rule", "table"), [("first", 3), ("any", 5)])
    def test_scores_are_those_of_the_probe_and_of_the_baselines(self, made, rule, table):
        """And the paper's are beside them, each with its difference, of numbers rounded alike."""
        rows = {
            row["system"]: row
            for row in rows_of(made, f"table-{table}")
            if row["config"] == "python"
        }
        result = probing.load(next((made / "results").glob("tiny.python.test.????????.json")))
        found = baseline(made / "python/codesyntax", "python").summaries["published"]
        for k in ("1", "3", "10", "20"):
            here = f"k = {k}: here"
            assert float(rows["tiny"][here]) == result.scores[rule][k]
            for kind in ("Offset", "Keyword", "Combined"):
                ours, theirs = (
                    found[kind.lower()]["scores"][rule][k][0],
                    paper.scores("python", rule)[kind][k],
                )
                assert float(rows[kind][here]) == pytest.approx(ours)
                assert float(rows[kind][f"k = {k}: paper"]) == theirs
                assert float(rows[kind][f"k = {k}: difference"]) == pytest.approx(
                    round(ours, 1) - theirs
                )
            assert rows["CuBERT"][here] == "" and float(rows["CuBERT"][f"k = {k}: paper"])
        assert rows["CuBERT"]["comparable"] == "empty: no such model"
        assert rows["Offset"]["comparable"] == "no: other data, other functions"
        assert rows["tiny"]["comparable"] == "not in the paper"

    def test_relations_are_against_the_best_offset(self, made):
        """Table 9 has the paper's 34 relations, largest difference first, and Table 6 its ends."""
        rows = rows_of(made, "table-9")
        published = paper.relation_scores("python", "first")
        assert {row["group"] for row in rows} == set(published)
        for row in rows:
            theirs = published[row["group"]]
            assert float(row["CuBERT: paper"]) == theirs.cubert
            assert float(row["Offset: paper"]) == theirs.offset_score
            assert int(row["Offset: paper, which"]) == theirs.offset
        both = [row for row in rows if row["tiny − Offset: here"]]
        differences = [float(row["tiny − Offset: here"]) for row in both]
        assert differences == sorted(differences, reverse=True) and len(differences) > 10
        test = next(row for row in both if row["group"] == "If:if->test")
        # most tests stand behind their `if`, without a bracket
        assert test["Offset: here, which"] == "1"
        result = probing.load(next((made / "results").glob("tiny.python.test.????????.json")))
        best = result.relations["If:if->test"]["first"]["1"]
        here = float(test["tiny: here"])
        assert here == best["score"]
        difference = here - float(test["Offset: here"])
        assert float(test["tiny − Offset: here"]) == pytest.approx(difference)
        ends = [row["group"] for row in rows_of(made, "table-6") if row["config"] == "python"]
        groups = [row["group"] for row in both]
        assert ends == groups[:5] + groups[-5:]

    def test_heads_of_cases_are_best_on_all_other_functions(self, made):
        """Counted from the ledger; Figure 1 is of labels alone."""
        rows = {(row["figure"], row["config"]): row for row in rows_of(made, "cases")}
        lacking = {case.figure for case in CASES} - {int(figure) for figure, _ in rows}
        assert 5 in lacking and ("1", "python") in rows
        page = (made / "report/models/cases.html").read_text(encoding="utf-8")
        shown = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
        assert [case["name"] for case in shown] == [
            f"Figure {figure}, {config}: {row['relation']}"
            for (figure, config), row in rows.items()
        ]
        for (figure, config), row in rows.items():
            data = pq.read_table(made / config / "codesyntax" / config / "test.parquet")
            place = data["id"].to_pylist().index(int(row["function"].rpartition(" ")[2]))
            assert 10 <= len(data["tokens"][place]) <= 60
            result = next((made / "results").glob(f"tiny.{config}.test.????????.json"))
            ledger = probing.load(result).ledger
            named = ledger.relation == ledger.relations.index(row["relation"])
            here = named & (ledger.function == place)
            assert int(row["edges"]) == here.sum()
            if figure != "1":
                hits = ledger.ranks[0] == 0  # (edges, layers, heads)
                elsewhere = hits[named & ~here].mean(axis=0)
                head = tuple(map(int, row["head"].split("-")))
                assert elsewhere[head] == elsewhere.max()
                assert float(row["found elsewhere"]) == pytest.approx(100 * elsewhere.max())
                assert int(row["found"]) == hits[here, *head].sum()

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
            assert sum(float(row["percent: here"]) for row in rows) == pytest.approx(100)

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
        data = made / "java/codesyntax"
        found = {}
        for config, figure in (("java", 16), ("java_skip_semicolon", 4)):
            edges = read_edges(data, config, "test")
            words = score(only(ledger(edges, pick(edges)), "keyword").counts(), 1, "last")[
                "scores"
            ]["1"]
            rows = {
                (row["rule"], row["config"], row["system"], row["k"]): row
                for row in rows_of(made, f"figure-{figure}")
            }
            found[config] = words, float(rows["last", config, "Keyword", "1"]["value"])
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
            if len(calls) in (2, 6):  # with what a kill leaves: files that are not yet renamed
                for folder in ("", "results", "python"):
                    (output / folder / ".codesyntax-x.tmp").mkdir(parents=True)
                (output / "results/.codesyntax-x.tmp/one.json").write_text("{")
                raise KeyboardInterrupt
            return run(*arguments, **options)

        monkeypatch.setattr(module, "probe", killed)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt, match="run the same command again"):
                probing.reproduce([str(source)], [str(tiny_model)], output)
        probing.reproduce([str(source)], [str(tiny_model)], output)
        assert content(output) == content(made)

    def test_another_run_in_the_folder_is_refused(self, made, source, tiny_model):
        with (
            filelock.FileLock(made / ".lock"),
            pytest.raises(LedgerError, match="another run is writing"),
        ):
            probing.reproduce([str(source)], [str(tiny_model)], made)
        (made / ".lock").unlink(missing_ok=True)


def _of_the_paper(models: dict[str, str], limit: int | None = None, lost: int = 0) -> Reproduction:
    """Python as in the paper, less `lost` functions, with `models` -> the direction in which they were probed."""
    relations = {
        name: SimpleNamespace(edges=edges) for name, edges in paper.edges("python").items()
    }
    counted = SimpleNamespace(functions=18_701 - lost, relations=relations)
    probed = {name: ProbedModel(name, direction, "") for name, direction in models.items()}
    inputs = Inputs({}, {}, {}, {"java": "no source"}, limit)
    return Reproduction(inputs, {"python": Measured(1, probed, [])}, {"python": counted})


ALL = dict.fromkeys(("CuBERT", "CodeBERT", "RoBERTa"), HEAD_TO_DEPENDENT)


@pytest.mark.parametrize(
    ("made", "standing"),
    [
        (_of_the_paper(ALL), "yes"),
        (_of_the_paper(ALL, limit=20), "no: partial"),
        (_of_the_paper(ALL, lost=1), "no: other data"),
        (_of_the_paper({"CuBERT": HEAD_TO_DEPENDENT}), "no: other functions"),
        (_of_the_paper(ALL | {"CuBERT": DEPENDENT_TO_HEAD}), "no: other direction"),
        (_of_the_paper({"gpt2": HEAD_TO_DEPENDENT}), "empty: no such model"),
    ],
)
def test_numbers_compare_where_the_inputs_are_the_papers(made, standing):
    assert made.standing("python", "CuBERT") == standing
    assert made.standing("java", "CuBERT") == "empty: no data"
    assert made.standing("python", "gpt2") == "not in the paper"


def test_models_have_the_names_of_the_paper():
    assert paper.name_of("FacebookAI/roberta-base", "english") == "RoBERTa-base"
    assert paper.name_of("cubert-python", "python") == "CuBERT"


@pytest.mark.parametrize(
    ("here", "expected"), [(39.249, 0.0), (39.151, 0.0), (39.26, 0.1), (39.14, -0.1), (None, None)]
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
    frame = join(ours, papers, lambda config, system: f"{config}, {system}")
    rows = frame[["system", "k", "value", "paper", "difference", "comparable"]].to_numpy().tolist()
    assert rows == [
        ["Offset", 1, None, 43.6, None, "python, Offset"],
        ["Offset", 3, 43.58, 43.6, 0.0, "python, Offset"],
        ["mine", 1, 1.0, None, None, "python, mine"],
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


@pytest.mark.parametrize(("count", "text"), [(-1234, "−1,234"), (0, "0"), (1000, "+1,000")])
def test_differences_of_counts(count, text):
    assert COUNT_DIFFERENCE.show(count) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sources", "models", "error", "message"),
    [
        (["python=a", "python=b"], ["m"], CodeSyntaxError, "python has 2 sources, a and b"),
        (["no/such/folder"], ["m"], SourceError, "does not exist"),
        (["sample", "german=no/such/file.conllu"], ["m"], SourceError, "does not exist"),
        (["sample"], ["no such model"], ModelError, "no such folder"),
        (["sample"], ["python={tiny}", "{tiny}", "python={tiny}"], None, ""),
        (["sample"], ["{tiny}", "{twin}"], CodeSyntaxError, "both named tiny"),
    ],
)
def test_inputs_are_checked_before_anything_runs(
    sources, models, error, message, tiny_model, tmp_path
):
    """A model that is given twice is one model; a language without any has baselines alone."""
    from probing.paper import inputs

    twin = tmp_path / "tiny"
    twin.mkdir()
    (twin / "config.json").write_bytes((tiny_model / "config.json").read_bytes())
    models = [model.format(tiny=tiny_model, twin=twin) for model in models]
    if error is None:
        read = inputs.read(sources, models)
        assert [len(read.models[language]) for language in ("python", "java", "german")] == [
            1,
            1,
            1,
        ]
        assert read.languages == ["python", "java"]
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
    from probing.paper import inputs

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


def test_a_language_that_the_source_lacks_is_left_out(tmp_path, tiny_model):
    """With the reason; as a published dataset of one language lacks the other, and its ablation."""
    from probing.paper import inputs

    function = {
        "code": "q = queue",
        "tokens": ["q", "=", "queue"],
        "id": 1,
        "relns": {"Assign:target->value": [[0, 2, 2]]},
    }
    (tmp_path / "CodeSyntax_python.json").write_text(json.dumps([function]))
    read = inputs.read([str(tmp_path)], [str(tiny_model)])
    assert list(read.functions) == ["python"]
    assert (
        read.missing["java"] == f"{tmp_path.name} has the published labels of python, not of java"
    )
    assert "not of python_with_new_lines" in read.missing["python_with_new_lines"]


def test_what_is_not_ours_is_not_touched(tmp_path, tiny_model):
    """Neither a file in the folder, nor a file as the folder."""
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".git").mkdir()
    for output, status in ((tmp_path, 1), (tmp_path / "notes.txt", 2)):
        asked = ("reproduce --source sample --models", tiny_model, "--output", output)
        assert "notes.txt" in run(*asked, status=status).output
    assert (tmp_path / "notes.txt").read_text() == "mine" and (tmp_path / ".git").is_dir()
